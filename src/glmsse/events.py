"""Typed events of a chat completion, in the order in which they happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Union

from ._repr import shape
from .errors import GlmsseError


class _Event:
    """What all events share: a dotted `type`, JSON types by `to_dict()`, and a repr without text."""

    __slots__ = ()
    __match_args__: ClassVar[tuple[str, ...]]
    type: ClassVar[str]
    choice: int

    def to_dict(self) -> dict[str, Any]:
        """The event as JSON types: `type` first, then its fields."""
        return {"type": self.type, **{name: getattr(self, name) for name in self.__match_args__}}

    def __repr__(self) -> str:
        shown = (f"{name}={shape(getattr(self, name))}" for name in self.__match_args__)
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, slots=True, repr=False)
class ReasoningDelta(_Event):
    """A non-empty piece of the model's reasoning."""

    text: str
    choice: int = 0
    type: ClassVar[str] = "reasoning.delta"


@dataclass(frozen=True, slots=True, repr=False)
class ContentDelta(_Event):
    """A non-empty piece of the visible answer."""

    text: str
    choice: int = 0
    type: ClassVar[str] = "content.delta"


@dataclass(frozen=True, slots=True, repr=False)
class ToolCallStart(_Event):
    """A tool call begins: its `id` and `name` are known, or its choice finished without them (then None)."""

    index: int
    id: str | None
    name: str | None
    choice: int = 0
    type: ClassVar[str] = "tool_call.start"


@dataclass(frozen=True, slots=True, repr=False)
class ArgumentsDelta(_Event):
    """A non-empty piece of a call's argument text. Never run a tool on it: take `Verdict.tool_calls`."""

    index: int
    arguments: str
    choice: int = 0
    type: ClassVar[str] = "tool_call.arguments.delta"


@dataclass(frozen=True, slots=True, repr=False)
class ToolCallEnd(_Event):
    """The choice finished with `stop` or `tool_calls`, so this call is whole. The verdict says if it may be run."""

    index: int
    choice: int = 0
    type: ClassVar[str] = "tool_call.end"


@dataclass(frozen=True, slots=True, repr=False)
class Finish(_Event):
    """The choice finished, for `reason`; None only where raw text ended without one."""

    reason: str | None
    choice: int = 0
    type: ClassVar[str] = "finish"


@dataclass(frozen=True, slots=True, repr=False)
class Usage(_Event):
    """Token counts of the whole response; the last one counts. `raw` is the wire's object."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    cached_tokens: int | None
    raw: dict[str, Any]
    choice: int = 0
    type: ClassVar[str] = "usage"

    def __hash__(self) -> int:
        return hash((self.prompt_tokens, self.completion_tokens, self.total_tokens))


@dataclass(frozen=True, slots=True, repr=False)
class Done(_Event):
    """`[DONE]` arrived: the server closed its list of events. Not success; the verdict says that."""

    choice: int = 0
    type: ClassVar[str] = "done"


@dataclass(frozen=True, slots=True, repr=False)
class Failed(_Event):
    """Reading stopped at a fault; always the last event. The verdict has the same `error`."""

    error: GlmsseError
    choice: int = 0
    type: ClassVar[str] = "failed"

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type, "error": self.error.to_dict(), "choice": self.choice}


ChatEvent = Union[ReasoningDelta, ContentDelta, ToolCallStart, ArgumentsDelta, ToolCallEnd, Finish, Usage, Done, Failed]
"""Any event of a chat completion; `match` over its classes is exhaustive."""
