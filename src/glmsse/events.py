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
    """A tool call begins: its `id` and `name` are known, or its choice finished without them (then None).

    index  of the call within its choice, from 0 up, as the wire has it; later events of the call repeat it
    id     the wire's id, which the result message has to repeat
    name   the tool's name, as the model wrote it: unchecked unless ChatStream was given `tools`
    """

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
    """The choice finished, for `reason`; None only where raw text ended without one.

    reason  the wire's `finish_reason`, with finish_aliases as read by it: stop and tool_calls are the accepted ones.
            It is no verdict: faults may follow
    """

    reason: str | None
    choice: int = 0
    type: ClassVar[str] = "finish"


@dataclass(frozen=True, slots=True, repr=False)
class Usage(EventBase):
    """Token counts of the whole response, as the provider states them; the last event counts. Sums are not checked.

    prompt_tokens, completion_tokens, total_tokens  integers from 0 up, of the wire's `usage` object
    cached_tokens  prompt tokens from a cache, in any of the three spellings seen on the wire; None if it did not say
    raw            the wire's object, with whatever else the provider counts; the snapshot shares it
    """

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
    """Reading stopped at a fault; always the last event. The verdict has the same `error`.

    error  not raised, but to be looked at: its class, `code`, `stage` and `offset` say what happened
    """

    error: GlmsseError
    choice: int = 0
    type: ClassVar[str] = "failed"

    def to_dict(self) -> dict[str, Any]:
        return {"type": self.type, "error": self.error.to_dict(), "choice": self.choice}


ChatEvent = Union[ReasoningDelta, ContentDelta, ToolCallStart, ArgumentsDelta, ToolCallEnd, Finish, Usage, Done, Failed]
"""Any event of a chat completion; `match` over its classes is exhaustive."""
