"""Synthetic streams: the five measured answers of GLM-5.2 rebuilt in code, and one stream for each way to fail.

For the demo, the stand-in provider and tests. Text and ids are made up; shapes are those on the wire (wire-contract §3,
§4, §8, §9).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from .limits import DEFAULT_LIMITS, Limits

Chunk = dict[str, Any]

RESPONSE_ID = "20261201093000a1b2c3d4e5f60718"
CREATED = 1796117400
MODEL = "glm-5.2"
DONE = b"data: [DONE]\n\n"

EXACT_TEXT = ("Ready", " when you", " are.")
ANSWER = "437"
REASONING = (
    "The user wants 19 times 23. I split 23 into 20 and 3: 19 times 20 is 380, and 19 times 3 is 57. "
    "Adding these gives me 380 + 57 = 437. As a check, 20 times 23 is 460, minus 23 is 437 again. "
    "Both ways agree, so I answer with the number alone, as was asked."
)
TOOL_ARGUMENTS = '{"city":"Hong Kong"}'
TOOL_PIECES = ('{"', 'city":', '"Ho', "ng ", "Kong", '"}')


@dataclass(frozen=True)
class Scenario:
    """A response body, and how a client that reads it should be set up."""

    name: str
    title: str
    body: bytes
    limits: Limits = field(default=DEFAULT_LIMITS)


def frame(chunk: Chunk) -> bytes:
    """One event as Z.ai writes it: one `data: ` line of compact JSON in raw UTF-8, one blank line."""
    return b"data: " + json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def delta(delta: Chunk, *, choice: int = 0, response_id: str = RESPONSE_ID) -> Chunk:
    """A chunk that carries one delta."""
    return {
        "id": response_id,
        "created": CREATED,
        "object": "chat.completion.chunk",
        "model": MODEL,
        "choices": [{"index": choice, "delta": delta}],
    }


def text(piece: str, **place: Any) -> Chunk:
    return delta({"role": "assistant", "content": piece}, **place)


def reasoning(piece: str, **place: Any) -> Chunk:
    return delta({"role": "assistant", "reasoning_content": piece}, **place)


def tool_piece(
    arguments: str, *, index: int = 0, call_id: str | None = None, name: str | None = None, **place: Any
) -> Chunk:
    """A piece of a call; `id` and `name` only where given, `type` in every piece as `tool_stream` does."""
    piece: Chunk = {"index": index, "type": "function", "function": {"arguments": arguments}}
    if call_id is not None:
        piece["id"] = call_id
    if name is not None:
        piece["function"]["name"] = name
    return delta({"tool_calls": [piece]}, **place)


def finish(reason: str | None, total_tokens: int | None, *, prompt_tokens: int = 15, choice: int = 0) -> Chunk:
    """The terminal chunk: an empty piece, the reason and the usage, as far as given."""
    chunk = text("", choice=choice)
    if reason is not None:
        chunk["choices"][0]["finish_reason"] = reason
    if total_tokens is not None:
        chunk["usage"] = {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": total_tokens - prompt_tokens,
            "total_tokens": total_tokens,
            "prompt_tokens_details": {"cached_tokens": 2},
        }
    return chunk


def body(chunks: Iterable[Chunk], *, done: bool = True) -> bytes:
    return b"".join(map(frame, chunks)) + (DONE if done else b"")


def evenly(whole: str, pieces: int) -> Iterator[str]:
    """A text cut into so many pieces of nearly the same length."""
    for number in range(pieces):
        yield whole[len(whole) * number // pieces : len(whole) * (number + 1) // pieces]


def _exact_text() -> bytes:
    return body([*map(text, EXACT_TEXT), finish("stop", 23)])


def _thinking() -> bytes:
    return body([*map(reasoning, evenly(REASONING, 103)), text(ANSWER), finish("stop", 131, prompt_tokens=24)])


def _tool() -> bytes:
    call = tool_piece(TOOL_ARGUMENTS, call_id="call_20260101", name="lookup_timezone")
    return body([call, finish("tool_calls", 177, prompt_tokens=160)])


def _tool_stream() -> bytes:
    first = tool_piece(TOOL_PIECES[0], call_id="call_20260101", name="lookup_timezone")
    return body([first, *map(tool_piece, TOOL_PIECES[1:]), finish("tool_calls", 177, prompt_tokens=160)])


MEASURED = (
    Scenario("text", "pay-as-you-go, exact text", _exact_text()),
    Scenario("thinking", "pay-as-you-go, thinking", _thinking()),
    Scenario("tool", "default tool behaviour", _tool()),
    Scenario("tool_stream", "tool_stream=true", _tool_stream()),
    Scenario("coding", "Coding Plan, exact text", _exact_text()),
)
"""The founding measurement's five answers."""


def _finished(reason: str) -> bytes:
    return body([text("The harbour lies"), finish(reason, 23)])


def _provider_error() -> bytes:
    error = {"error": {"code": "1302", "message": "too many requests at once"}, "request_id": "req-demo"}
    return body([text("The harbour"), error])


def _conflict() -> bytes:
    return body(
        [
            tool_piece('{"city":', call_id="call_a", name="lookup_timezone"),
            tool_piece('"Hong Kong"}', call_id="call_b"),
            finish("tool_calls", 177),
        ]
    )


def _spliced() -> bytes:
    cut = frame(text("The harbour"))[:70]
    return frame(text("Once")) + cut + body([text(" again", response_id="20261201093132ffeeddccbbaa9988")])


FAILING = (
    Scenario("truncated", "truncated in an event", body([text("The har"), text("bour")], done=False)[:-9]),
    Scenario("no_finish_reason", "no finish reason", body([text("Ready"), finish(None, 23)])),
    Scenario("no_usage", "no usage", body([text("Ready"), finish("stop", None)])),
    Scenario("no_done", "no [DONE]", body([text("Ready"), finish("stop", 23)], done=False)),
    Scenario("provider_error", "provider error in the stream", _provider_error()),
    Scenario("conflict", "conflicting tool field", _conflict()),
    Scenario("event_too_large", "oversized event", body([text("x" * 4096)]), Limits(max_event_bytes=2048)),
    Scenario("too_many_events", "too many events", body(map(text, "abcdefgh")), Limits(max_events=4)),
    Scenario("argument_too_large", "argument over its limit", _tool_stream(), Limits(max_argument_bytes=16)),
    Scenario("spliced_frame", "spliced frame", _spliced()),
    Scenario("length", "length", _finished("length")),
    Scenario("sensitive", "sensitive", _finished("sensitive")),
    Scenario("network_error", "network_error", _finished("network_error")),
)
"""One stream for each way to fail."""

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in (*MEASURED, *FAILING)}


def uneven_pieces(data: bytes, sizes: Iterable[int] = (1, 7, 64, 3, 211, 1460, 2, 29)) -> Iterator[bytes]:
    """The same bytes, cut as no sender would cut them; always in the same places."""
    pattern = tuple(sizes)
    at = step = 0
    while at < len(data):
        size = pattern[step % len(pattern)]
        yield data[at : at + size]
        at += size
        step += 1
