"""The stand-in provider as a Starlette app."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from ..chat import ChatStream
from ..scenarios import CREATED
from .answers import ANSWERS, COMMENT, EVENT_STREAM, JSON, Answer, Ending
from .asked import Asked, WrongRequest, read_request
from .recording import Replay

PATHS = {"paas": "/api/paas/v4/chat/completions", "coding": "/api/coding/paas/v4/chat/completions"}
MOST_REQUEST_BYTES = 4 * 1024 * 1024
COMMENT_PAUSE = 0.02
HOLD = 600.0
"""Seconds after which a connection that is kept open on purpose is given up."""

TRANSPORT = "glmsse_transport"
"""Where the server leaves the connection's transport in the request's state, for the faults that break it."""


def create_app(replay: Replay | None = None, *, pace: float = 0.0) -> Starlette:
    """The app: both routes, every answer; a replay takes the place of all of them. `pace` is seconds a write."""

    async def complete(request: Request) -> Response:
        data = await _body(request)
        try:
            asked = read_request(request.headers.get("authorization"), data, request.query_params)
        except WrongRequest as wrong:
            return Response(wrong.body, wrong.status, media_type=JSON)
        transport = getattr(request.state, TRANSPORT, None)
        if replay is not None:
            return _event_stream(_replayed(replay, transport), replay)
        answer = ANSWERS[asked.scenario]
        if not asked.stream and answer.media_type == EVENT_STREAM:
            return _whole_answer(answer, asked)
        return _event_stream(_written(answer, asked, pace, transport), answer)

    return Starlette(
        routes=[Route(path, complete, methods=["POST"]) for path in PATHS.values()],
        exception_handlers={HTTPException: _gateway_error},
    )


async def _body(request: Request) -> bytes:
    data = bytearray()
    async for piece in request.stream():
        data += piece
        if len(data) > MOST_REQUEST_BYTES:
            raise HTTPException(413)
    return bytes(data)


async def _gateway_error(request: Request, error: Exception) -> Response:
    """What stands before the provider's own code: a wrong path or method."""
    assert isinstance(error, HTTPException)
    body = {"timestamp": CREATED * 1000, "status": error.status_code, "error": error.detail, "path": request.url.path}
    return JSONResponse(body, error.status_code, error.headers)


def _event_stream(content: AsyncIterator[bytes], head: Answer | Replay) -> Response:
    headers = {"content-type": head.media_type, "cache-control": "no-cache", **dict(head.headers)}
    return StreamingResponse(content, head.status, headers)


def _whole_answer(answer: Answer, asked: Asked) -> Response:
    """`stream` was not asked for: one JSON body."""
    stream = ChatStream(choices=asked.wanted.choices if asked.scenario == "choices" else 1)
    for piece in answer.pieces(asked.wanted):
        stream.feed(piece)
    return JSONResponse(stream.snapshot.to_dict())


async def _replayed(replay: Replay, transport: Any) -> AsyncIterator[bytes]:
    for pause, piece in replay.pieces:
        if pause:
            await asyncio.sleep(pause)
        yield piece
    async for piece in _ended(replay.ending, transport):
        yield piece


async def _written(answer: Answer, asked: Asked, pace: float, transport: Any) -> AsyncIterator[bytes]:
    pace = pace if asked.pace is None else asked.pace
    await asyncio.sleep(answer.wait if asked.wait is None else asked.wait)
    for piece in answer.pieces(asked.wanted):
        yield piece
        await asyncio.sleep(pace)
    async for piece in _ended(answer.ending, transport):
        yield piece


async def _ended(ending: Ending, transport: Any) -> AsyncIterator[bytes]:
    if ending == "stay":
        await asyncio.sleep(HOLD)
    elif ending == "comments":
        for _ in range(int(HOLD / COMMENT_PAUSE)):
            yield COMMENT
            await asyncio.sleep(COMMENT_PAUSE)
    elif ending != "end":
        await _break(transport, reset=ending == "reset")


async def _break(transport: Any, *, reset: bool) -> None:
    """End the connection inside the body: by TCP's RST, or cleanly."""
    if transport is None:
        raise RuntimeError("this server keeps its connections to itself: use glmsse serve")
    await asyncio.sleep(0.05)  # what was written is to arrive before
    if reset:
        linger = struct.pack("ii", 1, 0)
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
    else:
        transport.close()
    await asyncio.sleep(0.05)  # until the server knows, so that it does not end the body properly
