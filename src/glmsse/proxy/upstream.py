"""The one place that requests go to."""

from __future__ import annotations

import httpx

from .requests import RawHeaders
from .settings import Settings


class Upstream:
    """Pooled connections to the configured URL.

    A transport instead of a client: nothing is followed, no cookie is kept from one user's answer for another's
    request, no environment variable or netrc file has a say.
    """

    def __init__(self, settings: Settings) -> None:
        self._url = httpx.URL(settings.chat_url)
        limits = httpx.Limits(max_connections=settings.max_streams, max_keepalive_connections=256, keepalive_expiry=30)
        self._transport = httpx.AsyncHTTPTransport(limits=limits, trust_env=False)
        # How long an answer may take is the deadlines' matter.
        self._timeouts = {
            "connect": settings.connect_seconds,
            "read": None,
            "write": settings.request_seconds,
            "pool": settings.connect_seconds,
        }

    async def send(self, headers: RawHeaders, body: bytes) -> httpx.Response:
        """The response with its body unread. Raises httpx.TransportError."""
        request = httpx.Request(
            "POST", self._url, headers=headers, content=body, extensions={"timeout": dict(self._timeouts)}
        )
        return await self._transport.handle_async_request(request)

    async def aclose(self) -> None:
        await self._transport.aclose()
