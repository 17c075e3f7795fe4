"""What the two framer targets share: an input is a head of three bytes, then the stream.

The low half of the head's first byte chooses caps and `errors`, the high half the way of reading. The other two bytes
are where the stream is cut.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

from ..builds import Difference
from . import Check

HEAD = 3
MOST_BYTES = HEAD + 160
JOINT = b"\n"
TOKENS = (
    b"\n", b"\r", b"\r\n", b"\n\n", b"\r\r", b"\r\n\r\n", b":", b" ", b": ", b"data", b"data:", b"data: ",
    b"event", b"event: ", b"id", b"id: ", b"retry", b"retry: ", b"retry:12345678901234567", b"7", b"\xef\xbb\xbf",
    b"\xef\xbb", b"\x00", b"x", b"\xc3\xa9", b"\xc3", b"\xe2\x80\xa8", b"\xed\xa0\x80", b"\xf0\x9f\x98\x80",
    b"\xf0\x9f", b"\xf4\x90\x80\x80", b"\xff", b"data: {}\n\n", b"data: [DONE]\n\n", b": ping\n\n", b"datax: 1\n",
    b"data: x\ndata: y\n\n", b"abcdefgh",
)  # fmt: skip
CAPS: tuple[dict[str, int], ...] = (
    {},
    {},
    {},
    {"max_event_bytes": 9},
    {"max_event_lines": 2},
    {"max_events": 2},
    {"max_stream_bytes": 24},
    {"max_event_bytes": 12, "max_event_lines": 3, "max_events": 4, "max_stream_bytes": 60},
)


class Way(NamedTuple):
    """How the cut stream is fed."""

    single_bytes: bool = False
    overwritten: bool = False
    """The memory of a piece changes after its feed."""
    closed: bool = False
    """Both are closed, too. The error of that costs more than all the rest, so it is not made each time."""


WAYS = (
    *[Way()] * 10,
    *[Way(overwritten=True)] * 3,
    Way(single_bytes=True),
    Way(closed=True),
    Way(single_bytes=True, overwritten=True, closed=True),
)


def comparing(build: ModuleType, other: ModuleType) -> Check:
    """A check that reads the whole stream by the first build and the cut one by the second. Framers are used again."""
    pairs = [
        tuple(package.SSEFramer(package.Limits(**caps), errors=errors) for package in (build, other))
        for errors in ("strict", "replace")
        for caps in CAPS
    ]
    first_error, second_error = build.GlmsseError, other.GlmsseError

    def check(data: bytes) -> Hashable:
        if len(data) < HEAD:
            return None
        flags, first, second = data[:HEAD]
        body = data[HEAD:]
        whole, cut = pairs[flags & 15]
        single_bytes, overwritten, closed = WAYS[flags >> 4]
        pieces: Iterable[Any]
        pieces = [body[at : at + 1] for at in range(len(body))] if single_bytes else _pieces(body, first, second)
        if overwritten:
            pieces = _overwritten(pieces)
        seen = told(whole, first_error, (body,), closed)
        twin = told(cut, second_error, pieces, closed)
        if seen != twin:
            raise Difference(_where(seen, twin))
        error = seen[1]
        return flags & 15, len(seen[0]), error and error[0], seen[2]

    return check


def _pieces(body: bytes, first: int, second: int) -> Iterable[bytes]:
    size = len(body) + 1
    first %= size
    second %= size
    if first > second:
        first, second = second, first
    return body[:first], body[first:second], body[second:]


def _overwritten(pieces: Iterable[bytes]) -> Iterator[bytearray]:
    """Each piece in memory that does not stay as it was once the next one is asked for."""
    for piece in pieces:
        memory = bytearray(piece)
        yield memory
        memory[:] = b"\n" * len(memory)


def told(framer: Any, error_class: type[Exception], pieces: Iterable[Any], closed: bool) -> tuple[Any, ...]:
    """Events, the error's facts, the events counted, and what is pending at the end."""
    framer.reset()
    feed = framer.feed
    events: list[Any] = []
    fault: Any = None
    pending: Any = None
    try:
        for piece in pieces:
            events += feed(piece)
        if framer.tail:
            event = framer._tail_event()
            pending = framer.bytes_seen, framer.tail, event and _plain(event)
        if closed:
            framer.close()
    except error_class as error:
        events += error.events  # type: ignore[attr-defined]
        fault = _facts(error)
    return [_plain(event) for event in events], fault, framer.events_seen, pending


def _plain(event: Any) -> tuple[Any, ...]:
    return event.event, event.data, event.id, event.retry, event.offset


def _facts(error: Any) -> tuple[Any, ...]:
    code = error.code
    if code == "invalid_utf8":
        return code, error.offset
    if code == "unterminated_event":
        return code, error.offset, error.tail
    return code, error.offset, error.limit, error.maximum, error.seen


def _where(seen: tuple[Any, ...], twin: tuple[Any, ...]) -> str:
    names = ("events", "error", "events_seen", "pending")
    return "framers differ in " + ", ".join(name for name, a, b in zip(names, seen, twin, strict=True) if a != b)
