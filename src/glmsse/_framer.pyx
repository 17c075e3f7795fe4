# cython: language_level=3, boundscheck=False, wraparound=False, initializedcheck=False, auto_pickle=False
# cython: binding=False, embedsignature=True, embedsignature.format=clinic
"""The compiled twin of `_framer_py.py`: event-stream framing on bytes (WHATWG HTML, 9.2.6). Same names, same behaviour."""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from cpython.mem cimport PyMem_Free, PyMem_Realloc
from libc.stdint cimport uint64_t
from libc.string cimport memchr, memcmp, memcpy, memmove

ctypedef const unsigned char* Bytes

cdef extern from "Python.h":
    object PyUnicode_DecodeUTF8(const char* data, Py_ssize_t size, const char* errors)
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size) except NULL
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1

cdef Bytes BOM = b"\xef\xbb\xbf"
cdef long long NO_LIMIT = 0x7FFFFFFFFFFFFFFF
cdef Py_ssize_t MOST_BYTES = <Py_ssize_t>(<size_t>-1 >> 2)
cdef Py_ssize_t KEPT_CAPACITY = 4096  # a buffer larger than this does not outlive its block
cdef unsigned char LF = 0x0A, CR = 0x0D, COLON = 0x3A, SPACE = 0x20

cdef enum State:
    OPEN
    BUSY
    BROKEN
    CLOSED
    FAILED

cdef object _checked_limits = None
cdef object _fault = None
cdef object _limit_fault = None
cdef object _misuse = None
cdef object _load_json = None
cdef object _rebuild_event = None
cdef object _rebuild_delta = None


def bind(checked_limits, fault, limit_fault, misuse, load_json, rebuild_event, rebuild_delta):
    """Take over what both twins need of the package. False if another copy of the package was here before."""
    global _checked_limits, _fault, _limit_fault, _misuse, _load_json, _rebuild_event, _rebuild_delta
    if _fault is not None and (_checked_limits, _fault, _limit_fault, _misuse) != (
        checked_limits, fault, limit_fault, misuse
    ):
        return False
    _checked_limits, _fault, _limit_fault, _misuse = checked_limits, fault, limit_fault, misuse
    _load_json, _rebuild_event, _rebuild_delta = load_json, rebuild_event, rebuild_delta
    return True


@cython.final
@cython.no_gc
@cython.freelist(256)
cdef class ServerSentEvent:
    """ServerSentEvent(event='message', data='', id='', retry=None, offset=0)\n--\n\nOne dispatched event.

    event   its name, "message" by default
    data    its data lines, joined with LF
    id      the last event id so far
    retry   the last reconnection time so far, in milliseconds, or None
    offset  where in the stream its block begins; not compared

    Immutable, and its repr shows sizes only.
    """

    cdef readonly str event
    cdef readonly str data
    cdef readonly str id
    cdef readonly object retry
    cdef readonly long long offset

    __match_args__ = ("event", "data", "id", "retry", "offset")

    def __cinit__(self, event="message", data="", id="", retry=None, offset=0):
        cdef int beyond = 0
        if type(event) is not str or type(data) is not str or type(id) is not str:
            raise _misuse("ServerSentEvent takes a str each for event, data and id")
        if retry is not None and type(retry) is not int:
            raise _misuse("ServerSentEvent takes an int or None for retry")
        if type(offset) is int:
            self.offset = PyLong_AsLongLongAndOverflow(offset, &beyond)
        if type(offset) is not int or beyond or self.offset < 0:
            raise _misuse("ServerSentEvent takes an int from 0 to 2**63 - 1 for offset")
        self.event = event
        self.data = data
        self.id = id
        self.retry = retry

    def json(self):
        """`data` as JSON; ProtocolError (`bad_json`) if it is none."""
        value, error = _load_json(self.data, self.offset)
        if error is not None:
            raise error
        return value

    def to_dict(self):
        """The event as JSON types."""
        return {
            "event": self.event,
            "data": self.data,
            "id": self.id,
            "retry": self.retry,
            "offset": self.offset,
        }

    def __eq__(self, other):
        if not isinstance(other, ServerSentEvent):
            return NotImplemented
        cdef ServerSentEvent that = other
        return (
            self.data == that.data
            and self.event == that.event
            and self.id == that.id
            and self.retry == that.retry
        )

    def __hash__(self):
        return hash((self.event, self.data, self.id, self.retry))

    def __repr__(self):
        retry = "None" if self.retry is None else "<int>"
        return (
            f"ServerSentEvent(event=<{len(self.event)} chars>, data=<{len(self.data)} chars>, "
            f"id=<{len(self.id)} chars>, retry={retry}, offset={self.offset})"
        )

    def __reduce__(self):
        return _rebuild_event, (self.event, self.data, self.id, self.retry, self.offset)


