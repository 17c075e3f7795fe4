"""The snapshot: what has been received so far, in the shape of a non-streamed completion."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ._repr import shape


class _Record:
    """Reprs with sizes instead of text."""

    __slots__ = ()

    def __repr__(self) -> str:
        shown = (f"{field.name}={shape(getattr(self, field.name))}" for field in fields(self))  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(shown)})"


@dataclass(frozen=True, slots=True, repr=False)
class ToolCall(_Record):
    """One tool call. `arguments` is the exact joined text; `complete` says that it has ended.

    index      within its choice, from 0 up
    id, name   the wire's, or None if they never came; in `Verdict.tool_calls` both are there
    arguments  the pieces joined, byte for byte; JSON of an object in `Verdict.tool_calls`, unless args_any_json is on
    choice     the choice that it belongs to

    In a snapshot it shows what was received, whole or not; only `Verdict.tool_calls` may be run.
    """

    index: int
    id: str | None
    name: str | None
    arguments: str
    type: str = "function"
    complete: bool = False
    choice: int = 0

    def to_dict(self) -> dict[str, Any]:
        """The wire's object of a non-streamed body: id, type, function."""
        return {"id": self.id, "type": self.type, "function": {"name": self.name, "arguments": self.arguments}}


@dataclass(frozen=True, slots=True, repr=False)
class Choice(_Record):
    """One choice as received so far; `tool_calls` in the order of their index.

    content, reasoning_content  the pieces joined; empty if none came, or if the stream keeps no text
    finish_reason               None until it came
    """

    index: int
    content: str = ""
    reasoning_content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The wire's choice of a non-streamed body, with a message."""
        message: dict[str, Any] = {"role": "assistant", "content": self.content}
        if self.reasoning_content:
            message["reasoning_content"] = self.reasoning_content
        if self.tool_calls:
            message["tool_calls"] = [call.to_dict() for call in self.tool_calls]
        return {"index": self.index, "message": message, "finish_reason": self.finish_reason}


@dataclass(frozen=True, slots=True, repr=False)
class Completion(_Record):
    """The snapshot of a response; `choices` holds every promised or seen choice, in the order of their index.

    id              the first that the wire had, or None
    model, created  of the first chunk with choices, `created` in Unix seconds; None if it had none
    usage           the wire's last usage object, or None
    """

    choices: tuple[Choice, ...]
    id: str | None = None
    model: str | None = None
    created: int | None = None
    usage: dict[str, Any] | None = None

    def __hash__(self) -> int:
        return hash((self.choices, self.id))

    def to_dict(self) -> dict[str, Any]:
        """The body that the same request without `stream` would have given."""
        return {
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [choice.to_dict() for choice in self.choices],
            "usage": self.usage,
        }
