"""The search finds what is there to be found."""

from __future__ import annotations

from typing import Any

import amplification


class Hoarder:
    """Holds each line as an object of its own: the mistake that the search is for."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def feed(self, data: bytes) -> None:
        self.lines += data.split(b"\n")


class Forgetful:
    def feed(self, data: bytes) -> None:
        pass


def test_short_lines_that_are_kept_as_objects_are_found(capsys: Any) -> None:
    assert amplification.search("hoarder", Hoarder, [b"x" * 400 + b"\n", b"x\n"], 5, seed=1) > 2
    assert "worst" in capsys.readouterr().out


def test_nothing_held_is_no_amplification() -> None:
    assert amplification.search("forgetful", Forgetful, [b"x", b"\n"], 0.5, seed=1) <= 0