cdef inline ServerSentEvent _new_event(str event, str data, str id, object retry, long long offset):
    cdef ServerSentEvent made = ServerSentEvent.__new__(ServerSentEvent)
    made.event = event
    made.data = data
    made.id = id
    made.retry = retry
    made.offset = offset
    return made


include "_lane.pxi"
include "_plain_json.pxi"


@cython.final
cdef class SSEFramer:
    """SSEFramer(limits=None, *, errors='strict')\n--\n\nTurns the bytes of one event stream into its events; any cutting gives the same.

    limits  caps, see Limits
    errors  "strict": invalid UTF-8 in any line is a fault; "replace": it becomes U+FFFD, as in browsers

    What the peer did wrong is raised as ProtocolError, LimitError or IncompleteStream, with the events completed before
    it in `error.events`. From then on every call raises that error again, without events, until `reset`.
    One object serves one stream, in one thread.
    """

    cdef State _state
    cdef int _bom  # how many bytes of a byte order mark are held; 3 once that is decided
    cdef bint _strict
    cdef bint _after_cr
    cdef bint _has_data
    cdef long long _max_event_bytes, _max_event_lines, _max_events, _max_stream_bytes
    cdef readonly long long bytes_seen
    """Bytes fed, up to and including the call that met a fault."""
    cdef readonly long long events_seen
    """Events dispatched."""
    cdef long long _blanks
    cdef long long _block_bytes, _block_lines  # the unfinished line counts in both
    cdef long long _block_offset
    # What outlives a feed: the data of the pending block, then its unfinished line.
    cdef unsigned char* _kept
    cdef Py_ssize_t _capacity, _data_size, _line_size
    # The value of the block's only data line so far, in the caller's memory: within one feed it is not copied.
    cdef Bytes _value
    cdef Py_ssize_t _value_size
    cdef str _event
    cdef str _id
    cdef object _retry
    cdef object _latched
    # While a chat stream feeds: its lane, and who gets the events that the lane does not take.
    cdef ChatLane _lane
    cdef object _stream

    def __cinit__(self, limits=None, *, errors="strict"):
        caps = _checked_limits(limits)
        if type(errors) is not str or errors not in ("strict", "replace"):
            raise _misuse("errors takes 'strict' or 'replace'")
        self._strict = errors == "strict"
        self._max_event_bytes = _cap(caps.max_event_bytes)
        self._max_event_lines = _cap(caps.max_event_lines)
        self._max_events = _cap(caps.max_events)
        self._max_stream_bytes = _cap(caps.max_stream_bytes)
        self._start()

    def __dealloc__(self):
        PyMem_Free(self._kept)

    cdef int _start(self) except -1:
        self._state = OPEN
        self._latched = None
        self.bytes_seen = self.events_seen = self._blanks = 0
        self._bom = 0
        self._after_cr = False
        self._id = ""
        self._retry = None
        self._line_size = 0
        self._begin_block()
        self._release()
        return 0

    cdef inline void _begin_block(self) noexcept:
        self._block_bytes = self._block_lines = 0
        self._block_offset = 0
        self._event = ""
        self._has_data = False
        self._data_size = 0
        self._value = NULL
        if self._capacity > KEPT_CAPACITY and self._line_size == 0:
            self._release()

    cdef void _release(self) noexcept:
        PyMem_Free(self._kept)
        self._kept = NULL
        self._capacity = 0

    def feed(self, data, /):
        """The events that these bytes complete. `data` is any C-contiguous bytes-like object."""
        if self._state != OPEN:
            raise self._refusal("feed")
        cdef list events = []
        self._state = BUSY
        try:
            error = self._take(data, events)
        except BaseException:
            self._state = BROKEN
            self._value = NULL
            raise
        if error is None:
            self._state = OPEN
            return events
        if isinstance(error, _misuse):
            self._state = OPEN
        else:
            self._fail(error)
            error.events = events
        raise error

    def _feed_to(self, data, ChatLane lane not None, list events not None, stream, /):
        """Feed for a chat stream: plain pieces of text go through the lane to `events`, every other event to
        `stream._receive`, in order. Returns the fault instead of raising it."""
        if self._state != OPEN:
            return self._refusal("feed")
        self._state = BUSY
        self._lane, self._stream, lane._stream, lane._events = lane, stream, stream, events
        try:
            error = self._take(data, events)
        except BaseException:
            self._state = BROKEN
            self._value = NULL
            raise
        finally:
            self._lane = self._stream = lane._stream = lane._events = None
        self._state = OPEN
        if error is not None and not isinstance(error, _misuse):
            self._fail(error)
        return error

    def close(self):
        """The stream has ended: the list is empty, and a pending event is IncompleteStream (`unterminated_event`)."""
        if self._state == OPEN:
            if self._line_size or self._has_data or self._bom in (1, 2):
                self._state = FAILED
                self._latched = _fault("unterminated_event", offset=self.bytes_seen, tail=self.tail)
            else:
                self._state = CLOSED
        if self._state != CLOSED:
            raise self._refusal("close")
        return []

    def reset(self):
        """Start over with a new stream, under the same limits."""
        if self._state == BUSY:
            raise self._refusal("reset")
        self._start()

    @property
    def tail(self):
        """Bytes of the pending block, without line ends, that `close` would report as lost."""
        if self._line_size or self._has_data:
            return self._block_bytes
        return self._bom % 3

    @property
    def busy(self):
        """Whether a feed is at work."""
        return self._state == BUSY

    def __repr__(self):
        return f"<SSEFramer {self.bytes_seen} bytes, {self.events_seen} events, tail {self.tail}>"

    def __reduce__(self):
        raise _misuse("SSEFramer serves one stream: it cannot be pickled or copied")

    def _tail_event(self):
        """The pending block, read as if the ends of its line and of the block had come; None if that is no event."""
        cdef SSEFramer scratch
        if self._blanks >= self._max_events:
            return None
        scratch = SSEFramer.__new__(SSEFramer, errors="strict" if self._strict else "replace")
        scratch._event, scratch._id, scratch._retry = self._event, self._id, self._retry
        scratch._block_offset = self._block_offset
        scratch._has_data = self._has_data
        scratch._keep(self._kept, self._data_size)
        scratch._data_size = self._data_size
        if self._line_size:
            scratch._keep(self._kept + self._data_size, self._line_size)
            scratch._line_size = self._line_size
        elif self._bom < 3:
            scratch._keep(BOM, self._bom)
            scratch._line_size = self._bom
        if scratch._line_size:
            if scratch._end_line(scratch._kept + scratch._data_size, scratch._line_size, 0) is not None:
                return None
        return scratch._pending_event()

    cdef object _refusal(self, str verb):
        if self._latched is not None:
            return self._latched.again()
        if self._state == BUSY:
            return _misuse(f"{verb} was called while the framer was at work: one stream, one thread")
        if self._state == BROKEN:
            return _misuse("an earlier call was interrupted and the framer lost its place: reset it")
        return _misuse("feed was called after close: reset the framer for a new stream")

    cdef int _fail(self, error) except -1:
        self._state = FAILED
        self._latched = error.again()
        self._line_size = 0
        self._begin_block()
        self._release()
        self._bom = 3
        return 0

    cdef object _take(self, object data, list events):
        cdef Py_buffer view
        if PyBytes_CheckExact(data):
            return self._read(<Bytes>PyBytes_AS_STRING(data), PyBytes_GET_SIZE(data), events)
        try:
            PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
        except (TypeError, ValueError, BufferError):
            return _misuse(f"feed takes a C-contiguous bytes-like object, which this {type(data).__name__} is not")
        try:
            return self._read(<Bytes>view.buf, view.len, events)
        finally:
            PyBuffer_Release(&view)

    cdef object _read(self, Bytes data, Py_ssize_t size, list events):
        cdef long long base = self.bytes_seen
        cdef long long room = self._max_stream_bytes - base
        self.bytes_seen = base + size
        if size <= room:
            return self._read_allowed(data, size, base, events)
        error = self._read_allowed(data, <Py_ssize_t>room, base, events)
        if error is not None:
            return error
        return _limit_fault("max_stream_bytes", self._max_stream_bytes, self._max_stream_bytes + 1, self._max_stream_bytes)

    cdef object _read_allowed(self, Bytes data, Py_ssize_t size, long long base, list events):
        """`base` is the offset of the first byte of `data`, here and below."""
        cdef Py_ssize_t at = 0
        cdef int held = self._bom
        if held < 3:
            while at < size and self._bom < 3 and data[at] == BOM[self._bom]:
                self._bom += 1
                at += 1
            if self._bom < 3:
                if at == size:
                    return None
                at = 0
                self._bom = 3
                error = self._read_lines(BOM, held, 0, events)
                if error is not None:
                    return error
        error = self._read_lines(data + at, size - at, base + at, events)
        if self._value != NULL:
            self._keep_value()
        elif self._kept != NULL and self._data_size == 0 and self._line_size == 0:
            self._release()
        return error

    cdef object _read_lines(self, Bytes data, Py_ssize_t size, long long base, list events):
        cdef Bytes end = data + size
        cdef Bytes at = data
        cdef Bytes lf = NULL  # the next LF and the next CR are remembered, so that no byte is searched twice
        cdef Bytes cr = NULL
        cdef Bytes stop
        cdef Bytes line
        cdef Py_ssize_t line_size
        cdef object error
        cdef str text
        if self._after_cr and size > 0:
            self._after_cr = False
            if data[0] == LF:
                at += 1
        while at < end:
            if self._lane is not None and self._block_lines == 0 and self._blanks < self._max_events:
                line_size = self._lane.take_block(at, end, self._max_event_bytes)
                if line_size > 0:
                    self._blanks += 1
                    self.events_seen += 1
                    at += line_size
                    continue
            if lf < at:
                lf = _find(at, end, LF)
            if cr < at:
                cr = _find(at, end, CR)
            stop = lf if lf < cr else cr
            line = at
            line_size = stop - at
            if line_size > 0:
                if (
                    stop + 1 < end and stop[0] == LF and stop[1] == LF and self._block_lines == 0
                    and line_size >= 6 and memcmp(at, b"data: ", 6) == 0
                    and line_size <= self._max_event_bytes and self._blanks < self._max_events
                ):
                    # A whole block of one data line, which is what a chat stream is made of.
                    if self._lane is not None and self._lane.take(at + 6, line_size - 6):
                        self._blanks += 1
                        self.events_seen += 1
                        at = stop + 2
                        continue
                    text = _decoded(at + 6, line_size - 6, self._strict)
                    if text is not None:
                        self._blanks += 1
                        self._send(_new_event("message", text, self._id, self._retry, base + (at - data)), events)
                        at = stop + 2
                        continue
                error = self._judge_size(line_size, base + (at - data))
                if error is not None:
                    return error
                if stop == end:
                    if self._value != NULL:
                        self._keep_value()
                    self._keep(at, line_size)
                    self._line_size += line_size
                    return None
            if self._line_size > 0:
                self._keep(at, line_size)
                line_size += self._line_size
                line = self._kept + self._data_size
                self._line_size = line_size
            if line_size > 0:
                error = self._end_line(line, line_size, base + (stop - data) - line_size)
            else:
                error = self._end_block(base + (stop - data), events)
            if error is not None:
                return error
            at = stop + 1
            if stop == cr:
                if at == end:
                    self._after_cr = True
                elif at[0] == LF:
                    at += 1
        return None

    cdef object _judge_size(self, Py_ssize_t size, long long offset):
        """Count `size` more bytes of a line, before they are kept; the first of them is at `offset`."""
        cdef long long room = self._max_event_bytes - self._block_bytes
        if self._line_size == 0:
            if self._block_lines >= self._max_event_lines and room > 0:
                return _limit_fault("max_event_lines", self._max_event_lines, self._max_event_lines + 1, offset)
            if self._block_lines == 0:
                self._block_offset = offset
            self._block_lines += 1
        if size > room:
            return _limit_fault("max_event_bytes", self._max_event_bytes, self._max_event_bytes + 1, offset + room)
        self._block_bytes += size
        return None

    cdef object _end_line(self, Bytes line, Py_ssize_t size, long long offset):
        """Read a line that is not blank: the unfinished one if `_line_size` is set, else one in the caller's memory."""
        cdef Py_ssize_t at
        cdef bint unfinished = self._line_size > 0
        self._line_size = 0
        if self._strict:
            at = _first_invalid(line, size)
            if at >= 0:
                return _fault("invalid_utf8", offset=offset + at)
        at = _value_start(line, size, b"data", 4)
        if at:
            self._add_data(line + at, size - at, unfinished)
            return None
        at = _value_start(line, size, b"event", 5)
        if at:
            self._event = PyUnicode_DecodeUTF8(<const char*>line + at, size - at, "replace")
            return None
        at = _value_start(line, size, b"id", 2)
        if at:
            if memchr(line, 0, size) == NULL:
                self._id = PyUnicode_DecodeUTF8(<const char*>line + at, size - at, "replace")
            return None
        at = _value_start(line, size, b"retry", 5)
        if at:
            self._set_retry(line + at, size - at)
        return None

    cdef int _add_data(self, Bytes value, Py_ssize_t size, bint unfinished) except -1:
        cdef Py_ssize_t joint = 1 if self._has_data else 0
        if not self._has_data and not unfinished:
            self._has_data = True
            self._value = value
            self._value_size = size
            return 0
        if unfinished:
            # It lies in the same buffer, behind the data: its field name makes room for the LF.
            memmove(self._kept + self._data_size + joint, value, size)
        else:
            if self._value != NULL:
                self._keep_value()
            self._keep(b"\n", 1)
            self._data_size += 1
            joint = 0
            self._keep(value, size)
        if joint:
            self._kept[self._data_size] = LF
        self._has_data = True
        self._data_size += joint + size
        return 0

    cdef int _set_retry(self, Bytes value, Py_ssize_t size) except -1:
        cdef Py_ssize_t at
        cdef long long retry = 0
        if not 1 <= size <= 17:
            return 0
        for at in range(size):
            if not 0x30 <= value[at] <= 0x39:
                return 0
            retry = retry * 10 + (value[at] - 0x30)
        self._retry = retry
        return 0

    cdef object _end_block(self, long long offset, list events):
        """A blank line, which ends at `offset`."""
        cdef ServerSentEvent event
        if self._blanks >= self._max_events:
            return _limit_fault("max_events", self._max_events, self._max_events + 1, offset)
        self._blanks += 1
        if self._lane is not None and self._lane_takes():
            self.events_seen += 1
            event = None
        else:
            event = self._pending_event()
        if self._block_lines:
            self._begin_block()
        if event is not None:
            self._send(event, events)
        return None

    cdef inline int _send(self, ServerSentEvent event, list events) except -1:
        self.events_seen += 1
        if self._lane is None:
            events.append(event)
        else:
            self._stream._receive(event)
        return 0

    cdef bint _lane_takes(self) except -1:
        """Whether the pending block, read line by line, is a plain piece of text all the same."""
        if self._block_lines != 1 or not self._has_data:
            return False
        if self._value != NULL:
            return self._lane.take(self._value, self._value_size)
        return self._lane.take(self._kept, self._data_size)

    cdef ServerSentEvent _pending_event(self):
        cdef str text
        if not self._has_data:
            return None
        if self._value != NULL:
            text = PyUnicode_DecodeUTF8(<const char*>self._value, self._value_size, "replace")
        else:
            text = PyUnicode_DecodeUTF8(<const char*>self._kept, self._data_size, "replace")
        return _new_event(self._event or "message", text, self._id, self._retry, self._block_offset)

    cdef int _keep_value(self) except -1:
        """Copy the value that lies in the caller's memory."""
        self._keep(self._value, self._value_size)
        self._data_size = self._value_size
        self._value = NULL
        return 0

    cdef int _keep(self, Bytes data, Py_ssize_t size) except -1:
        """Copy bytes behind what is kept; the caller counts them. Grows by halves, and by eighths when large."""
        cdef Py_ssize_t used = self._data_size + self._line_size
        cdef Py_ssize_t capacity
        cdef void* moved
        if size <= 0:
            return 0
        if size > self._capacity - used:
            if size > MOST_BYTES - used:
                raise MemoryError
            capacity = self._capacity + (self._capacity >> (1 if self._capacity < 65536 else 3))
            capacity = max(used + size, capacity, 64)
            moved = PyMem_Realloc(self._kept, capacity)
            if moved == NULL:
                raise MemoryError
            self._kept = <unsigned char*>moved
            self._capacity = capacity
        memcpy(self._kept + used, data, size)
        return 0


