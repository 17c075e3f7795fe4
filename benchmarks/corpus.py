"""Synthetic streams in the shape of GLM's answers, and streams made to be slow. The same bytes on every machine."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

_HEAD = {
    "id": "20260101000000a1b2c3d4e5f60718",
    "created": 1767225600,
    "object": "chat.completion.chunk",
    "model": "glm-5.2",
}
_VLLM_HEAD = {
    "id": "chatcmpl-0f1e2d3c4b5a69788796a5b4c3d2e1f0",
    "object": "chat.completion.chunk",
    "created": 1767225600,
    "model": "zai-org/GLM-5.2-FP8",
}
_WORDS = ("the", " answer", " is", " built", " from", " many", " small", " pieces", " of", " text", ",", ".", " stream")
_WIDE = ("你好", "流式", "回答", "\U0001f642", "—", "é")
_ESCAPED = ("\n", '"', "\\", "\n\n", "\t")
_CALLS = 4


def glm(events: int = 100_002) -> bytes:
    """Z.ai's shape, 204 bytes an event: reasoning, content, the arguments of four calls, usage, [DONE]."""
    return b"".join(_stream(events, _HEAD, tail={}))


def vllm(events: int = 100_002) -> bytes:
    """The same answer as a self-hosted server sends it, with more envelope."""
    tail = {"logprobs": None, "finish_reason": None, "token_ids": None}
    return b"".join(_stream(events, _VLLM_HEAD, tail=tail))


def glm_short() -> bytes:
    """A short answer of 20 events: reasoning, content, usage, [DONE]."""
    deltas = [
        {"role": "assistant", "reasoning_content": word} for word in ("The", " user", " asks", " for", " a", " sum")
    ]
    deltas += [{"role": "assistant", "content": word} for word in ("The", " sum", " of", " the", " two", " is")]
    deltas += [
        {"role": "assistant", "content": word} for word in (" four", " hundred", " and", " thirty", "-seven", ".")
    ]
    usage = {"prompt_tokens": 24, "completion_tokens": 18, "total_tokens": 42}
    choice = {"index": 0, "finish_reason": "stop", "delta": {"role": "assistant", "content": ""}}
    end = _data({**_HEAD, "choices": [choice], "usage": usage}) + b"data: [DONE]\n\n"
    return b"".join(_event(_HEAD, delta, {}) for delta in deltas) + end


def template_hostile(events: int) -> bytes:
    """The usual stream with a padding field of random length and content in every chunk, as some hosts send it."""
    pick = random.Random(7)
    blocks = []
    for block in event_pieces(glm(events)):
        padding = "".join(pick.choice("abcdefghij") for _ in range(pick.randrange(1, 40)))
        blocks.append(block if block[6:7] != b"{" else block[:-3] + f',"obfuscation":"{padding}"}}\n\n'.encode())
    return b"".join(blocks)


def multibyte(events: int) -> bytes:
    """Every piece of text Chinese, as most answers of these models to Chinese users are."""
    pick = random.Random(11)
    text = "流式回答由许多小片段组成，每个片段都很短。"
    deltas = (
        {"role": "assistant", "content": "".join(pick.choices(text, k=pick.randint(1, 4)))} for _ in range(events)
    )
    return b"".join(_event(_HEAD, delta, {}) for delta in deltas)


def usage_in_every_chunk(events: int) -> bytes:
    """Running totals beside each piece, as vLLM sends them when asked to."""
    pick = random.Random(13)
    return b"".join(
        _data(
            {
                **_VLLM_HEAD,
                "choices": [{"index": 0, "delta": {"content": _piece(pick)}, "logprobs": None, "finish_reason": None}],
                "usage": {"prompt_tokens": 24, "completion_tokens": number, "total_tokens": 24 + number},
            }
        )
        for number in range(1, events + 1)
    )


def large_event(size: int) -> bytes:
    """One chunk whose text is that long."""
    return _event(_HEAD, {"role": "assistant", "content": "x" * size}, {})


def _stream(events: int, head: dict[str, object], tail: dict[str, object]) -> Iterator[bytes]:
    pick = random.Random(52)
    pieces = events - 2
    reasoning, content = pieces * 3 // 10, pieces // 2
    arguments = pieces - reasoning - content
    for kind, count in (("reasoning_content", reasoning), ("content", content)):
        for _ in range(count):
            yield _event(head, {"role": "assistant", kind: _piece(pick)}, tail)
    begun = set()
    for number in range(arguments):
        index = number * _CALLS // max(arguments, 1)
        call: dict[str, object] = {"index": index, "function": {"arguments": _piece(pick)}}
        if index not in begun:
            begun.add(index)
            call = {
                "index": index,
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": "write", "arguments": ""},
            }
        yield _event(head, {"role": "assistant", "tool_calls": [call]}, tail)
    usage = {"prompt_tokens": 1200, "completion_tokens": pieces, "total_tokens": 1200 + pieces}
    choice = {"index": 0, "finish_reason": "tool_calls", "delta": {"role": "assistant", "content": ""}}
    yield _data({**head, "choices": [choice], "usage": usage})
    yield b"data: [DONE]\n\n"


def _piece(pick: random.Random) -> str:
    chance = pick.random()
    if chance < 0.04:
        return pick.choice(_WIDE)
    if chance < 0.10:
        return pick.choice(_WORDS) + pick.choice(_ESCAPED)
    return pick.choice(_WORDS) + pick.choice(("", pick.choice(_WORDS)))


def _event(head: dict[str, object], delta: dict[str, object], tail: dict[str, object]) -> bytes:
    return _data({**head, "choices": [{"index": 0, "delta": delta, **tail}]})


def _data(chunk: dict[str, object]) -> bytes:
    return b"data: " + json.dumps(chunk, ensure_ascii=False, separators=(",", ":")).encode() + b"\n\n"


def comments_only(size: int) -> bytes:
    return b": keep-alive\n\n" * (size // 14)


def many_data_lines(size: int) -> bytes:
    """Blocks of 4,000 lines of one character."""
    block = b"data:x\n" * 4000 + b"\n"
    return block * max(1, size // len(block))


def cr_line_ends(size: int) -> bytes:
    return glm(max(10, size // 204)).replace(b"\n", b"\r")


def crlf_line_ends(size: int) -> bytes:
    return glm(max(10, size // 204)).replace(b"\n", b"\r\n")


def blank_lines(size: int) -> bytes:
    return b"\n" * size


def named_events(size: int) -> bytes:
    """Every event with a name and an id of its own, as other protocols send them."""
    return b"".join(b'event: delta\nid: %d\ndata: {"text":"x"}\n\n' % number for number in range(size // 45))


def endless_line(size: int) -> bytes:
    return b"data: " + b"x" * size


def pieces(stream: bytes, size: int) -> list[bytes]:
    return [stream[at : at + size] for at in range(0, len(stream), size)]


def event_pieces(stream: bytes) -> list[bytes]:
    """One event of an LF stream a piece."""
    return [block + b"\n\n" for block in stream.split(b"\n\n")[:-1]]
