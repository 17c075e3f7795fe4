"""Uses that a type checker must accept, with the types that it must find. Checked by mypy and pyright, never run."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable, Iterable, Iterator

import httpx

from glmsse import (
    PROFILES,
    TOLERANCES,
    Answer,
    AnswerGate,
    AnswerRefusal,
    ArgumentsDelta,
    ChatEvent,
    ChatStream,
    Completion,
    ContentDelta,
    Deadlines,
    Done,
    Failed,
    Finish,
    GlmsseError,
    LimitError,
    Limits,
    PermittedCall,
    ProposedCall,
    ReasoningDelta,
    Refusal,
    ReviewedCall,
    ServerSentEvent,
    SSEFramer,
    ToolCall,
    ToolCallEnd,
    ToolCallParser,
    ToolCallStart,
    ToolGate,
    ToolRule,
    Usage,
    Verdict,
    acollect,
    aiter_events,
    check_response,
    collect,
    iter_events,
    iter_sse,
    json_schema,
    path_within,
)
from glmsse.encode import AnthropicEncoder, OpenAIEncoder, write_event

if sys.version_info >= (3, 11):
    from typing import assert_never, assert_type
else:
    from typing_extensions import assert_never, assert_type


def match_is_exhaustive(event: ChatEvent) -> str | int:
    match event:
        case ContentDelta(text) | ReasoningDelta(text):
            return assert_type(text, str)
        case ToolCallStart(index, _, name):
            return name or assert_type(index, int)
        case ArgumentsDelta(index, arguments):
            return arguments[assert_type(index, int) :]
        case ToolCallEnd(index):
            return index
        case Finish(reason):
            return reason or "none"
        case Usage(total_tokens=total):
            return assert_type(total, int)
        case Done():
            return "done"
        case Failed(error):
            return assert_type(error, GlmsseError).code
        case _:
            assert_never(event)


def isinstance_is_exhaustive(event: ChatEvent) -> int:
    if isinstance(event, (ContentDelta, ReasoningDelta, ArgumentsDelta, ToolCallStart, ToolCallEnd)):
        return event.choice
    if isinstance(event, (Finish, Usage, Done)):
        return event.choice
    return assert_type(event, Failed).error.offset or 0


def framing(data: bytes) -> None:
    framer = SSEFramer(Limits(max_event_bytes=None), errors="replace")
    for buffer in (data, bytearray(data), memoryview(data)):
        assert_type(framer.feed(buffer), "list[ServerSentEvent]")
    for event in framer.close():
        assert_type((event.event, event.data, event.id, event.retry), "tuple[str, str, str, int | None]")
    framer.reset()


def reading(response: httpx.Response) -> Verdict:
    stream = ChatStream("gateway", allow=["multi_choice"], deny=("done_optional",), limits=Limits(max_tool_calls=4))
    assert_type(stream.start(response.status_code, response.headers), "list[ChatEvent]")
    for data in response.iter_bytes():
        assert_type(stream.feed(data), "list[ChatEvent]")
        if stream.verdict is not None:
            assert_type(stream.verdict, Verdict)
            break
    assert_type(stream.snapshot, Completion)
    assert_type(stream.usage, "Usage | None")
    return stream.close()


def trusting(verdict: Verdict) -> None:
    verdict.raise_for_verdict()
    assert_type(verdict.tool_calls, "tuple[ToolCall, ...]")
    assert_type(verdict.missing, "tuple[str, ...]")
    assert_type(verdict.retry_after, "int | None")
    assert_type(verdict.checks, "tuple[tuple[str, bool | None], ...]")
    if isinstance(verdict.error, LimitError):
        assert_type((verdict.error.limit, verdict.error.maximum), "tuple[str, int]")


def collecting(response: httpx.Response) -> None:
    completion, verdict = collect(response.iter_bytes(), deadlines=Deadlines(idle=60))
    assert_type((completion, verdict), "tuple[Completion, Verdict]")
    for event in iter_events(response.iter_bytes()):
        assert_type(event, ChatEvent)
    for dispatched in iter_sse(response.iter_bytes()):
        assert_type(dispatched, ServerSentEvent)
    assert_type(check_response(429, {"Retry-After": "3"}, b"{}"), "Verdict | None")
    assert_type(check_response(429, [(b"retry-after", b"3")]), "Verdict | None")


async def collecting_later(response: httpx.Response) -> None:
    assert_type(await acollect(response.aiter_bytes()), "tuple[Completion, Verdict]")
    async for event in aiter_events(response.aiter_bytes()):
        assert_type(event, ChatEvent)


def any_source(pieces: Iterator[bytes], views: Iterable[memoryview], later: AsyncIterator[bytearray]) -> None:
    iter_events(pieces)
    iter_events(views)
    iter_events(b"data: {}\n\n")
    aiter_events(later)


def gating(verdict: Verdict, ask: Callable[[ReviewedCall], str | None]) -> list[dict[str, object]]:
    def only_small(call: ProposedCall) -> bool | str:
        return len(call.arguments) < 5 or "fewer arguments"

    rules = [
        ToolRule("look_up", schema=json_schema({"type": "object"}), needs_approval=False),
        ToolRule("read_file", policies=[path_within("path", "."), only_small]),
    ]
    gate = ToolGate(rules)
    messages: list[dict[str, object]] = []
    for call in gate.review(verdict, stream_id="request-1", context={"user": "ada"}):
        if isinstance(call, Refusal):
            messages.append(call.message())
            continue
        by = ask(assert_type(call, ReviewedCall))
        permitted = gate.permit(call, call.approve(by=by) if by else None)
        if isinstance(permitted, Refusal):
            messages.append(permitted.message())
            continue
        assert_type(permitted, PermittedCall)
        assert_type((permitted.name, permitted.call_id), "tuple[str, str]")
        messages.append(permitted.result_message({"ok": True}))
    return messages


def answering(stream: ChatStream) -> str:
    answer = AnswerGate(json_schema({"type": "object"})).review(stream)
    if isinstance(answer, AnswerRefusal):
        return answer.code
    return assert_type(answer, Answer).text


def raw_text(pieces: list[str]) -> tuple[ToolCall, ...]:
    parser = ToolCallParser([{"name": "look_up", "parameters": {}}], start="auto")
    for piece in pieces:
        assert_type(parser.feed(piece), "list[ChatEvent]")
    parser.close("stop")
    ChatStream(content_parser=ToolCallParser())
    return parser.snapshot.choices[0].tool_calls


def encoding(stream: ChatStream, data: bytes) -> bytes:
    anthropic = AnthropicEncoder("glm-5.2", message_id="msg_1")
    openai = OpenAIEncoder("glm-5.2", id="chatcmpl-1")
    out = [anthropic.encode(stream.feed(data)), openai.finish(None), write_event("hello", event="greeting")]
    return b"".join(assert_type(out, "list[bytes]"))


def tables() -> None:
    assert_type(PROFILES, "dict[str, tuple[str, ...]]")
    assert_type(TOLERANCES, "dict[str, str]")
