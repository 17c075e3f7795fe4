"""One request and its answer: upstream to client, through a tap, under a watch."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Any

import httpx

from ..capture import Recorder
from ..chat import ChatStream
from ..deadlines import Deadlines
from ..verdict import Verdict
from .errors import error_object, status_for
from .passage import Passage, WriteError, may_end, verdict_line
from .pings import pinging
from .requests import RawHeaders, headers_downstream
from .watch import Receive, Send, Watch

if TYPE_CHECKING:
    from .app import Proxy

_MOST_REFUSED_BYTES = 64 * 1024
_MOST_DRAINED_BYTES = 64 * 1024
_DRAIN_SECONDS = 1.0
_JSON = (b"content-type", b"application/json")


class Exchange:
    """Sends a request upstream and its answer back.

    asked_for_stream  by the client
    translates        the client speaks another protocol than the upstream, so nothing of its response passes as it is
    whole             the passage gives all of the answer at its end, or a verdict that there is none
    open_recorder     called when it runs; `recordings` gets back what it gives
    """

    def __init__(
        self,
        proxy: Proxy,
        route: str,
        passage: Passage,
        write_error: WriteError,
        *,
        asked_for_stream: bool,
        translates: bool = False,
        whole: bool = False,
        open_recorder: Callable[[], Recorder | None] | None = None,
    ) -> None:
        self._proxy = proxy
        self._settings = proxy.settings
        self._route = route
        self._passage = passage
        self._write_error = write_error
        self._asked_for_stream = asked_for_stream
        self._translates = translates
        self._whole = whole
        self._open_recorder = open_recorder
        self._recorder: Recorder | None = None
        self._status: int | None = None
        self._plain = False
        self._passed_on = False
        self.started = False
        """Whether anything was sent to the client."""
        self._finished = False
        self._broke: str | None = None
        self._unread: AsyncIterator[bytes] | None = None
        self._began = monotonic()
        self._ended: float | None = None
        self._first_event: float | None = None
        self._first_content: float | None = None

    async def run(self, scope: Any, receive: Receive, send: Send, headers: RawHeaders, body: bytes) -> None:
        """The whole exchange; it is counted and logged however it ends."""
        self._trailers = "http.response.trailers" in scope.get("extensions", {}) and any(
            name == b"te" and b"trailers" in value.lower() for name, value in scope["headers"]
        )
        deadlines = self._settings.deadlines
        if not self._settings.enforces:
            deadlines = Deadlines(total=deadlines.total)
        watch = self._watch = Watch(deadlines, self._settings.send_seconds, receive, send)
        try:
            if self._open_recorder is not None:
                self._recorder = self._open_recorder()
            await watch.run(self._work(headers, body))
            if not self._finished:
                self._passage.stream.close(watch.code)
                if not (watch.client_gone or watch.slow_client):
                    await asyncio.wait_for(self._finish(watch.code), self._settings.send_seconds)
        except asyncio.TimeoutError:
            watch.slow_client = True
        finally:
            try:
                self._passage.finish(watch.code)
            finally:
                self._report()

    async def _work(self, headers: RawHeaders, body: bytes) -> None:
        error: BaseException | None = None
        try:
            response = await self._proxy.upstream.send(headers, body)
        except httpx.TransportError as problem:
            self._broke = type(problem).__name__
            self._passage.stream.close(problem)
            await self._finish(problem)
            return
        try:
            self._status = response.status_code
            if self._recorder is not None:
                self._recorder.start(response.status_code, response.headers.raw)
            if self._passage.start(response.status_code, response.headers.raw):
                seconds = self._settings.ping_seconds
                pings = pinging(self._watch, seconds, self._ping) if seconds and self._passage.ping() else nullcontext()
                async with pings:
                    error = await self._pass_events(response)
            elif self._translates or self._must_refuse(response):
                await self._read_refused(response)
            else:
                await self._pass_on(response)
                return
            await self._finish(error)
            if self._unread is not None and self._passage.stream.done:
                await self._drain(self._unread)
        finally:
            await response.aclose()

    def _must_refuse(self, response: httpx.Response) -> bool:
        """Whether a response that is no event stream would look like an empty one, or lead elsewhere."""
        if 300 <= response.status_code < 400:
            return True
        return response.status_code == 200 and self._asked_for_stream and self._settings.enforces

    async def _read(self, response: httpx.Response) -> AsyncIterator[bytes]:
        """A body in which any byte is progress."""
        size = 0
        self._watch.follow(lambda: size)
        async for data in response.stream:  # type: ignore[union-attr]
            size += len(data)
            self._record(data)
            self._watch.first_byte(len(data))
            yield data

    async def _pass_events(self, response: httpx.Response) -> BaseException | None:
        """The body through the passage; returns what broke it off."""
        watch, passage, stream = self._watch, self._passage, self._passage.stream
        if not (self._translates or self._whole):
            sent_back = headers_downstream(response.headers.raw, keep_length=False)
            await self._start(200, [*sent_back, (b"x-accel-buffering", b"no")])
        watch.follow(lambda: stream.pieces_seen)
        begun = False
        body = self._unread = response.stream.__aiter__()  # type: ignore[union-attr]
        try:
            async for data in body:
                if self._recorder is not None:
                    self._record(data)
                out = passage.feed(data)
                if not begun:
                    watch.first_byte(len(data))
                    begun = self._note_beginning(stream)
                if out and not self.started:
                    if passage.over and not may_end(passage.verdict):
                        return None  # a fault before anything was sent is told by the status
                    await self._start_anew()
                if out:
                    await watch.send_body(out)
                if passage.over:
                    return None
        except httpx.TransportError as problem:
            self._broke = type(problem).__name__
            return problem
        self._unread = None
        return None

    def _note_beginning(self, stream: ChatStream) -> bool:
        """When the first event and the first content came; whether both are there."""
        passed = monotonic() - self._began
        if self._first_event is None and stream.events_seen:
            self._first_event = passed
        if self._first_content is None and stream.pieces_seen:
            self._first_content = passed
        return self._first_content is not None

    async def _ping(self) -> None:
        if not self.started:
            await self._start_anew()
        await self._watch.send_body(self._passage.ping())

    async def _pass_on(self, response: httpx.Response) -> None:
        """A response that is no event stream, as it is."""
        watch, stream = self._watch, self._passage.stream
        self._trailers = False
        self._passed_on = True
        self._plain = response.status_code < 400 and not self._asked_for_stream
        await self._start(response.status_code, headers_downstream(response.headers.raw, keep_length=True))
        size = 0
        most = self._settings.limits.max_stream_bytes
        try:
            async for data in self._read(response):
                stream.feed(data)
                size += len(data)
                if most is not None and size > most:
                    return  # without the end of the body: the client sees that it is cut
                await watch.send_body(data)
        except httpx.TransportError as problem:
            self._broke = type(problem).__name__
            return
        await watch.send({"type": "http.response.body", "body": b"", "more_body": False})
        self._finished = True

    async def _read_refused(self, response: httpx.Response) -> None:
        """As much of a refused response as may say why."""
        size = 0
        try:
            async for data in self._read(response):
                self._passage.stream.feed(data)
                size += len(data)
                if size >= _MOST_REFUSED_BYTES:
                    return
        except httpx.TransportError as problem:
            self._broke = type(problem).__name__

    def _record(self, data: bytes) -> None:
        if self._recorder is not None:
            self._recorder.piece(data, monotonic() - self._began)

    async def _start(self, status: int, headers: RawHeaders) -> None:
        self.started = True
        if self._trailers:
            headers = [*headers, (b"trailer", b"glmsse-verdict")]
        await self._watch.send(
            {"type": "http.response.start", "status": status, "headers": headers, "trailers": self._trailers}
        )

    async def _start_anew(self) -> None:
        media_type = b"text/event-stream" if self._asked_for_stream else b"application/json"
        await self._start(
            200, [(b"content-type", media_type), (b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no")]
        )

    async def _finish(self, error: BaseException | str | None) -> None:
        """The end of the response: what is left, an error event, or a whole error response."""
        watch, passage = self._watch, self._passage
        if self._passed_on:
            return  # of a body that goes on as it is, the rest is not ours to write
        rest = passage.finish(error)
        self._ended = monotonic()
        verdict = passage.verdict
        if not self.started:
            if not rest or not may_end(verdict):
                await self._send_error(verdict)
                return
            await self._start_anew()
        self._finished = True
        if self._broke is not None and not self._settings.enforces:
            return  # nor is the end of a body that has none: the client sees that it is cut
        if rest:
            await watch.send_body(rest)
        await watch.send({"type": "http.response.body", "body": b"", "more_body": False})
        if self._trailers:
            line = verdict_line(verdict).removeprefix("glmsse ").encode()
            await watch.send(
                {"type": "http.response.trailers", "headers": [(b"glmsse-verdict", line)], "more_trailers": False}
            )

    async def _send_error(self, verdict: Verdict) -> None:
        self._finished = self.started = True
        self._trailers = False
        body = error_object(self._write_error(verdict))
        headers: RawHeaders = [_JSON]
        if verdict.retry_after is not None:
            headers.append((b"retry-after", str(verdict.retry_after).encode()))
        await self._proxy.send_json(self._watch.send, status_for(verdict, self._status), body, headers)

    async def _drain(self, body: AsyncIterator[bytes]) -> None:
        """Read to the end of the body, which is all but there, so that the connection can be used again."""

        async def drain() -> None:
            size = 0
            async for data in body:
                size += len(data)
                if size > _MOST_DRAINED_BYTES:
                    return

        try:
            await asyncio.wait_for(drain(), _DRAIN_SECONDS)
        except (httpx.HTTPError, httpx.StreamError, asyncio.TimeoutError, RuntimeError):
            return

    def _report(self) -> None:
        watch, passage, metrics = self._watch, self._passage, self._proxy.metrics
        stream, verdict = passage.stream, passage.verdict
        if self._recorder is not None:
            if self._plain:
                self._proxy.recordings.drop()
            else:
                self._proxy.recordings.keep(self._recorder, verdict, self._broke)
        metrics.received.inc(passage.received_bytes)
        metrics.count_events(stream)
        metrics.sent.inc(watch.sent_bytes)
        seconds = (self._ended or monotonic()) - self._began
        if self._plain:
            metrics.plain.inc()
        else:
            metrics.count_verdict(self._route, verdict)
            metrics.duration.observe(seconds)
            if self._first_event is not None:
                metrics.first_event.observe(self._first_event)
            if self._first_content is not None:
                metrics.first_content.observe(self._first_content)
        usage = verdict.usage
        self._proxy.log(
            {
                "event": "answer",
                "route": self._route,
                "status": self._status,
                "stream": self._asked_for_stream or self._translates,
                "outcome": None if self._plain else verdict.outcome,
                "stage": None if self._plain else verdict.stage,
                "code": None if self._plain else verdict.code,
                "offset": verdict.error.offset if verdict.error and not self._plain else None,
                "replay": None if self._plain else verdict.replay,
                "category": verdict.category,
                "provider_code": verdict.provider_code,
                "request_id": verdict.request_id,
                "tolerated": list(verdict.tolerated),
                "prompt_tokens": usage.prompt_tokens if usage else None,
                "completion_tokens": usage.completion_tokens if usage else None,
                "received_bytes": passage.received_bytes,
                "sent_bytes": watch.sent_bytes,
                "events": stream.events_seen,
                "fast_events": stream.fast_events_seen,
                "first_event_seconds": _rounded(self._first_event),
                "first_content_seconds": _rounded(self._first_content),
                "seconds": _rounded(seconds),
                "client_left": watch.client_gone and watch.code == "cancelled",
                "slow_client": watch.slow_client,
                "broke": self._broke,
            }
        )


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 4)
