"""The encoders: what they write is read back as the same answer, and a failed answer never looks whole.

An input is a head of one byte, then lines: a letter for a kind of piece, a digit for the call or the choice, and text.
    c r    content, reasoning         i     the id and name of a call
    a      a piece of arguments       j     arguments that are an object with this text, in two pieces
    f      the finish reason          u     usage
Without `f` the stream ends as it should, unless the head says that it is cut.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Hashable, Iterator
from typing import Any

from ..builds import ROOT, Builds, Difference
from ..readings import agree, calls, choices
from . import Check
from ._sources import STREAM

SOURCES = (
    *STREAM, "encode/anthropic.py", "encode/calls.py", "encode/encoder.py", "encode/ending.py", "encode/openai.py",
    "encode/sse.py",
)  # fmt: skip
CORPUS = "encoders"
MOST_BYTES = 72
JOINT = b"\n"
TOKENS = (
    b"c0Hi\n", b"c0 \n", b"r0Hm\n", b"i0f\n", b"i1g\n", b"j0x\n", b"j1\n", b"a0{}\n", b'a0{"a":\n', b"a01}\n",
    b"a1{}\n", b"a0 \n", b"u0\n", b"f0stop\n", b"f0tool_calls\n", b"f0length\n", b"f0sensitive\n", b"c1b\n", b"c2b\n",
    b"c0\xe2\x80\xa8\n", b"c0\xc2\x85\r\n", b"c0data: [DONE]\n", b"c0\xf0\x9f\x98\x80\n", b"j0\x00\\\"\n", b"c", b"r",
    b"i", b"a", b"j", b"f", b"0", b"1", b"2", b"\n", b"\r", b'{"', b'"}', b"[1]", b"null", b"\\", b'"', b"\xef\xbb\xbf",
    b"\t", b"event: x", b"data: ", b"network_error",
)  # fmt: skip

ANTHROPIC = 0x01
ONE_BY_ONE = 0x02
DROP_BLANK_TEXT = 0x04
CUT = 0x08
THREE_CHOICES = 0x10
SHOWN_ENDS = ("length", "model_context_window_exceeded", "sensitive", "content_filter")
USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
CHOICES = 3
SOME = 6  # events: inputs with more are not kept for that alone
CALLS = 3


def _grammar() -> Any:
    """The strict reader of Messages streams that the tests have."""
    name = "fuzz_messages_grammar"
    spec = importlib.util.spec_from_file_location(name, ROOT / "tests" / "messages_grammar.py")
    assert spec is not None
    assert spec.loader is not None
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def checker(builds: Builds) -> Check:
    package = builds.compiled
    encode = package.encode
    read_messages = _grammar().check

    def check(data: bytes) -> Hashable:
        if not data:
            return None
        head = data[0]
        many = CHOICES if head & THREE_CHOICES and not head & ANTHROPIC else 1
        stream = package.ChatStream(allow=("done_optional",), choices=many)
        events = [event for chunk in _chunks(data[1:], many, head & CUT) for event in stream.add(chunk)]
        verdict = stream.close()
        events += stream.closing_events
        if head & ANTHROPIC:
            make = _anthropic_maker(encode, head)
            written = _written(make, events, verdict, head)
            _judge_messages(read_messages(written), verdict, stream.snapshot, drop_blank=head & DROP_BLANK_TEXT)
        else:
            written = _written(lambda: encode.OpenAIEncoder("glm-5.2", id="r"), events, verdict, head)
            again = package.ChatStream(choices=many)
            again.feed(written)
            _judge_chunks(again.close(), again.snapshot, verdict, stream.snapshot)
        return head & 0x1F, verdict.code, min(len(events), SOME)

    return check


def _anthropic_maker(encode: Any, head: int) -> Any:
    drop = bool(head & DROP_BLANK_TEXT)
    return lambda: encode.AnthropicEncoder("glm-5.2", message_id="msg_1", drop_blank_text=drop)


def _chunks(lines: bytes, many: int, cut: int) -> Iterator[dict[str, Any]]:
    """The chunks that the lines of an input ask for."""
    called: set[int] = set()
    finished: set[int] = set()
    for line in lines.split(b"\n"):
        kind, digit, text = line[:1], line[1:2], line[2:].decode("utf-8", "replace")
        number = digit[0] % 4 if digit else 0
        choice = number % many
        if kind in b"iaj" and kind:
            called.add(0)
            for piece in _pieces(kind, text, number % CALLS):
                yield _chunk(0, {"tool_calls": [piece]})
        elif kind == b"c":
            yield _chunk(choice, {"content": text})
        elif kind == b"r":
            yield _chunk(choice, {"reasoning_content": text})
        elif kind == b"f":
            finished.add(choice)
            yield _chunk(choice, {}, text)
        elif kind == b"u":
            yield {"id": "r", "choices": [], "usage": {**USAGE, "cached_tokens": number}}
    if not cut:
        for choice in range(many):
            if choice not in finished:
                yield _chunk(choice, {}, "tool_calls" if choice in called else "stop")
        yield {"id": "r", "choices": [], "usage": USAGE}


def _pieces(kind: bytes, text: str, index: int) -> Iterator[dict[str, Any]]:
    """Pieces of a call: its id and name, one piece of arguments as it is, or an object in two."""
    if kind == b"i":
        yield {"index": index, "id": f"c{index}", "function": {"name": text, "arguments": ""}}
        return
    if kind == b"j":
        text = json.dumps({"a": text}, ensure_ascii=len(text) % 2 == 0)
        half = len(text) // 2
        yield {"index": index, "function": {"arguments": text[:half]}}
        text = text[half:]
    yield {"index": index, "function": {"arguments": text}}


def _chunk(choice: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"id": "r", "choices": [{"index": choice, "delta": delta, "finish_reason": reason}]}


def _written(make: Any, events: list[Any], verdict: Any, head: int) -> bytes:
    """The stream, which is the same if the events come one by one."""
    encoder = make()
    written: bytes = encoder.encode(events) + encoder.finish(verdict)
    if head & ONE_BY_ONE:
        encoder = make()
        single = b"".join([encoder.encode([event]) for event in events]) + encoder.finish(verdict)
        if single != written:
            raise Difference("events one by one are written in another way")
    return written


def _judge_chunks(again: Any, snapshot_again: Any, verdict: Any, snapshot: Any) -> None:
    if verdict.accepted:
        agree(
            "the answer and what was written",
            {"accepted": True, "calls": calls(verdict.tool_calls), "choices": choices(snapshot)},
            {"accepted": again.accepted, "calls": calls(again.tool_calls), "choices": choices(snapshot_again)},
        )
    elif again.accepted:
        raise Difference("an answer that was not accepted is accepted when written")


def _judge_messages(message: Any, verdict: Any, snapshot: Any, *, drop_blank: int) -> None:
    if not verdict.accepted:
        if message.stop_reason in ("end_turn", "tool_use"):
            raise Difference("an answer that was not accepted ends as if it were")
        if message.error is None and verdict.finish_reason not in SHOWN_ENDS:
            raise Difference("an answer that was not accepted ends without an error")
        return
    made = snapshot.choices[0]
    content, shown = made.content, message.joined("text")
    if drop_blank:
        content, shown = "".join(content.split()), "".join(shown.split())
    agree(
        "the answer and the message",
        {
            "stop_reason": "tool_use" if verdict.tool_calls else "end_turn",
            "content": content,
            "reasoning": made.reasoning_content,
            "calls": sorted((call.id, call.name, call.arguments.rstrip()) for call in made.tool_calls),
        },
        {
            "stop_reason": message.stop_reason,
            "content": shown,
            "reasoning": message.joined("thinking"),
            "calls": sorted((id, name, text.rstrip()) for id, name, text in message.calls),
        },
    )
