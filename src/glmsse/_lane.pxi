# The fast lane of chat streams, included by `_framer.pyx`; the pure twin is `_lane_py.py`.
#
# 98 % of a chat stream is envelope: consecutive payloads are the same but for one JSON string. A payload is taken here,
# without any object in between, if it is like one that was read before (template), or if the scanner can tell that one
# non-empty string of a known text is all it says. The lane accepts or bails, it never judges: whatever is unusual takes
# the general path, the only place that makes values, errors and messages.

cdef enum:  # kinds of text
    CONTENT
    REASONING
    ARGUMENTS

cdef enum Level:  # of an object in a payload
    TOP
    CHOICE
    DELTA
    PIECE
    FUNCTION
    UNREAD

cdef Py_ssize_t MOST_ENVELOPE = 1024  # bytes of a template
cdef Py_ssize_t MOST_TEMPLATES = 8
cdef Py_ssize_t MOST_TEXTS = 64
cdef Py_ssize_t SHORT_STRING = 256  # bytes of a string that is decoded before its end is known
cdef int MOST_FRUITLESS = 16  # templates made in a row without a hit, after which no more are made
cdef int MOST_DEPTH = 16
cdef enum:
    MOST_KEYS = 24  # of one object
    MOST_UNREAD = 12
cdef int BAIL = -1


@cython.final
@cython.freelist(64)
cdef class ContentDelta:
    """A non-empty piece of the visible answer."""

    cdef readonly str text
    cdef readonly object choice

    type = "content.delta"
    __match_args__ = ("text", "choice")

    def __init__(self, text, choice=0):
        self.text, self.choice = text, choice

    def to_dict(self):
        """The event as JSON types."""
        return {"type": self.type, "text": self.text, "choice": self.choice}

    def __eq__(self, other):
        if not isinstance(other, ContentDelta):
            return NotImplemented
        return self.text == (<ContentDelta>other).text and self.choice == (<ContentDelta>other).choice

    def __hash__(self):
        return hash((self.text, self.choice))

    def __repr__(self):
        return f"ContentDelta(text=<{len(self.text)} chars>, choice={self.choice})"

    def __reduce__(self):
        return _rebuild_delta, (self.type, self.text, self.choice)


@cython.final
@cython.freelist(64)
cdef class ReasoningDelta:
    """A non-empty piece of the model's reasoning."""

    cdef readonly str text
    cdef readonly object choice

    type = "reasoning.delta"
    __match_args__ = ("text", "choice")

    def __init__(self, text, choice=0):
        self.text, self.choice = text, choice

    def to_dict(self):
        """The event as JSON types."""
        return {"type": self.type, "text": self.text, "choice": self.choice}

    def __eq__(self, other):
        if not isinstance(other, ReasoningDelta):
            return NotImplemented
        return self.text == (<ReasoningDelta>other).text and self.choice == (<ReasoningDelta>other).choice

    def __hash__(self):
        return hash((self.text, self.choice))

    def __repr__(self):
        return f"ReasoningDelta(text=<{len(self.text)} chars>, choice={self.choice})"

    def __reduce__(self):
        return _rebuild_delta, (self.type, self.text, self.choice)


@cython.final
@cython.freelist(64)
cdef class ArgumentsDelta:
    """A non-empty piece of a call's argument text. Never run a tool on it: take `Verdict.tool_calls`."""

    cdef readonly object index
    cdef readonly str arguments
    cdef readonly object choice

    type = "tool_call.arguments.delta"
    __match_args__ = ("index", "arguments", "choice")

    def __init__(self, index, arguments, choice=0):
        self.index, self.arguments, self.choice = index, arguments, choice

    def to_dict(self):
        """The event as JSON types."""
        return {"type": self.type, "index": self.index, "arguments": self.arguments, "choice": self.choice}

    def __eq__(self, other):
        if not isinstance(other, ArgumentsDelta):
            return NotImplemented
        cdef ArgumentsDelta that = other
        return self.index == that.index and self.arguments == that.arguments and self.choice == that.choice

    def __hash__(self):
        return hash((self.index, self.arguments, self.choice))

    def __repr__(self):
        return f"ArgumentsDelta(index={self.index}, arguments=<{len(self.arguments)} chars>, choice={self.choice})"

    def __reduce__(self):
        return _rebuild_delta, (self.type, self.index, self.arguments, self.choice)


