"""The tools of a request, nested under `function` (chat completions) or flat (Responses, Anthropic)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .errors import MisuseError


def offered_names(tools: Iterable[dict[str, Any]] | None) -> frozenset[str] | None:
    """The names of the tools offered; None if nothing was said. MisuseError for anything but a list of tools."""
    if tools is None:
        return None
    if isinstance(tools, (str, bytes, dict)) or not isinstance(tools, Iterable):
        raise MisuseError(f"tools takes a list of tool objects, not {type(tools).__name__}")
    return frozenset(_name_of(tool) for tool in tools)


def _name_of(tool: object) -> str:
    if isinstance(tool, dict):
        function = tool.get("function", tool)
        name = function.get("name") if isinstance(function, dict) else None
        if isinstance(name, str) and name:
            return name
    raise MisuseError("each of tools is an object with a name, or with a function that has one")
