"""Feeding a `ToolCallParser` in every way, for the tests of raw GLM text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from glmsse.events import ChatEvent
from glmsse.glm_text import ToolCallParser

TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "search",
            "parameters": {
                "type": "object",
                "properties": {
                    "q": {"type": "string"},
                    "limit": {"type": "integer"},
                    "score": {"type": "number"},
                    "exact": {"type": "boolean"},
                    "cursor": {"type": "null"},
                    "tags": {"type": "array"},
                    "opts": {"type": "object"},
                    "to": {"type": ["string", "null"]},
                    "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                },
            },
        },
    },
    {"type": "function", "function": {"name": "now"}},
    {"type": "function", "function": {"name": "run", "parameters": {"properties": {"command": {"type": "string"}}}}},
]


TEXT_FIELDS = {"tool_call.arguments.delta": "arguments", "content.delta": "text", "reasoning.delta": "text"}


class Outcome(NamedTuple):
    """What a reply came to; `calls` are name, arguments and completeness."""

    content: str
    reasoning: str
    calls: list[tuple[str, str, bool]]
    flags: tuple[tuple[str, int | None], ...]

    @property
    def names_of_flags(self) -> set[str]:
        return {name for name, _ in self.flags}


def pieces_of(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def cuttings(text: str) -> Iterator[list[str]]:
    """Whole, in pieces of 1, 2, 3 and 7 characters, and short texts at every single cut."""
    yield [text]
    for size in (1, 2, 3, 7):
        yield pieces_of(text, size)
    if len(text) <= 600:
        for cut in range(1, len(text)):
            yield [text[:cut], text[cut:]]


def merged(events: list[ChatEvent]) -> list[dict[str, Any]]:
    """Events as JSON types, with adjacent pieces of the same text joined."""
    out: list[dict[str, Any]] = []
    for event in events:
        new = event.to_dict()
        old = out[-1] if out else {}
        field = TEXT_FIELDS.get(event.type)
        if field and old.get("type") == event.type and old.get("index") == new.get("index"):
            old[field] += new[field]
        else:
            out.append(new)
    return out


def fed(pieces: list[str], end: str | None = "stop", **options: Any) -> tuple[list[ChatEvent], ToolCallParser]:
    options.setdefault("tools", TOOLS)
    parser = ToolCallParser(options.pop("tools"), **options)
    events: list[ChatEvent] = []
    for piece in pieces:
        events += parser.feed(piece)
    return events + parser.close(end), parser


def read_one_way(pieces: list[str], **options: Any) -> tuple[list[dict[str, Any]], Outcome]:
    events, parser = fed(pieces, **options)
    choice = parser.snapshot.choices[0]
    calls = [(call.name or "", call.arguments, call.complete) for call in choice.tool_calls]
    outcome = Outcome(choice.content, choice.reasoning_content, calls, parser.flags)
    joined = merged(events)
    assert_joined(joined, outcome)
    return joined, outcome


def assert_joined(events: list[dict[str, Any]], outcome: Outcome) -> None:
    """The snapshot is the joined events."""
    assert "".join(e["text"] for e in events if e["type"] == "content.delta") == outcome.content
    assert "".join(e["text"] for e in events if e["type"] == "reasoning.delta") == outcome.reasoning
    starts = [e for e in events if e["type"] == "tool_call.start"]
    assert [e["index"] for e in starts] == list(range(len(outcome.calls)))
    ended = {e["index"] for e in events if e["type"] == "tool_call.end"}
    for start, (name, arguments, complete) in zip(starts, outcome.calls, strict=True):
        index = start["index"]
        pieces = [e["arguments"] for e in events if e["type"] == "tool_call.arguments.delta" and e["index"] == index]
        assert (start["name"], "".join(pieces), index in ended) == (name, arguments, complete)


def read(text: str, **options: Any) -> Outcome:
    """The outcome of a reply, which must be the same, event for event, for every cutting."""
    first: tuple[list[dict[str, Any]], Outcome] | None = None
    for pieces in cuttings(text):
        got = read_one_way(pieces, **options)
        if first is None:
            first = got
        assert got == first
    assert first is not None
    return first[1]
