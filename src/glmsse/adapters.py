"""Any iterable of bytes → events. Thin loops around a stream: they read, ask the deadlines, and close the source.

No HTTP client is imported. Nothing is read ahead and nothing queued: a slow consumer holds the sender back. Nothing is
retried.

A source is an iterable of bytes-like pieces, cut anywhere (httpx `iter_bytes()`, requests `iter_content(None)`), an
object with `read1` (a urllib response, an open file), or the bytes themselves; the async twins take an async iterable
(httpx `aiter_bytes()`, aiohttp `content.iter_any()`). However the reading ends, the source is closed by its `aclose` or
`close`. That does not always close the response it came from, so keep the client's own `with` around the loop.
"""

from __future__ import annotations

import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterable,
    Iterator,
)
from contextlib import suppress
from inspect import isawaitable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, Union

from ._reading import ChatReading, EventReading, OnError
from .chat import ChatStream
from .completion import Completion
from .deadlines import Clock, Deadlines, ReadTimedOut, check_seconds
from .errors import MisuseError
from .events import ChatEvent
from .framing import ServerSentEvent, SSEFramer
from .response import Headers
from .verdict import Verdict

if TYPE_CHECKING:
    from typing_extensions import Buffer


class ReadsPieces(Protocol):
    """A binary file or response that gives what it has (`io.BufferedIOBase.read1`)."""

    def read1(self, size: int, /) -> bytes: ...


Source = Union["Iterable[Buffer]", "Buffer", ReadsPieces]
Close = Callable[[], None]
AsyncClose = Callable[[], Awaitable[None]]
T = TypeVar("T")

_PIECE_BYTES = 64 * 1024
_MOST_DRAINED_BYTES = 64 * 1024
"""What may follow the end of an answer and is still worth reading to keep a connection."""

_NO_DEADLINES = Deadlines()


def check_response(status: int, headers: Headers, body: Buffer = b"") -> Verdict | None:
    """The verdict over a response that is no event stream, or None: go on and read it.

    A verdict that is not accepted is false like None: compare with `is not None`. Of `body` the first 64 KiB are read,
    for category, provider_code and request_id. The profile `zai` judges; use `ChatStream.start` for another one.
    """
    stream = ChatStream()
    if not stream.start(status, headers):
        return None
    stream.feed(body)
    return stream.close()


def iter_sse(
    source: Source,
    framer: SSEFramer | None = None,
    deadlines: Deadlines | None = None,
    *,
    clock: Clock = time.monotonic,
) -> Generator[ServerSentEvent, None, None]:
    """The events of any event stream, to the end of its body.

    Raises what `SSEFramer` raises, after the events completed before it; IncompleteStream with a code deadline_* where
    a deadline passed, any dispatched event being progress; and the source's own exceptions as they are.
    """
    reading = EventReading(_checked(framer, SSEFramer, "framer"), _checked_deadlines(deadlines), clock)
    pieces = _pieces(source)
    return _sse(reading, pieces, lambda: _close(pieces, source))


def aiter_sse(
    source: AsyncIterable[Buffer],
    framer: SSEFramer | None = None,
    deadlines: Deadlines | None = None,
    *,
    clock: Clock = time.monotonic,
) -> AsyncGenerator[ServerSentEvent, None]:
    """`iter_sse` for an async source. Deadlines need asyncio."""
    reading = EventReading(_checked(framer, SSEFramer, "framer"), _checked_deadlines(deadlines), clock)
    pieces = _async_pieces(source)
    return _async_sse(reading, pieces, lambda: _aclose(pieces, source))


def iter_events(
    source: Source,
    stream: ChatStream | None = None,
    deadlines: Deadlines | None = None,
    *,
    drain: float | None = None,
    on_error: OnError | None = None,
    clock: Clock = time.monotonic,
) -> Generator[ChatEvent, None, None]:
    """The events of one streamed answer, each as soon as the read that completes it is over.

    stream     the ChatStream to use: it has the verdict afterwards, always. Call its `start` before, if it is to check
               status and headers; a refused response's body is read for its error code
    deadlines  checked between reads only: nothing here can break off a read that blocks, so set the client's read
               timeout too. `aiter_events` has no such gap
    drain      seconds to go on reading, at most 64 KiB, after `[DONE]` or a failure, so that the client can keep its
               connection; None closes at once. Here too a blocking read is not broken off
    on_error   called with an exception that the source raised, for logs; what it raises itself goes to the caller

    It stops at `[DONE]` or a failure, whatever the body does then. An exception of the source is an end of the stream
    like others, so it is not raised: the last event is `Failed`, the verdict incomplete. So it is when the body ends
    early or a deadline passes, which is how a cut answer shows even without a verdict. What is no `Exception`, such as
    KeyboardInterrupt, passes through.

    Leaving the loop closes the source, and the verdict is `cancelled`. CPython does that at once; elsewhere, or while
    something else holds the iterator, use `contextlib.closing`.
    """
    _check_options(drain, on_error)
    stream = _checked(stream, ChatStream, "stream")
    reading = ChatReading(stream, _checked_deadlines(deadlines), clock, on_error)
    pieces = _pieces(source)
    return _events(reading, pieces, lambda: _close(pieces, source), drain)


