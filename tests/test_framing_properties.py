"""Any bytes, cut anywhere, under any caps: both builds say what the model says."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from framing_model import NO_CAPS, fed, framed

TOKENS = st.sampled_from(
    [
        b"\r",
        b"\n",
        b"\r\n",
        b"\n\n",
        b":",
        b" ",
        b"data",
        b"data: ",
        b"event:",
        b"id",
        b"retry: 1",
        b"\xef\xbb\xbf",
        b"\xef\xbb",
        b"\x00",
        b"x",
        b"\xc3\xa9",
        b"\xe2\x80",
        b"\xf0\x9f\x98\x80",
        b"\xff",
        b"data: {}\n\n",
        b": ping\n\n",
        b"\n\ndata: ",
    ]
)
STREAMS = st.one_of(st.binary(max_size=60), st.lists(TOKENS, max_size=40).map(b"".join))
CAP = st.one_of(st.none(), st.integers(1, 60))
LIMITS = st.fixed_dictionaries(dict.fromkeys(NO_CAPS, CAP))
CUTS = st.lists(st.floats(0, 1), max_size=12)
ERRORS = st.sampled_from(["strict", "replace"])
EXAMPLES = settings(max_examples=400, deadline=None)


def cut(stream: bytes, cuts: list[float]) -> list[bytes]:
    places = sorted(int(place * len(stream)) for place in cuts)
    return [stream[start:end] for start, end in zip([0, *places], [*places, len(stream)], strict=True)]


@EXAMPLES
@given(stream=STREAMS, cuts=CUTS, limits=LIMITS, errors=ERRORS)
@example(stream=b"data: abc\n\n\n\ndata: x\n\ny", cuts=[], limits={**NO_CAPS, "max_events": 2}, errors="strict")
@example(stream=b"data: abc\n\n", cuts=[0.7], limits={**NO_CAPS, "max_stream_bytes": 10}, errors="strict")
@example(stream=b"data: x\r\ndata", cuts=[0.67], limits=NO_CAPS, errors="replace")
def test_any_stream_is_what_the_model_says(
    builds: dict[str, ModuleType], stream: bytes, cuts: list[float], limits: dict[str, int | None], errors: str
) -> None:
    expected = framed(stream, limits, errors)
    for build in builds.values():
        assert fed(build, [stream], limits, errors) == expected
        assert fed(build, cut(stream, cuts), limits, errors) == expected
        assert fed(build, [stream[at : at + 1] for at in range(len(stream))], limits, errors) == expected


@EXAMPLES
@given(stream=STREAMS, cuts=CUTS, errors=ERRORS)
def test_tail_event_is_what_two_line_ends_would_make(
    builds: dict[str, ModuleType], stream: bytes, cuts: list[float], errors: str
) -> None:
    for build in builds.values():
        framer = build.SSEFramer(errors=errors)
        try:
            for piece in cut(stream, cuts):
                framer.feed(piece)
        except build.GlmsseError:
            continue
        offered = framer._tail_event()
        # Two CR end a line and its block, or the block and an empty one; no LF could be taken for half a CRLF.
        assert fields(offered) == fields(first_event(build, framer, b"\r\r"))


def first_event(build: ModuleType, framer: Any, end: bytes) -> Any:
    try:
        events = framer.feed(end)
    except build.GlmsseError:
        return None
    return events[0] if events else None


def fields(event: Any) -> tuple[Any, ...] | None:
    return event and (event.event, event.data, event.id, event.retry, event.offset)


@EXAMPLES
@given(
    event=st.text(min_size=1).filter(lambda text: not set("\r\n") & set(text)),
    data=st.text(),
    id=st.text().filter(lambda text: not set("\r\n\0") & set(text)),
    retry=st.one_of(st.none(), st.integers(0, 10**17 - 1)),
    line_end=st.sampled_from(["\n", "\r", "\r\n"]),
)
def test_what_is_written_by_the_rules_is_read_back(
    builds: dict[str, ModuleType], event: str, data: str, id: str, retry: int | None, line_end: str
) -> None:
    data = data.replace("\r", "")
    lines = [f"event: {event}", f"id: {id}", *(f"data: {line}" for line in data.split("\n"))]
    if retry is not None:
        lines.append(f"retry: {retry}")
    stream = "".join(line + line_end for line in [*lines, ""]).encode()
    for build in builds.values():
        framer = build.SSEFramer()
        (got,) = framer.feed(stream)
        assert (got.event, got.data, got.id, got.retry) == (event, data, id, retry)
        assert framer.close() == []