@cython.final
cdef class TextStore:
    """One text as UTF-8. `size` counts all bytes added, kept or not; `waiting` keeps the fast lane out."""

    cdef unsigned char* _start
    cdef Py_ssize_t _used, _capacity
    cdef long long _maximum
    cdef bint _keep
    cdef readonly long long size
    cdef public bint waiting

    def __cinit__(self, maximum, bint keep):
        self._maximum = _cap(maximum)
        self._keep = keep

    def __dealloc__(self):
        PyMem_Free(self._start)

    def add(self, bytes raw not None):
        """Add bytes whose size has been judged."""
        cdef Py_ssize_t size = len(raw)
        if self._keep and size:
            self._make_room(size)
            memcpy(self._start + self._used, PyBytes_AS_STRING(raw), size)
            self._used += size
        self.size += size

    @property
    def text(self):
        """What was kept."""
        return PyUnicode_DecodeUTF8(<const char*>self._start, self._used, "strict") if self._used else ""

    cdef int _make_room(self, Py_ssize_t size) except -1:
        """Room for so many bytes more. Grows by halves, and by eighths when large."""
        cdef Py_ssize_t capacity
        cdef void* moved
        if size <= self._capacity - self._used:
            return 0
        if size > MOST_BYTES - self._used:
            raise MemoryError
        capacity = self._capacity + (self._capacity >> (1 if self._capacity < 65536 else 3))
        capacity = max(self._used + size, capacity, 64)
        moved = PyMem_Realloc(self._start, capacity)
        if moved == NULL:
            raise MemoryError
        self._start = <unsigned char*>moved
        self._capacity = capacity
        return 0


@cython.final
cdef class _Sink:
    """A text that pieces may go to without a closer look: nothing else about its choice or call is open."""

    cdef int kind
    cdef long long choice
    cdef long long index  # of the call
    cdef bytes call_id, name
    cdef TextStore store


@cython.final
cdef class _Template:
    """A block on the wire but for the inside of one string, or of two: then the other one is read by nobody.

    head    `data: ` and the payload up to the first of the strings
    middle  what is between the two, or None
    tail    the rest of the payload and the blank line
    """

    cdef _Sink sink
    cdef bytes head, middle, tail
    cdef bint text_first  # whether the string that is read comes before the other one


cdef struct Span:
    Bytes start
    Py_ssize_t size


