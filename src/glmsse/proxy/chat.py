"""`/v1/chat/completions`: the same protocol on both sides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import openai_event
from .exchange import Exchange
from .markup import MarkupTap, WholeMarkupTap
from .passage import Passage
from .requests import RawHeaders, headers_upstream, json_object
from .tap import Tap

if TYPE_CHECKING:
    from .app import Proxy


def chat_exchange(proxy: Proxy, headers: RawHeaders, body: bytes) -> tuple[Exchange, RawHeaders, bytes]:
    """An exchange that sends the body on as it came."""
    settings = proxy.settings
    request = json_object(body) or {}
    choices = _choices(request, settings.limits.max_choices)
    streams = request.get("stream") is True
    whole = settings.content_markup == "glm" and not streams
    passage: Passage
    if settings.content_markup == "glm":
        markup = WholeMarkupTap if whole else MarkupTap
        passage = markup(settings, openai_event, tools=request.get("tools"), choices=choices)
    else:
        passage = Tap(settings.tap(choices), openai_event, withhold=settings.enforces, comment=settings.verdict_comment)
    kept = headers_upstream(headers, settings)
    exchange = Exchange(
        proxy,
        "chat",
        passage,
        openai_event,
        asked_for_stream=streams,
        whole=whole,
        open_recorder=None if whole else lambda: proxy.recordings.recorder(kept, request, choices),
    )
    return exchange, kept, body


def _choices(request: dict[str, Any], most: int | None) -> int:
    """How many choices the request asks for; the upstream judges what is no such number."""
    wanted = request.get("n")
    return wanted if type(wanted) is int and wanted >= 1 and (most is None or wanted <= most) else 1
