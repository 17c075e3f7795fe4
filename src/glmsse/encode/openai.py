"""Typed events → the chunks of an OpenAI chat completion stream."""

from __future__ import annotations

import json
from typing import Any

from ..errors import MisuseError
from ..events import ContentDelta, ReasoningDelta, Usage
from ..verdict import Verdict
from .calls import OutgoingCall
from .encoder import Encoder, checked_text
from .ending import ErrorReport
from .sse import write_comment, write_event, write_json


class OpenAIEncoder(Encoder):
    """Writes `chat.completion.chunk` objects, as `ChatStream` reads them.

    model    the model's name in each chunk
    id       the response's id in each chunk
    created  Unix seconds in each chunk; the core reads no clock

    Each choice has its role first, then a chunk an event. Finish reasons wait for `finish`, so that no stream which
    fails late looks finished; then come the usage, if known, in a chunk without choices, and `[DONE]`. An error is a
    chunk with an `error` object, and nothing after it. Read back by a `ChatStream`, an accepted stream gives the same
    text, calls and usage, and is accepted by `zai` unless it had no usage; `finish_reason` is `tool_calls` where calls
    were accepted with `stop`. A ping is a comment.
    """

    __slots__ = ("_announced", "_created", "_id", "_model")

    def __init__(self, model: str, *, id: str, created: int = 0) -> None:
        super().__init__()
        self._model = checked_text("model", model)
        self._id = checked_text("id", id)
        if type(created) is not int or created < 0:
            raise MisuseError("created takes an int from 0 up")
        self._created = created
        self._announced: set[tuple[int, int]] = set()

    def _ping(self) -> bytes:
        return write_comment("ping")

    def _error(self, report: ErrorReport) -> bytes:
        error = {"message": report.message, "type": report.type, "param": None, "code": report.code}
        return write_json({"error": error})

    def _begin(self, choice: int, out: list[bytes]) -> None:
        out.append(self._chunk(choice, {"role": "assistant", "content": ""}))

    def _write_text(self, event: ContentDelta | ReasoningDelta, out: list[bytes]) -> None:
        name = "content" if isinstance(event, ContentDelta) else "reasoning_content"
        out.append(self._chunk(event.choice, {name: event.text}))

    def _write_call(self, choice: int, call: OutgoingCall, piece: str, out: list[bytes]) -> None:
        if piece:
            call.take(piece)
        if call.known:
            self._write_pieces(choice, call, call.release(), out)

    def _write_pieces(self, choice: int, call: OutgoingCall, pieces: list[str], out: list[bytes]) -> None:
        if (choice, call.index) not in self._announced:
            self._announced.add((choice, call.index))
            first: dict[str, Any] = {"index": call.index, "id": call.id, "type": "function"}
            first["function"] = {"name": call.name, "arguments": ""}
            out.append(self._chunk(choice, {"tool_calls": [first]}))
        for arguments in pieces:
            piece = {"index": call.index, "function": {"arguments": arguments}}
            out.append(self._chunk(choice, {"tool_calls": [piece]}))

    def _write_end(self, reasons: dict[int, str], verdict: Verdict | None, out: list[bytes]) -> ErrorReport | None:
        for index in reasons:
            settled = self._settle_calls(index, verdict)
            if isinstance(settled, ErrorReport):
                return settled
            for call, pieces in settled:
                self._write_pieces(index, call, pieces, out)
        for index, reason in reasons.items():
            out.append(self._chunk(index, {}, reason))
        if self._usage is not None:
            out.append(self._top([], {"usage": usage_object(self._usage)}))
        out.append(write_event("[DONE]"))
        return None

    def _chunk(self, choice: int, delta: dict[str, Any], reason: str | None = None) -> bytes:
        return self._top([{"index": choice, "delta": delta, "finish_reason": reason}])

    def _top(self, choices: list[dict[str, Any]], more: dict[str, Any] | None = None) -> bytes:
        head = {"id": self._id, "object": "chat.completion.chunk", "created": self._created, "model": self._model}
        return write_json({**head, "choices": choices, **(more or {})})


def usage_object(usage: Usage) -> dict[str, Any]:
    """The wire's own object where it can be written again, else one with the same counts."""
    counts = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
    }
    if all(usage.raw.get(name) == count for name, count in counts.items()) and _is_writable(usage.raw):
        return usage.raw
    if usage.cached_tokens is None:
        return counts
    return {**counts, "prompt_tokens_details": {"cached_tokens": usage.cached_tokens}}


def _is_writable(raw: dict[str, Any]) -> bool:
    """Whether strict JSON in UTF-8 can hold it: tolerances let in NaN and half surrogate pairs."""
    try:
        json.dumps(raw, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError):
        return False
    return True