@cython.final
cdef class ChatLane:
    """Takes plain pieces of text from the framer.

    deltas    whether taken pieces make events
    aliases   whether `delta.reasoning` may be read
    enabled   False: it takes nothing
    """

    cdef bint _deltas, _aliases, _aliases_used, _enabled
    cdef int _max_depth
    cdef Py_ssize_t _max_number
    cdef list _sinks, _templates
    cdef _Template _first  # the template that was hit last, or made last
    cdef int _fruitless
    cdef bytes _response_id
    cdef list _events  # where the events of the feed at hand go
    cdef object _stream  # that feeds
    cdef public object activity
    cdef readonly long long hits
    cdef readonly long long template_hits
    # What the scanner found in the payload at hand.
    cdef Bytes _end
    cdef Span _texts[3]
    cdef Span _alias, _body, _call_id, _name, _usage
    cdef Span _unread[MOST_UNREAD]  # strings that are values nobody reads
    cdef int _unread_count
    cdef Py_ssize_t _size  # of the string decoded last
    cdef long long _choice, _index
    cdef bint _has_index, _has_choice, _has_piece
    cdef bint _plain  # no backslash and no control character in all of it
    cdef bint _wide  # whether the string decoded last is more than ASCII

    def __cinit__(self, limits, *, bint deltas, bint aliases, bint enabled):
        self._deltas, self._aliases, self._enabled = deltas, aliases, enabled
        self._max_depth = min(<int>limits.max_json_depth, MOST_DEPTH)
        self._max_number = limits.max_number_chars

    def clear(self):
        """Forget all texts: something other than a piece of text happened, so they may not be what they were."""
        self._sinks = self._templates = self._first = None

    def offer(self, texts, response_id, bint aliases_used):
        """The texts that pieces may go to from here on, in place of those before."""
        cdef _Sink sink
        self.clear()
        if not self._enabled or "\\" in (response_id or ""):
            return
        self._sinks, self._templates = [], []
        self._response_id = response_id.encode() if response_id is not None else b""
        self._aliases_used = aliases_used
        for kind, store, choice, call in texts:
            if len(self._sinks) == MOST_TEXTS:
                break  # nor look at the rest: without a cap on calls there may be any number
            if choice > 0xFFFF:
                continue
            sink = _Sink.__new__(_Sink)
            sink.kind, sink.store, sink.choice = kind, store, choice
            if call is not None:
                call_id, name = call.id or "", call.name or ""  # it may have started without them, at the finish reason
                if call.index > 0xFFFF or "\\" in call_id or "\\" in name:
                    continue
                sink.index, sink.call_id, sink.name = call.index, call_id.encode(), name.encode()
            self._sinks.append(sink)

    def note(self, data, piece, /):
        """The scanner needs no examples."""

    cdef bint take(self, Bytes payload, Py_ssize_t size) except -1:
        """Whether the payload was a plain piece of text, which is then taken."""
        cdef _Template template
        cdef Bytes end = payload + size
        cdef Bytes stop
        cdef Py_ssize_t number, before, after
        if self._sinks is None:
            return False
        for number in range(len(self._templates)):
            template = <_Template>self._templates[number]
            before, after = PyBytes_GET_SIZE(template.head) - 6, PyBytes_GET_SIZE(template.tail) - 2
            if (
                size <= before + after
                or memcmp(end - after, PyBytes_AS_STRING(template.tail), after) != 0
                or memcmp(payload, PyBytes_AS_STRING(template.head) + 6, before) != 0
            ):
                continue
            stop = self._decode(template, payload + before, end, size)
            if stop != NULL and end - stop == after and self._may_add(template.sink, self._size):
                self._add(template.sink, self._size)
                self._hit(template)
                if number:
                    self._templates[number], self._templates[0] = self._templates[0], template
                return True
        return self._scan(payload, size)

    cdef Py_ssize_t take_block(self, Bytes at, Bytes end, long long most) except -1:
        """The size of the whole block that begins here, if it is the first template's and was taken; else 0. Neither a
        line end is searched for nor is the string measured before it is decoded."""
        cdef _Template template = self._first
        cdef Bytes stop
        cdef Py_ssize_t before, after
        if template is None:
            return 0
        before, after = PyBytes_GET_SIZE(template.head), PyBytes_GET_SIZE(template.tail)
        if end - at <= before + after or memcmp(at, PyBytes_AS_STRING(template.head), before) != 0:
            return 0
        stop = _behind(self._decode(template, at + before, end, SHORT_STRING), end, template.tail)
        if stop == NULL or stop - at - 2 > most or not self._may_add(template.sink, self._size):
            return 0
        self._add(template.sink, self._size)
        self._hit(template)
        return stop - at

    cdef inline void _hit(self, _Template template) noexcept:
        self._first = template
        self._fruitless = 0
        self.template_hits += 1

    cdef Bytes _decode(self, _Template template, Bytes at, Bytes end, Py_ssize_t most) except? NULL:
        """From behind the head up to the tail; NULL if there is something else or more than `most` to decode. The string
        that is read is then at the end of its text, not yet added."""
        cdef TextStore store = template.sink.store
        cdef Bytes stop
        if store.waiting:
            return NULL
        if template.middle is not None and not template.text_first:
            at = _behind(self._pass_by(at, end), end, template.middle)
            if at == NULL:
                return NULL
        stop = end if end - at <= most else at + most
        store._make_room(stop - at)
        self._size = _unescape(at, &stop, store._start + store._used, &self._wide)
        if self._size <= 0:
            return NULL
        if template.middle is not None and template.text_first:
            stop = _behind(stop, end, template.middle)
            return NULL if stop == NULL else self._pass_by(stop, end)
        return stop

    cdef Bytes _pass_by(self, Bytes at, Bytes end) noexcept:
        """The end of a string that nobody reads, whose inside begins here."""
        cdef Bytes stop
        self._end, self._plain = end, False
        stop = self._string(at - 1)
        return NULL if stop == NULL or _first_invalid(at, stop - 1 - at) >= 0 else stop - 1

    cdef bint _accept(self, _Sink sink) except -1:
        """Add the string at `_body` to its text, and the usage beside it; False if either is not plain, which changes
        nothing."""
        cdef TextStore store = sink.store
        cdef Bytes stop = self._body.start + self._body.size
        cdef Py_ssize_t size
        cdef object usage = None
        if store.waiting or self._body.size == 0:
            return False
        store._make_room(self._body.size)
        size = _unescape(self._body.start, &stop, store._start + store._used, &self._wide)
        if stop != self._body.start + self._body.size or not self._may_add(sink, size):
            return False
        if self._usage.size:
            stop = self._usage.start
            usage = _plain_value(&stop, self._usage.start + self._usage.size, self._max_depth - 1, self._max_number)
            if usage is _BAIL:
                return False
            self._stream._receive_usage(usage)
        self._add(sink, size)
        return True

    cdef bint _may_add(self, _Sink sink, Py_ssize_t size) noexcept:
        """Whether the bytes that were decoded to the end of the text are UTF-8 and under its cap."""
        cdef TextStore store = sink.store
        if size <= 0 or size > store._maximum - store.size:
            return False
        return not self._wide or _first_invalid(store._start + store._used, size) < 0

    cdef int _add(self, _Sink sink, Py_ssize_t size) except -1:
        """Add the bytes that were decoded to the end of the text."""
        cdef TextStore store = sink.store
        cdef unsigned char* out = store._start + store._used
        store.size += size
        if store._keep:
            store._used += size
        self.hits += 1
        if sink.kind == CONTENT:
            self.activity = "answering"
        elif sink.kind == REASONING:
            self.activity = "reasoning"
        else:
            self.activity = "calling"
        if self._deltas:
            self._events.append(_delta(sink, PyUnicode_DecodeUTF8(<const char*>out, size, "strict")))
        return 0

    # The scanner: one pass over the whole payload. Every function gets the place of what it reads and returns the place
    # behind it, or NULL to bail.

    cdef bint _scan(self, Bytes payload, Py_ssize_t size) except -1:
        cdef Bytes at
        cdef _Sink sink
        cdef int kind
        cdef int count = 0, found = 0
        cdef bint ascii = False
        self._end = payload + size
        self._plain = _is_plain(payload, size, &ascii)
        self._texts[CONTENT].size = self._texts[REASONING].size = self._texts[ARGUMENTS].size = 0
        self._alias.size = self._body.size = self._call_id.size = self._name.size = self._usage.size = 0
        self._unread_count = 0
        self._choice = self._index = 0
        self._has_index = self._has_choice = self._has_piece = False
        at = self._blanks(payload)
        if at == self._end or at[0] != b"{":
            return False
        at = self._object(at, TOP, 1)
        if at == NULL or self._blanks(at) != self._end or not self._has_choice:
            return False
        if self._alias.size:
            if not self._aliases_used or self._texts[REASONING].size:
                return False
            self._texts[REASONING] = self._alias
        for found in range(3):
            if self._texts[found].size:
                count += 1
                kind = found
        # A piece of a call says something even without arguments.
        if count != 1 or self._has_piece != (kind == ARGUMENTS) or (kind == ARGUMENTS and not self._has_index):
            return False
        if not ascii and _first_invalid(payload, size) >= 0:
            return False
        self._body = self._texts[kind]
        for sink in self._sinks:
            if sink.kind == kind and sink.choice == self._choice and (kind != ARGUMENTS or sink.index == self._index):
                if (self._call_id.size and not _is(self._call_id, sink.call_id)) or (
                    self._name.size and not _is(self._name, sink.name)
                ):
                    return False
                if not self._accept(sink):
                    return False
                if self._usage.size == 0:
                    self._learn(sink, payload)
                return True
        return False

    cdef int _learn(self, _Sink sink, Bytes payload) except -1:
        """Make a template of the payload just scanned, unless its envelope is long or templates bear no fruit here."""
        cdef _Template template, known
        cdef Bytes behind = self._body.start + self._body.size
        if self._fruitless >= MOST_FRUITLESS:
            self._first = None
            if self._templates:
                self._templates = []
            return 0
        if self._end - payload - self._body.size > MOST_ENVELOPE:
            return 0
        self._fruitless += 1
        template = _Template.__new__(_Template)
        template.sink = sink
        template.head = b"data: " + payload[:self._body.start - payload]
        template.tail = behind[:self._end - behind] + b"\n\n"
        for known in self._templates:
            if known.sink is sink and known.middle is None:
                self._leave_out(template, known, payload)
                break
        self._first = template
        if len(self._templates) >= MOST_TEMPLATES:
            self._templates.pop()
        self._templates.insert(0, template)
        return 0

    cdef int _leave_out(self, _Template template, _Template known, Bytes payload) except -1:
        """Leave the inside of an unread string out of a new template, if it is all that keeps a known one from fitting:
        padding, or the same text once more (OpenRouter's reasoning_details)."""
        cdef Bytes behind = self._body.start + self._body.size
        cdef Bytes stop
        cdef bytes before, after, whole
        cdef int number
        cdef bint text_first = known.head == template.head
        if not text_first and known.tail != template.tail:
            return 0
        for number in range(self._unread_count):
            stop = self._unread[number].start + self._unread[number].size
            if text_first != (stop > behind):
                continue
            if text_first:
                before, after = behind[:self._unread[number].start - behind], stop[:self._end - stop] + b"\n\n"
            else:
                before = b"data: " + payload[:self._unread[number].start - payload]
                after = stop[:self._body.start - stop]
            whole = known.tail if text_first else known.head
            if len(whole) < len(before) + len(after) or not whole.startswith(before) or not whole.endswith(after):
                continue
            template.text_first = text_first
            if text_first:
                template.middle, template.tail = before, after
            else:
                template.head, template.middle = before, after
            return 0
        return 0

    cdef Bytes _object(self, Bytes at, Level level, int depth) noexcept:
        cdef Span keys[MOST_KEYS]
        cdef int count = 0, other
        cdef Bytes stop
        if depth > self._max_depth:
            return NULL
        at = self._blanks(at + 1)
        if at < self._end and at[0] == b"}":
            return at + 1
        while at < self._end and at[0] == b'"' and count < MOST_KEYS:
            stop = self._string(at)
            if stop == NULL:
                return NULL
            keys[count].start, keys[count].size = at + 1, stop - at - 2
            if not self._plain and memchr(keys[count].start, b"\\", keys[count].size) != NULL:
                return NULL
            for other in range(count):
                if _equal(keys[other], keys[count].start, keys[count].size):
                    return NULL
            at = self._blanks(stop)
            if at == self._end or at[0] != COLON:
                return NULL
            at = self._member(self._blanks(at + 1), level, keys[count], depth)
            if at == NULL:
                return NULL
            count += 1
            at = self._blanks(at)
            if at == self._end:
                return NULL
            if at[0] == b"}":
                return at + 1
            if at[0] != b",":
                return NULL
            at = self._blanks(at + 1)
        return NULL

    cdef Bytes _member(self, Bytes at, Level level, Span key, int depth) noexcept:
        """The value of a key: held against the wire contract where it is read."""
        if level == UNREAD or at >= self._end:
            return self._value(at, depth)
        if level == TOP:
            if _is(key, b"choices"):
                return self._only(at, CHOICE, depth)
            if _is(key, b"id"):
                return self._word(at, self._response_id)
            if _is(key, b"usage"):
                return self._counts(at, depth)
            if _is(key, b"error"):
                return self._null(at)
            if (_is(key, b"object") or _is(key, b"type")) and at[0] == b'"':
                return self._no_error(at)
        elif level == CHOICE:
            if _is(key, b"index"):
                return self._number_at(at, &self._choice, NULL)
            if _is(key, b"delta"):
                return self._child(at, DELTA, depth)
            if _is(key, b"finish_reason"):
                return self._word(at, b"")
            if _is(key, b"message"):
                return self._null(at)
        elif level == DELTA:
            if _is(key, b"content"):
                return self._text(at, &self._texts[CONTENT])
            if _is(key, b"reasoning_content"):
                return self._text(at, &self._texts[REASONING])
            if self._aliases and _is(key, b"reasoning"):
                return self._text(at, &self._alias)
            if _is(key, b"tool_calls"):
                return self._only(at, PIECE, depth)
            if _is(key, b"function_call"):
                return self._null(at)
        elif level == PIECE:
            if _is(key, b"index"):
                return self._number_at(at, &self._index, &self._has_index)
            if _is(key, b"id"):
                return self._text(at, &self._call_id)
            if _is(key, b"type"):
                return self._word(at, b"function")
            if _is(key, b"function"):
                return self._child(at, FUNCTION, depth)
        elif level == FUNCTION:
            if _is(key, b"arguments"):
                return self._text(at, &self._texts[ARGUMENTS])
            if _is(key, b"name"):
                return self._text(at, &self._name)
        return self._value(at, depth)

    cdef Bytes _counts(self, Bytes at, int depth) noexcept:
        """The usage: an object, or null."""
        cdef Bytes stop = self._child(at, UNREAD, depth)
        if stop != NULL and at[0] == b"{":
            self._usage.start, self._usage.size = at, stop - at
        return stop

    cdef Bytes _null(self, Bytes at) noexcept:
        return at + 4 if self._end - at >= 4 and memcmp(at, b"null", 4) == 0 else NULL

    cdef Bytes _word(self, Bytes at, bytes word) noexcept:
        """null, "" or exactly this word, which has no escapes."""
        cdef Bytes stop
        cdef Span span
        if at[0] != b'"':
            return self._null(at)
        stop = self._string(at)
        if stop == NULL:
            return NULL
        span.start, span.size = at + 1, stop - at - 2
        return stop if span.size == 0 or _is(span, word) else NULL

    cdef Bytes _no_error(self, Bytes at) noexcept:
        """A string that is not `error`, however spelt."""
        cdef Bytes stop = self._string(at)
        cdef Span span
        if stop == NULL:
            return NULL
        span.start, span.size = at + 1, stop - at - 2
        return NULL if _is(span, b"error") or memchr(span.start, b"\\", span.size) != NULL else stop

    cdef Bytes _text(self, Bytes at, Span* text) noexcept:
        cdef Bytes stop
        if at[0] != b'"':
            return self._null(at)
        stop = self._string(at)
        if stop == NULL:
            return NULL
        text.start, text.size = at + 1, stop - at - 2
        return stop

    cdef Bytes _number_at(self, Bytes at, long long* number, bint* there) noexcept:
        """A small integer, or null."""
        cdef Bytes start = at
        if at[0] == b"n":
            return self._null(at)
        number[0] = 0
        while at < self._end and 0x30 <= at[0] <= 0x39 and at - start < 5:
            number[0] = number[0] * 10 + (at[0] - 0x30)
            at += 1
        if at == start or at - start > self._max_number or (start[0] == 0x30 and at - start > 1):
            return NULL
        if at < self._end and at[0] != b"," and at[0] != b"}" and at[0] != SPACE:
            return NULL
        if there != NULL:
            there[0] = True
        return at

    cdef Bytes _child(self, Bytes at, Level level, int depth) noexcept:
        """An object, or null."""
        return self._object(at, level, depth + 1) if at[0] == b"{" else self._null(at)

    cdef Bytes _only(self, Bytes at, Level level, int depth) noexcept:
        """A list of one object; of the pieces of calls also an empty one, or null."""
        if at[0] != b"[" or depth + 1 > self._max_depth:
            return self._null(at) if level == PIECE else NULL
        at = self._blanks(at + 1)
        if at < self._end and at[0] == b"]":
            return at + 1 if level == PIECE else NULL
        if at == self._end or at[0] != b"{":
            return NULL
        at = self._object(at, level, depth + 2)
        if at == NULL:
            return NULL
        if level == CHOICE:
            self._has_choice = True
        else:
            self._has_piece = True
        at = self._blanks(at)
        return at + 1 if at < self._end and at[0] == b"]" else NULL

    cdef Bytes _value(self, Bytes at, int depth) noexcept:
        """Any value that is not read."""
        cdef Bytes stop
        if at >= self._end:
            return NULL
        if at[0] == b'"':
            stop = self._string(at)
            if stop != NULL and self._unread_count < MOST_UNREAD:
                self._unread[self._unread_count].start = at + 1
                self._unread[self._unread_count].size = stop - at - 2
                self._unread_count += 1
            return stop
        if at[0] == b"{":
            return self._object(at, UNREAD, depth + 1)
        if at[0] == b"[":
            return self._array(at, depth + 1)
        if at[0] == b"-" or 0x30 <= at[0] <= 0x39:
            return self._number(at)
        if at[0] == b"n":
            return self._null(at)
        if self._end - at >= 4 and memcmp(at, b"true", 4) == 0:
            return at + 4
        return at + 5 if self._end - at >= 5 and memcmp(at, b"false", 5) == 0 else NULL

    cdef Bytes _array(self, Bytes at, int depth) noexcept:
        if depth > self._max_depth:
            return NULL
        at = self._blanks(at + 1)
        if at < self._end and at[0] == b"]":
            return at + 1
        while True:
            at = self._value(at, depth)
            if at == NULL:
                return NULL
            at = self._blanks(at)
            if at == self._end:
                return NULL
            if at[0] == b"]":
                return at + 1
            if at[0] != b",":
                return NULL
            at = self._blanks(at + 1)

    cdef Bytes _number(self, Bytes at) noexcept:
        """A number that is finite whatever its digits: an exponent has at most two."""
        cdef Bytes start = at
        cdef Bytes digits
        if at[0] == b"-":
            at += 1
        digits = at
        at = self._digits(at)
        if at == digits or (digits[0] == 0x30 and at - digits > 1):
            return NULL
        if at < self._end and at[0] == b".":
            digits = at + 1
            at = self._digits(digits)
            if at == digits:
                return NULL
        if at < self._end and (at[0] == b"e" or at[0] == b"E"):
            at += 1
            if at < self._end and (at[0] == b"-" or at[0] == b"+"):
                at += 1
            digits = at
            at = self._digits(at)
            if at == digits or at - digits > 2:
                return NULL
        return at if at - start <= self._max_number and at - start <= 200 else NULL

    cdef Bytes _digits(self, Bytes at) noexcept:
        while at < self._end and 0x30 <= at[0] <= 0x39:
            at += 1
        return at

    cdef Bytes _string(self, Bytes at) noexcept:
        """Behind the closing quote of the string that opens here."""
        cdef int more
        at += 1
        if self._plain:
            while at < self._end and at[0] != b'"':
                at += 1
            return at + 1 if at < self._end else NULL
        while at < self._end:
            while self._end - at >= 8 and _are_plain(at):
                at += 8
            while at < self._end and at[0] != b'"' and at[0] != b"\\" and at[0] >= 0x20:
                at += 1
            if at == self._end:
                return NULL
            if at[0] == b'"':
                return at + 1
            if at[0] < 0x20:
                return NULL
            if at[0] == b"\\":
                at += 1
                if at == self._end:
                    return NULL
                if at[0] == b"u":
                    if self._end - at < 5:
                        return NULL
                    for more in range(1, 5):
                        if _hex_digit(at[more]) < 0:
                            return NULL
                    at += 4
                elif _escaped(at[0]) == 0:
                    return NULL
            at += 1
        return NULL

    cdef inline Bytes _blanks(self, Bytes at) noexcept:
        while at < self._end and at[0] <= SPACE and (
            at[0] == SPACE or at[0] == b"\t" or at[0] == LF or at[0] == CR
        ):
            at += 1
        return at


