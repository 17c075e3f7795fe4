"""Small builders of wire bytes and chunks, and ways to cut them; nothing in here comes from the package under test."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
DONE = b"data: [DONE]\n\n"


def event(payload: Any, name: str | None = None) -> bytes:
    """One event of one data line; a payload that is no str is sent as JSON with raw UTF-8."""
    if not isinstance(payload, str):
        payload = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {payload}\n\n".encode()


def chunk(
    delta: Any = None, *, index: int | None = 0, finish: str | None = None, usage: Any = None, **top: Any
) -> dict[str, Any]:
    choice: dict[str, Any] = {} if index is None else {"index": index}
    if delta is not None:
        choice["delta"] = delta
    if finish is not None:
        choice["finish_reason"] = finish
    made: dict[str, Any] = {"id": "r-1", "choices": [choice], **top}
    if usage is not None:
        made["usage"] = usage
    return made


def content(text: Any, **more: Any) -> dict[str, Any]:
    return chunk({"content": text}, **more)


def reasoning(text: Any, **more: Any) -> dict[str, Any]:
    return chunk({"reasoning_content": text}, **more)


def piece(
    arguments: Any = None, *, index: Any = 0, id: Any = None, name: Any = None, type: Any = None
) -> dict[str, Any]:
    """A piece of a tool call, only with the fields given."""
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    made: dict[str, Any] = {"function": function}
    made |= {key: value for key, value in (("index", index), ("id", id), ("type", type)) if value is not None}
    return made


def tools(*pieces: Any, **more: Any) -> dict[str, Any]:
    return chunk({"tool_calls": list(pieces)}, **more)


def end(reason: str | None = "stop", usage: Any = USAGE, **more: Any) -> dict[str, Any]:
    """The terminal chunk."""
    return chunk({}, finish=reason, usage=usage, **more)


def body(*parts: Any, done: bool = True) -> bytes:
    """Chunks (or ready bytes) as one body."""
    return b"".join(part if isinstance(part, bytes) else event(part) for part in parts) + (DONE if done else b"")


HELLO = body(content("Hello"), end())
CALL = body(tools(piece('{"city":"Rome"}', id="c1", name="weather", type="function")), end("tool_calls"))


def each_byte(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def by_size(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def single_cuts(data: bytes, step: int = 1) -> Iterator[list[bytes]]:
    for at in range(1, len(data), step):
        yield [data[:at], data[at:]]


def cut_at(data: bytes, positions: Iterable[int]) -> list[bytes]:
    edges = [0, *positions, len(data)]
    return [data[start:stop] for start, stop in pairwise(edges)]


def feed_all(stream: Any, pieces: Iterable[bytes]) -> list[Any]:
    return [happened for data in pieces for happened in stream.feed(data)]


def read(glmsse: Any, data: bytes, **options: Any) -> tuple[list[Any], Any, Any]:
    """Events, verdict and stream of one body, fed whole and closed."""
    stream = glmsse.ChatStream(**options)
    events = stream.feed(data)
    return events, stream.close(), stream


def verdict_of(glmsse: Any, *parts: Any, done: bool = True, **options: Any) -> Any:
    return read(glmsse, body(*parts, done=done), **options)[1]


def codes(events: Iterable[Any]) -> list[str]:
    return [happened.error.code for happened in events if happened.type == "failed"]


def plain(events: Iterable[Any]) -> list[dict[str, Any]]:
    return [happened.to_dict() for happened in events]


def types(events: Iterable[Any]) -> list[str]:
    return [happened.type for happened in events]
