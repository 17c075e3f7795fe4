"""Typed events of a chat completion, in the order in which they happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Union

from ._repr import EventBase
from .errors import GlmsseError
from .framing import ArgumentsDelta, ContentDelta, ReasoningDelta

__all__ = [
    "ArgumentsDelta",
    "ChatEvent",
    "ContentDelta",
    "Done",
    "Failed",
    "Finish",
    "ReasoningDelta",
    "ToolCallEnd",
    "ToolCallStart",
    "Usage",
]


@dataclass(frozen=True, slots=True, repr=False)
class ToolCallStart(EventBase):
    """A tool call begins: its `id` and `name` are known, or its choice finished without them (then None)."""

    index: int
    id: str | None
    name: str | None
    choice: int = 0
    type: ClassVar[str] = "tool_call.start"


@dataclass(frozen=True, slots=True, repr=False)
class ToolCallEnd(EventBase):
    """This call has ended; a piece that comes all the same re-opens it. The verdict says if it may be run."""

    index: int
    choice: int = 0
    type: ClassVar[str] = "tool_call.end"


@dataclass(frozen=True, slots=True, repr=False)
class Finish(EventBase):
    """The choice finished, for `reason`; None only where raw text ended without one."""

    reason: str | None
    choice: int = 0
    type: ClassVar[str] = "finish"


@dataclass(frozen=True, slots=True, repr=False)
class Usage(EventBase):
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
class Done(EventBase):
    """`[DONE]` arrived: the server closed its list of events. Not success; the verdict says that."""

    choice: int = 0
    type: ClassVar[str] = "done"


@dataclass(frozen=True, slots=True, repr=False)
class Failed(EventBase):
    """Reading stopped at a fault; always the last event. The verdict has the same `error`."""

    error: GlmsseError
    choice: int = 0
    type: ClassVar[str] = "failed"

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type, "error": self.error.to_dict(), "choice": self.choice}


ChatEvent = Union[ReasoningDelta, ContentDelta, ToolCallStart, ArgumentsDelta, ToolCallEnd, Finish, Usage, Done, Failed]
"""Any event of a chat completion; `match` over its classes is exhaustive."""
