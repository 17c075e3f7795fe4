"""One small request to a live provider, read to its verdict. Needs httpx. Sends once and never again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import uuid4

import httpx

from .._version import __version__
from ..adapters import aiter_events
from ..capture import Recorder, Recording
from ..chat import ChatStream
from ..completion import Choice
from ..deadlines import Deadlines
from ..events import ArgumentsDelta, ChatEvent, ContentDelta, ReasoningDelta, ToolCallStart
from ..verdict import Verdict

BASE_URL = "https://api.z.ai"
MODEL = "glm-5.2"
PATHS = {"paas": "/api/paas/v4/chat/completions", "coding": "/api/coding/paas/v4/chat/completions"}
DRAIN_SECONDS = 0.5
"""For what follows `[DONE]`, so that a recording has it."""

LOOKUP = {
    "type": "function",
    "function": {
        "name": "lookup_timezone",
        "description": "The time zone of a city",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


@dataclass(frozen=True)
class Case:
    """A question, and the events that it is asked for."""

    name: str
    prompt: str
    thinking: bool
    relevant: tuple[type, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def request(self, model: str, request_id: str) -> dict[str, Any]:
        return {
            "model": model,
            "stream": True,
            "request_id": request_id,
            "do_sample": False,
            "thinking": {"type": "enabled" if self.thinking else "disabled"},
            "messages": [{"role": "user", "content": self.prompt}],
            **self.options,
        }


_CALL = "Call lookup_timezone for Hong Kong. Do not answer in words."
CASES = {
    case.name: case
    for case in (
        Case("text", "Answer with exactly: Ready when you are.", False, (ContentDelta,), {"max_tokens": 32}),
        Case(
            "thinking",
            "What is 19 times 23? Answer with the number alone.",
            True,
            (ReasoningDelta,),
            {"max_tokens": 1024},
        ),
        Case("tool", _CALL, False, (ToolCallStart, ArgumentsDelta), {"max_tokens": 128, "tools": [LOOKUP]}),
        Case(
            "tool-stream",
            _CALL,
            False,
            (ToolCallStart, ArgumentsDelta),
            {"max_tokens": 128, "tools": [LOOKUP], "tool_stream": True},
        ),
    )
}


def usable(url: str) -> bool:
    """Whether httpx can ask there at all."""
    try:
        return bool(httpx.URL(url).host)
    except (httpx.InvalidURL, ValueError):  # IDNA errors are ValueErrors
        return False


@dataclass(frozen=True)
class Timing:
    """Seconds a request may take: to connect, to the first byte of its answer, without progress, in all."""

    connect: float | None
    first_byte: float | None
    idle: float | None
    total: float | None


@dataclass(frozen=True)
class Probed:
    """What came of one request."""

    case: str
    request_id: str
    json_events: int
    first_relevant: float | None
    """Seconds from sending to the first event that the case is about."""
    total: float
    """Seconds from sending to the last event."""
    choice: Choice
    argument_pieces: int
    verdict: Verdict
    sent: bool
    """False: no connection came about, so nothing was sent."""
    trouble: str | None
    """The class of the client's exception that ended it, if one did."""
    coded: bool
    """The body has a content coding, so it was not recorded: a key that came back would be in there unseen."""


OnEvent = Callable[[ChatStream, ChatEvent], object]


@dataclass
class Probe:
    """Where and how to ask. The recorder gets the response as it is on the wire; `recording` is what it made of it."""

    url: str
    key: str = field(repr=False)
    model: str
    timing: Timing
    on_event: OnEvent
    recorder: Recorder | None = None
    use_proxies: bool = True
    recording: Recording | None = field(default=None, init=False)

    async def ask(self, case: Case) -> Probed:
        request_id = f"glmsse-{uuid4().hex}"
        asking = _Asking(self, case)
        try:
            await asking.ask(case.request(self.model, request_id))
        finally:
            verdict = asking.stream.close("cancelled")  # a verdict that is there already stays
            if self.recorder is not None:
                self.recording = self.recorder.finish(verdict, error_class=asking.trouble)
        return asking.result(request_id)


