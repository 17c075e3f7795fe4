"""The ASGI application: routes, and what all requests share."""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from .chat import chat_exchange
from .errors import RefusalBody, anthropic_refusal, openai_refusal
from .exchange import Exchange
from .messages import messages_exchange
from .metrics import Metrics
from .recordings import Recordings
from .requests import ClientLeft, RawHeaders, Refusal, check_head, read_body
from .settings import Settings
from .upstream import Upstream
from .watch import Receive, Send

CHAT_PATHS = (
    "/v1/chat/completions",
    "/chat/completions",
    "/api/paas/v4/chat/completions",
    "/api/coding/paas/v4/chat/completions",
)
MESSAGES_PATHS = ("/v1/messages", "/api/anthropic/v1/messages")
_NO_COUNT = Refusal(
    404, "count_tokens", "this proxy cannot count tokens: only the model's own tokenizer could", "not_found_error"
)

_INTERNAL = Refusal(500, "internal", "the proxy has failed; its log says where", "api_error")

Log = Callable[[dict[str, Any]], None]
OpenExchange = Callable[["Proxy", RawHeaders, bytes], tuple[Exchange, RawHeaders, bytes]]


def log_line(record: dict[str, Any]) -> None:
    """One JSON object a line on standard output."""
    sys.stdout.write(json.dumps(record) + "\n")
    sys.stdout.flush()


class Proxy:
    """What the requests of one process share."""

    def __init__(self, settings: Settings, log: Log) -> None:
        self.settings = settings
        self.log = log
        self.metrics = Metrics()
        self.upstream = Upstream(settings)
        self.recordings = Recordings(settings, log)
        self.open = 0
        self.ready = False

    async def send_json(self, send: Send, status: int, body: dict[str, Any], headers: RawHeaders) -> None:
        data = json.dumps(body).encode()
        headers = [*headers, (b"content-length", str(len(data)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data, "more_body": False})


class Endpoint:
    """Takes requests of one protocol."""

    def __init__(self, proxy: Proxy, open_exchange: OpenExchange, refusal_body: RefusalBody) -> None:
        self._proxy = proxy
        self._open_exchange = open_exchange
        self._refusal_body = refusal_body

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        proxy = self._proxy
        exchange: Exchange | None = None
        try:
            check_head(scope["headers"], proxy.settings)
            if proxy.open >= proxy.settings.max_streams:
                raise Refusal(503, "too_many_streams", "this proxy holds as many answers as it may", "overloaded_error")
            proxy.open += 1
            proxy.metrics.open.inc()
            try:
                body = await read_body(receive, proxy.settings)
                exchange, headers, body = self._open_exchange(proxy, scope["headers"], body)
                await exchange.run(scope, receive, send, headers, body)
            finally:
                proxy.open -= 1
                proxy.metrics.open.dec()
        except Refusal as refusal:
            await self._refuse(refusal, send)
        except ClientLeft:
            proxy.metrics.refused.labels("client_left").inc()
        except Exception as problem:  # a mistake of ours costs this answer, and is seen
            proxy.log({"event": "internal_error", "error": type(problem).__name__, "at": _place(problem)})
            if exchange is None or not exchange.started:
                await self._refuse(_INTERNAL, send)
            else:
                proxy.metrics.refused.labels(_INTERNAL.code).inc()

    async def _refuse(self, refusal: Refusal, send: Send) -> None:
        self._proxy.metrics.refused.labels(refusal.code).inc()
        self._proxy.log({"event": "refused", "status": refusal.status, "code": refusal.code})
        data = self._refusal_body(refusal)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(data)).encode())]
        if refusal.status in (408, 413):
            headers.append((b"connection", b"close"))  # the rest of the body is not wanted
        if refusal.status == 503:
            headers.append((b"retry-after", b"1"))
        await send({"type": "http.response.start", "status": refusal.status, "headers": headers})
        await send({"type": "http.response.body", "body": data, "more_body": False})


def _place(problem: BaseException) -> str:
    """Where it was raised, without what was read there."""
    frames = traceback.extract_tb(problem.__traceback__)
    return f"{os.path.basename(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def create_app(settings: Settings, log: Log = log_line) -> Starlette:
    """The application for any ASGI server."""
    proxy = Proxy(settings, log)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None, None]:
        proxy.ready = True
        try:
            yield
        finally:
            proxy.ready = False
            await proxy.upstream.aclose()
            proxy.recordings.close()

    async def health(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def ready(_: Request) -> Response:
        free = proxy.ready and proxy.open < settings.max_streams
        return PlainTextResponse("ready\n" if free else "full\n", 200 if free else 503)

    async def count_tokens(_: Request) -> Response:
        return Response(anthropic_refusal(_NO_COUNT), _NO_COUNT.status, media_type="application/json")

    async def metrics(_: Request) -> Response:
        return Response(proxy.metrics.text(), media_type="text/plain; version=0.0.4")

    chat = Endpoint(proxy, chat_exchange, openai_refusal)
    messages = Endpoint(proxy, messages_exchange, anthropic_refusal)
    routes = [
        *(Route(path, chat, methods=["POST"]) for path in CHAT_PATHS),
        *(Route(path, messages, methods=["POST"]) for path in MESSAGES_PATHS),
        *(Route(f"{path}/count_tokens", count_tokens, methods=["POST"]) for path in MESSAGES_PATHS),
        Route("/healthz", health),
        Route("/readyz", ready),
        Route("/metrics", metrics),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)
    app.router.redirect_slashes = False
    app.state.proxy = proxy
    return app
