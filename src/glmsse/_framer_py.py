"""The pure twin of `_framer.pyx`: event-stream framing on bytes (WHATWG HTML, 9.2.6). Same names, same behaviour."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from ._lane_py import ChatLane
    from .errors import GlmsseError, MisuseError
    from .limits import Limits

    Events = list["ServerSentEvent"] | ChatLane

BOM = b"\xef\xbb\xbf"
LF, CR, COLON = b"\n\r:"
decode_plain = None
"""The standard decoder is as fast as Python can be."""

NO_LIMIT = 2**63 - 1
WINDOW = 32 * 1024
"""Input is read in pieces of at most this size, so that what is made beside it stays small."""
MANY_LINES = 512
"""Near a limit, as many lines are looked at together."""
SHORT = 4096
"""So few bytes may be copied once more, or are not worth a closer look."""

OPEN, BUSY, BROKEN, CLOSED, FAILED = range(5)

_checked_limits: Callable[[Limits | None], Limits]
_fault: Callable[..., GlmsseError]
_limit_fault: Callable[..., GlmsseError]
_misuse: type[MisuseError]
_load_json: Callable[[str, int], tuple[Any, GlmsseError | None]]
_rebuild_event: Callable[..., Any]


def bind(
    checked_limits: Callable[[Limits | None], Limits],
    fault: Callable[..., GlmsseError],
    limit_fault: Callable[..., GlmsseError],
    misuse: type[MisuseError],
    load_json: Callable[[str, int], tuple[Any, GlmsseError | None]],
    rebuild_event: Callable[..., Any],
    rebuild_delta: Callable[..., Any],
) -> bool:
    """Take over what both twins need of the package. True, as each copy of the package has a pure twin of its own."""
    global _checked_limits, _fault, _limit_fault, _misuse, _load_json, _rebuild_event
    _checked_limits, _fault, _limit_fault, _misuse = checked_limits, fault, limit_fault, misuse
    _load_json, _rebuild_event = load_json, rebuild_event
    return True


class ServerSentEvent:
    """One dispatched event.

    event   its name, "message" by default
    data    its data lines, joined with LF
    id      the last event id so far
    retry   the last reconnection time so far, in milliseconds, or None
    offset  where in the stream its block begins; not compared

    Immutable, and its repr shows sizes only.
    """

    __slots__ = ("_data", "_event", "_id", "_offset", "_retry")
    __match_args__ = ("event", "data", "id", "retry", "offset")

    _event: str
    _data: str
    _id: str
    _retry: int | None
    _offset: int

    def __new__(
        cls, event: str = "message", data: str = "", id: str = "", retry: int | None = None, offset: int = 0
    ) -> ServerSentEvent:
        if type(event) is not str or type(data) is not str or type(id) is not str:
            raise _misuse("ServerSentEvent takes a str each for event, data and id")
        if retry is not None and type(retry) is not int:
            raise _misuse("ServerSentEvent takes an int or None for retry")
        if type(offset) is not int or not 0 <= offset <= NO_LIMIT:
            raise _misuse("ServerSentEvent takes an int from 0 to 2**63 - 1 for offset")
        return _new_event(event, data, id, retry, offset)

    def __init_subclass__(cls) -> None:
        raise TypeError("ServerSentEvent cannot be subclassed")

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
        """`data` as JSON; ProtocolError (`bad_json`) if it is none."""
        value, error = _load_json(self._data, self._offset)
        if error is not None:
            raise error
        return value

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON types."""
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
        return (
            self._data == other._data
            and self._event == other._event
            and self._id == other._id
            and self._retry == other._retry
        )

    def __hash__(self) -> int:
        return hash((self._event, self._data, self._id, self._retry))

    def __repr__(self) -> str:
        retry = "None" if self._retry is None else "<int>"
        return (
            f"ServerSentEvent(event=<{len(self._event)} chars>, data=<{len(self._data)} chars>, "
            f"id=<{len(self._id)} chars>, retry={retry}, offset={self._offset})"
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild_event, (self._event, self._data, self._id, self._retry, self._offset)


def _new_event(event: str, data: str, id: str, retry: int | None, offset: int) -> ServerSentEvent:
    made = object.__new__(ServerSentEvent)
    made._event = event
    made._data = data
    made._id = id
    made._retry = retry
    made._offset = offset
    return made


class SSEFramer:
    """Turns the bytes of one event stream into its events; any cutting gives the same.

    limits  caps, see Limits
    errors  "strict": invalid UTF-8 in any line is a fault; "replace": it becomes U+FFFD, as in browsers

    What the peer did wrong is raised as ProtocolError, LimitError or IncompleteStream, with the events completed before
    it in `error.events`. From then on every call raises that error again, without events, until `reset`.
    One object serves one stream, in one thread.
    """

    __slots__ = (
        "_after_cr",
        "_blanks",
        "_block_bytes",
        "_block_lines",
        "_block_offset",
        "_bom",
        "_bytes_seen",
        "_data",
        "_event",
        "_events_seen",
        "_id",
        "_latched",
        "_line",
        "_max_event_bytes",
        "_max_event_lines",
        "_max_events",
        "_max_stream_bytes",
        "_retry",
        "_state",
        "_strict",
    )

    _strict: bool
    _max_event_bytes: int
    _max_event_lines: int
    _max_events: int
    _max_stream_bytes: int
    _latched: GlmsseError | None
    _line: bytes | bytearray
    _data: bytes | bytearray | None
    _retry: int | None

    def __new__(cls, limits: Limits | None = None, *, errors: str = "strict") -> SSEFramer:
        caps = _checked_limits(limits)
        if type(errors) is not str or errors not in ("strict", "replace"):
            raise _misuse("errors takes 'strict' or 'replace'")
        self = object.__new__(cls)
        self._strict = errors == "strict"
        self._max_event_bytes = caps.max_event_bytes or NO_LIMIT
        self._max_event_lines = caps.max_event_lines or NO_LIMIT
        self._max_events = caps.max_events or NO_LIMIT
        self._max_stream_bytes = caps.max_stream_bytes or NO_LIMIT
        self._start()
        return self

    def __init_subclass__(cls) -> None:
        raise TypeError("SSEFramer cannot be subclassed")

    def _start(self) -> None:
        self._state = OPEN
        self._latched = None
        self._bytes_seen = self._events_seen = self._blanks = 0
        self._bom = 0  # how many bytes of a byte order mark are held; 3 once that is decided
        self._after_cr = False
        self._id = ""
        self._retry = None
        self._line = b""  # the unfinished line; a bytearray once it has grown
        self._begin_block()

    def _begin_block(self) -> None:
        self._block_bytes = self._block_lines = 0  # the unfinished line counts in both
        self._block_offset = 0
        self._event = ""
        self._data = None

    def feed(self, data: Buffer, /) -> list[ServerSentEvent]:
        """The events that these bytes complete. `data` is any C-contiguous bytes-like object."""
        # Nothing is raised while a local of this frame holds input: tracebacks may show locals.
        if self._state != OPEN:
            del data
            raise self._refusal("feed")
        events: list[ServerSentEvent] = []
        self._state = BUSY
        try:
            if type(data) is bytes and len(data) <= WINDOW:
                error = self._read(data, events)
            else:
                error = self._read_windows(data, events)
        except BaseException:
            self._state = BROKEN
            raise
        if error is None:
            self._state = OPEN
            return events
        del data
        if isinstance(error, _misuse):
            self._state = OPEN
        else:
            self._fail(error)
            error.events = events
        raise error

    def _feed_to(self, data: Buffer, lane: ChatLane, events: list[Any], stream: Any, /) -> GlmsseError | None:
        """Feed for a chat stream: plain pieces of text go through the lane to `events`, every other event to
        `stream._receive`, in order. Returns the fault instead of raising it."""
        if self._state != OPEN:
            return self._refusal("feed")
        self._state = BUSY
        try:
            lane.open(events, stream._receive)
            if type(data) is bytes and len(data) <= WINDOW:
                error = self._read(data, lane)
            else:
                error = self._read_windows(data, lane)
            lane.shut()
        except BaseException:
            self._state = BROKEN
            lane.shut()
            raise
        self._state = OPEN
        if error is not None and not isinstance(error, _misuse):
            self._fail(error)
        return error

    def close(self) -> list[ServerSentEvent]:
        """The stream has ended: the list is empty, and a pending event is IncompleteStream (`unterminated_event`)."""
        if self._state == OPEN:
            if self._line or self._data is not None or self._bom in (1, 2):
                self._state = FAILED
                self._latched = _fault("unterminated_event", offset=self._bytes_seen, tail=self.tail)
            else:
                self._state = CLOSED
        if self._state != CLOSED:
            raise self._refusal("close")
        return []

    def reset(self) -> None:
        """Start over with a new stream, under the same limits."""
        if self._state == BUSY:
            raise self._refusal("reset")
        self._start()

    @property
    def bytes_seen(self) -> int:
        """Bytes fed, up to and including the call that met a fault."""
        return self._bytes_seen

    @property
    def events_seen(self) -> int:
        """Events dispatched."""
        return self._events_seen

    @property
    def tail(self) -> int:
        """Bytes of the pending block, without line ends, that `close` would report as lost."""
        if self._line or self._data is not None:
            return self._block_bytes
        return self._bom % 3

    @property
    def busy(self) -> bool:
        """Whether a feed is at work."""
        return self._state == BUSY

    def __repr__(self) -> str:
        return f"<SSEFramer {self._bytes_seen} bytes, {self._events_seen} events, tail {self.tail}>"

    def __reduce__(self) -> Any:
        raise _misuse("SSEFramer serves one stream: it cannot be pickled or copied")

    def _tail_event(self) -> ServerSentEvent | None:
        """The pending block, read as if the ends of its line and of the block had come; None if that is no event."""
        if self._blanks >= self._max_events:
            return None
        kept = self._event, self._data, self._id, self._retry
        if self._data is not None:
            self._data = bytearray(self._data)
        line = bytes(self._line) or BOM[: self._bom % 3]
        try:
            if line and self._end_line(line, 0) is not None:
                return None
            return self._pending_event()
        finally:
            self._event, self._data, self._id, self._retry = kept

    def _refusal(self, verb: str) -> GlmsseError:
        if self._latched is not None:
            return self._latched.again()
        if self._state == BUSY:
            return _misuse(f"{verb} was called while the framer was at work: one stream, one thread")
        if self._state == BROKEN:
            return _misuse("an earlier call was interrupted and the framer lost its place: reset it")
        return _misuse("feed was called after close: reset the framer for a new stream")

    def _fail(self, error: GlmsseError) -> None:
        self._state = FAILED
        self._latched = error.again()
        self._line = b""
        self._begin_block()
        self._bom = 3

    # Everything that has input in its locals is below, and returns its fault.

    def _read_windows(self, data: Buffer, events: Events) -> GlmsseError | None:
        try:
            view = memoryview(data)
        except (TypeError, ValueError, BufferError):
            view = None
        if view is None or not view.c_contiguous:
            return _misuse(f"feed takes a C-contiguous bytes-like object, which this {type(data).__name__} is not")
        error = None
        with view:
            start, size = self._bytes_seen, view.nbytes
            with _flat(view) as flat:
                for at in range(0, size, WINDOW):
                    error = self._read(bytes(flat[at : at + WINDOW]), events)
                    if error is not None:
                        break
        self._bytes_seen = start + size
        return error

    def _read(self, data: bytes, events: Events) -> GlmsseError | None:
        base = self._bytes_seen
        self._bytes_seen = base + len(data)
        if self._bytes_seen > self._max_stream_bytes:
            most = self._max_stream_bytes
            self._bytes_seen = base
            error: GlmsseError | None = self._read(data[: most - base], events) or _limit_fault(
                "max_stream_bytes", most, most + 1, most
            )
            self._bytes_seen = base + len(data)
            return error
        # `base` is the offset of the first byte of `data`, here and below.
        if self._bom < 3:
            held = self._bom
            start = BOM[:held] + data[: 3 - held]
            if start == BOM:
                data, base = data[3 - held :], 3
            elif BOM.startswith(start):
                self._bom = len(start)
                return None
            else:
                data, base = BOM[:held] + data, base - held
            self._bom = 3
        if self._after_cr and data:
            self._after_cr = False
            if data[0] == LF:
                data, base = data[1:], base + 1
        if CR not in data:
            if LF not in data:
                return self._add_to_line(data, base) if data else None
            if self._block_lines == 0:
                return self._read_blocks(data, base, events)
            if self._block_lines == 1 and 0 < len(self._line) <= SHORT:
                # All there is of the block is the start of its first line: read it as if it had come now.
                data, base = b"".join((self._line, data)), base - len(self._line)
                self._line = b""
                self._begin_block()
                return self._read_blocks(data, base, events)
        at = 0
        if self._line:
            at = _line_end(data)
            error = self._add_to_line(data[:at], base)
            if error is not None or at == len(data):
                return error
            line, self._line = self._line, b""
            error = self._end_line(line, base + at - len(line))
            if error is not None:
                return error
            at += 1
            if data[at - 1] == CR:
                if at == len(data):
                    self._after_cr = True
                elif data[at] == LF:
                    at += 1
        return self._read_lines(data[at:], base + at, events) if at < len(data) else None

    def _read_blocks(self, data: bytes, base: int, events: Events) -> GlmsseError | None:
        """From the start of a block, without CR: quick where a block is one data line."""
        take = None if isinstance(events, list) else events.take
        if data[:6] == b"data: ":
            at = 0
            size = len(data) - 2
            if (
                data.find(b"\n") == size
                and data[-1] == LF
                and size <= self._max_event_bytes
                and self._blanks < self._max_events
            ):
                # One event and nothing else, as most reads from a network are.
                try:
                    text = data[6:-2].decode() if self._strict else data[6:-2].decode("utf-8", "replace")
                except UnicodeDecodeError:
                    text = None  # line by line says where
                if text is not None and take is not None and take(data[6:-2]):
                    self._blanks += 1
                    self._events_seen += 1
                    return None
                if text is not None:
                    events.append(_new_event("message", text, self._id, self._retry, base))
                    self._blanks += 1
                    self._events_seen += 1
                    return None
        elif len(data) <= SHORT:
            return self._read_lines(data, base, events)
        else:
            at = data.find(b"\n\ndata: ") + 2
        end = data.rfind(b"\n\n") + 2
        if at == 1 or end < 2 or end <= at or self._blanks + len(data) > self._max_events:
            return self._read_lines(data, base, events)
        if at:
            error = self._read_lines(data[:at], base, events)
            if error is not None:
                return error
        most, strict = self._max_event_bytes - 6, self._strict
        id, retry = self._id, self._retry
        new, cls, append = object.__new__, ServerSentEvent, events.append
        dispatched = 0
        for piece in data[at + 6 : end - 2].split(b"\n\ndata: "):
            size = len(piece)
            if size <= most and LF not in piece:
                if take is not None and take(piece):
                    dispatched += 1
                    at += size + 8
                    continue
                try:
                    text = piece.decode() if strict else piece.decode("utf-8", "replace")
                except UnicodeDecodeError:
                    text = None
            else:
                text = None
            if text is not None:
                made = new(cls)  # _new_event, inlined
                made._event = "message"
                made._data = text
                made._id = id
                made._retry = retry
                made._offset = base + at
                append(made)
                dispatched += 1
            else:
                error = self._read_lines(data[at : at + size + 8], base + at, events)
                if error is not None:
                    self._events_seen += dispatched
                    return error
                id, retry = self._id, self._retry
            at += size + 8
        self._blanks += dispatched
        self._events_seen += dispatched
        rest = data[at:]
        if LF in rest:
            return self._read_lines(rest, base + at, events)
        return self._add_to_line(rest, base + at) if rest else None

    def _read_lines(self, data: bytes, base: int, events: Events) -> GlmsseError | None:
        """From the start of a line, whatever comes."""
        if CR not in data:
            lines, line_end = data.split(b"\n"), 1
        elif LF not in data:
            lines, line_end = data.split(b"\r"), 1
        else:
            lines, line_end = data.split(b"\r\n"), 2
            if not data.count(b"\n") == data.count(b"\r") == len(lines) - 1:
                return self._read_mixed_lines(data, base, events)
        rest = lines.pop()
        error = self._read_whole_lines(lines, line_end, data, base, events) if lines else None
        if error is None and rest:
            return self._add_to_line(rest, base + len(data) - len(rest))
        self._after_cr = data[-1] == CR
        return error

    def _read_mixed_lines(self, data: bytes, base: int, events: Events) -> GlmsseError | None:
        """Lines with different ends: what lies between two LF is split at each CR."""
        spans = data.split(b"\n")
        rest = spans.pop()
        for span in spans:
            lines = span.split(b"\r")
            if len(lines) > 1 and not lines[-1]:
                lines.pop()  # that CR and the LF are one line end
            error = self._read_whole_lines(lines, 1, span, base, events)
            if error is not None:
                return error
            base += len(span) + 1
        return self._read_lines(rest, base, events) if rest else None

    def _read_whole_lines(
        self, lines: list[bytes], line_end: int, source: bytes, offset: int, events: Events
    ) -> GlmsseError | None:
        """The lines of `source`, with line ends of this size."""
        if (
            self._block_bytes + len(source) > self._max_event_bytes
            or self._block_lines + len(lines) > self._max_event_lines
            or self._blanks + len(lines) > self._max_events
        ):
            return self._read_near_limit(lines, line_end, source, offset, events)
        # No limit can be reached, so only what stays pending is counted.
        all_ascii = not self._strict or source.isascii()
        pending = self._block_lines > 0
        start = offset  # of the block
        values: list[bytes] = []
        blanks = dispatched = 0
        for line in lines:
            if not line:
                offset += line_end
                if pending:
                    self._keep(values)
                    self._end_block(offset, events)
                    pending = False
                    values = []
                else:
                    blanks += 1
                    if values:
                        data = values[0] if len(values) == 1 else b"\n".join(values)
                        text = data.decode("utf-8", "replace")
                        events.append(_new_event(self._event or "message", text, self._id, self._retry, start))
                        dispatched += 1
                        values = []
                    self._event = ""
                start = offset
                continue
            if not all_ascii and not line.isascii():
                invalid = _first_invalid(line)
                if invalid >= 0:
                    self._events_seen += dispatched
                    return _fault("invalid_utf8", offset=offset + invalid)
            if line[0] != COLON:
                if line[:5] == b"data:":
                    values.append(line[6:] if line[5:6] == b" " else line[5:])
                elif line == b"data":
                    values.append(b"")
                else:
                    self._read_field(line)
            offset += len(line) + line_end
        self._blanks += blanks
        self._events_seen += dispatched
        if offset > start:
            self._keep(values)
            if not pending:
                self._block_offset = start
            count = 0
            for line in reversed(lines):
                if not line:
                    break
                count += 1
            self._block_lines += count
            self._block_bytes += offset - start - line_end * count
        return None

    def _read_near_limit(
        self, lines: list[bytes], line_end: int, source: bytes, offset: int, events: Events
    ) -> GlmsseError | None:
        """The same, with every byte, line and blank line held against the limits."""
        if len(lines) > MANY_LINES:
            # A piece of them may not be near.
            for at in range(0, len(lines), MANY_LINES):
                some = lines[at : at + MANY_LINES]
                error = self._read_whole_lines(some, line_end, source, offset, events)
                if error is not None:
                    return error
                offset += sum(map(len, some)) + line_end * len(some)
            return None
        for line in lines:
            if line:
                error = self._judge_size(len(line), offset) or self._end_line(line, offset)
            else:
                error = self._end_block(offset, events)
            if error is not None:
                return error
            offset += len(line) + line_end
        return None

    def _add_to_line(self, piece: bytes, offset: int) -> GlmsseError | None:
        """Some bytes of a line, but not its end."""
        error = self._judge_size(len(piece), offset)
        if error is None:
            if not self._line:
                self._line = piece
            else:
                if type(self._line) is bytes:
                    self._line = bytearray(self._line)
                self._line += piece
        return error

    def _judge_size(self, size: int, offset: int) -> GlmsseError | None:
        """Count `size` more bytes of a line, before they are kept; the first of them is at `offset`."""
        room = self._max_event_bytes - self._block_bytes
        if not self._line:
            if self._block_lines >= self._max_event_lines and room > 0:
                return _limit_fault("max_event_lines", self._max_event_lines, self._max_event_lines + 1, offset)
            if not self._block_lines:
                self._block_offset = offset
            self._block_lines += 1
        if size > room:
            return _limit_fault("max_event_bytes", self._max_event_bytes, self._max_event_bytes + 1, offset + room)
        self._block_bytes += size
        return None

    def _end_line(self, line: bytes | bytearray, offset: int) -> GlmsseError | None:
        """Read a line that is not blank and has been counted."""
        if self._strict and not line.isascii():
            invalid = _first_invalid(line)
            if invalid >= 0:
                return _fault("invalid_utf8", offset=offset + invalid)
        if line[:5] == b"data:":
            self._keep([line[6:] if line[5:6] == b" " else line[5:]])
        elif line == b"data":
            self._keep([b""])
        elif line[0] != COLON:
            self._read_field(line)
        return None

    def _read_field(self, line: bytes | bytearray) -> None:
        """A field that is not data."""
        name, _, value = line.partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        if name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id":
            if 0 not in value:
                self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and len(value) <= 17 and value.isdigit():
            self._retry = int(value)

    def _keep(self, values: list[bytes] | list[bytes | bytearray]) -> None:
        """Add to the data of the pending block: one buffer, not thousands of small objects."""
        if not values:
            return
        joined = values[0] if len(values) == 1 else b"\n".join(values)
        if self._data is None:
            self._data = joined
        else:
            if type(self._data) is bytes:
                self._data = bytearray(self._data)
            self._data += b"\n"
            self._data += joined

    def _end_block(self, offset: int, events: Events) -> GlmsseError | None:
        """A blank line, which ends at `offset`."""
        if self._blanks >= self._max_events:
            return _limit_fault("max_events", self._max_events, self._max_events + 1, offset)
        self._blanks += 1
        event = self._pending_event()
        if event is not None:
            self._events_seen += 1
            events.append(event)
        self._begin_block()
        return None

    def _pending_event(self) -> ServerSentEvent | None:
        if self._data is None:
            return None
        text = self._data.decode("utf-8", "replace")
        return _new_event(self._event or "message", text, self._id, self._retry, self._block_offset)


def _line_end(data: bytes) -> int:
    """Where the first CR or LF is, or the size."""
    lf = data.find(b"\n")
    cr = data.find(b"\r", 0, lf) if lf >= 0 else data.find(b"\r")
    if cr >= 0:
        return cr
    return lf if lf >= 0 else len(data)


def _first_invalid(line: bytes | bytearray) -> int:
    """Where the first sequence begins that is not UTF-8, or -1."""
    try:
        line.decode()
    except UnicodeDecodeError as error:
        return error.start
    return -1


def _flat(view: memoryview) -> memoryview:
    """The bytes of a C-contiguous view, one by one."""
    try:
        return view.cast("B")
    except TypeError:  # no cast from this format, or from a shape with a zero
        return memoryview(view.tobytes())