class _Asking:
    def __init__(self, probe: Probe, case: Case) -> None:
        self.stream = ChatStream(tools=case.options.get("tools"))
        self._probe = probe
        self._case = case
        self._start = self._last = time.monotonic()
        self._first_relevant: float | None = None
        self._argument_pieces = 0
        self._sent = True
        self.trouble: str | None = None
        self._coded = False

    async def ask(self, request: dict[str, Any]) -> None:
        probe = self._probe
        timeout = httpx.Timeout(None, connect=probe.timing.connect)
        headers = {
            "authorization": f"Bearer {probe.key}",
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "user-agent": f"glmsse-probe/{__version__}",
        }
        async with httpx.AsyncClient(timeout=timeout, trust_env=probe.use_proxies, follow_redirects=False) as client:
            response = await self._send(client, client.build_request("POST", probe.url, headers=headers, json=request))
            if response is None:
                return
            try:
                self._coded = response.headers.get("content-encoding", "identity") != "identity"
                self.stream.start(response.status_code, response.headers)
                if probe.recorder is not None:
                    probe.recorder.start(response.status_code, response.headers)
                await self._read(response)
            finally:
                with suppress(httpx.HTTPError):  # the answer is in
                    await response.aclose()

    async def _send(self, client: httpx.AsyncClient, request: httpx.Request) -> httpx.Response | None:
        """The response's head, or None: then the stream has its verdict."""
        seconds, code = self._time_for_head()
        try:
            return await asyncio.wait_for(client.send(request, stream=True), seconds)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol, httpx.ProxyError) as error:
            self._sent = False
            self._broke(error)
        except httpx.HTTPError as error:
            self._broke(error)
        except asyncio.TimeoutError:
            self.stream.close(code)
        self._last = time.monotonic()
        return None

    async def _read(self, response: httpx.Response) -> None:
        events = aiter_events(
            self._bytes(response), self.stream, self._deadlines(), drain=DRAIN_SECONDS, on_error=self._note_trouble
        )
        async for event in events:
            self._last = time.monotonic()
            if self._first_relevant is None and isinstance(event, self._case.relevant):
                self._first_relevant = self._last - self._start
            self._argument_pieces += isinstance(event, ArgumentsDelta)
            self._probe.on_event(self.stream, event)

    async def _bytes(self, response: httpx.Response) -> AsyncIterator[bytes]:
        recorder = self._probe.recorder
        async for data in response.aiter_raw():
            if recorder is not None and not self._coded:
                recorder.piece(data, time.monotonic() - self._start)
            yield data

    def _time_for_head(self) -> tuple[float | None, str]:
        """Seconds until the head has to be there, and the code of the deadline that says so."""
        timing = self._probe.timing
        limits = (
            (timing.first_byte or timing.idle, "first_byte" if timing.first_byte else "idle"),
            (timing.total, "total"),
        )
        running = [(seconds, f"deadline_{name}") for seconds, name in limits if seconds is not None]
        return min(running, default=(None, ""))

    def _deadlines(self) -> Deadlines:
        """What is left of them: they began with sending."""
        spent = time.monotonic() - self._start
        timing = self._probe.timing
        return Deadlines(
            first_byte=None if timing.first_byte is None else max(timing.first_byte - spent, 0.001),
            idle=timing.idle,
            total=None if timing.total is None else max(timing.total - spent, 0.001),
        )

    def _broke(self, error: Exception) -> None:
        self._note_trouble(error)
        self.stream.close(error)

    def _note_trouble(self, error: Exception) -> None:
        self.trouble = type(error).__name__  # never its text, which can hold what was sent

    def result(self, request_id: str) -> Probed:
        verdict = self.stream.close()
        return Probed(
            case=self._case.name,
            request_id=request_id,
            json_events=self.stream.events_seen - self.stream.done,
            first_relevant=self._first_relevant,
            total=self._last - self._start,
            choice=self.stream.snapshot.choices[0],
            argument_pieces=self._argument_pieces,
            verdict=verdict if self._sent else replace(verdict, replay="safe"),
            sent=self._sent,
            trouble=self.trouble,
            coded=self._coded,
        )