cdef long long _cap(value) except -1:
    return NO_LIMIT if value is None or value > NO_LIMIT else value


cdef inline Bytes _find(Bytes start, Bytes end, unsigned char byte) noexcept:
    cdef Bytes found = <Bytes>memchr(start, byte, end - start)
    return found if found != NULL else end


cdef inline str _decoded(Bytes value, Py_ssize_t size, bint strict):
    """The text, or None if it is not UTF-8: line by line says where."""
    cdef const char* errors = "strict" if strict else "replace"
    try:
        return PyUnicode_DecodeUTF8(<const char*>value, size, errors)
    except UnicodeDecodeError:
        return None


cdef inline Py_ssize_t _value_start(Bytes line, Py_ssize_t size, Bytes name, Py_ssize_t name_size) noexcept:
    """Where the value begins behind this field name; 0 if the line has another name."""
    if size < name_size or memcmp(line, name, name_size) != 0:
        return 0
    if size == name_size:
        return size
    if line[name_size] != COLON:
        return 0
    if size > name_size + 1 and line[name_size + 1] == SPACE:
        return name_size + 2
    return name_size + 1


cdef Py_ssize_t _first_invalid(Bytes data, Py_ssize_t size) noexcept:
    """Where the first sequence begins that is not UTF-8 (RFC 3629), or -1: what UnicodeDecodeError calls its start."""
    cdef Py_ssize_t at = 0
    cdef Py_ssize_t more
    cdef unsigned char lead, least, most
    cdef uint64_t word
    while at < size:
        if size - at >= 8:
            memcpy(&word, data + at, 8)
            if word & <uint64_t>0x8080808080808080 == 0:
                at += 8
                continue
        lead = data[at]
        if lead < 0x80:
            at += 1
            continue
        least, most = 0x80, 0xBF  # of the second byte
        if 0xC2 <= lead <= 0xDF:
            more = 1
        elif 0xE0 <= lead <= 0xEF:
            more = 2
            if lead == 0xE0:
                least = 0xA0
            elif lead == 0xED:
                most = 0x9F
        elif 0xF0 <= lead <= 0xF4:
            more = 3
            if lead == 0xF0:
                least = 0x90
            elif lead == 0xF4:
                most = 0x8F
        else:
            return at
        if more >= size - at or not least <= data[at + 1] <= most:
            return at
        if more > 1 and data[at + 2] & 0xC0 != 0x80:
            return at
        if more > 2 and data[at + 3] & 0xC0 != 0x80:
            return at
        at += more + 1
    return -1
