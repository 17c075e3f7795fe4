"""Upstreams that leave raw GLM text in `content`: reasoning and calls are read out of it, and written as such."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any
from uuid import uuid4

from ..chat import ChatStream
from ..chunk import SENTINEL
from ..encode import OpenAIEncoder, write_event
from ..errors import MisuseError
from ..events import ChatEvent, ContentDelta, Done, Failed, Finish
from ..glm_text import ToolCallParser
from ..verdict import Verdict
from .passage import Passage, WriteError, may_end, verdict_comment
from .requests import RawHeaders, Refusal
from .settings import Settings

_NAMELESS = "glmsse"
_DONE = write_event(SENTINEL)
_END = b"\n\n" + _DONE
_LINE_ENDS_TO_BLANKS = bytes.maketrans(b"\r\n", b"  ")


class MarkupTap(Passage):
    """Writes the stream anew, with one choice as there is one reply to read, and judges what it has written."""

    def __init__(self, settings: Settings, write_error: WriteError, *, tools: Any, choices: int = 1) -> None:
        self._parser = _parser(settings, tools, choices)
        super().__init__(settings.rewritten())
        self._write_error = write_error
        self._comment = settings.verdict_comment
        self._judge = ChatStream(limits=settings.limits, allow=("usage_optional",), deltas=False, collect=False)
        self._encoder: OpenAIEncoder | None = None
        self._verdict: Verdict | None = None
        self._text_ended = False

    @property
    def verdict(self) -> Verdict:
        return self._verdict if self._verdict is not None else self.stream.close()

    def feed(self, data: bytes) -> bytes:
        if self.over:
            return b""
        written = self._write(self.stream.feed(data))
        if self._judge.verdict is not None and self.stream.verdict is None:
            self.over = True
            self._verdict = self._judge.verdict
            return self._write_error(self._verdict)
        return written if self.stream.verdict is None else written + self.finish()

    def finish(self, error: BaseException | str | None = None) -> bytes:
        verdict = self.stream.close(error)
        if self.over:
            return b""
        self.over = True
        return self._write(self.stream.closing_events) + self._write_end(verdict)

    def _write(self, events: list[ChatEvent]) -> bytes:
        if not events:
            return b""
        if self._encoder is None:
            head = self.stream.snapshot
            self._encoder = OpenAIEncoder(
                head.model or _NAMELESS, id=head.id or _NAMELESS, created=max(head.created or 0, 0)
            )
        written = self._encoder.encode(self._read_text(events))
        self._judge.feed(written)
        return written

    def _write_end(self, verdict: Verdict) -> bytes:
        self._verdict = verdict
        if not may_end(verdict) or self._encoder is None:
            return self._write_error(verdict)
        rest = self._encoder.finish(None if verdict.accepted else verdict)
        if verdict.accepted:
            self._judge.feed(rest)
            self._verdict = self._judge.close()
            if not may_end(self._verdict):
                return self._write_error(self._verdict)
        if self._comment and rest.endswith(_DONE):
            return rest[: -len(_DONE)] + verdict_comment(self._verdict) + _DONE
        return rest

    def _read_text(self, events: Iterable[ChatEvent]) -> Iterator[ChatEvent]:
        for event in events:
            if isinstance(event, ContentDelta):
                yield from self._parser.feed(event.text)
            elif isinstance(event, Finish):
                if not self._text_ended:
                    self._text_ended = True
                    yield from self._parser.close(event.reason)
            elif not isinstance(event, (Done, Failed)):
                yield event


class WholeMarkupTap(Passage):
    """A whole chat completion in, and out with reasoning and calls where they belong, once it may be used.

    It is judged as a stream of this one event, so the rules, and `Limits.max_event_bytes`, are those of an event.
    """

    def __init__(self, settings: Settings, write_error: WriteError, *, tools: Any, choices: int = 1) -> None:
        super().__init__(settings.whole(_parser(settings, tools, choices)))
        self._write_error = write_error
        self._body = bytearray()

    @property
    def received_bytes(self) -> int:
        return len(self._body)

    def start(self, status: int, headers: RawHeaders) -> bool:
        return super().start(status, [_as_event_stream(header) for header in headers])

    def feed(self, data: bytes) -> bytes:
        if self.over:
            return b""
        if not self._body:
            self.stream.feed(b"data: ")
        self._body += data
        self.stream.feed(data.translate(_LINE_ENDS_TO_BLANKS))
        if self.stream.verdict is None:
            return b""
        self.over = True
        return self._write_error(self.stream.verdict)

    def finish(self, error: BaseException | str | None = None) -> bytes:
        if self.over:
            return b""
        self.over = True
        if error is None and self._body:
            self.stream.feed(_END)
        verdict = self.stream.close(error)
        return self._rewritten(verdict) if may_end(verdict) else self._write_error(verdict)

    def _rewritten(self, verdict: Verdict) -> bytes:
        """What the message has beside the text, and the completion beside the message, stays as it is."""
        completion = json.loads(self._body)
        choice = completion["choices"][0]
        message, read = choice["message"], self.stream.snapshot.choices[0]
        message["content"] = read.content
        if read.reasoning_content:
            message["reasoning_content"] = read.reasoning_content
        if verdict.tool_calls:
            message["tool_calls"] = [call.to_dict() for call in verdict.tool_calls]
            choice["finish_reason"] = "tool_calls"
        else:
            message.pop("tool_calls", None)  # of an answer that is cut
        return json.dumps(completion).encode()  # half a pair may be in a field that nobody reads


def _parser(settings: Settings, tools: Any, choices: int) -> ToolCallParser:
    if choices != 1:
        raise Refusal(400, "choices", "this proxy reads model text of one choice: leave n at 1")
    try:
        return ToolCallParser(
            tools or None, start="auto", id_prefix=f"call_{uuid4().hex[:16]}_", limits=settings.limits
        )
    except MisuseError:
        raise Refusal(400, "tools", "the request's tools cannot be read") from None


def _as_event_stream(header: tuple[bytes, bytes]) -> tuple[bytes, bytes]:
    name, value = header
    if name.lower() == b"content-type" and value.partition(b";")[0].strip().lower() == b"application/json":
        return name, b"text/event-stream"
    return header
