"""The real SDKs read what the encoders write, over a loopback server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import ModuleType
from typing import Any

import anthropic
import openai
import pytest

from encoding import encode, encoder_for, read
from glmsse.scenarios import SCENARIOS, body, finish, reasoning, text, tool_piece, uneven_pieces

MESSAGES = [{"role": "user", "content": "hello"}]
ODD_TEXT = "Grüße\r\n\u2028\x85 😀\n\ndata: x\0"
PARALLEL = [
    text("\n"),
    reasoning("I call two tools. "),
    tool_piece('{"city":', call_id="call_a", name="lookup_timezone"),
    tool_piece('{"a": 2, ', index=1, call_id="call_b", name="add"),
    tool_piece('"Hong Kong"}'),
    tool_piece('"b": "ü\\n"}', index=1),
    finish("tool_calls", 177, prompt_tokens=160),
]
BODIES = {
    "text": SCENARIOS["text"].body,
    "odd text": body([text(ODD_TEXT), finish("stop", 23)]),
    "thinking": SCENARIOS["thinking"].body,
    "tool": SCENARIOS["tool"].body,
    "tool pieces": SCENARIOS["tool_stream"].body,
    "parallel tools": body(PARALLEL),
    "length": SCENARIOS["length"].body,
}
ERRORS = {
    "truncated": SCENARIOS["truncated"].body,
    "provider error": SCENARIOS["provider_error"].body,
    "network error": SCENARIOS["network_error"].body,
    "conflict": SCENARIOS["conflict"].body,
    "empty": b"",
}

each_body = pytest.mark.parametrize("wire", BODIES.values(), ids=list(BODIES))
each_error = pytest.mark.parametrize("wire", ERRORS.values(), ids=list(ERRORS))


class Loopback:
    """A server on the loopback interface that answers every POST with `stream`, cut into uneven pieces."""

    def __init__(self) -> None:
        self.stream = b""
        loopback = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(200)
                self.send_header("content-type", "text/event-stream")
                self.end_headers()
                for piece in uneven_pieces(loopback.stream):
                    self.wfile.write(piece)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture(scope="module")
def loopback() -> Iterator[Loopback]:
    server = Loopback()
    yield server
    server.close()


@pytest.fixture
def openai_client(loopback: Loopback) -> Iterator[Any]:
    with openai.OpenAI(api_key="none", base_url=f"{loopback.url}/v1", max_retries=0, timeout=30) as client:
        yield client


@pytest.fixture
def anthropic_client(loopback: Loopback) -> Iterator[Any]:
    with anthropic.Anthropic(api_key="none", base_url=loopback.url, max_retries=0, timeout=30) as client:
        yield client


def written(glmsse: ModuleType, wire: bytes, to: str) -> tuple[bytes, Any]:
    """The converted stream with pings in it, and what it was made of."""
    events, verdict, snapshot = read(glmsse, wire)
    encoder = encoder_for(glmsse, to)
    data = encoder.ping() if to == "openai" else b""
    data += encoder.encode(events[:1]) + encoder.ping() + encode(encoder, events[1:], verdict)
    return data, snapshot.choices[0]


def openai_chunks(client: Any) -> list[Any]:
    stream = client.chat.completions.create(model="glm-5.2", messages=MESSAGES, stream=True)
    return list(stream)


@each_body
def test_the_openai_sdk_sees_the_same_answer(
    glmsse: ModuleType, loopback: Loopback, openai_client: Any, wire: bytes
) -> None:
    loopback.stream, choice = written(glmsse, wire, "openai")
    chunks = openai_chunks(openai_client)
    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    assert deltas[0].role == "assistant"
    assert "".join(delta.content or "" for delta in deltas) == choice.content
    assert "".join(getattr(delta, "reasoning_content", None) or "" for delta in deltas) == choice.reasoning_content
    calls: dict[int, list[str]] = {}
    for piece in (piece for delta in deltas for piece in delta.tool_calls or ()):
        call = calls.setdefault(piece.index, [piece.id, piece.function.name, ""])
        call[2] += piece.function.arguments
    assert list(calls.values()) == [[call.id, call.name, call.arguments] for call in choice.tool_calls]
    reasons = [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices]
    assert [reason for reason in reasons if reason] == [choice.finish_reason]
    assert chunks[-1].usage.total_tokens > 0


@each_body
def test_the_openai_sdk_accumulates_the_same_message(
    glmsse: ModuleType, loopback: Loopback, openai_client: Any, wire: bytes
) -> None:
    loopback.stream, choice = written(glmsse, wire, "openai")
    with openai_client.chat.completions.stream(model="glm-5.2", messages=MESSAGES) as stream:
        if choice.finish_reason == "length":
            stream.until_done()
            assert stream.current_completion_snapshot.choices[0].finish_reason == "length"
            return
        final = stream.get_final_completion().choices[0]
    assert (final.message.content or "") == choice.content
    assert final.finish_reason == choice.finish_reason
    assert [(call.id, call.function.name, call.function.arguments) for call in final.message.tool_calls or ()] == [
        (call.id, call.name, call.arguments) for call in choice.tool_calls
    ]


@each_error
def test_the_openai_sdk_raises_for_a_stream_that_failed(
    glmsse: ModuleType, loopback: Loopback, openai_client: Any, wire: bytes
) -> None:
    events, verdict, _ = read(glmsse, wire)
    loopback.stream = encode(encoder_for(glmsse, "openai"), events, verdict)
    with pytest.raises(openai.APIError) as caught:
        openai_chunks(openai_client)
    assert caught.value.code == verdict.code
    assert verdict.code in caught.value.message


@each_body
def test_the_anthropic_sdk_sees_the_same_answer(
    glmsse: ModuleType, loopback: Loopback, anthropic_client: Any, wire: bytes
) -> None:
    loopback.stream, choice = written(glmsse, wire, "anthropic")
    with anthropic_client.messages.stream(model="glm-5.2", max_tokens=99, messages=MESSAGES) as stream:
        message = stream.get_final_message()
    assert (message.id, message.model, message.role) == ("msg_1", "glm-5.2", "assistant")
    assert "".join(block.text for block in message.content if block.type == "text") == choice.content
    thinking = "".join(block.thinking for block in message.content if block.type == "thinking")
    assert thinking == choice.reasoning_content
    assert [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"] == [
        (call.id, call.name, json.loads(call.arguments)) for call in choice.tool_calls
    ]
    reasons = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
    assert message.stop_reason == reasons[choice.finish_reason]
    assert message.usage.output_tokens > 0
    assert message.usage.cache_read_input_tokens == 2


@each_error
def test_the_anthropic_sdk_raises_for_a_stream_that_failed(
    glmsse: ModuleType, loopback: Loopback, anthropic_client: Any, wire: bytes
) -> None:
    events, verdict, _ = read(glmsse, wire)
    loopback.stream = encode(encoder_for(glmsse, "anthropic"), events, verdict)
    with (
        pytest.raises(anthropic.APIStatusError) as caught,
        anthropic_client.messages.stream(model="glm-5.2", max_tokens=99, messages=MESSAGES) as stream,
    ):
        stream.get_final_message()
    assert caught.value.body["error"]["message"].startswith(verdict.code)
