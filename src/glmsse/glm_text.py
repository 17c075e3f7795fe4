"""Raw GLM model text in any pieces → the same typed events as a chat stream gives.

The reply is defined as the joined stream: no cutting of the text changes what is sent, and nothing sent is taken back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from ._glm_envelopes import Written, dsml_calls, gemma_calls, json_calls
from ._glm_name import NameReader
from ._glm_output import Reply, size_of
from ._glm_tags import (
    BARE_REASONING_TAGS,
    CALL_OPEN,
    CONTENT_TAGS,
    DSML_CLOSER,
    DSML_OPEN,
    GEMMA_CLOSER,
    GEMMA_OPEN,
    PARTIAL,
    REASONING_TAGS,
    START_TAGS,
    THINK_CLOSE,
    THINK_CLOSER,
    THINK_OPEN,
    TURN,
    TURN_TAGS,
    TagTable,
    tag_at,
)
from ._glm_types import Tool, Tools, is_sane, json_text
from .completion import Completion
from .errors import MisuseError
from .events import ChatEvent
from .limits import Limits, checked_limits

_STARTS = ("content", "reasoning", "auto")
_POLICIES = ("text", "call", "drop")
_MODEL_ENDED = ("stop", "tool_calls")
_GEMMA_HEAD = "call:"


class ToolCallParser(NameReader):
    """Reads one reply of a GLM model as text.

    tools      the request's tools, nested under `function` or flat; None takes any sane name with string arguments,
               an empty list leaves the content untouched
    start      where the prompt left off: "content", "reasoning", or "auto" for models that write `<think>` themselves
    unoffered  what becomes of calls to other names: "text", "call" or "drop"; they are flagged in any case
    id_prefix  ids of the calls are this and their index
    limits     caps; past one the last event is `failed` and nothing more comes

    Argument pieces of a call joined are its arguments byte for byte, for any cutting of the text. `flags` says what was
    repaired, skipped or cut. A call without `tool_call.end` was cut and must not be run.
    """

    __slots__ = (
        "_at_work", "_closed", "_closer", "_envelope", "_payload", "_payload_size", "_skip_space", "_turned",
    )  # fmt: skip

    def __init__(
        self,
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        start: str = "content",
        unoffered: str = "text",
        id_prefix: str = "call_",
        limits: Limits | None = None,
    ) -> None:
        _check_choice("start", start, _STARTS)
        _check_choice("unoffered", unoffered, _POLICIES)
        if not isinstance(id_prefix, str):
            raise MisuseError(f"id_prefix takes a str, not {type(id_prefix).__name__}")
        limits = checked_limits(limits)
        offered = Tools(tools, send_unoffered=unoffered == "call")
        super().__init__(offered, Reply(limits, id_prefix, hold=not offered.untouched), limits, unoffered)
        self._closed = self._turned = self._at_work = False
        self._in_reasoning = start == "reasoning"
        # Whitespace right behind `</think>` is being dropped.
        self._skip_space = False
        # A buffered envelope: its payload, what ends it and what reads it.
        self._payload: list[str] = []
        self._payload_size = 0
        self._closer = ""
        self._envelope: Callable[..., list[Written] | None] = json_calls
        if start == "content":
            self._to_text()
        else:
            self._state = ToolCallParser._read_start

    def feed(self, text: str) -> list[ChatEvent]:
        """The events that `text` completes, in order; nothing comes after `failed`. MisuseError after `close`."""
        problem = None
        if not isinstance(text, str):
            problem = f"feed takes a str, not {type(text).__name__}"
        elif self._closed:
            problem = "feed after close: use a new parser for each reply"
        elif self._at_work:
            problem = "an earlier call was interrupted and the parser lost its place: use a new one"
        if problem is not None:
            del text  # no frame of ours holds text when something is raised
            raise MisuseError(problem)
        if self._reply.failed:
            return []
        self._at_work = True
        self._buf = self._buf[self._pos :] + text
        self._pos = 0
        self._run()
        events = self._reply.take()
        self._at_work = False
        return events

    def close(self, reason: str | None = "stop") -> list[ChatEvent]:
        """The last events: what was held, then `finish` with `reason` (none for None, none after `failed`).

        With "stop" and "tool_calls" the model ended by itself, so a call that lacks only its closer counts as whole.
        Any other reason is a cut. Behind a turn token the reply has ended whatever the reason says; `finish` repeats it
        all the same. MisuseError when closed already.
        """
        if reason is not None and not isinstance(reason, str):
            raise MisuseError(f"close takes a reason or None, not {type(reason).__name__}")
        if self._closed:
            raise MisuseError("close after close: the reply has ended")
        if self._at_work:
            raise MisuseError("an earlier call was interrupted and the parser lost its place: use a new one")
        self._closed = True
        if not self._reply.failed:
            self._final = True
            self._ended = reason in _MODEL_ENDED
            self._run()
            if not self._turned:
                self._end(self._ended)
            self._reply.finish(reason)
        self._buf = ""
        self._pos = 0
        return self._reply.take()

    @property
    def snapshot(self) -> Completion:
        """All events so far, joined; one choice."""
        return self._reply.snapshot()

    @property
    def flags(self) -> tuple[tuple[str, int | None], ...]:
        """Pairs of a flag and the index of the call it is about, or None; each once, in order."""
        return self._reply.flags

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise MisuseError("a ToolCallParser cannot be copied or pickled: it belongs to one reply")

    def _run(self) -> None:
        reply = self._reply
        while not reply.failed and self._state(self):
            pass
        if reply.failed:
            self._buf = ""
            self._pos = 0

    # Text outside of calls

    def _write(self, text: str) -> None:
        """Text of the part the reply stands in."""
        if self._in_reasoning:
            self._reply.reasoning.write(text)
            return
        if self._skip_space:
            text = text.lstrip()
            if not text:
                return
            self._skip_space = False
        self._reply.content.write(text)

    def _to_text(self) -> None:
        """Go on reading content, or reasoning where that is still open."""
        if self._in_reasoning:
            self._state = ToolCallParser._read_reasoning
        elif self._tools.untouched:
            self._state = ToolCallParser._read_untouched
        else:
            self._state = ToolCallParser._read_content

    def _read_start(self) -> bool:
        """Whitespace and one `<think>` may come first."""
        buf, at = self._buf, self._pos
        while at < len(buf) and buf[at].isspace():
            at += 1
        if at > self._pos:
            self._hold_payload(buf[self._pos : at])
            self._pos = at
        most = self._start_most
        if most is None or self._payload_size <= most:
            if at == len(buf):
                return False
            if buf[at] == "<":
                kind, length = tag_at(buf, at, START_TAGS, self._final)
                if kind == PARTIAL:
                    return False
                if kind == THINK_OPEN:
                    self._take_payload()
                    self._pos += length
                    self._in_reasoning = True
                    self._to_text()
                    return True
        self._leave_start()
        return True

    @property
    def _start_most(self) -> int | None:
        return (self._reply.reasoning if self._in_reasoning else self._reply.content).most

    def _leave_start(self) -> None:
        """There is no `<think>`: the whitespace was text."""
        self._write(self._take_payload())
        self._to_text()

    def _read_untouched(self) -> bool:
        self._write(self._buf[self._pos :])
        self._pos = len(self._buf)
        return False

    def _read_reasoning(self) -> bool:
        bare = self._tools.untouched
        kind, length = self._text_up_to_tag(BARE_REASONING_TAGS if bare else REASONING_TAGS)
        if kind == CALL_OPEN:
            self._open_region(length)
        elif kind == THINK_CLOSE:
            self._leave_reasoning(length)
        elif kind == TURN:
            self._turn(length)
        return kind != PARTIAL

    def _leave_reasoning(self, length: int) -> None:
        self._pos += length
        self._reply.reasoning.release()
        self._in_reasoning = False
        self._skip_space = True
        self._to_text()

    def _read_content(self) -> bool:
        kind, length = self._text_up_to_tag(CONTENT_TAGS)
        if kind == PARTIAL:
            return False
        self._skip_space = False
        if kind == CALL_OPEN:
            self._open_region(length)
        elif kind == TURN:
            self._turn(length)
        elif kind == THINK_CLOSE:
            self._reply.flag("stray_marker", None)
            self._pos += length
        elif kind == GEMMA_OPEN:
            self._opener = self._buf[self._pos : self._pos + length]
            self._pos += length
            self._state = ToolCallParser._read_gemma_head
        elif kind == DSML_OPEN:
            self._opener = self._buf[self._pos : self._pos + length]
            self._pos += length
            self._buffer(self._opener, DSML_CLOSER, dsml_calls)
        else:
            self._reply.flag("stray_marker" if kind == THINK_OPEN else "malformed", None)
            self._write(self._buf[self._pos : self._pos + length])
            self._pos += length
        return True

    def _text_up_to_tag(self, table: TagTable) -> tuple[int, int]:
        """Write what comes before the next tag of the table and stand at it; PARTIAL if there is none yet."""
        at, kind, length = self._find(table)
        if at > self._pos:
            self._write(self._buf[self._pos : at])
            self._pos = at
        return kind, length

    # Turn tokens and the end

    def _turn(self, length: int) -> None:
        """A turn token: the model ended here, whatever comes behind it."""
        self._pos += length
        self._end(ended=True)
        self._turned = True
        self._state = ToolCallParser._read_ignored

    def _read_ignored(self) -> bool:
        buf, at = self._buf, self._pos
        while at < len(buf):
            if buf[at] == "<":
                kind, length = tag_at(buf, at, TURN_TAGS, self._final)
                if kind == PARTIAL:
                    break
                if kind == TURN:
                    at += length
                    continue
            if not buf[at].isspace():
                self._reply.flag("stray_marker", None)
                at = len(buf)
                break
            at += 1
        self._pos = at
        return False

    def _end(self, ended: bool) -> None:
        """The reply ends where it stands; `ended` says that the model ended it."""
        state = self._state
        if state is ToolCallParser._read_start:
            self._leave_start()
        elif state is ToolCallParser._read_payload:
            self._payload_is_text()
            self._reply.flag("incomplete", None)
        elif self._in_call:
            self._end_call(ended)
        if self._in_reasoning:
            self._reply.reasoning.release()
            self._reply.flag("reasoning_open", None)
        content = self._reply.content
        if not content.after_call:
            content.release()

    # Buffered envelopes

    def _buffer(self, head: str, closer: str, envelope: Callable[..., list[Written] | None]) -> None:
        self._head = head
        self._closer = closer
        self._envelope = envelope
        self._state = ToolCallParser._read_payload

    def _hold_payload(self, text: str) -> None:
        self._payload.append(text)
        self._payload_size += size_of(text)

    def _take_payload(self) -> str:
        text = "".join(self._payload)
        self._payload.clear()
        self._payload_size = 0
        return text

    def _read_gemma_head(self) -> bool:
        """`call:` must follow, whitespace aside."""
        buf, at = self._buf, self._pos
        while at < len(buf) and buf[at].isspace():
            at += 1
        self._hold_payload(buf[self._pos : at])
        self._pos = at
        if self._reply.too_large(self._payload_size):
            return False
        if buf.startswith(_GEMMA_HEAD, at):
            self._pos += len(_GEMMA_HEAD)
            self._buffer(f"{self._opener}{self._take_payload()}{_GEMMA_HEAD}", GEMMA_CLOSER, gemma_calls)
            return True
        if not self._final and _GEMMA_HEAD.startswith(buf[at : at + len(_GEMMA_HEAD)]):
            return False
        self._gemma_is_text()
        return True

    def _gemma_is_text(self) -> None:
        self._reply.flag("malformed", None)
        self._write(self._opener)
        self._write(self._take_payload())
        self._to_text()

    def _read_payload(self) -> bool:
        buf, start, closer = self._buf, self._pos, self._closer
        at = buf.find(closer, start)
        if self._in_reasoning:
            think = buf.find(THINK_CLOSER, start, len(buf) if at < 0 else at)
            if think >= 0:
                self._hold_payload(buf[start:think])
                self._pos = think
                if not self._reply.too_large(self._payload_size):
                    self._payload_is_text()
                    self._reply.flag("malformed", None)
                return True
        if at < 0:
            end = len(buf)
            if not self._final:
                last = buf.rfind("<", max(start, end - len(closer) + 1))
                if last >= 0 and (
                    closer.startswith(buf[last:]) or (self._in_reasoning and THINK_CLOSER.startswith(buf[last:]))
                ):
                    end = last
            self._hold_payload(buf[start:end])
            self._pos = end
            self._reply.too_large(self._payload_size)
            return False
        self._hold_payload(buf[start:at])
        self._pos = at + len(closer)
        if self._reply.too_large(self._payload_size):
            return False
        self._judge_payload()
        return True

    def _payload_is_text(self) -> None:
        self._write(self._head)
        self._write(self._take_payload())
        self._to_text()

    def _judge_payload(self) -> None:
        """The envelope is whole: send its calls, or make it text or nothing."""
        payload = "".join(self._payload)
        calls = self._envelope(payload, self._reader)
        found: list[tuple[Tool, dict[str, Any]]] = []
        unoffered = False
        for name, arguments in calls or ():
            tool = self._tools.find(name)
            if tool is not None:
                found.append((tool, arguments))
            elif is_sane(name):
                unoffered = True
            else:
                calls = None
                break
        if calls and not unoffered:
            self._take_payload()
            for tool, arguments in found:
                self._begin(tool)
                assert self._call is not None
                self._call.write(json_text(arguments))
                self._call.finish()
            self._to_text()
            return
        self._reply.flag("unoffered" if calls else "malformed", None)
        if calls and self._unoffered == "drop" and not self._in_reasoning:
            self._take_payload()
            self._to_text()
        else:
            self._hold_payload(self._closer)
            self._payload_is_text()


def _check_choice(option: str, value: object, choices: tuple[str, ...]) -> None:
    if not isinstance(value, str):
        raise MisuseError(f"{option} takes a str, not {type(value).__name__}")
    if value not in choices:
        raise MisuseError(f"{option} takes one of {', '.join(choices)}")
