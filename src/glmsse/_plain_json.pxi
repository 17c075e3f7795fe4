# JSON without anything out of the ordinary, included by `_framer.pyx`. It accepts or bails, it never judges: for whatever
# is unusual (an escape, equal keys, a long number, an error) the standard decoder does the work in both twins.

cdef int MOST_PLAIN_DEPTH = 24
cdef object _BAIL = object()


def decode_plain(str text not None, int most_depth, Py_ssize_t most_number, instead, /):
    """The value of a JSON text, or `instead` where that is not plain."""
    cdef Py_ssize_t size = 0
    cdef Bytes at
    try:
        at = <Bytes>PyUnicode_AsUTF8AndSize(text, &size)
    except UnicodeEncodeError:
        return instead
    cdef Bytes end = at + size
    value = _plain_value(&at, end, min(most_depth, MOST_PLAIN_DEPTH), most_number)
    _skip_blanks(&at, end)
    return value if value is not _BAIL and at == end else instead


cdef object _plain_value(Bytes* at, Bytes end, int depth, Py_ssize_t most_number):
    """Reads one value, and leaves `at` behind it; nesting may be `depth` levels more."""
    cdef unsigned char first
    _skip_blanks(at, end)
    if at[0] == end:
        return _BAIL
    first = at[0][0]
    if first == b'"':
        return _plain_string(at, end)
    if first == b"{" or first == b"[":
        if depth == 0:
            return _BAIL
        at[0] += 1
        if first == b"{":
            return _plain_object(at, end, depth - 1, most_number)
        return _plain_array(at, end, depth - 1, most_number)
    if end - at[0] >= 4 and memcmp(at[0], b"null", 4) == 0:
        at[0] += 4
        return None
    if end - at[0] >= 4 and memcmp(at[0], b"true", 4) == 0:
        at[0] += 4
        return True
    if end - at[0] >= 5 and memcmp(at[0], b"false", 5) == 0:
        at[0] += 5
        return False
    return _plain_number(at, end, most_number)


cdef object _plain_object(Bytes* at, Bytes end, int depth, Py_ssize_t most_number):
    cdef dict made = {}
    cdef Py_ssize_t count = 0
    _skip_blanks(at, end)
    if at[0] < end and at[0][0] == b"}":
        at[0] += 1
        return made
    while at[0] < end and at[0][0] == b'"':
        key = _plain_string(at, end)
        _skip_blanks(at, end)
        if key is _BAIL or at[0] == end or at[0][0] != COLON:
            return _BAIL
        at[0] += 1
        value = _plain_value(at, end, depth, most_number)
        if value is _BAIL:
            return _BAIL
        made[key] = value
        count += 1
        _skip_blanks(at, end)
        if at[0] == end:
            return _BAIL
        if at[0][0] == b"}":
            at[0] += 1
            return made if len(made) == count else _BAIL
        if at[0][0] != b",":
            return _BAIL
        at[0] += 1
        _skip_blanks(at, end)
    return _BAIL


cdef object _plain_array(Bytes* at, Bytes end, int depth, Py_ssize_t most_number):
    cdef list made = []
    _skip_blanks(at, end)
    if at[0] < end and at[0][0] == b"]":
        at[0] += 1
        return made
    while True:
        value = _plain_value(at, end, depth, most_number)
        if value is _BAIL:
            return _BAIL
        made.append(value)
        _skip_blanks(at, end)
        if at[0] == end:
            return _BAIL
        if at[0][0] == b"]":
            at[0] += 1
            return made
        if at[0][0] != b",":
            return _BAIL
        at[0] += 1


cdef object _plain_string(Bytes* at, Bytes end):
    cdef Bytes start = at[0] + 1
    cdef Bytes stop = start
    while end - stop >= 8 and _are_plain(stop):
        stop += 8
    while stop < end and stop[0] != b'"' and stop[0] != b"\\" and stop[0] >= SPACE:
        stop += 1
    if stop == end or stop[0] != b'"':
        return _BAIL
    at[0] = stop + 1
    return PyUnicode_DecodeUTF8(<const char*>start, stop - start, "strict")


cdef object _plain_number(Bytes* at, Bytes end, Py_ssize_t most_number):
    """An integer of at most 18 digits; whatever else begins like a number has a fraction or is unusual."""
    cdef Bytes start = at[0]
    cdef Bytes stop = start
    cdef long long number = 0
    cdef bint negative = start[0] == b"-"
    if negative:
        start += 1
        stop += 1
    while stop < end and 0x30 <= stop[0] <= 0x39 and stop - start < 18:
        number = number * 10 + (stop[0] - 0x30)
        stop += 1
    if stop == start or stop - at[0] > most_number or (start[0] == 0x30 and stop - start > 1):
        return _BAIL
    if stop < end and (0x30 <= stop[0] <= 0x39 or stop[0] == b"." or stop[0] | 0x20 == b"e"):
        return _BAIL
    at[0] = stop
    return -number if negative else number


cdef inline void _skip_blanks(Bytes* at, Bytes end) noexcept:
    while at[0] < end and at[0][0] <= SPACE and (
        at[0][0] == SPACE or at[0][0] == b"\t" or at[0][0] == LF or at[0][0] == CR
    ):
        at[0] += 1
