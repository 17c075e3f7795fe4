"""Uses that a type checker must flag: each `type: ignore` here is needed, and one that is not is an error itself.

mypy says so by `warn_unused_ignores`, pyright by `reportUnnecessaryTypeIgnoreComment`. Never run.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator

from glmsse import (
    ArgumentsDelta,
    ChatEvent,
    ChatStream,
    Completion,
    ContentDelta,
    Deadlines,
    Done,
    Failed,
    Finish,
    Limits,
    ReasoningDelta,
    SSEFramer,
    ToolCallEnd,
    ToolCallParser,
    ToolCallStart,
    ToolGate,
    ToolRule,
    Verdict,
    acollect,
    collect,
    iter_events,
)
from glmsse.encode import AnthropicEncoder

if sys.version_info >= (3, 11):
    from typing import assert_never
else:
    from typing_extensions import assert_never


def usage_is_forgotten(event: ChatEvent) -> int:
    match event:
        case ContentDelta() | ReasoningDelta() | ArgumentsDelta() | ToolCallStart() | ToolCallEnd():
            return 1
        case Finish() | Done() | Failed():
            return 2
        case _:
            assert_never(event)  # type: ignore[arg-type]


def text_is_fed_as_bytes(stream: ChatStream, framer: SSEFramer, parser: ToolCallParser) -> None:
    stream.feed("data: {}")  # type: ignore[arg-type]
    framer.feed("data: {}")  # type: ignore[arg-type]
    parser.feed(b"<tool_call>")  # type: ignore[arg-type]


def a_verdict_may_not_be_there(stream: ChatStream) -> str:
    return stream.verdict.outcome  # type: ignore[union-attr]


def values_do_not_change(event: ContentDelta, verdict: Verdict) -> None:
    event.text = "other"  # type: ignore[misc]
    verdict.outcome = "accepted"  # type: ignore[misc]


def limits_and_deadlines_have_names_and_numbers() -> None:
    Limits(max_event_bytes="64k")  # type: ignore[arg-type]
    Limits(max_event_size=5)  # type: ignore[call-arg]
    Limits(5)  # type: ignore[call-arg]
    Deadlines(idle="60")  # type: ignore[arg-type]


def options_go_by_name(limits: Limits) -> None:
    ChatStream("zai", ["usage_optional"])  # type: ignore[call-arg]
    ChatStream(limit=limits)  # type: ignore[call-arg]


async def twins_are_not_mixed_up(pieces: Iterator[bytes], later: AsyncIterator[bytes]) -> None:
    collect(later)  # type: ignore[arg-type]
    await acollect(pieces)  # type: ignore[arg-type]
    iter_events(iter(["text"]))  # type: ignore[arg-type]


def a_gate_takes_the_verdict(gate: ToolGate, completion: Completion, verdict: Verdict) -> None:
    gate.review(completion, stream_id="request-1")  # type: ignore[arg-type]
    gate.review(verdict)  # type: ignore[call-arg]
    for call in gate.review(verdict, stream_id="request-1"):
        gate.permit(call)  # type: ignore[arg-type]


def a_rule_takes_callables() -> None:
    ToolRule("look_up", schema={"type": "object"})  # type: ignore[arg-type]


def an_encoder_takes_the_verdict(encoder: AnthropicEncoder, stream: ChatStream) -> None:
    encoder.finish(stream.snapshot)  # type: ignore[arg-type]
    AnthropicEncoder("glm-5.2")  # type: ignore[call-arg]
