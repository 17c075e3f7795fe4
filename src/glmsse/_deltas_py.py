"""The events of a piece of text, pure: the three that a stream is made of, so the extension has its own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ._repr import EventBase


@dataclass(frozen=True, slots=True, repr=False)
class ReasoningDelta(EventBase):
    """A non-empty piece of the model's reasoning."""

    text: str
    choice: int = 0
    type: ClassVar[str] = "reasoning.delta"


@dataclass(frozen=True, slots=True, repr=False)
class ContentDelta(EventBase):
    """A non-empty piece of the visible answer."""

    text: str
    choice: int = 0
    type: ClassVar[str] = "content.delta"


@dataclass(frozen=True, slots=True, repr=False)
class ArgumentsDelta(EventBase):
    """A non-empty piece of a call's argument text. Never run a tool on it: take `Verdict.tool_calls`."""

    index: int
    arguments: str
    choice: int = 0
    type: ClassVar[str] = "tool_call.arguments.delta"
