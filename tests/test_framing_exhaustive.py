"""Every short string over the tokens that framing tells apart, at every cut, in both builds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from framing_model import NO_CAPS, facts, framed

TOKENS = (b"\r", b"\n", b":", b" ", b"data", b"event", b"id", b"retry", b"\xef\xbb\xbf", b"\x00", b"x")

CUT_TOKENS = {"compiled": 5, "pure": 4}
"""Up to so many tokens are cut at every place; the pure build would take minutes at 5."""


def strings(most_tokens: int) -> Iterator[bytes]:
    for size in range(most_tokens + 1):
        for chosen in itertools.product(TOKENS, repeat=size):
            yield b"".join(chosen)


def told(framer: Any, error_class: type[Exception], *pieces: bytes) -> tuple[list[Any], tuple[Any, ...] | None]:
    """Events, with their offsets, and the error of a stream in these pieces; the framer is used over and over."""
    framer.reset()
    events = []
    try:
        for piece in pieces:
            events += framer.feed(piece)
        framer.close()
    except error_class as error:
        return events + error.events, facts(error)
    return events, None


def plain(events: list[Any]) -> list[tuple[Any, ...]]:
    return [(e.event, e.data, e.id, e.retry, e.offset) for e in events]


@pytest.mark.parametrize("errors", ["strict", "replace"])
def test_every_string_of_up_to_4_tokens_is_what_the_model_says(glmsse: ModuleType, errors: str) -> None:
    framer = glmsse.SSEFramer(errors=errors)
    for stream in strings(4):
        events, error = told(framer, glmsse.GlmsseError, stream)
        expected = framed(stream, NO_CAPS, errors)
        assert (plain(events), error) == (expected.events, expected.error), stream


def test_every_string_of_5_tokens_is_the_same_in_both_builds(builds: dict[str, ModuleType]) -> None:
    if len(builds) < 2:
        pytest.skip("one build only")
    compiled, pure = builds["compiled"], builds["pure"]
    first, second = compiled.SSEFramer(), pure.SSEFramer()
    for chosen in itertools.product(TOKENS, repeat=5):
        stream = b"".join(chosen)
        events, error = told(first, compiled.GlmsseError, stream)
        twin_events, twin_error = told(second, pure.GlmsseError, stream)
        assert (plain(events), error) == (plain(twin_events), twin_error), stream


def test_every_cut_of_every_string_changes_nothing(glmsse: ModuleType) -> None:
    framer, error_class = glmsse.SSEFramer(), glmsse.GlmsseError
    for stream in strings(CUT_TOKENS[glmsse.IMPLEMENTATION]):
        events, error = told(framer, error_class, stream)
        expected = plain(events), error
        for at in range(1, len(stream)):
            events, error = told(framer, error_class, stream[:at], stream[at:])
            assert (plain(events), error) == expected, (stream, at)


def test_no_truncation_of_any_string_delivers_more_than_the_whole(glmsse: ModuleType) -> None:
    """A stream that stops early gives a beginning of the events, and says so if it stops inside one."""
    framer, error_class = glmsse.SSEFramer(), glmsse.GlmsseError
    for stream in strings(4):
        whole = plain(told(framer, error_class, stream)[0])
        for size in range(len(stream)):
            events, error = told(framer, error_class, stream[:size])
            assert plain(events) == whole[: len(events)], (stream, size)
            model = framed(stream[:size], NO_CAPS) if size < 4 else None
            if model is not None:
                assert error == model.error


def test_every_cap_is_what_the_model_says_on_every_string_of_3_tokens(glmsse: ModuleType) -> None:
    names = ("max_event_bytes", "max_event_lines", "max_events", "max_stream_bytes")
    for name in names:
        for most in (1, 2, 4):
            limits = {**NO_CAPS, name: most}
            framer = glmsse.SSEFramer(glmsse.Limits(**limits))
            for stream in strings(3):
                expected = framed(stream, limits)
                for at in range(len(stream) + 1):
                    events, error = told(framer, glmsse.GlmsseError, stream[:at], stream[at:])
                    assert (plain(events), error) == (expected.events, expected.error), (stream, at, limits)
