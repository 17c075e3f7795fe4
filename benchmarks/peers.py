"""What others do with the same bytes: each function reads all pieces and joins the text, as its users would."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import httpx
import msgspec
import openai
import orjson
from httpx_sse import EventSource
from httpx_sse._decoders import SSEDecoder, SSELineDecoder
from openai.types.chat import ChatCompletionChunk

Pieces = Sequence[bytes]


class _Body(httpx.SyncByteStream):
    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)


def _response(pieces: Pieces) -> httpx.Response:
    request = httpx.Request("POST", "http://127.0.0.1/")
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=_Body(pieces), request=request)


def httpx_sse_events(pieces: Pieces) -> int:
    """httpx-sse by its public interface: the events of a response."""
    return sum(1 for _ in EventSource(_response(pieces)).iter_sse())


def httpx_sse_decoders(pieces: Pieces) -> int:
    """httpx-sse's decoders alone, without what httpx adds: the harder peer."""
    decode = codecs.getincrementaldecoder("utf-8")().decode
    lines, decoder = SSELineDecoder(), SSEDecoder()
    events = 0
    for piece in pieces:
        for line in lines.decode(decode(piece)):
            events += decoder.decode(line.rstrip("\n")) is not None
    return events


def httpx_sse_json(pieces: Pieces) -> list[str]:
    """httpx-sse and json.loads, the text of every kind joined."""
    return _joined(
        json.loads(event.data) for event in EventSource(_response(pieces)).iter_sse() if _is_chunk(event.data)
    )


def _is_chunk(data: str) -> bool:
    return data != "[DONE]"


def _joined(chunks: Iterator[dict[str, Any]]) -> list[str]:
    content, reasoning, arguments = [], [], []
    for chunk in chunks:
        for choice in chunk["choices"]:
            delta = choice["delta"]
            if delta.get("content"):
                content.append(delta["content"])
            if delta.get("reasoning_content"):
                reasoning.append(delta["reasoning_content"])
            for call in delta.get("tool_calls") or ():
                arguments.append(call["function"].get("arguments") or "")
    return ["".join(content), "".join(reasoning), "".join(arguments)]


def openai_stream(pieces: Pieces) -> list[str]:
    """The openai SDK's stream of typed chunks."""
    client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1/")
    content, reasoning, arguments = [], [], []
    for chunk in openai.Stream(cast_to=ChatCompletionChunk, response=_response(pieces), client=client):
        for choice in chunk.choices:
            content.append(choice.delta.content or "")
            reasoning.append(getattr(choice.delta, "reasoning_content", None) or "")
            for call in choice.delta.tool_calls or ():
                arguments.append((call.function and call.function.arguments) or "")
    return ["".join(content), "".join(reasoning), "".join(arguments)]


def sample_script(pieces: Pieces) -> str:
    """Twenty lines as found in tutorials: buffer, split, strip the prefix, parse, add."""
    buffer, answer = "", ""
    decode = codecs.getincrementaldecoder("utf-8")().decode
    for piece in pieces:
        buffer += decode(piece)
        *lines, buffer = buffer.split("\n")
        for line in lines:
            if not line.startswith("data: "):
                continue
            data = line[len("data: ") :].strip()
            if data == "[DONE]":
                return answer
            delta = json.loads(data)["choices"][0]["delta"]
            answer += delta.get("content") or ""
    return answer


def framed(package: ModuleType, decoder: str) -> Callable[[Pieces], list[str]]:
    """Our framer with another library's JSON decoder: what an accelerated framer alone is worth."""
    decode = {"orjson": orjson.loads, "msgspec": msgspec.json.Decoder().decode}[decoder]

    def run(pieces: Pieces) -> list[str]:
        framer = package.SSEFramer()
        events = (event for piece in pieces for event in framer.feed(piece))
        return _joined(decode(event.data) for event in events if _is_chunk(event.data))

    return run


def decode_and_split(pieces: Pieces) -> int:
    """One decode and one split a piece, one str an event: near the least that a list of events can cost."""
    return sum(len(piece.decode("utf-8", "replace").split("\n\n")) for piece in pieces)


def memchr_lines(pieces: Pieces) -> int:
    """Where the lines end, by the C library's search for one byte, and nothing else."""
    lines = 0
    for piece in pieces:
        at = piece.find(b"\n")
        while at >= 0:
            lines += 1
            at = piece.find(b"\n", at + 1)
    return lines
