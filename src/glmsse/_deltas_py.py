"""The events of a piece of text, pure: the three that a stream is made of, so the extension has its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from ._repr import EventBase

rebuild: Callable[..., Any] = object
"""Makes a delta of the build that is active; set by the dispatcher."""


class _Delta(EventBase):
    """A delta of either build unpickles in the other."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return rebuild, (self.type, *(getattr(self, name) for name in self.__match_args__))


@dataclass(frozen=True, slots=True, repr=False)
class ReasoningDelta(_Delta):
    """A non-empty piece of the model's reasoning."""

    text: str
    choice: int = 0
    type: ClassVar[str] = "reasoning.delta"


@dataclass(frozen=True, slots=True, repr=False)
class ContentDelta(_Delta):
    """A non-empty piece of the visible answer."""

    text: str
    choice: int = 0
    type: ClassVar[str] = "content.delta"


@dataclass(frozen=True, slots=True, repr=False)
class ArgumentsDelta(_Delta):
    """A non-empty piece of a call's argument text. Never run a tool on it: take `Verdict.tool_calls`."""

    index: int
    arguments: str
    choice: int = 0
    type: ClassVar[str] = "tool_call.arguments.delta"
