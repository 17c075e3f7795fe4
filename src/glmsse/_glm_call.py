"""Inside of a call envelope: arguments in GLM's tags or in Qwen's, sent as JSON while they are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._glm_output import Call, Reply, size_of
from ._glm_tags import (
    CALL_CLOSE,
    CALL_OPEN,
    CALL_OPENER,
    FOLLOWING_TAGS,
    FUNCTION_CLOSE,
    KEY_CLOSE,
    KEY_OPEN,
    NO_TAG,
    PARTIAL,
    TURN,
    VALUE_CLOSE,
    VALUE_OPEN,
    TagTable,
    dialect_of,
    tag_at,
)
from ._glm_types import NULLABLE, STRING, Tools, ValueReader
from .limits import Limits

_WORD_MOST = 256
# PyPy's str.split takes these for no white space, against its own isspace.
_SEPARATORS = dict.fromkeys(range(0x1C, 0x20), " ")

# How the characters of a value go out.
_SKIPPED = 0
_STRING = 1
_UNDECIDED = 2
_TYPED = 3


class CallReader:
    """A state machine over `_buf` from `_pos`: a state reads what it can and says whether to go on.

    A call that is not sent (`_call` is None) is read by the same states; its raw text is content, or dropped.
    """

    __slots__ = (
        "_behind", "_behind_size", "_buf", "_call", "_dialect", "_drop", "_ended", "_final", "_function_ended",
        "_held", "_held_size", "_in_call", "_key", "_kind", "_lead", "_pos", "_reader", "_reply", "_state", "_tail",
        "_tools", "_types", "_word", "_word_open",
    )  # fmt: skip

    def __init__(self, tools: Tools, reply: Reply, limits: Limits) -> None:
        self._tools = tools
        self._reply = reply
        self._reader = ValueReader(limits)
        self._buf = ""
        self._pos = 0
        # No more text comes; and whether the model ended the reply.
        self._final = self._ended = False
        self._state: Callable[[Any], bool]
        self._call: Call | None = None
        self._in_call = False
        self._drop = False
        self._dialect = dialect_of(CALL_OPENER)
        # Qwen's `</function>` was read.
        self._function_ended = False
        # The last word between arguments, which a lone `</arg_key>` makes a key, and whether it may go on.
        self._word = ""
        self._word_open = False
        self._key = ""
        # Text that cannot go out yet: of a key, a typed value or one that may be null.
        self._held: list[str] = []
        self._held_size = 0
        self._kind = _SKIPPED
        self._types = STRING
        # Qwen's newlines on both sides of a value: the text before the first is known, and what may be the last.
        self._lead: str | None = None
        self._tail = ""
        # A call closer in a value and the whitespace behind it.
        self._behind: list[str] = []
        self._behind_size = 0

    def _turn(self, length: int) -> None:
        raise NotImplementedError

    def _to_text(self) -> None:
        raise NotImplementedError

    # Common steps

    def _find(self, table: TagTable, end: int | None = None) -> tuple[int, int, int]:
        """The place, kind and length of the next tag of the table; PARTIAL if there is none yet, and then there is none
        before that place for certain."""
        buf, final = self._buf, self._final
        stop = len(buf) if end is None else end
        at = buf.find("<", self._pos, stop)
        while at >= 0:
            kind, length = tag_at(buf, at, table, final)
            if kind != NO_TAG:
                return at, kind, length
            at = buf.find("<", at + 1, stop)
        return stop, PARTIAL, 0

    def _pass(self, at: int) -> None:
        """Everything before `at` is read."""
        if self._call is None and not self._drop:
            self._reply.content.write(self._buf[self._pos : at])
        self._pos = at

    def _space_end(self) -> int:
        buf, at = self._buf, self._pos
        while at < len(buf) and buf[at].isspace():
            at += 1
        return at

    def _flag(self, name: str) -> None:
        if self._call is not None:
            self._reply.flag(name, self._call)

    def _residue(self) -> None:
        if self._call is not None:
            self._reply.flag("residue", self._call)
            self._call.damaged = True

    def _begin_raw(self, drop: bool) -> None:
        """Read a call that is not sent."""
        self._call = None
        self._drop = drop
        self._in_call = True

    def _finish_call(self) -> None:
        if self._call is not None:
            self._call.end()
        self._leave_call()

    def _leave_incomplete(self) -> None:
        self._flag("incomplete")
        self._leave_call()

    def _leave_call(self) -> None:
        self._in_call = False
        self._to_text()

    def _end_call(self, ended: bool) -> None:
        """The reply ends inside of the envelope."""
        self._in_call = False
        call = self._call
        if call is None:
            return
        if self._state is CallReader._read_inside:
            if self._word:
                self._residue()
            if ended and not call.damaged:
                call.end()
                self._flag("closed_at_end")
                return
        elif self._state is CallReader._read_value and self._kind == _STRING:
            call.write_string((self._lead or "") + self._tail)
        self._flag("incomplete")

    # Between arguments

    def _to_inside(self) -> None:
        self._word = ""
        self._word_open = False
        self._function_ended = False
        self._in_call = True
        self._state = CallReader._read_inside

    def _read_inside(self) -> bool:
        dialect = self._dialect
        at, kind, length = self._find(dialect.behind if self._function_ended else dialect.inside)
        if at > self._pos:
            self._read_words(self._buf[self._pos : at])
            self._pass(at)
        if kind == PARTIAL:
            return False
        word = self._word
        self._word = ""
        if kind == KEY_CLOSE and 0 < len(word) <= _WORD_MOST:
            self._repair_key(word)
            self._pass(at + length)
            return True
        if word:
            self._residue()
        if kind == CALL_OPEN:
            self._reply.flag("malformed", self._call)
            self._finish_call()
        elif kind == TURN:
            self._turn(length)
        else:
            self._pass(at + length)
            self._read_inside_tag(kind)
        return True

    def _read_inside_tag(self, kind: int) -> None:
        if kind == KEY_OPEN:
            self._open_key()
        elif kind == CALL_CLOSE:
            self._finish_call()
        elif kind == FUNCTION_CLOSE:
            self._function_ended = True
        else:
            self._residue()
            if kind == VALUE_OPEN:
                self._to_value(_SKIPPED)

    def _read_words(self, text: str) -> None:
        """Remember the last word; those before it are residue."""
        words = text.translate(_SEPARATORS).split()
        if not words:
            self._word_open = False
            return
        if self._word and self._word_open and not text[0].isspace():
            words[0] = self._word + words[0]
        elif self._word:
            self._residue()
        if len(words) > 1:
            self._residue()
        # One more character than a key may have tells that it is none.
        self._word = words[-1][: _WORD_MOST + 1]
        self._word_open = not text[-1].isspace()

    # Keys

    def _open_key(self) -> None:
        if self._call is not None:
            self._call.open_key()
        self._held.clear()
        self._held_size = 0
        self._state = CallReader._read_key

    def _repair_key(self, key: str) -> None:
        """A key whose opener is missing or mistyped was read."""
        self._flag("repaired_key")
        self._open_key()
        self._key = key
        self._in_call = True
        self._state = CallReader._read_after_key

    def _read_key(self) -> bool:
        close = self._buf.find(">", self._pos) if self._dialect.qwen else -1
        at, kind, length = self._find(self._dialect.key, None if close < 0 else close)
        if self._call is not None and at > self._pos:
            self._hold(self._call, self._buf[self._pos : at])
        self._pass(at)
        if kind == PARTIAL:
            if close < 0 or self._reply.failed:
                return False
            self._key = self._take_held().strip()
            self._pass(close + 1)
            self._open_value()
        elif kind == KEY_CLOSE:
            self._key = self._take_held().strip()
            self._pass(at + length)
            self._state = CallReader._read_after_key
        elif kind == VALUE_OPEN:
            self._flag("repaired_key")
            self._key = self._take_held().strip()
            self._pass(at + length)
            self._open_value()
        else:
            self._read_key_tag(kind, at, length)
        return True

    def _read_key_tag(self, kind: int, at: int, length: int) -> None:
        """A tag that makes the key at hand one without a value."""
        if kind == TURN:
            self._turn(length)
            return
        self._residue()
        if kind == CALL_OPEN:
            self._leave_incomplete()
            return
        self._pass(at + length)
        if kind == KEY_OPEN:
            self._open_key()
        elif kind == CALL_CLOSE:
            self._finish_call()
        else:
            self._to_inside()

    def _read_after_key(self) -> bool:
        self._pass(self._space_end())
        buf, at = self._buf, self._pos
        if at == len(buf):
            return False
        kind, length = tag_at(buf, at, self._dialect.key, self._final) if buf[at] == "<" else (NO_TAG, 0)
        if kind == PARTIAL:
            return False
        if kind == NO_TAG:
            self._flag("repaired_value")
            self._open_value()
        elif kind == VALUE_OPEN:
            self._pass(at + length)
            self._open_value()
        elif kind == VALUE_CLOSE:
            self._flag("repaired_value")
            self._pass(at + length)
            self._open_value()
            self._close_value()
        elif kind == KEY_CLOSE:
            self._residue()
            self._pass(at + length)
        else:
            self._read_key_tag(kind, at, length)
        return True

    # Values

    def _open_value(self) -> None:
        kind = _SKIPPED
        if self._call is not None:
            self._types = self._call.tool.types_of(self._key)
            kind = _STRING if self._types is STRING else _UNDECIDED if self._types is NULLABLE else _TYPED
            self._call.open_value(self._key, quote=kind == _STRING)
        self._to_value(kind)

    def _to_value(self, kind: int) -> None:
        self._kind = kind
        self._held.clear()
        self._held_size = 0
        self._lead = "" if self._dialect.qwen else None
        self._tail = ""
        self._state = CallReader._read_value

    def _read_value(self) -> bool:
        buf, start = self._buf, self._pos
        kind = length = 0
        at = buf.find("</", start)
        while at >= 0:
            kind, length = tag_at(buf, at, self._dialect.value, self._final)
            if kind != NO_TAG:
                break
            at = buf.find("</", at + 2)
        if at < 0:
            kind = PARTIAL
            at = len(buf)
            if at > start and not self._final and buf[at - 1] == "<":
                at -= 1
        if at > start:
            self._read_data(buf[start:at])
            self._pass(at)
        if kind == PARTIAL:
            return False
        if kind == VALUE_CLOSE:
            self._pass(at + length)
            self._close_value()
        else:
            self._behind.append(buf[at : at + length])
            self._behind_size = 0
            self._pos = at + length
            self._state = CallReader._read_behind_closer
        return True

    def _read_data(self, text: str) -> None:
        call = self._call
        if call is None or self._kind == _SKIPPED:
            return
        self._write_data(call, self._without_newlines(text) if self._dialect.qwen else text)

    def _write_data(self, call: Call, text: str) -> None:
        if self._kind == _STRING:
            call.write_string(text)
            return
        if self._kind == _TYPED:
            self._hold(call, text)
            return
        text = self._take_held() + text
        if "null".startswith(text):
            self._held.append(text)
        else:
            self._kind = _STRING
            call.write('"')
            call.write_string(text)

    def _hold(self, call: Call, text: str) -> None:
        self._held.append(text)
        self._held_size += size_of(text)
        call.has_room_for(self._held_size)

    def _take_held(self) -> str:
        text = "".join(self._held)
        self._held.clear()
        self._held_size = 0
        return text

    def _without_newlines(self, text: str) -> str:
        """The text without a first newline; what may be the last one is held back."""
        if self._lead is not None:
            text = self._lead + text
            if not text or text == "\r":
                self._lead = text
                return ""
            self._lead = None
            text = text[2:] if text.startswith("\r\n") else text[1:] if text[0] == "\n" else text
        text = self._tail + text
        held = 2 if text.endswith("\r\n") else 1 if text.endswith(("\n", "\r")) else 0
        self._tail = text[len(text) - held :]
        return text[: len(text) - held]

    def _close_value(self) -> None:
        call = self._call
        if call is not None and self._kind != _SKIPPED:
            # Qwen's last newline is not part of the value; a lone CR is none.
            if (self._lead or "") + self._tail == "\r":
                self._write_data(call, "\r")
            text = self._take_held()
            if self._kind == _TYPED:
                value, repaired = self._reader.typed(text, self._types)
                if repaired:
                    self._flag("repaired_value")
                call.write(value)
            elif self._kind == _UNDECIDED and text == "null":
                call.write(text)
            else:
                if self._kind == _UNDECIDED:
                    call.write('"')
                    call.write_string(text)
                call.write('"')
        self._to_inside()

    def _read_behind_closer(self) -> bool:
        """A call closer in an open value is data, unless the reply or another call comes behind it."""
        buf, at = self._buf, self._space_end()
        if at > self._pos:
            self._behind.append(buf[self._pos : at])
            self._behind_size += size_of(buf[self._pos : at])
            self._pos = at
        if self._reply.past_argument_cap(self._behind_size):
            self._closer_is_data()
        elif at == len(buf):
            if not self._final:
                return False
            if self._ended:
                self._closer_is_real()
            else:
                self._closer_is_data()
        else:
            kind = tag_at(buf, at, FOLLOWING_TAGS, self._final)[0] if buf[at] == "<" else NO_TAG
            if kind == PARTIAL:
                return False
            if kind == NO_TAG:
                self._closer_is_data()
            else:
                self._closer_is_real()
        return True

    def _closer_is_data(self) -> None:
        text = "".join(self._behind)
        self._behind.clear()
        if self._kind != _SKIPPED:
            self._flag("literal_close")
        elif self._call is None and not self._drop:
            self._reply.content.write(text)
        self._state = CallReader._read_value
        self._read_data(text)

    def _closer_is_real(self) -> None:
        closer, *space = self._behind
        self._behind.clear()
        self._flag("repaired_value")
        if self._call is None and not self._drop:
            self._reply.content.write(closer)
        self._close_value()
        self._finish_call()
        for text in space:
            self._reply.content.write(text)
