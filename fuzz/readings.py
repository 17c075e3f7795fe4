"""What readings of either build come to, as plain values that can be compared."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .builds import Difference

TEXT_FIELDS = {"content.delta": "text", "reasoning.delta": "text", "tool_call.arguments.delta": "arguments"}
FIELDS = {
    "content.delta": ("choice", "text"),
    "reasoning.delta": ("choice", "text"),
    "tool_call.start": ("choice", "index", "id", "name"),
    "tool_call.arguments.delta": ("choice", "index", "arguments"),
    "tool_call.end": ("choice", "index"),
    "finish": ("choice", "reason"),
    "done": ("choice",),
}

VERDICT_FIELDS = (
    "outcome", "stage", "code", "missing", "tolerated", "finish_reason", "done", "category", "provider_code",
    "request_id", "retry_after", "replay", "checks", "digest",
)  # fmt: skip


def plain(event: Any) -> tuple[Any, ...]:
    """An event of a chat stream. A usage object is shown by its repr, as NaN is not equal to itself."""
    kind = event.type
    if kind == "failed":
        return kind, event.error.to_dict()
    if kind == "usage":
        return kind, repr(event.to_dict())
    return (kind, *[getattr(event, field) for field in FIELDS[kind]])


def joined(events: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Events with neighbouring pieces of the same text joined: text comes last in their fields."""
    out: list[tuple[Any, ...]] = []
    for event in events:
        new = plain(event)
        if out and new[0] in TEXT_FIELDS and out[-1][:-1] == new[:-1]:
            out[-1] = (*new[:-1], out[-1][-1] + new[-1])
        else:
            out.append(new)
    return out


def judged(verdict: Any) -> dict[str, Any]:
    """A verdict without its calls."""
    facts = {field: getattr(verdict, field) for field in VERDICT_FIELDS}
    facts["error"] = verdict.error and verdict.error.to_dict()
    facts["usage"] = repr(verdict.usage and verdict.usage.to_dict())
    return facts


def calls(seen: Iterable[Any]) -> list[tuple[Any, ...]]:
    """The calls of a verdict or of a choice."""
    return [(call.choice, call.index, call.id, call.name, call.arguments, call.complete) for call in seen]


def choices(completion: Any) -> list[tuple[Any, ...]]:
    """The choices of a snapshot."""
    return [
        (made.index, made.content, made.reasoning_content, calls(made.tool_calls), made.finish_reason)
        for made in completion.choices
    ]


def agree(what: str, first: dict[str, Any], second: dict[str, Any]) -> None:
    """Difference, with the names of the members that are not equal."""
    if first != second:
        names = [name for name in first if first[name] != second[name]]
        raise Difference(f"{what} differ in {', '.join(names)}")
