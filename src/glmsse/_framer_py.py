"""The pure twin of `_framer.pyx`: event-stream framing on bytes (WHATWG HTML, 9.2.6). Same names, same behaviour."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import Buffer

    from .errors import GlmsseError, MisuseError
    from .limits import Limits

BOM = b"\xef\xbb\xbf"
NO_LIMIT = 2**63 - 1
WINDOW = 64 * 1024
"""Input is read in pieces of at most this size, so that what is made beside it stays small."""
SHORT_LINE = 4096
"""An unfinished line up to this size may be copied once more, to be read in one go with what comes next."""

OPEN, BUSY, BROKEN, CLOSED, FAILED = range(5)

_checked_limits: Callable[[Limits | None], Limits]
_fault: Callable[..., GlmsseError]
_limit_fault: Callable[..., GlmsseError]
_misuse: type[MisuseError]
_load_json: Callable[[str, int], tuple[Any, GlmsseError | None]]
_rebuild_event: Callable[..., ServerSentEvent]

_bound: tuple[object, ...] = ()


def bind(
    checked_limits: Callable[[Limits | None], Limits],
    fault: Callable[..., GlmsseError],
    limit_fault: Callable[..., GlmsseError],
    misuse: type[MisuseError],
    load_json: Callable[[str, int], tuple[Any, GlmsseError | None]],
    rebuild_event: Callable[..., ServerSentEvent],
) -> bool:
    """Take over what both twins need of the package. False if another copy of the package was here before."""
    global _bound, _checked_limits, _fault, _limit_fault, _misuse, _load_json, _rebuild_event
    if _bound and _bound != (checked_limits, fault, limit_fault, misuse):
        return False
    _bound = (checked_limits, fault, limit_fault, misuse)
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
            error = self._take(data, events)
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

    def close(self) -> list[ServerSentEvent]:
        """The stream has ended. Nothing is left to deliver; a pending event is IncompleteStream (`unterminated_event`)."""
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

    def __repr__(self) -> str:
        return f"<SSEFramer {self._bytes_seen} bytes, {self._events_seen} events, tail {self.tail}>"

    def __reduce__(self) -> Any:
        raise _misuse("SSEFramer serves one stream: it cannot be pickled or copied")

    def _tail_event(self) -> ServerSentEvent | None:
        """The pending block, read as if the ends of its line and of the block had come; None if that is no event."""
        if self._blanks >= self._max_events:
            return None
        kept = self._event, self._data, self._id, self._retry, self._block_lines
        if self._data is not None:
            self._data = bytearray(self._data)
        line = bytes(self._line) or BOM[: self._bom % 3]
        try:
            if line and self._end_line(line, 0) is not None:
                return None
            return self._pending_event()
        finally:
            self._event, self._data, self._id, self._retry, self._block_lines = kept

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

    def _take(self, data: Buffer, events: list[ServerSentEvent]) -> GlmsseError | None:
        """Everything that has input in its locals is called from here, and returns its error."""
        if type(data) is bytes and len(data) <= WINDOW:
            return self._read(data, events)
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

    def _read(self, data: bytes, events: list[ServerSentEvent]) -> GlmsseError | None:
        base = self._bytes_seen
        self._bytes_seen = base + len(data)
        most = self._max_stream_bytes
        if self._bytes_seen <= most:
            return self._read_allowed(data, base, events)
        return self._read_allowed(data[: most - base], base, events) or _limit_fault(
            "max_stream_bytes", most, most + 1, most
        )

    def _read_allowed(self, data: bytes, base: int, events: list[ServerSentEvent]) -> GlmsseError | None:
        """`base` is the offset of the first byte of `data`, here and below."""
        if self._bom < 3:
            held = self._bom
            start = BOM[:held] + data[: 3 - held]
            if start == BOM:
                self._bom = 3
                data, base = data[3 - held :], 3
            elif BOM.startswith(start):
                self._bom = len(start)
                return None
            else:
                self._bom = 3
                data, base = BOM[:held] + data, base - held
        at, end = 0, len(data)
        if self._after_cr and end:
            self._after_cr = False
            if data[0] == 0x0A:
                at = 1
        if b"\r" in data:
            return self._read_lines(data, at, end, base, events, cr=-1)
        blocks_end = data.rfind(b"\n\n", at) + 2
        if blocks_end > 1:
            if self._block_lines:
                if self._block_lines == 1 and 0 < len(self._line) <= SHORT_LINE:
                    # Nothing but the start of the block's first line: read the block as if it had come whole.
                    data = b"".join((self._line, data[at:]))
                    base += at - len(self._line)
                    blocks_end += len(self._line) - at
                    at, end = 0, len(data)
                    self._line = b""
                    self._begin_block()
                else:
                    stop = at + 1 if data[at] == 0x0A and not self._line else data.find(b"\n\n", at) + 2
                    error = self._read_lines(data, at, stop, base, events)
                    if error is not None:
                        return error
                    at = stop
            if at < blocks_end:
                error = self._read_blocks(data, at, blocks_end, base, events)
                if error is not None:
                    return error
                at = blocks_end
        return self._read_lines(data, at, end, base, events) if at < end else None

    def _read_blocks(
        self, data: bytes, at: int, end: int, base: int, events: list[ServerSentEvent]
    ) -> GlmsseError | None:
        """Whole blocks without CR, from the start of one to behind a blank line: quick where each is one data line."""
        if not data.startswith(b"data: ", at):
            stop = data.find(b"\n\ndata: ", at, end) + 2
            if stop < 2:
                return self._read_lines(data, at, end, base, events)
            error = self._read_lines(data, at, stop, base, events)
            if error is not None:
                return error
            at = stop
        pieces = data[at + 6 : end - 2].split(b"\n\ndata: ")
        lines = data.count(b"\n", at, end)
        if self._blanks + lines - len(pieces) > self._max_events:  # at most so many of the lines are blank
            return self._read_lines(data, at, end, base, events)
        all_regular = lines == 2 * len(pieces)
        most, strict = self._max_event_bytes - 6, self._strict
        id, retry = self._id, self._retry
        new, cls, append = object.__new__, ServerSentEvent, events.append
        dispatched = 0
        for piece in pieces:
            size = len(piece)
            text = None
            if size <= most and (all_regular or b"\n" not in piece):
                try:
                    text = piece.decode() if strict else piece.decode("utf-8", "replace")
                except UnicodeDecodeError:
                    pass  # the line by line path says where
            if text is None:
                self._count(dispatched)
                dispatched = 0
                error = self._read_lines(data, at, at + size + 8, base, events)
                if error is not None:
                    return error
                id, retry = self._id, self._retry
            else:
                made = new(cls)  # _new_event, inlined
                made._event = "message"
                made._data = text
                made._id = id
                made._retry = retry
                made._offset = base + at
                append(made)
                dispatched += 1
            at += size + 8
        self._count(dispatched)
        return None

    def _count(self, dispatched: int) -> None:
        self._blanks += dispatched
        self._events_seen += dispatched

    def _read_lines(
        self, data: bytes, at: int, end: int, base: int, events: list[ServerSentEvent], cr: int = NO_LIMIT
    ) -> GlmsseError | None:
        """Line by line, whatever comes. `cr` is NO_LIMIT if there is no CR, else -1."""
        lf = -1
        while at < end:
            # The next LF and the next CR are remembered, so that no byte is searched twice.
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
                error = self._judge_size(stop - at, base + at)
                if error is not None:
                    return error
                if stop == end:
                    if not self._line:
                        self._line = data[at:end]
                    else:
                        if type(self._line) is bytes:
                            self._line = bytearray(self._line)
                        self._line += data[at:end]
                    return None
            if stop > at or self._line:
                line: bytes | bytearray = data[at:stop]
                if self._line:
                    line, self._line = self._line + line, b""
                error = self._end_line(line, base + stop - len(line))
            else:
                error = self._end_block(base + stop, events)
            if error is not None:
                return error
            at = stop + 1
            if stop == cr:
                if at == end:
                    self._after_cr = True
                elif lf == at:
                    at += 1
        return None

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
        """Read a line that is not blank."""
        if self._strict and not line.isascii():
            invalid = _first_invalid(line)
            if invalid >= 0:
                return _fault("invalid_utf8", offset=offset + invalid)
        if line.startswith(b"data"):
            at = _value_start(line, 4)
            if at:
                value = line[at:]
                if self._data is None:
                    self._data = value
                else:
                    if type(self._data) is bytes:
                        self._data = bytearray(self._data)
                    self._data += b"\n"
                    self._data += value
        elif line.startswith(b"event"):
            at = _value_start(line, 5)
            if at:
                self._event = line[at:].decode("utf-8", "replace")
        elif line.startswith(b"id"):
            at = _value_start(line, 2)
            if at and b"\x00" not in line:
                self._id = line[at:].decode("utf-8", "replace")
        elif line.startswith(b"retry"):
            at = _value_start(line, 5)
            if at and len(line) - at <= 17 and line[at:].isdigit():
                self._retry = int(line[at:])
        return None

    def _end_block(self, offset: int, events: list[ServerSentEvent]) -> GlmsseError | None:
        """A blank line, which ends at `offset`."""
        if self._blanks >= self._max_events:
            return _limit_fault("max_events", self._max_events, self._max_events + 1, offset)
        self._blanks += 1
        event = self._pending_event()
        if self._block_lines:
            self._begin_block()
        if event is not None:
            self._events_seen += 1
            events.append(event)
        return None

    def _pending_event(self) -> ServerSentEvent | None:
        if self._data is None:
            return None
        text = self._data.decode("utf-8", "replace")
        return _new_event(self._event or "message", text, self._id, self._retry, self._block_offset)


def _value_start(line: bytes | bytearray, name_size: int) -> int:
    """Where the value begins behind a field name of this size; 0 if the line goes on with another name."""
    if len(line) == name_size:
        return name_size
    if line[name_size] != 0x3A:
        return 0
    return name_size + 2 if line.startswith(b" ", name_size + 1) else name_size + 1


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
