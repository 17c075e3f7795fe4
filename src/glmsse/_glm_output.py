"""What a parser has made of raw text so far: events, snapshot, flags, and the caps on all of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable

from ._glm_types import Tool, escaped
from .completion import Choice, Completion, ToolCall
from .errors import limit_fault
from .events import (
    ArgumentsDelta,
    ChatEvent,
    ContentDelta,
    Failed,
    Finish,
    ReasoningDelta,
    ToolCallEnd,
    ToolCallStart,
)
from .limits import Limits

_CONTENT = -1
_REASONING = -2
_NONE = -3


def size_of(text: str) -> int:
    """Bytes of UTF-8; half of a surrogate pair counts as three."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _escaped_size(text: str) -> int:
    return size_of(escaped(text))


def _fitting(text: str, room: int, size: Callable[[str], int]) -> str:
    """As many whole characters from the start as have room."""
    return text[: bisect_right(range(len(text)), room, key=lambda length: size(text[: length + 1]))]


class _TextSink:
    """Content or reasoning: trailing whitespace is held until it is known whether a call follows."""

    __slots__ = ("_held", "_held_size", "_hold", "_limit", "_reply", "_run", "after_call", "most", "parts", "size")

    def __init__(self, reply: Reply, run: int, limit: str, most: int | None, hold: bool) -> None:
        self._reply = reply
        self._run = run
        self._limit = limit
        self.most = most
        self._hold = hold
        self._held: list[str] = []
        self._held_size = 0
        self.size = 0
        self.parts: list[str] = []
        self.after_call = False

    def write(self, text: str) -> None:
        if self.after_call and not self.size:
            text = text.lstrip()
        if not text or self._reply.failed:
            return
        size = size_of(text)
        if self.most is not None and self.size + size > self.most:
            self._send("".join((*self._held, _fitting(text, self.most - self.size, size_of))))
            self._reply.fail(self._limit, self.most)
            return
        self.size += size
        body = text.rstrip() if self._hold else text
        if len(body) == len(text):
            tail = ""
        elif body:
            tail = text[len(body) :]
        else:
            self._held.append(text)
            self._held_size += size
            return
        self.after_call = False
        if self._held:
            body = "".join((*self._held, body))
            self._held.clear()
            self._held_size = 0
        self._send(body)
        if tail:
            self._held.append(tail)
            self._held_size = size_of(tail)

    def _send(self, text: str) -> None:
        if text:
            self._reply.send(self._run, text)

    def release(self) -> None:
        """Send the held whitespace."""
        text = "".join(self._held)
        self._held.clear()
        self._held_size = 0
        if not self._reply.failed:
            self._send(text)

    def drop(self) -> None:
        """Forget the held whitespace: a call begins."""
        self.size -= self._held_size
        self._held.clear()
        self._held_size = 0


class Call:
    """One call being sent: its arguments so far, as JSON text."""

    __slots__ = ("_reply", "complete", "damaged", "id", "index", "keys", "most", "opened", "parts", "size", "tool")

    def __init__(self, reply: Reply, index: int, id: str, tool: Tool, most: int | None) -> None:
        self._reply = reply
        self.most = most
        self.index = index
        self.id = id
        self.tool = tool
        self.opened = False
        self.complete = False
        self.damaged = False
        self.keys: set[str] = set()
        self.size = 0
        self.parts: list[str] = []

    def has_room_for(self, size: int) -> bool:
        """Whether that many more bytes fit; if not, the reply fails."""
        if self.most is not None and self.size + size > self.most:
            self._reply.fail("max_argument_bytes", self.most)
            return False
        return True

    def write(self, piece: str) -> None:
        """Send a piece of JSON, wholly or not at all."""
        if self._reply.failed:
            return
        size = size_of(piece)
        if self.has_room_for(size):
            self.size += size
            self._reply.send(self.index, piece)

    def write_string(self, text: str) -> None:
        """Send the next characters of an open string, as many as fit."""
        if self._reply.failed or not text:
            return
        piece = escaped(text)
        size = len(piece) if piece.isascii() else size_of(piece)
        if self.most is not None and self.size + size > self.most:
            text = _fitting(text, self.most - self.size, _escaped_size)
            if text:
                self._reply.send(self.index, escaped(text))
            self._reply.fail("max_argument_bytes", self.most)
            return
        self.size += size
        self._reply.send(self.index, piece)

    def open_key(self) -> None:
        if not self.opened:
            self.opened = True
            self.write("{")

    def open_value(self, key: str, quote: bool) -> None:
        comma = "," if self.keys else ""
        if key in self.keys:
            self._reply.flag("duplicate_key", self)
        self.keys.add(key)
        self.write(f'{comma}"{escaped(key)}":"' if quote else f'{comma}"{escaped(key)}":')

    def end(self) -> None:
        self.write("}" if self.opened else "{}")
        self.finish()

    def finish(self) -> None:
        """The arguments are whole: tell so."""
        if not self._reply.failed:
            self.complete = True
            self._reply.event(ToolCallEnd(self.index))


