"""Upstreams that leave raw GLM text in `content`: reasoning and calls are read out of it, and written as such."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ..chat import ChatStream
from ..encode import OpenAIEncoder
from ..errors import MisuseError
from ..events import ChatEvent, ContentDelta, Done, Failed, Finish
from ..glm_text import ToolCallParser
from ..verdict import Verdict
from .requests import Refusal
from .settings import Settings
from .tap import WriteError, may_end

_NAMELESS = "glmsse"


class MarkupTap:
    """Writes the stream anew, with one choice as there is one reply to read, and judges what it has written."""

    def __init__(self, settings: Settings, write_error: WriteError, *, tools: Any, choices: int = 1) -> None:
        if choices != 1:
            raise Refusal(400, "choices", "this proxy reads model text of one choice: leave n at 1")
        self.stream = settings.stream(collect=False)
        self.over = False
        self._write_error = write_error
        self._judge = ChatStream(limits=settings.limits, allow=("usage_optional",), deltas=False, collect=False)
        self._encoder: OpenAIEncoder | None = None
        self._verdict: Verdict | None = None
        self._text_ended = False
        try:
            self._parser = ToolCallParser(tools or None, start="auto", limits=settings.limits)
        except MisuseError:
            raise Refusal(400, "tools", "the request's tools cannot be read") from None

    @property
    def verdict(self) -> Verdict:
        return self._verdict if self._verdict is not None else self.stream.close()

    def feed(self, data: bytes) -> bytes:
        if self.over:
            return b""
        events = self.stream.feed(data)
        if not events:
            return b""
        if self._encoder is None:
            head = self.stream.snapshot
            self._encoder = OpenAIEncoder(
                head.model or _NAMELESS, id=head.id or _NAMELESS, created=max(head.created or 0, 0)
            )
        written = self._encoder.encode(self._read_text(events))
        self._judge.feed(written)
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
        self._verdict = verdict
        if not may_end(verdict) or self._encoder is None:
            return self._write_error(verdict)
        rest = self._encoder.finish(None if verdict.accepted else verdict)
        if not verdict.accepted:
            return rest
        self._judge.feed(rest)
        self._verdict = self._judge.close()
        return rest if may_end(self._verdict) else self._write_error(self._verdict)

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