def aiter_events(
    source: AsyncIterable[Buffer],
    stream: ChatStream | None = None,
    deadlines: Deadlines | None = None,
    *,
    drain: float | None = None,
    on_error: OnError | None = None,
    clock: Clock = time.monotonic,
) -> AsyncGenerator[ChatEvent, None]:
    """`iter_events` for an async source; deadlines and drain break off a read that takes too long, and need asyncio.

    Cancelling the task that reads closes the source; the verdict is `cancelled`. After leaving the loop early the
    verdict is there at once, while the event loop closes the source a little later; `contextlib.aclosing` waits for it.
    """
    _check_options(drain, on_error)
    stream = _checked(stream, ChatStream, "stream")
    reading = ChatReading(stream, _checked_deadlines(deadlines), clock, on_error)
    pieces = _async_pieces(source)
    return _AsyncEvents(reading, pieces, lambda: _aclose(pieces, source), drain)


def collect(
    source: Source,
    stream: ChatStream | None = None,
    deadlines: Deadlines | None = None,
    *,
    drain: float | None = None,
    on_error: OnError | None = None,
    clock: Clock = time.monotonic,
) -> tuple[Completion, Verdict]:
    """The whole answer and its verdict; a broken connection is a verdict too, not an exception. As `iter_events`."""
    stream = ChatStream(deltas=False) if stream is None else stream
    events = iter_events(source, stream, deadlines, drain=drain, on_error=on_error, clock=clock)
    del source
    for _ in events:
        pass
    return stream.snapshot, stream.close()


async def acollect(
    source: AsyncIterable[Buffer],
    stream: ChatStream | None = None,
    deadlines: Deadlines | None = None,
    *,
    drain: float | None = None,
    on_error: OnError | None = None,
    clock: Clock = time.monotonic,
) -> tuple[Completion, Verdict]:
    """`collect` for an async source."""
    stream = ChatStream(deltas=False) if stream is None else stream
    events = aiter_events(source, stream, deadlines, drain=drain, on_error=on_error, clock=clock)
    del source
    async for _ in events:
        pass
    return stream.snapshot, stream.close()


def _sse(reading: EventReading, pieces: Iterator[Buffer], close: Close) -> Generator[ServerSentEvent, None, None]:
    try:
        while True:
            reading.check_deadlines()
            reading.begin_read()
            try:
                data = next(pieces)
            except StopIteration:
                break
            try:
                events, error = reading.take(data)
            finally:
                del data
            yield from events
            if error is not None:
                del events
                raise error
        reading.end()
    finally:
        close()


async def _async_sse(
    reading: EventReading, pieces: AsyncIterator[Buffer], close: AsyncClose
) -> AsyncGenerator[ServerSentEvent, None]:
    late = None
    try:
        while True:
            reading.check_deadlines()
            try:
                data = await _next(pieces, reading.begin_read())
            except StopAsyncIteration:
                break
            except ReadTimedOut:
                late = reading.timed_out()
                break
            try:
                events, error = reading.take(data)
            finally:
                del data
            for event in events:
                yield event
            if error is not None:
                del events
                raise error
        if late is not None:
            raise late
        reading.end()
    finally:
        await close()


def _events(
    reading: ChatReading, pieces: Iterator[Buffer], close: Close, drain: float | None
) -> Generator[ChatEvent, None, None]:
    try:
        while reading.goes_on():
            reading.begin_read()
            try:
                data = next(pieces)
            except StopIteration:
                break
            except Exception as error:  # every client has exceptions of its own
                reading.broke(error)
                break
            try:
                events = reading.take(data)
            finally:
                del data
            yield from events
        yield from reading.end()
        if drain is not None:
            _drain(pieces, drain, reading.clock)
    except BaseException as error:
        reading.abandon(error)
        raise
    finally:
        close()


async def _async_events(
    reading: ChatReading, pieces: AsyncIterator[Buffer], close: AsyncClose, drain: float | None
) -> AsyncGenerator[ChatEvent, None]:
    try:
        while reading.goes_on():
            try:
                data = await _next(pieces, reading.begin_read())
            except StopAsyncIteration:
                break
            except ReadTimedOut:
                reading.timed_out()
                break
            except Exception as error:  # every client has exceptions of its own
                reading.broke(error)
                break
            try:
                events = reading.take(data)
            finally:
                del data
            for event in events:
                yield event
        for event in reading.end():
            yield event
        if drain is not None:
            await _async_drain(pieces, drain, reading.clock)
    except BaseException as error:
        reading.abandon(error)
        raise
    finally:
        await close()