class Reply:
    """Collects the events of one reply. Once a cap was passed nothing is taken any more."""

    __slots__ = (
        "_arguments_most", "_calls_most", "_events", "_finish_reason", "_flags", "_id_prefix", "_run", "_run_parts",
        "calls", "content", "failed", "reasoning",
    )  # fmt: skip

    def __init__(self, limits: Limits, id_prefix: str, hold: bool) -> None:
        self.content = _TextSink(self, _CONTENT, "max_content_bytes", limits.max_content_bytes, hold)
        self.reasoning = _TextSink(self, _REASONING, "max_reasoning_bytes", limits.max_reasoning_bytes, hold)
        self.calls: list[Call] = []
        self.failed = False
        self._id_prefix = id_prefix
        self._calls_most = limits.max_tool_calls
        self._arguments_most = limits.max_argument_bytes
        # A dict keeps the order and holds each flag once.
        self._flags: dict[tuple[str, int | None], None] = {}
        self._events: list[ChatEvent] = []
        self._run = _NONE
        self._run_parts: list[str] = []
        self._finish_reason: str | None = None

    def send(self, run: int, text: str) -> None:
        """Add text to the content, the reasoning or the call of that index. Text of one feed that is alike and adjacent
        becomes one event."""
        if run != self._run:
            self._flush()
            self._run = run
        self._run_parts.append(text)

    def _flush(self) -> None:
        if not self._run_parts:
            return
        parts = self._run_parts
        text = parts[0] if len(parts) == 1 else "".join(parts)
        parts.clear()
        if self._run == _CONTENT:
            self.content.parts.append(text)
            self._events.append(ContentDelta(text))
        elif self._run == _REASONING:
            self.reasoning.parts.append(text)
            self._events.append(ReasoningDelta(text))
        else:
            self.calls[self._run].parts.append(text)
            self._events.append(ArgumentsDelta(self._run, text))

    def event(self, event: ChatEvent) -> None:
        self._flush()
        self._events.append(event)

    def take(self) -> list[ChatEvent]:
        """The events since the last time."""
        self._flush()
        events = self._events
        self._events = []
        return events

    def flag(self, name: str, call: Call | None) -> None:
        if not self.failed:
            self._flags.setdefault((name, None if call is None else call.index))

    def fail(self, limit: str, most: int) -> None:
        if not self.failed:
            self.failed = True
            # One more is all that is certain for every cutting.
            self.event(Failed(limit_fault(limit, most, most + 1)))

    def past_argument_cap(self, size: int) -> bool:
        return self._arguments_most is not None and size > self._arguments_most

    def too_large(self, size: int) -> bool:
        """Whether a buffered payload of that size passes the cap on arguments; if so, the reply fails."""
        if self._arguments_most is None or size <= self._arguments_most:
            return False
        self.fail("max_argument_bytes", self._arguments_most)
        return True

    def start(self, tool: Tool) -> Call:
        """Begin a call. What whitespace was held before it is gone."""
        self.content.drop()
        self.reasoning.drop()
        index = len(self.calls)
        call = Call(self, index, f"{self._id_prefix}{index}", tool, self._arguments_most)
        if self._calls_most is not None and index >= self._calls_most:
            self.fail("max_tool_calls", self._calls_most)
        if not self.failed:
            self.content.after_call = True
            self.event(ToolCallStart(index, call.id, tool.name))
            self.calls.append(call)
            if not tool.offered:
                self.flag("unoffered", call)
        return call

    def finish(self, reason: str | None) -> None:
        if reason is not None and not self.failed:
            self._finish_reason = reason
            self.event(Finish(reason))

    @property
    def flags(self) -> tuple[tuple[str, int | None], ...]:
        return tuple(self._flags)

    def snapshot(self) -> Completion:
        calls = tuple(
            ToolCall(call.index, call.id, call.tool.name, "".join(call.parts), complete=call.complete)
            for call in self.calls
        )
        content, reasoning = "".join(self.content.parts), "".join(self.reasoning.parts)
        return Completion((Choice(0, content, reasoning, calls, self._finish_reason),))