cdef object _delta(_Sink sink, str text):
    cdef ContentDelta content
    cdef ReasoningDelta reasoning
    cdef ArgumentsDelta arguments
    if sink.kind == CONTENT:
        content = ContentDelta.__new__(ContentDelta)
        content.text, content.choice = text, sink.choice
        return content
    if sink.kind == REASONING:
        reasoning = ReasoningDelta.__new__(ReasoningDelta)
        reasoning.text, reasoning.choice = text, sink.choice
        return reasoning
    arguments = ArgumentsDelta.__new__(ArgumentsDelta)
    arguments.index, arguments.arguments, arguments.choice = sink.index, text, sink.choice
    return arguments


cdef inline Bytes _behind(Bytes at, Bytes end, bytes part) noexcept:
    """The place behind this part, or NULL if something else is here, or nothing."""
    cdef Py_ssize_t size = PyBytes_GET_SIZE(part)
    if at == NULL or end - at < size or memcmp(at, PyBytes_AS_STRING(part), size) != 0:
        return NULL
    return at + size


cdef Py_ssize_t _unescape(Bytes body, Bytes* end, unsigned char* out, bint* wide) noexcept:
    """Decode the inside of a JSON string, to at most as many bytes, up to its closing quote or to `end`, which is then
    where it stopped; -1 if it is none or has a surrogate. `wide` says whether it is more than ASCII."""
    cdef Py_ssize_t at = 0, written = 0, size = end[0] - body
    cdef int code, digit, more
    cdef unsigned char byte, seen = 0
    wide[0] = True
    while at < size:
        byte = body[at]
        if byte != b"\\" and byte != b'"' and byte >= 0x20:
            out[written] = byte
            seen |= byte
            written += 1
            at += 1
            continue
        if byte == b'"':
            size = at
            break
        if byte != b"\\":
            return -1
        at += 1
        if at == size:
            return -1
        byte = body[at]
        at += 1
        if byte != b"u":
            byte = _escaped(byte)
            if byte == 0:
                return -1
            out[written] = byte
            written += 1
            continue
        if size - at < 4:
            return -1
        code = 0
        for more in range(4):
            digit = _hex_digit(body[at + more])
            if digit < 0:
                return -1
            code = code * 16 + digit
        at += 4
        if 0xD800 <= code <= 0xDFFF:
            return -1
        seen |= 0x80 if code >= 0x80 else 0
        if code < 0x80:
            out[written] = <unsigned char>code
            written += 1
        elif code < 0x800:
            out[written] = <unsigned char>(0xC0 | code >> 6)
            out[written + 1] = <unsigned char>(0x80 | code & 0x3F)
            written += 2
        else:
            out[written] = <unsigned char>(0xE0 | code >> 12)
            out[written + 1] = <unsigned char>(0x80 | code >> 6 & 0x3F)
            out[written + 2] = <unsigned char>(0x80 | code & 0x3F)
            written += 3
    end[0] = body + size
    wide[0] = seen >= 0x80
    return written