class _AsyncEvents(AsyncGenerator[ChatEvent, None]):
    """An async generator whose stream has its verdict as soon as nobody holds the iterator any more.

    A plain one is finished by its event loop some time after the consumer has left.
    """

    def __init__(
        self, reading: ChatReading, pieces: AsyncIterator[Buffer], close: AsyncClose, drain: float | None
    ) -> None:
        self._reading = reading
        self._close = close
        self._steps = _async_events(reading, pieces, close, drain)
        self._started = False

    # `async def`, so that the frame keeps this object alive while a step waits.
    async def __anext__(self) -> ChatEvent:
        self._started = True
        return await self._steps.__anext__()

    async def asend(self, value: None) -> ChatEvent:
        self._started = True
        return await self._steps.asend(value)

    async def athrow(self, kind: Any, value: Any = None, trace: TracebackType | None = None) -> ChatEvent:
        return await self._steps.athrow(kind if value is None else value)

    async def aclose(self) -> None:
        await self._steps.aclose()
        if not self._started:
            self._started = True
            self._reading.stream.close("cancelled")
            await self._close()

    def __del__(self) -> None:
        if self._started:
            self._reading.stream.close("cancelled")


async def _next(pieces: AsyncIterator[Buffer], seconds: float | None) -> Buffer:
    """The next piece; ReadTimedOut if the time was over before it came, StopAsyncIteration at the end."""
    if seconds is None:
        return await pieces.__anext__()
    from ._async_reads import next_within  # loads asyncio, which a program on another loop can do without

    return await next_within(pieces, seconds, ReadTimedOut)


def _drain(pieces: Iterator[Buffer], seconds: float, clock: Clock) -> None:
    most, end = _MOST_DRAINED_BYTES, clock() + seconds
    with suppress(Exception):  # the answer is in; nothing that happens now matters
        while most > 0 and clock() < end:
            most -= memoryview(next(pieces)).nbytes


async def _async_drain(pieces: AsyncIterator[Buffer], seconds: float, clock: Clock) -> None:
    most, end = _MOST_DRAINED_BYTES, clock() + seconds
    with suppress(Exception):  # as above
        while most > 0:
            most -= memoryview(await _next(pieces, max(0.0, end - clock()))).nbytes


def _close(pieces: object, source: object) -> None:
    for item in _distinct(pieces, source):
        close = getattr(item, "close", None)
        if callable(close):
            with suppress(Exception):  # a source that cannot even close has nothing to say about the answer
                close()


async def _aclose(pieces: object, source: object) -> None:
    for item in _distinct(pieces, source):
        close = getattr(item, "aclose", None) or getattr(item, "close", None)
        if callable(close):
            with suppress(Exception):  # as above
                result = close()
                if isawaitable(result):
                    await result


def _distinct(pieces: object, source: object) -> tuple[object, ...]:
    return (pieces,) if pieces is source else (pieces, source)


def _pieces(source: Any) -> Iterator[Buffer]:
    if isinstance(source, (bytes, bytearray, memoryview)):
        return iter((source,))
    read1: Callable[[int], bytes] | None = getattr(source, "read1", None)
    if callable(read1):
        # Not by lines, as such objects iterate: a line has no limit.
        return iter(lambda: read1(_PIECE_BYTES), b"")
    if isinstance(source, Iterable) and not isinstance(source, (str, dict)):
        return iter(source)
    hint = "; use the async twin" if isinstance(source, AsyncIterable) else ""
    raise MisuseError(f"source takes an iterable of bytes, not {type(source).__name__}{hint}")


def _async_pieces(source: object) -> AsyncIterator[Buffer]:
    if isinstance(source, AsyncIterable):
        return source.__aiter__()
    hint = "; use the twin without `a`" if isinstance(source, (Iterable, bytes)) else ""
    raise MisuseError(f"source takes an async iterable of bytes, not {type(source).__name__}{hint}")


def _checked(value: T | None, kind: type[T], name: str) -> T:
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise MisuseError(f"{name} takes a {kind.__name__} or None, not {type(value).__name__}")
    return value


def _checked_deadlines(deadlines: Deadlines | None) -> Deadlines:
    if deadlines is None:
        return _NO_DEADLINES
    if not isinstance(deadlines, Deadlines):
        raise MisuseError(f"deadlines takes a Deadlines or None, not {type(deadlines).__name__}")
    return deadlines


def _check_options(drain: float | None, on_error: OnError | None) -> None:
    check_seconds("drain", drain)
    if on_error is not None and not callable(on_error):
        raise MisuseError(f"on_error takes a callable or None, not {type(on_error).__name__}")
