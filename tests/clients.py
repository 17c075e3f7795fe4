"""Each client opens a response, starts the stream with it, and hands its source over to be read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

aiohttp = pytest.importorskip("aiohttp")
httpx = pytest.importorskip("httpx")
openai = pytest.importorskip("openai")
requests = pytest.importorskip("requests")

HEADERS = {"Authorization": "Bearer test", "Accept-Encoding": "identity"}

Consume = Callable[[Any], Any]
"""Reads a source to its end."""

LAST_RESORT = 20.0
"""Seconds that a client waits for a read, where a test has no shorter time."""


def body_for(model: str) -> dict[str, Any]:
    return {"model": model, "stream": True, "messages": [{"role": "user", "content": "hello"}]}


def with_httpx(url: str, model: str, stream: Any, consume: Consume, timeout: float = LAST_RESORT) -> None:
    with httpx.stream("POST", url, headers=HEADERS, json=body_for(model), timeout=timeout) as response:
        stream.start(response.status_code, response.headers)
        consume(response.iter_bytes())


def with_requests(url: str, model: str, stream: Any, consume: Consume, timeout: float = LAST_RESORT) -> None:
    with requests.post(url, headers=HEADERS, json=body_for(model), stream=True, timeout=timeout) as response:
        stream.start(response.status_code, response.headers)
        consume(response.iter_content(None))


def with_requests_raw(url: str, model: str, stream: Any, consume: Consume, timeout: float = LAST_RESORT) -> None:
    with requests.post(url, headers=HEADERS, json=body_for(model), stream=True, timeout=timeout) as response:
        stream.start(response.status_code, response.headers)
        consume(response.raw)


def with_urllib(url: str, model: str, stream: Any, consume: Consume, timeout: float = LAST_RESORT) -> None:
    data = json.dumps(body_for(model)).encode()
    try:
        response = urlopen(Request(url, data, {**HEADERS, "Content-Type": "application/json"}), timeout=timeout)
    except HTTPError as error:
        response = error
    with response:
        stream.start(response.status, response.headers)
        consume(response)


def with_openai(url: str, model: str, stream: Any, consume: Consume, timeout: float = LAST_RESORT) -> None:
    options = {
        "api_key": "test",
        "base_url": url.removesuffix("/chat/completions"),
        "max_retries": 0,
        "timeout": timeout,
    }
    with openai.OpenAI(**options) as client:
        try:
            with client.chat.completions.with_streaming_response.create(**body_for(model)) as response:
                stream.start(response.status_code, response.headers)
                consume(response.iter_bytes())
        except openai.APIStatusError as error:
            stream.start(error.response.status_code, error.response.headers)
            stream.feed(error.response.content)


async def with_async_httpx(url: str, model: str, stream: Any, consume: Consume, timeout: float = LAST_RESORT) -> None:
    async with (
        httpx.AsyncClient(timeout=timeout) as client,
        client.stream("POST", url, headers=HEADERS, json=body_for(model)) as response,
    ):
        stream.start(response.status_code, response.headers)
        await consume(response.aiter_bytes())


async def with_aiohttp(url: str, model: str, stream: Any, consume: Consume, timeout: float = LAST_RESORT) -> None:
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, headers=HEADERS, json=body_for(model)) as response,
    ):
        stream.start(response.status, response.headers)
        await consume(response.content.iter_any())


async def with_async_openai(url: str, model: str, stream: Any, consume: Consume, timeout: float = LAST_RESORT) -> None:
    options = {
        "api_key": "test",
        "base_url": url.removesuffix("/chat/completions"),
        "max_retries": 0,
        "timeout": timeout,
    }
    async with openai.AsyncOpenAI(**options) as client:
        try:
            async with client.chat.completions.with_streaming_response.create(**body_for(model)) as response:
                stream.start(response.status_code, response.headers)
                await consume(response.iter_bytes())
        except openai.APIStatusError as error:
            stream.start(error.response.status_code, error.response.headers)
            stream.feed(error.response.content)


SYNC = {
    "httpx": with_httpx,
    "requests": with_requests,
    "requests-raw": with_requests_raw,
    "urllib": with_urllib,
    "openai": with_openai,
}
ASYNC = {"async-httpx": with_async_httpx, "aiohttp": with_aiohttp, "async-openai": with_async_openai}