cdef bint _is_plain(Bytes payload, Py_ssize_t size, bint* ascii) noexcept:
    """Whether there is no backslash and no control character; and whether there is nothing but ASCII."""
    cdef Py_ssize_t at = 0
    cdef uint64_t word, slashes, odd = 0, high = 0
    while size - at >= 8:
        memcpy(&word, payload + at, 8)
        slashes = word ^ <uint64_t>0x5C5C5C5C5C5C5C5C
        odd |= (word - <uint64_t>0x2020202020202020) & ~word | (slashes - <uint64_t>0x0101010101010101) & ~slashes
        high |= word
        at += 8
    while at < size:
        if payload[at] < 0x20 or payload[at] == b"\\":
            return False
        high |= payload[at]
        at += 1
    ascii[0] = high & <uint64_t>0x8080808080808080 == 0
    return odd & <uint64_t>0x8080808080808080 == 0


cdef inline bint _are_plain(Bytes at) noexcept:
    """Whether the next eight bytes of a string hold no quote, no backslash and no control character."""
    cdef uint64_t word, quotes, slashes
    memcpy(&word, at, 8)
    quotes = word ^ <uint64_t>0x2222222222222222
    slashes = word ^ <uint64_t>0x5C5C5C5C5C5C5C5C
    return (
        (word - <uint64_t>0x2020202020202020) & ~word
        | (quotes - <uint64_t>0x0101010101010101) & ~quotes
        | (slashes - <uint64_t>0x0101010101010101) & ~slashes
    ) & <uint64_t>0x8080808080808080 == 0


cdef inline unsigned char _escaped(unsigned char byte) noexcept:
    """What a one-letter escape stands for; 0 if it is none."""
    if byte == b'"' or byte == b"\\" or byte == b"/":
        return byte
    if byte == b"n":
        return 0x0A
    if byte == b"t":
        return 0x09
    if byte == b"r":
        return 0x0D
    if byte == b"b":
        return 0x08
    return 0x0C if byte == b"f" else 0


cdef inline int _hex_digit(unsigned char byte) noexcept:
    if 0x30 <= byte <= 0x39:
        return byte - 0x30
    byte |= 0x20
    return byte - 0x57 if 0x61 <= byte <= 0x66 else -1


cdef inline bint _equal(Span span, Bytes start, Py_ssize_t size) noexcept:
    return span.size == size and (size == 0 or (span.start[0] == start[0] and memcmp(span.start, start, size) == 0))


cdef inline bint _is(Span span, bytes word) noexcept:
    return span.size == PyBytes_GET_SIZE(word) and memcmp(span.start, PyBytes_AS_STRING(word), span.size) == 0
