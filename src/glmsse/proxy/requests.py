"""A client's request: what of it is taken, and what is refused before anything goes upstream."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from hmac import compare_digest
from typing import Any

from .settings import Settings
from .watch import Receive

RawHeaders = list[tuple[bytes, bytes]]

# RFC 9110 §7.6.1, and what old clients still send.
HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade".split()
)
# Made anew by whoever sends, or none of the upstream's business.
_NOT_SENT_UPSTREAM = frozenset(
    b"host content-length accept-encoding expect cookie forwarded via x-real-ip true-client-ip cf-connecting-ip".split()
)
_BEARER_HEADERS = (b"authorization", b"x-api-key")
KEY_HEADERS = (*_BEARER_HEADERS, b"api-key")
# What could lead a client past the proxy, or bind it to the upstream.
_NOT_SENT_BACK = frozenset(b"location set-cookie alt-svc strict-transport-security refresh date server".split())


class Refusal(Exception):
    """The proxy refuses a request; `code` is for programs and metrics, `sentence` for people."""

    def __init__(self, status: int, code: str, sentence: str, kind: str = "invalid_request_error") -> None:
        super().__init__(code)
        self.status = status
        self.code = code
        self.sentence = sentence
        self.kind = kind


class ClientLeft(Exception):
    """Nobody is there to be answered."""


def check_head(headers: RawHeaders, settings: Settings) -> None:
    """Refuses too many headers, a missing key, a coded or too long body."""
    if sum(len(name) + len(value) + 4 for name, value in headers) > settings.max_header_bytes:
        raise Refusal(431, "headers_too_large", "the request has more header bytes than this proxy takes")
    if settings.client_key is not None and not _has_key(headers, settings.client_key.encode()):
        raise Refusal(401, "client_key", "this proxy needs its own key", "authentication_error")
    if any(name == b"content-encoding" and value.lower() != b"identity" for name, value in headers):
        raise Refusal(415, "content_encoding", "send the body without a content coding")
    for name, value in headers:
        if name == b"content-length" and (not value.isdigit() or int(value) > settings.max_body_bytes):
            raise _too_large()


async def read_body(receive: Receive, settings: Settings) -> bytes:
    """The whole body, within its limits of size and time."""
    try:
        return await asyncio.wait_for(_read_body(receive, settings.max_body_bytes), settings.request_seconds)
    except asyncio.TimeoutError:
        raise Refusal(408, "request_timeout", "the request body did not come in time") from None


async def _read_body(receive: Receive, most: int) -> bytes:
    pieces: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientLeft
        piece = message.get("body", b"")
        size += len(piece)
        if size > most:
            raise _too_large()
        pieces.append(piece)
        if not message.get("more_body", False):
            return b"".join(pieces)


def json_object(body: bytes) -> dict[str, Any] | None:
    """The body as a JSON object; None if it is none, which the upstream may say in its own words."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def headers_upstream(headers: RawHeaders, settings: Settings) -> RawHeaders:
    """The client's end-to-end headers, with the key for the upstream in place of the client's if there is one.

    The key that opens this proxy never goes on.
    """
    key = settings.key
    if settings.client_key is not None:
        door = settings.client_key.encode()
        headers = [(name, value) for name, value in headers if not _has_key([(name, value)], door)]
    dropped = _NOT_SENT_UPSTREAM | _named_in_connection(headers)
    kept = [
        (name, value)
        for name, value in _end_to_end(headers, dropped)
        if not name.startswith(b"x-forwarded-") and name not in (_BEARER_HEADERS if key is None else KEY_HEADERS)
    ]
    kept.append((b"accept-encoding", b"identity"))
    authorization = b"Bearer " + key.encode() if key is not None else client_authorization(headers)
    if authorization is not None:
        kept.append((b"authorization", authorization))
    return kept


def client_authorization(headers: RawHeaders) -> bytes | None:
    """The client's key as a bearer token; Anthropic clients have a header of their own for it."""
    values = dict(headers)
    if b"authorization" in values:
        return values[b"authorization"]
    return b"Bearer " + values[b"x-api-key"] if b"x-api-key" in values else None


def headers_downstream(headers: Iterable[tuple[bytes, bytes]], *, keep_length: bool) -> RawHeaders:
    """The upstream's end-to-end headers; its length only where the body goes on untouched."""
    lowered = [(name.lower(), value) for name, value in headers]
    dropped = _NOT_SENT_BACK | _named_in_connection(lowered)
    if not keep_length:
        dropped |= {b"content-length"}
    return list(_end_to_end(lowered, dropped))


def _end_to_end(headers: RawHeaders, dropped: frozenset[bytes]) -> Iterable[tuple[bytes, bytes]]:
    return ((name, value) for name, value in headers if name not in HOP_BY_HOP and name not in dropped)


def _named_in_connection(headers: RawHeaders) -> frozenset[bytes]:
    values = [value for name, value in headers if name == b"connection"]
    return frozenset(word.strip().lower() for value in values for word in value.split(b","))


def _has_key(headers: RawHeaders, key: bytes) -> bool:
    sent = [_without_scheme(value) for name, value in headers if name in KEY_HEADERS]
    return any(compare_digest(value, key) for value in sent)


def _without_scheme(value: bytes) -> bytes:
    """The key of a header; schemes are the same in any case (RFC 9110 §11.1)."""
    return value[7:].lstrip() if value[:7].lower() == b"bearer " else value


def _too_large() -> Refusal:
    return Refusal(413, "body_too_large", "the request body is larger than this proxy takes", "request_too_large")
