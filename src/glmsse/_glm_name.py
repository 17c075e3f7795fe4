"""The name region of a call envelope: whether a call begins, and what becomes of the envelope if none does."""

from __future__ import annotations

from collections.abc import Callable

from ._glm_call import CallReader
from ._glm_envelopes import Written, json_calls
from ._glm_output import Reply
from ._glm_tags import (
    CALL_CLOSE,
    CALL_OPEN,
    FUNCTION_OPEN,
    KEY_CLOSE,
    KEY_OPEN,
    NO_TAG,
    PARTIAL,
    TURN,
    VALUE_CLOSE,
    VALUE_OPEN,
    dialect_of,
    tag_at,
)
from ._glm_types import Tool, Tools, is_sane
from .limits import Limits

_REGION_MOST = 512
_NAME_ENDS = frozenset((KEY_OPEN, KEY_CLOSE, VALUE_OPEN, VALUE_CLOSE, CALL_CLOSE))


class NameReader(CallReader):
    """The states from an opener to the header. Until then `_pos` stays at the opener, which may yet be text."""

    __slots__ = ("_head", "_in_reasoning", "_key_start", "_mark", "_opener", "_unoffered")

    def __init__(self, tools: Tools, reply: Reply, limits: Limits, unoffered: str) -> None:
        super().__init__(tools, reply, limits)
        self._unoffered = unoffered
        self._in_reasoning = False
        # The opener at hand, and how far behind its start the search for the end of its name region went.
        self._opener = ""
        self._mark = 0
        # What stands before Qwen's name or a buffered payload; the name before a mistyped key opener.
        self._head = ""
        self._key_start = 0

    def _write(self, text: str) -> None:
        raise NotImplementedError

    def _buffer(self, head: str, closer: str, envelope: Callable[..., list[Written] | None]) -> None:
        raise NotImplementedError

    def _open_region(self, length: int) -> None:
        self._opener = self._buf[self._pos : self._pos + length]
        self._mark = length
        self._dialect = dialect_of(self._opener)
        self._state = NameReader._read_name

    def _opener_is_text(self) -> bool:
        """Only the opener is; what is behind it is read anew."""
        self._write(self._opener)
        self._pos += len(self._opener)
        self._to_text()
        return True

    def _refuse(self) -> bool:
        self._reply.flag("malformed", None)
        return self._opener_is_text()

    def _next_tag(self, start: int) -> tuple[int, int, int]:
        """The place, kind and length of the first tag of a region that begins at `start`; PARTIAL while there is none
        yet, NO_TAG if there can be none."""
        buf = self._buf
        last = start + _REGION_MOST
        at = buf.find("<", self._pos + self._mark, last + 1)
        while at >= 0:
            kind, length = tag_at(buf, at, self._dialect.name, self._final)
            if kind != NO_TAG and (kind != FUNCTION_OPEN or self._is_payload_start(start, at)):
                self._mark = at - self._pos
                return at, kind, length
            at = buf.find("<", at + 1, last + 1)
        end = min(len(buf), last + 1)
        self._mark = end - self._pos
        return end, NO_TAG if self._final or end > last else PARTIAL, 0

    def _is_payload_start(self, start: int, at: int) -> bool:
        return self._state is NameReader._read_name and not self._buf[start:at].strip()

    def _read_name(self) -> bool:
        buf = self._buf
        start = self._pos + len(self._opener)
        first = buf[start : start + _REGION_MOST + 1].lstrip()[:1]
        if first and first in "{[":
            self._pos = start
            self._buffer(self._opener, self._dialect.closer, json_calls)
            return True
        at, kind, length = self._next_tag(start)
        if kind == PARTIAL:
            return False
        name = buf[start:at].strip()
        if kind == FUNCTION_OPEN:
            self._head = buf[self._pos : at + length]
            self._mark = len(self._head)
            self._dialect = dialect_of(self._opener, qwen=True)
            self._state = NameReader._read_function_name
            return True
        if kind in _NAME_ENDS:
            return self._decide_name(name, at, kind, length)
        at_end = kind == NO_TAG and self._ended and at - start <= _REGION_MOST
        tool = self._tools.find(name) if at_end or kind in (CALL_OPEN, TURN) else None
        if tool is None:
            return self._refuse()
        if kind == CALL_OPEN:
            self._mark = at + length - self._pos
            self._head = name
            self._key_start = self._mark
            self._state = NameReader._read_mistyped_key
            return True
        self._begin(tool)
        self._pos = at
        self._finish_call()
        self._reply.flag("closed_at_end", self._call)
        return True

    def _decide_name(self, name: str, at: int, kind: int, length: int) -> bool:
        """The region ended in an argument tag or in the call's closer."""
        tool = self._tools.find(name)
        if tool is not None:
            self._begin(tool)
            self._pos = at
            self._to_inside()
            return True
        found = self._tools.find_with_key(name) if kind == KEY_CLOSE and name else None
        if found is not None:
            self._begin(found[0])
            self._repair_key(found[1])
            self._pos = at + length
            return True
        return self._unaccepted(name, at)

    def _unaccepted(self, name: str, at: int) -> bool:
        """No call may be sent: the envelope, up to `at` read, is text or nothing."""
        if name and not is_sane(name):
            return self._refuse()
        self._reply.flag("unoffered" if name else "malformed", None)
        if self._in_reasoning:
            return self._opener_is_text()
        self._begin_raw(drop=bool(name) and self._unoffered == "drop")
        self._pass(at)
        self._to_inside()
        return True

    def _read_mistyped_key(self) -> bool:
        """Behind `NAME<tool_call>`: is that a mistyped `<arg_key>`?"""
        start = self._pos + self._key_start
        at, kind, length = self._next_tag(start)
        if kind == PARTIAL:
            return False
        if kind != KEY_CLOSE:
            return self._refuse()
        tool = self._tools.find(self._head)
        assert tool is not None
        key = self._buf[start:at].strip()
        self._begin(tool)
        self._repair_key(key)
        self._pos = at + length
        return True

    def _read_function_name(self) -> bool:
        """Qwen's header: the name is behind `<function=`."""
        buf = self._buf
        start = self._pos + len(self._head)
        last = start + _REGION_MOST
        at = buf.find(">", self._pos + self._mark, last + 1)
        if at < 0:
            if not self._final and len(buf) <= last:
                self._mark = len(buf) - self._pos
                return False
            return self._refuse()
        name = buf[start:at].strip()
        tool = self._tools.find(name)
        if tool is None:
            return self._unaccepted(name, at + 1)
        self._begin(tool)
        self._pos = at + 1
        self._to_inside()
        return True

    def _begin(self, tool: Tool) -> None:
        """Send the header; the call ends an open think block."""
        self._call = self._reply.start(tool)
        if self._in_reasoning:
            self._in_reasoning = False
            self._reply.flag("call_in_reasoning", self._call)
