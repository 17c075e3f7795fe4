"""`/v1/messages`: Anthropic's protocol for the client, a chat completion stream upstream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ..encode import AnthropicEncoder
from ..events import ChatEvent
from ..framing import SSEFramer
from ..limits import Limits
from ..verdict import Verdict
from .anthropic_request import chat_request
from .errors import anthropic_event, openai_event
from .exchange import Exchange
from .markup import MarkupTap
from .passage import Passage, may_end, verdict_comment
from .requests import RawHeaders, Refusal, headers_upstream, json_object
from .settings import Settings

if TYPE_CHECKING:
    from .app import Proxy


_MESSAGE_STOP = b"event: message_stop\n"
# Of what was written here itself; what came has been held to its limits.
_OWN = Limits(max_event_bytes=None, max_stream_bytes=None, max_events=None)


class MessagesPassage(Passage):
    """A chat completion stream in, a Messages stream out, or with `whole` one message, once it may be used."""

    def __init__(self, settings: Settings, *, model: str, whole: bool, tools: Any) -> None:
        self._reader = settings.rewritten()
        self._markup = MarkupTap(settings, openai_event, tools=tools) if settings.content_markup == "glm" else None
        super().__init__(self._reader if self._markup is None else self._markup.stream)
        self._whole = whole
        self._comment = settings.verdict_comment and not whole
        self._encoder = AnthropicEncoder(model, message_id=f"msg_{uuid4().hex}", drop_blank_text=True)
        self._message = MessageBuilder()

    @property
    def verdict(self) -> Verdict:
        if self._markup is not None and not self._markup.verdict.accepted:
            return self._markup.verdict
        return self._reader.close()

    def feed(self, data: bytes) -> bytes:
        if self.over:
            return b""
        if self._markup is not None:
            data = self._markup.feed(data)
            if self._markup.over:
                return self._end(data)
        out = self._out(self._encode(self._reader.feed(data)))
        return out + self._end(b"") if self._reader.verdict is not None else out

    def finish(self, error: BaseException | str | None = None) -> bytes:
        if self._markup is not None:
            return self._end(self._markup.finish(error))
        self._reader.close(error)
        return self._end(b"")

    def ping(self) -> bytes:
        return b"" if self._whole else self._encoder.ping()

    def _end(self, data: bytes) -> bytes:
        """The rest; of a whole message that may not be used, nothing."""
        if self.over:
            return b""
        self.over = True
        if data and self._markup is not None and may_end(self._markup.verdict):
            data = self._out(self._encode(self._reader.feed(data)))
        else:
            data = b""
        self._reader.close()
        data += self._out(self._encode(self._reader.closing_events))
        data += self._out(self._with_comment(self._encoder.finish(self.verdict)))
        return self._message.body() if self._whole and self._message.ended else data

    def _with_comment(self, rest: bytes) -> bytes:
        """With the verdict before the event that ends the message, where that is wished."""
        before, stop, behind = rest.rpartition(_MESSAGE_STOP)
        return before + verdict_comment(self.verdict) + stop + behind if self._comment and stop else rest

    def _encode(self, events: list[ChatEvent]) -> bytes:
        return self._encoder.encode(events) if events else b""

    def _out(self, data: bytes) -> bytes:
        if not self._whole:
            return data
        self._message.feed(data)
        return b""


class MessageBuilder:
    """A Messages stream in, the message it builds out."""

    def __init__(self) -> None:
        self._framer = SSEFramer(_OWN)
        self._message: dict[str, Any] = {}
        self._pieces: list[str] = []
        self.ended = False
        """Whether it has come to a normal end."""

    def feed(self, data: bytes) -> None:
        for event in self._framer.feed(data):
            take = getattr(self, f"_{event.event}", None)
            if take is not None:
                take(event.json())

    def body(self) -> bytes:
        return json.dumps(self._message, ensure_ascii=False).encode()

    def _message_start(self, event: dict[str, Any]) -> None:
        self._message = event["message"]

    def _content_block_start(self, event: dict[str, Any]) -> None:
        self._message["content"].append(event["content_block"])
        self._pieces = []

    def _content_block_delta(self, event: dict[str, Any]) -> None:
        delta = event["delta"]
        if delta["type"] == "signature_delta":
            self._message["content"][-1]["signature"] = delta["signature"]
        else:
            self._pieces.append(delta.get("text") or delta.get("thinking") or delta.get("partial_json") or "")

    def _content_block_stop(self, _: dict[str, Any]) -> None:
        block, joined = self._message["content"][-1], "".join(self._pieces)
        if block["type"] == "tool_use":
            self._end_call(block, joined)
        else:
            block[block["type"]] = joined

    def _end_call(self, block: dict[str, Any], arguments: str) -> None:
        """A call is in the message only if its arguments are whole: at its end the answer may have been cut."""
        try:
            block["input"] = json.loads(arguments or "{}")
        except ValueError:
            self._message["content"].pop()

    def _message_delta(self, event: dict[str, Any]) -> None:
        self._message.update(event["delta"])
        self._message["usage"] = event["usage"]
        self.ended = True


def messages_exchange(proxy: Proxy, headers: RawHeaders, body: bytes) -> tuple[Exchange, RawHeaders, bytes]:
    settings = proxy.settings
    request = json_object(body)
    if request is None:
        raise Refusal(400, "not_json", "the request body is not a JSON object")
    translated = chat_request(request, settings.model)
    streams, named = request.get("stream") is True, request.get("model")
    passage = MessagesPassage(
        settings,
        model=named if isinstance(named, str) else translated["model"],
        whole=not streams,
        tools=translated.get("tools"),
    )
    kept = [
        (name, value)
        for name, value in headers_upstream(headers, settings)
        if not name.startswith((b"anthropic-", b"x-stainless-")) and name not in (b"content-type", b"accept")
    ]
    kept += [(b"content-type", b"application/json"), (b"accept", b"text/event-stream")]
    exchange = Exchange(
        proxy,
        "messages",
        passage,
        anthropic_event,
        asked_for_stream=streams,
        translates=True,
        open_recorder=lambda: proxy.recordings.recorder(kept, translated, 1),
    )
    return exchange, kept, json.dumps(translated).encode()  # in ASCII: a client may have cut a pair
