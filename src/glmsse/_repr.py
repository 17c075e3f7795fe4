"""Reprs that never show text of a stream."""

from __future__ import annotations

from typing import Any, ClassVar


def shape(value: object) -> str:
    """A value for a repr: numbers as they are, whatever can hold text as its size or its kind."""
    if value is None or isinstance(value, (bool, int)):
        return repr(value)
    if isinstance(value, str):
        return f"<{len(value)} chars>"
    if isinstance(value, (tuple, list)):
        return f"<{len(value)} items>"
    if isinstance(value, Exception):
        return f"<{getattr(value, 'code', type(value).__name__)}>"
    return f"<{type(value).__name__}>"


class EventBase:
    """What all chat events share: a dotted `type`, JSON types by `to_dict()`, and a repr without text."""

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
