"""Chooses the framer, compiled or pure, and hands over what both need of the package."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from . import _deltas_py, _framer_py, _lane_py  # pyright: ignore[reportUnusedImport]  # used below, not for checkers
from .errors import GlmsseError, MisuseError, fault, limit_fault
from .limits import DEFAULT_LIMITS, checked_limits
from .strict_json import read_strictly

if TYPE_CHECKING:
    from ._deltas_py import ArgumentsDelta, ContentDelta, ReasoningDelta
    from ._framer import ServerSentEvent, SSEFramer
    from ._lane_py import ChatLane, TextStore
    from .strict_json import PlainDecoder

    decode_plain: PlainDecoder | None

__all__ = [
    "IMPLEMENTATION",
    "IMPLEMENTATION_REASON",
    "ArgumentsDelta",
    "ChatLane",
    "ContentDelta",
    "ReasoningDelta",
    "SSEFramer",
    "ServerSentEvent",
    "TextStore",
    "decode_plain",
]


def _load_json(text: str, offset: int) -> tuple[Any, GlmsseError | None]:
    """The value, or the fault: it is raised where no local holds the text."""
    value, code = read_strictly(text, DEFAULT_LIMITS)
    return value, None if code is None else fault(code, offset=offset)


def _rebuild_event(*fields: Any) -> ServerSentEvent:
    """Unpickles an event of either build in this one."""
    return ServerSentEvent(*fields)


def _rebuild_delta(kind: str, *fields: Any) -> Any:
    """Unpickles a delta of either build in this one."""
    return next(cls for cls in (ContentDelta, ReasoningDelta, ArgumentsDelta) if cls.type == kind)(*fields)


_deltas_py.rebuild = _rebuild_delta


def _choose() -> tuple[Any, str]:
    handed_over = (checked_limits, fault, limit_fault, MisuseError, _load_json, _rebuild_event, _rebuild_delta)
    _framer_py.bind(*handed_over)
    if os.environ.get("GLMSSE_PURE_PYTHON", "0") not in ("", "0"):
        return _framer_py, "GLMSSE_PURE_PYTHON is set"
    try:
        from . import _framer
    except Exception as problem:
        return _framer_py, f"the extension cannot be imported ({type(problem).__name__})"
    if _framer.SSEFramer.__module__ != f"{__package__}._framer":
        return _framer_py, "the extension was compiled for another package name"
    if not _framer.bind(*handed_over):
        return _framer_py, "the extension already serves another copy of this package"
    return _framer, "the extension is there"


_core, IMPLEMENTATION_REASON = _choose()
IMPLEMENTATION = "pure" if _core is _framer_py else "compiled"
if not TYPE_CHECKING:
    SSEFramer = _core.SSEFramer
    ServerSentEvent = _core.ServerSentEvent
    _lane, _deltas = (_lane_py, _deltas_py) if _core is _framer_py else (_core, _core)
    ChatLane, TextStore = _lane.ChatLane, _lane.TextStore
    decode_plain = _core.decode_plain
    ContentDelta, ReasoningDelta, ArgumentsDelta = _deltas.ContentDelta, _deltas.ReasoningDelta, _deltas.ArgumentsDelta
