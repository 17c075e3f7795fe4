"""The pure twin of `_framer.pyx`: event-stream framing on bytes (WHATWG HTML, section 9.2.6)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from .errors import GlmsseError
    from .limits import Limits

_BOM = b"\xef\xbb\xbf"
_NO_LIMIT = 2**63 - 1
_WINDOW = 256 * 1024
"""As many bytes are split into blocks at once."""

_checked_limits: Callable[[Limits | None], Limits]
_fault: Callable[..., GlmsseError]
_limit_fault: Callable[[str, int, int, int], GlmsseError]
_misuse: type[Exception]


def bind(checked_limits: Any, fault: Any, limit_fault: Any, misuse: Any) -> None:
    """Hand over what is shared by both twins; the dispatcher calls this once."""
    global _checked_limits, _fault, _limit_fault, _misuse
    _checked_limits, _fault, _limit_fault, _misuse = checked_limits, fault, limit_fault, misuse


class ServerSentEvent:
    """One dispatched event: `event` (its name, "message" by default), `data`, `id` (the last event id), `retry`
    (milliseconds or None), and `offset`, the byte of the stream where its block begins.

    Immutable; compares by value, the offset aside.
    """

    __slots__ = ("_data", "_event", "_id", "_offset", "_retry")
    __match_args__ = ("event", "data", "id", "retry")

    def __init__(
        self, event: str = "message", data: str = "", id: str = "", retry: int | None = None, offset: int = 0
    ) -> None:
        self._event = event
        self._data = data
        self._id = id
        self._retry = retry
        self._offset = offset

    @property
    def event(self) -> str:
        return self._event

    @property
    def data(self) -> str:
        return self._data

    @property
    def id(self) -> str:
        return self._id

    @property
    def retry(self) -> int | None:
        return self._retry

    @property
    def offset(self) -> int:
        return self._offset

    def json(self) -> Any:
        """`data` as JSON; ProtocolError `bad_json` if it is none. For chat streams use ChatStream, which is strict."""
        try:
            return json.loads(self._data)
        except (ValueError, RecursionError):
            pass
        raise _fault("bad_json", offset=self._offset)

    def to_dict(self) -> dict[str, Any]:
        return {
            "event": self._event,
            "data": self._data,
            "id": self._id,
            "retry": self._retry,
            "offset": self._offset,
        }

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ServerSentEvent):
            return NotImplemented
        return (self._event, self._data, self._id, self._retry) == (
            other._event,
            other._data,
            other._id,
            other._retry,
        )

    def __hash__(self) -> int:
        return hash((self._event, self._data, self._id, self._retry))

    def __repr__(self) -> str:
        return f"ServerSentEvent(event=<{len(self._event)} chars>, data=<{len(self._data)} chars>, offset={self._offset})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ServerSentEvent, (self._event, self._data, self._id, self._retry, self._offset)


class SSEFramer:
    """Splits the bytes of one event stream into events.

    limits  caps, see Limits
    errors  "strict": a line that is not UTF-8 is a fault; "replace": invalid bytes become U+FFFD, as in browsers

    `feed` and `close` raise ProtocolError, LimitError or IncompleteStream for what the peer sent; `error.events` then
    holds the events completed before the fault. The framer is latched from there on: every call raises that error again,
    without events, until `reset`. One object serves one stream in one thread.
    """

    __slots__ = (
        "_block_bytes",
        "_block_lines",
        "_block_offset",
        "_bom",
        "_busy",
        "_closed",
        "_data",
        "_errors",
        "_event",
        "_id",
        "_latched",
        "_line",
        "_max_event_bytes",
        "_max_event_lines",
        "_max_events",
        "_max_stream_bytes",
        "_retry",
        "_skip_lf",
        "_stopped",
        "blocks_seen",
        "bytes_seen",
        "events_seen",
    )

    def __init__(self, limits: Limits | None = None, errors: str = "strict") -> None:
        limits = _checked_limits(limits)
        if errors not in ("strict", "replace"):
            raise _misuse("errors takes strict or replace")
        self._errors = errors
        self._max_event_bytes = limits.max_event_bytes or _NO_LIMIT
        self._max_event_lines = limits.max_event_lines or _NO_LIMIT
        self._max_events = limits.max_events or _NO_LIMIT
        self._max_stream_bytes = limits.max_stream_bytes or _NO_LIMIT
        self._busy = False
        self.reset()

    def reset(self) -> None:
        """Start over with a new stream, under the same limits."""
        if self._busy:
            raise _misuse("reset was called while feed was at work")
        self._latched: GlmsseError | None = None
        self._closed = self._stopped = False
        self._bom: bytes | None = b""  # the bytes that may still become a byte order mark; None once decided
        self._skip_lf = False
        self._line = b""  # an unfinished line; a bytearray as soon as it grows
        self._id = ""
        self._retry: int | None = None
        self._begin_block()
        self.bytes_seen = 0
        self.events_seen = 0
        self.blocks_seen = 0

    def _begin_block(self) -> None:
        self._block_bytes = self._block_lines = 0
        self._block_offset = -1
        self._event = ""
        self._data: bytearray | None = None

    def feed(self, data: Buffer) -> list[ServerSentEvent]:
        """The events that these bytes complete. `data` is any C-contiguous bytes-like object, cut anywhere."""
        events: list[ServerSentEvent] = []
        fault = self._feed_into(data, events.append)
        del data
        if fault is not None:
            if isinstance(fault, _misuse):
                raise fault
            fault.events = events
            raise fault
        return events

    def close(self) -> list[ServerSentEvent]:
        """The stream has ended. Nothing is left to deliver, so the list is empty; raises IncompleteStream
        (`unterminated_event`) for an unfinished line, or for data without its blank line."""
        if self._busy:
            raise _misuse("close was called while feed was at work")
        if self._latched is not None:
            raise self._latched.again()
        tail = self.tail
        if tail and not self._closed:
            self._latched = _fault("unterminated_event", offset=self.bytes_seen, tail=tail)
            raise self._latched.again()
        self._closed = True
        return []

    @property
    def tail(self) -> int:
        """Bytes of the pending block, without line ends, that `close` would report as lost."""
        if self._line or self._data is not None or self._bom:
            return self._block_bytes + len(self._bom or b"")
        return 0

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise _misuse("SSEFramer serves one stream; it cannot be pickled or copied")

    def __repr__(self) -> str:
        return f"<SSEFramer {self.bytes_seen} bytes, {self.events_seen} events, tail {self.tail}>"

    def _feed_into(self, data: Buffer, emit: Callable[[ServerSentEvent], object]) -> Any:
        """Feed, and hand each event to `emit`, which returns true to stop the reading for good. Returns the fault
        instead of raising it, so that no frame with input is left in a traceback."""
        if self._busy:
            return _misuse("feed was called while the framer was at work: one stream, one thread")
        if self._latched is not None:
            return self._latched.again()
        if self._closed:
            return _misuse("feed was called after close")
        self._busy = True
        try:
            raw = _as_bytes(data)
            if raw is None:
                return _misuse(f"feed takes a C-contiguous bytes-like object, not {type(data).__name__}")
            fault = self._consume(raw, emit)
        finally:
            self._busy = False
        if fault is None:
            return None
        self._latched = fault
        return fault.again()

    def _consume(self, data: bytes, emit: Callable[[ServerSentEvent], object]) -> GlmsseError | None:
        base = self.bytes_seen
        self.bytes_seen = base + len(data)
        if self._stopped:
            return None
        room = self._max_stream_bytes - base
        rest_refused = len(data) > room
        if rest_refused:
            data = data[:room]
        if data:
            fault = self._read(data, base, emit)
            if fault is not None:
                return fault
        if rest_refused and not self._stopped:
            most = self._max_stream_bytes
            return _limit_fault("max_stream_bytes", most, most + 1, most)
        return None

    def _read(self, data: bytes, base: int, emit: Callable[[ServerSentEvent], object]) -> GlmsseError | None:
        at = 0
        if self._bom is not None:
            held = len(self._bom)
            head = self._bom + data[: 3 - held]
            if head == _BOM:
                at = 3 - held
            elif _BOM.startswith(head):
                self._bom = head
                return None
            else:
                data = self._bom + data
                base -= held
            self._bom = None
        end = len(data)
        if self._skip_lf and at < end:
            self._skip_lf = False
            if data[at] == 0x0A:
                at += 1
        if b"\r" in data:
            return self._read_lines(data, at, end, base, emit, has_cr=True)
        # Without CR, everything up to the last blank line is regular: whole blocks, split in one go.
        regular_end = data.rfind(b"\n\n") + 2
        if regular_end > at + 1:
            if self._block_lines:
                boundary = self._boundary(data, at)
                fault = self._read_lines(data, at, boundary, base, emit)
                at = boundary
                if fault is not None or self._stopped:
                    return fault
            if at < regular_end:
                fault = self._read_blocks(data, at, regular_end, base, emit)
                at = regular_end
                if fault is not None or self._stopped:
                    return fault
        return self._read_lines(data, at, end, base, emit)

    def _boundary(self, data: bytes, at: int) -> int:
        """Behind the blank line that ends the pending block; there is one."""
        if not self._line and data[at] == 0x0A:
            return at + 1
        return data.find(b"\n\n", at) + 2

    def _read_blocks(
        self, data: bytes, at: int, end: int, base: int, emit: Callable[[ServerSentEvent], object]
    ) -> GlmsseError | None:
        """Whole blocks, LF only, from a block's start to behind a blank line."""
        max_event_bytes, events_left = self._max_event_bytes, self._max_events - self.blocks_seen
        while at < end:
            stop = end if end - at <= _WINDOW else data.rfind(b"\n\n", at, at + _WINDOW) + 2
            if stop < at + 2:
                stop = data.find(b"\n\n", at) + 2
            dispatched = 0
            for block in data[at : stop - 2].split(b"\n\n"):
                size = len(block)
                text = None
                if size <= max_event_bytes and block.startswith(b"data: ") and b"\n" not in block and events_left > 0:
                    try:
                        text = block[6:].decode("utf-8", self._errors)
                    except UnicodeDecodeError:
                        pass
                if text is None:
                    self.blocks_seen += dispatched
                    self.events_seen += dispatched
                    dispatched = 0
                    fault = self._read_lines(data, at, at + size + 2, base, emit)
                    if fault is not None or self._stopped:
                        return fault
                    events_left = self._max_events - self.blocks_seen
                else:
                    events_left -= 1
                    dispatched += 1
                    if emit(ServerSentEvent("message", text, self._id, self._retry, base + at)):
                        self._stopped = True
                        break
                at += size + 2
            self.blocks_seen += dispatched
            self.events_seen += dispatched
            if self._stopped:
                return None
        return None

    def _read_lines(
        self,
        data: bytes,
        at: int,
        end: int,
        base: int,
        emit: Callable[[ServerSentEvent], object],
        has_cr: bool = False,
    ) -> GlmsseError | None:
        """Line by line, whatever comes."""
        lf = -1
        cr = -1 if has_cr else end
        while at < end:
            # Each of the two is searched for again only behind its last place, so that no byte is searched twice.
            if lf < at:
                lf = data.find(b"\n", at, end)
                if lf < 0:
                    lf = end
            if cr < at:
                cr = data.find(b"\r", at, end)
                if cr < 0:
                    cr = end
            stop = lf if lf < cr else cr
            if stop > at:
                fault = self._judge_line(stop - at, base + at)
                if fault is not None:
                    return fault
            if stop == end:
                self._line = self._line + data[at:end] if not self._line else _grown(self._line, data[at:end])
                return None
            if stop > at or self._line:
                line = data[at:stop]
                if self._line:
                    line = bytes(_grown(self._line, line))
                    self._line = b""
                fault = self._read_field(line, base + stop - len(line))
            else:
                fault = self._end_block(base + stop, emit)
            if fault is not None:
                return fault
            at = stop + 1
            if stop == cr:
                if at < end and lf == at:
                    at += 1
                elif at == end:
                    self._skip_lf = True
            if self._stopped:
                return None
        return None

    def _judge_line(self, size: int, offset: int) -> GlmsseError | None:
        """Count `size` more bytes of a line, which come at `offset`, before they are kept."""
        room = self._max_event_bytes - self._block_bytes
        if not self._line:
            if self._block_lines >= self._max_event_lines and room > 0:
                most = self._max_event_lines
                return _limit_fault("max_event_lines", most, most + 1, offset)
            if not self._block_lines:
                self._block_offset = offset
            self._block_lines += 1
        if size > room:
            most = self._max_event_bytes
            return _limit_fault("max_event_bytes", most, most + 1, offset + room)
        self._block_bytes += size
        return None

    def _read_field(self, line: bytes, offset: int) -> GlmsseError | None:
        if self._errors == "strict" and not line.isascii():
            invalid = -1
            try:
                line.decode()
            except UnicodeDecodeError as error:
                invalid = error.start
            if invalid >= 0:
                return _fault("invalid_utf8", offset=offset + invalid)
        name, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if name == b"data":
            if self._data is None:
                self._data = bytearray(value)
            else:
                self._data += b"\n"
                self._data += value
        elif name == b"event":
            self._event = value.decode("utf-8", self._errors)
        elif name == b"id":
            if b"\x00" not in value:
                self._id = value.decode("utf-8", self._errors)
        elif name == b"retry" and value.isdigit() and len(value) <= 17:
            self._retry = int(value)
        return None

    def _end_block(self, offset: int, emit: Callable[[ServerSentEvent], object]) -> GlmsseError | None:
        """A blank line, whose end is at `offset`."""
        if self.blocks_seen >= self._max_events:
            most = self._max_events
            return _limit_fault("max_events", most, most + 1, offset)
        self.blocks_seen += 1
        event = self._pending_event()
        self._begin_block()
        if event is not None:
            self.events_seen += 1
            if emit(event):
                self._stopped = True
        return None

    def _pending_event(self) -> ServerSentEvent | None:
        if self._data is None:
            return None
        text = self._data.decode("utf-8", self._errors)
        return ServerSentEvent(self._event or "message", text, self._id, self._retry, self._block_offset)

    def _tail_event(self) -> ServerSentEvent | None:
        """The pending block, read as if its line end and its blank line had come; None if that makes no event.

        It is the stream's last event, so nothing may be fed after this.
        """
        line = (self._bom or b"") + bytes(self._line)
        if line and self._read_field(line, 0) is not None:
            return None
        return self._pending_event()


def _as_bytes(data: Buffer) -> bytes | None:
    if type(data) is bytes:
        return data
    try:
        view = memoryview(data)
    except (TypeError, ValueError):
        return None
    return bytes(view) if view.c_contiguous else None


def _grown(line: bytes | bytearray, piece: bytes) -> bytearray:
    """An unfinished line with one more piece, in a buffer that grows in place."""
    if isinstance(line, bytes):
        line = bytearray(line)
    line += piece
    return line
