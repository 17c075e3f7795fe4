"""A recorded body, and when its pieces came: `FILE`, and beside it `FILE.times` if somebody kept the times.

Each line of `FILE.times` is one read: seconds since the start, a blank, and its size in bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from math import isfinite

from .answers import by_event

TIMES_SUFFIX = ".times"
LONGEST_PAUSE = 600.0


class UnfitTimes(ValueError):
    """The times are not those of the body."""


@dataclass(frozen=True)
class Recording:
    """The pieces of a body, each with the seconds to wait before it."""

    pieces: tuple[tuple[float, bytes], ...]
    paced: bool

    @classmethod
    def load(cls, path: str, *, pace: float | None = None) -> Recording:
        """OSError if it cannot be read; UnfitTimes. A pace (seconds an event) goes before recorded times."""
        with open(path, "rb") as file:
            body = file.read()
        if pace is not None:
            return cls(tuple((pace, event) for event in by_event(body)), paced=True)
        if not os.path.exists(path + TIMES_SUFFIX):
            return cls(((0.0, body),), paced=False)
        with open(path + TIMES_SUFFIX, encoding="ascii", errors="replace") as file:
            return cls(tuple(_timed(body, file.read())), paced=True)


def _timed(body: bytes, times: str) -> Iterator[tuple[float, bytes]]:
    at, before = 0, 0.0
    for line in times.split("\n"):
        if not line:
            continue
        moment, size = _read_line(line)
        if moment < before or moment - before > LONGEST_PAUSE or at + size > len(body):
            raise UnfitTimes("the recorded times do not fit the body")
        yield moment - before, body[at : at + size]
        at, before = at + size, moment
    if at != len(body):
        raise UnfitTimes("the recorded times do not fit the body")


def _read_line(line: str) -> tuple[float, int]:
    first, _, second = line.partition(" ")
    try:
        moment, size = float(first), int(second)
    except ValueError:
        moment, size = -1.0, 0
    if not isfinite(moment) or moment < 0 or size < 1:
        raise UnfitTimes("a line of the recorded times is no `seconds bytes`")
    return moment, size
