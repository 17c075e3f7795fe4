"""Any iterable of bytes → events: where reading stops, what is closed, and which verdict is left."""

from __future__ import annotations

import asyncio
import gc
import io
import subprocess
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import aclosing, closing
from types import ModuleType
from typing import Any

import pytest

from glmsse import scenarios

TEXT = scenarios.SCENARIOS["text"].body
JSON = {"Content-Type": "application/json"}
HTML = {"Content-Type": "text/html"}
HEAD = {"Content-Type": "text/event-stream"}


class Source:
    """A sync and async source that knows how far it was read and whether it was closed."""

    def __init__(self, pieces: Iterable[Any], on_read: Callable[[], None] = lambda: None) -> None:
        self._pieces = iter(pieces)
        self._on_read = on_read
        self.reads = 0
        self.closed = 0

    def __iter__(self) -> Source:
        return self

    def __next__(self) -> Any:
        self.reads += 1
        self._on_read()
        piece = next(self._pieces)
        if isinstance(piece, BaseException):
            raise piece
        return piece

    def close(self) -> None:
        self.closed += 1


class AsyncSource(Source):
    __iter__ = None  # type: ignore[assignment]

    def __aiter__(self) -> AsyncSource:
        return self

    async def __anext__(self) -> Any:
        await asyncio.sleep(0)
        try:
            piece = super().__next__()
        except StopIteration:
            raise StopAsyncIteration from None
        if isinstance(piece, asyncio.Event):
            await piece.wait()
            return b""
        return piece

    async def aclose(self) -> None:
        await asyncio.sleep(0)
        self.closed += 1

    def close(self) -> None:
        raise AssertionError("aclose is there, so close is not asked")


def events_of(body: bytes) -> list[bytes]:
    return [block + b"\n\n" for block in body.split(b"\n\n") if block]


@pytest.fixture(params=["sync", "async"])
def way(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


def source_for(way: str, pieces: Iterable[Any], **options: Any) -> Any:
    return Source(pieces, **options) if way == "sync" else AsyncSource(pieces, **options)


def read_all(glmsse: ModuleType, way: str, source: Any, *args: Any, **options: Any) -> list[Any]:
    if way == "sync":
        return list(glmsse.iter_events(source, *args, **options))

    async def read() -> list[Any]:
        return [event async for event in glmsse.aiter_events(source, *args, **options)]

    return asyncio.run(read())


def collect_all(glmsse: ModuleType, way: str, source: Any, *args: Any, **options: Any) -> Any:
    if way == "sync":
        return glmsse.collect(source, *args, **options)
    return asyncio.run(glmsse.acollect(source, *args, **options))


# Where it stops


def test_events_are_those_of_the_stream_itself(glmsse: ModuleType, way: str) -> None:
    expected = glmsse.ChatStream().feed(TEXT)
    stream = glmsse.ChatStream()

    assert read_all(glmsse, way, source_for(way, [TEXT[:50], TEXT[50:]]), stream) == expected
    assert stream.verdict.accepted


def test_each_event_comes_with_the_read_that_completes_it(glmsse: ModuleType) -> None:
    source = Source(events_of(TEXT))
    reads = [source.reads for _ in glmsse.iter_events(source)]

    assert reads == [1, 2, 3, 4, 4, 5]  # three pieces of text, finish with usage, [DONE]


def test_each_async_event_comes_with_the_read_that_completes_it(glmsse: ModuleType) -> None:
    source = AsyncSource(events_of(TEXT))

    async def read() -> list[int]:
        return [source.reads async for _ in glmsse.aiter_events(source)]

    assert asyncio.run(read()) == [1, 2, 3, 4, 4, 5]


def test_nothing_is_read_before_it_is_asked_for(glmsse: ModuleType) -> None:
    source = Source(events_of(TEXT))
    events = glmsse.iter_events(source)

    assert source.reads == 0
    next(events)
    assert source.reads == 1


def test_done_ends_the_reading_though_the_body_stays_open(glmsse: ModuleType, way: str) -> None:
    source = source_for(way, [TEXT, AssertionError("nothing is read after [DONE]")])

    events = read_all(glmsse, way, source)

    assert events[-1] == glmsse.Done()
    assert (source.reads, source.closed) == (1, 1)


def test_a_failure_ends_the_reading(glmsse: ModuleType, way: str) -> None:
    stream = glmsse.ChatStream()
    source = source_for(way, [events_of(TEXT)[0], b"data: {\n\n", AssertionError("nothing is read after a fault")])

    events = read_all(glmsse, way, source, stream)

    assert [event.type for event in events] == ["content.delta", "failed"]
    assert stream.verdict.code == "bad_json"
    assert source.closed == 1


def test_a_body_that_ends_early_shows_without_a_verdict(glmsse: ModuleType, way: str) -> None:
    stream = glmsse.ChatStream()

    events = read_all(glmsse, way, source_for(way, events_of(TEXT)[:2]), stream)

    assert [event.type for event in events] == ["content.delta", "content.delta", "failed"]
    assert events[-1].error == stream.verdict.error
    assert stream.verdict.code == "incomplete_stream"


def test_an_early_end_that_is_tolerated_is_no_failure(glmsse: ModuleType, way: str) -> None:
    stream = glmsse.ChatStream(allow=["done_optional"])

    events = read_all(glmsse, way, source_for(way, events_of(TEXT)[:-1]), stream)

    assert events[-1].type == "finish"
    assert stream.verdict.tolerated == ("done_optional",)


def test_empty_pieces_are_not_the_end(glmsse: ModuleType, way: str) -> None:
    _, verdict = collect_all(glmsse, way, source_for(way, [b"", TEXT[:9], b"", TEXT[9:]]))

    assert verdict.accepted


def test_a_stream_with_a_verdict_reads_nothing_more(glmsse: ModuleType, way: str) -> None:
    stream = glmsse.ChatStream()
    stream.feed(TEXT)
    source = source_for(way, [b"data: {\n\n"])

    assert read_all(glmsse, way, source, stream) == []
    assert (source.reads, source.closed) == (0, 1)


@pytest.mark.parametrize("name", ["truncated", "no_usage", "provider_error", "length", "event_too_large"])
def test_collect_gives_the_verdict_that_feeding_gives(glmsse: ModuleType, way: str, name: str) -> None:
    scenario = scenarios.SCENARIOS[name]
    limits = glmsse.Limits(max_event_bytes=scenario.limits.max_event_bytes)
    fed = glmsse.ChatStream(limits=limits)
    fed.feed(scenario.body)

    completion, verdict = collect_all(
        glmsse, way, source_for(way, scenarios.uneven_pieces(scenario.body)), glmsse.ChatStream(limits=limits)
    )

    assert verdict.to_dict() == fed.close().to_dict()
    assert completion == fed.snapshot


def test_collect_gives_the_whole_answer(glmsse: ModuleType, way: str) -> None:
    completion, verdict = collect_all(glmsse, way, source_for(way, events_of(TEXT)))

    assert verdict.accepted
    assert completion.choices[0].content == "Ready when you are."


# A refused response


def test_the_body_of_a_refused_response_is_read_for_its_code(glmsse: ModuleType, way: str) -> None:
    stream = glmsse.ChatStream()
    stream.start(429, {"Content-Type": "application/json", "Retry-After": "7"})
    body = b'{"error":{"code":"1113","message":"no money"}}'

    events = read_all(glmsse, way, source_for(way, [body[:9], body[9:]]), stream)

    assert [event.type for event in events] == ["failed"]
    assert (stream.verdict.code, stream.verdict.category, stream.verdict.retry_after) == ("http_status", "balance", 7)


def test_of_a_refused_response_not_more_is_read_than_is_judged(glmsse: ModuleType, way: str) -> None:
    stream = glmsse.ChatStream()
    stream.start(500, HEAD)
    source = source_for(way, [b"x" * 32768] * 2 + [AssertionError("64 KiB are enough")])

    read_all(glmsse, way, source, stream)

    assert stream.verdict.code == "http_status"
    assert source.closed == 1


def test_check_response_lets_an_event_stream_pass(glmsse: ModuleType) -> None:
    assert glmsse.check_response(200, {"content-type": "Text/Event-Stream;charset=UTF-8"}) is None


@pytest.mark.parametrize(
    ("status", "headers", "body", "code", "category", "replay"),
    [
        (401, JSON, b'{"error":{"code":"1001","message":"x"}}', "http_status", "auth", "pointless"),
        (429, JSON, b'{"error":{"code":"1302","message":"x"}}', "http_status", "rate", "safe"),
        (429, JSON, b'{"error":{"code":"1113","message":"x"}}', "http_status", "balance", "pointless"),
        (429, JSON, b'{"error":{"code":"1308","message":"x"}}', "http_status", "quota", "pointless"),
        (429, JSON, b'{"error":{"code":"1305","message":"x"}}', "http_status", "overload", "safe"),
        (429, JSON, b'{"code":1309,"message":"x"}', "http_status", "entitlement", "pointless"),
        (504, HTML, b"<html>gateway</html>", "http_status", "server", "ambiguous"),
        (200, HTML, b"<html>login</html>", "content_type", "unknown", "ambiguous"),
        (200, JSON, b'{"error":{"code":"1261"}}', "content_type", "context", "pointless"),
        (200, {}, b"", "content_type", "unknown", "ambiguous"),
        (200, {**HEAD, "Content-Encoding": "gzip"}, b"\x1f\x8b", "content_encoding", "unknown", "ambiguous"),
    ],
)  # fmt: skip
def test_check_response_refuses_what_is_no_event_stream(
    glmsse: ModuleType, status: int, headers: dict[str, str], body: bytes, code: str, category: str, replay: str
) -> None:
    verdict = glmsse.check_response(status, headers, body)

    assert verdict is not None
    assert not verdict
    assert (verdict.outcome, verdict.code, verdict.category, verdict.replay) == ("http_error", code, category, replay)


# Exceptions of the source


def test_a_broken_connection_is_a_verdict_not_an_exception(glmsse: ModuleType, way: str) -> None:
    stream = glmsse.ChatStream()
    seen: list[Exception] = []
    error = ConnectionResetError("peer")
    source = source_for(way, [TEXT[:60], error])

    events = read_all(glmsse, way, source, stream, on_error=seen.append)

    assert [event.type for event in events] == ["failed"]
    assert (stream.verdict.outcome, stream.verdict.code) == ("incomplete", "unterminated_event")
    assert seen == [error]
    assert source.closed == 1


def test_a_body_cut_by_an_error_is_no_clean_end(glmsse: ModuleType, way: str) -> None:
    stream = glmsse.ChatStream(profile="gateway")

    _, verdict = collect_all(glmsse, way, source_for(way, [*events_of(TEXT)[:-1], OSError()]), stream)

    assert verdict.code == "incomplete_stream"


def test_an_error_after_done_changes_nothing(glmsse: ModuleType, way: str) -> None:
    _, verdict = collect_all(glmsse, way, source_for(way, [TEXT, OSError()]), drain=5)

    assert verdict.accepted


def test_a_source_may_say_why_it_gave_up(glmsse: ModuleType, way: str) -> None:
    error = OSError()
    error.code = "deadline_total"  # type: ignore[attr-defined]

    _, verdict = collect_all(glmsse, way, source_for(way, [TEXT[:40], error]))

    assert verdict.code == "deadline_total"


def test_on_error_may_let_the_exception_through(glmsse: ModuleType, way: str) -> None:
    def let_through(error: Exception) -> None:
        raise error

    stream = glmsse.ChatStream()
    source = source_for(way, [TEXT[:60], ZeroDivisionError()])

    with pytest.raises(ZeroDivisionError):
        read_all(glmsse, way, source, stream, on_error=let_through)
    assert stream.verdict.code == "unterminated_event"
    assert source.closed == 1


def test_what_is_no_exception_passes_and_cancels(glmsse: ModuleType) -> None:
    class Stop(BaseException):
        pass

    stream = glmsse.ChatStream()
    source = Source([Stop()])

    with pytest.raises(Stop):
        glmsse.collect(source, stream)
    assert stream.verdict.code == "cancelled"
    assert source.closed == 1


@pytest.mark.parametrize("piece", ["text", 7, None])
def test_pieces_that_are_no_bytes_are_misuse(glmsse: ModuleType, way: str, piece: object) -> None:
    stream = glmsse.ChatStream()
    source = source_for(way, [piece])

    with pytest.raises(glmsse.MisuseError):
        read_all(glmsse, way, source, stream)
    assert stream.verdict.code == "empty_stream"
    assert source.closed == 1


def test_a_source_that_cannot_close_does_not_spoil_the_answer(glmsse: ModuleType) -> None:
    class Stubborn(Source):
        def close(self) -> None:
            raise OSError("cannot")

    assert glmsse.collect(Stubborn([TEXT]))[1].accepted


# Leaving early


def test_leaving_the_loop_closes_the_source_and_cancels(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    source = Source(events_of(TEXT))

    with closing(glmsse.iter_events(source, stream)) as events:
        for _ in events:
            break

    assert (stream.verdict.outcome, stream.verdict.code) == ("incomplete", "cancelled")
    assert (source.reads, source.closed) == (1, 1)


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="collected later elsewhere, as documented")
def test_leaving_the_loop_is_enough_on_cpython(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    source = Source(events_of(TEXT))

    for _ in glmsse.iter_events(source, stream):
        break

    assert stream.verdict.code == "cancelled"
    assert source.closed == 1


def test_an_exception_of_the_consumer_cancels(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    source = Source(events_of(TEXT))

    def consume() -> None:
        with closing(glmsse.iter_events(source, stream)) as events:
            for _ in events:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        consume()

    assert stream.verdict.code == "cancelled"
    assert source.closed == 1


def test_leaving_after_done_keeps_the_verdict(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    source = Source([TEXT])

    with closing(glmsse.iter_events(source, stream)) as events:
        for event in events:
            if event.type == "done":
                break

    assert stream.verdict.accepted
    assert source.closed == 1


def test_leaving_an_async_loop_closes_the_source_and_cancels(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    source = AsyncSource(events_of(TEXT))

    async def read() -> None:
        async with aclosing(glmsse.aiter_events(source, stream)) as events:
            async for _ in events:
                break
        assert stream.verdict.code == "cancelled"
        assert (source.reads, source.closed) == (1, 1)

    asyncio.run(read())


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="collected later elsewhere, as documented")
def test_the_verdict_is_there_as_soon_as_an_async_loop_is_left(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    source = AsyncSource(events_of(TEXT))

    async def read() -> None:
        async for _ in glmsse.aiter_events(source, stream):
            break
        assert stream.verdict.code == "cancelled"
        for _ in range(5):
            await asyncio.sleep(0)
        assert source.closed == 1

    asyncio.run(read())


def test_closing_an_async_iterator_that_never_began_closes_the_source(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    source = AsyncSource([])

    asyncio.run(glmsse.aiter_events(source, stream).aclose())

    assert stream.verdict.code == "cancelled"
    assert (source.reads, source.closed) == (0, 1)


def test_an_async_iterator_that_was_never_used_leaves_its_stream_alone(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()

    glmsse.aiter_events(AsyncSource([]), stream)
    gc.collect()

    assert stream.verdict is None


def test_cancelling_the_reading_task_closes_the_source(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()

    async def read() -> AsyncSource:
        source = AsyncSource([events_of(TEXT)[0], asyncio.Event()])
        task = asyncio.create_task(glmsse.acollect(source, stream))
        while source.reads < 2:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return source

    source = asyncio.run(read())

    assert stream.verdict.code == "cancelled"
    assert source.closed == 1


def test_cancelling_passes_through_a_read_with_a_deadline(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()

    async def read() -> None:
        source = AsyncSource([asyncio.Event()])
        task = asyncio.create_task(glmsse.acollect(source, stream, glmsse.Deadlines(idle=60)))
        while not source.reads:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(read())

    assert stream.verdict.code == "cancelled"


def test_an_async_iterator_is_an_async_generator(glmsse: ModuleType) -> None:
    async def read() -> None:
        stream = glmsse.ChatStream()
        events = glmsse.aiter_events(AsyncSource(events_of(TEXT)), stream)
        assert (await events.asend(None)).text == "Ready"
        with pytest.raises(ZeroDivisionError):
            await events.athrow(ZeroDivisionError())
        assert stream.verdict.code == "incomplete_stream"

    asyncio.run(read())


# Deadlines


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_comments_alone_run_out_as_idle(glmsse: ModuleType) -> None:
    clock = Clock()
    stream = glmsse.ChatStream()

    def comments() -> Iterator[bytes]:
        while True:
            clock.now += 4
            yield b": keep-alive\n\n"

    events = list(glmsse.iter_events(comments(), stream, glmsse.Deadlines(idle=10), clock=clock))

    assert [event.type for event in events] == ["failed"]
    assert stream.verdict.code == "deadline_idle"
    assert clock.now == 12


@pytest.mark.parametrize("options", [{}, {"deltas": False}, {"deltas": False, "collect": False}])
def test_pieces_are_progress_though_no_event_is_made_of_them(glmsse: ModuleType, options: dict[str, bool]) -> None:
    clock = Clock()

    def slow() -> Iterator[bytes]:
        for piece in events_of(TEXT):
            clock.now += 9
            yield piece

    _, verdict = glmsse.collect(slow(), glmsse.ChatStream(**options), glmsse.Deadlines(idle=10), clock=clock)

    assert verdict.accepted


def test_empty_deltas_are_no_progress(glmsse: ModuleType) -> None:
    clock = Clock()

    def empty() -> Iterator[bytes]:
        while True:
            clock.now += 4
            yield scenarios.frame(scenarios.text(""))

    _, verdict = glmsse.collect(empty(), None, glmsse.Deadlines(idle=10), clock=clock)

    assert verdict.code == "deadline_idle"


def test_a_slow_consumer_is_not_an_idle_peer(glmsse: ModuleType) -> None:
    clock = Clock()
    stream = glmsse.ChatStream()

    for _ in glmsse.iter_events(events_of(TEXT), stream, glmsse.Deadlines(idle=1), clock=clock):
        clock.now += 100

    assert stream.verdict.accepted


def test_the_total_ends_a_stream_that_makes_progress(glmsse: ModuleType) -> None:
    clock = Clock()
    stream = glmsse.ChatStream()

    for _ in glmsse.iter_events(events_of(TEXT), stream, glmsse.Deadlines(total=150), clock=clock):
        clock.now += 100

    assert stream.verdict.code == "deadline_total"


def test_an_async_read_is_broken_off_in_time(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()

    async def read() -> tuple[list[str], AsyncSource]:
        source = AsyncSource([events_of(TEXT)[0], asyncio.Event()])
        deadlines = glmsse.Deadlines(first_byte=20, idle=0.02, total=20)
        types = [event.type async for event in glmsse.aiter_events(source, stream, deadlines)]
        return types, source

    types, source = asyncio.run(asyncio.wait_for(read(), 10))

    assert types == ["content.delta", "failed"]
    assert stream.verdict.code == "deadline_idle"
    assert source.closed == 1


def test_silence_runs_out_as_first_byte(glmsse: ModuleType) -> None:
    async def read() -> Any:
        return await glmsse.acollect(AsyncSource([asyncio.Event()]), None, glmsse.Deadlines(first_byte=0.02, idle=9))

    assert asyncio.run(read())[1].code == "deadline_first_byte"


def test_async_comments_alone_run_out_as_idle(glmsse: ModuleType) -> None:
    async def comments() -> AsyncIterator[bytes]:
        while True:
            await asyncio.sleep(0.005)
            yield b": keep-alive\n\n"

    async def read() -> Any:
        return await asyncio.wait_for(glmsse.acollect(comments(), None, glmsse.Deadlines(idle=0.05)), 10)

    assert asyncio.run(read())[1].code == "deadline_idle"


def test_comments_that_never_wait_run_out_as_well(glmsse: ModuleType) -> None:
    clock = Clock()

    async def comments() -> AsyncIterator[bytes]:
        while True:
            clock.now += 1
            yield b": keep-alive\n\n"

    async def read() -> Any:
        return await glmsse.acollect(comments(), None, glmsse.Deadlines(idle=50), clock=clock)

    assert asyncio.run(read())[1].code == "deadline_idle"


def test_a_timeout_of_the_source_is_not_a_deadline_of_ours(glmsse: ModuleType) -> None:
    source = AsyncSource([events_of(TEXT)[0], TimeoutError(), asyncio.TimeoutError()])

    _, verdict = asyncio.run(glmsse.acollect(source, None, glmsse.Deadlines(idle=60)))

    assert verdict.code == "incomplete_stream"


def test_a_source_that_hides_our_cancellation_still_timed_out(glmsse: ModuleType) -> None:
    async def hiding() -> AsyncIterator[bytes]:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError("read failed") from None
        yield b""

    _, verdict = asyncio.run(glmsse.acollect(hiding(), None, glmsse.Deadlines(total=0.02)))

    assert verdict.code == "deadline_total"


def test_asyncio_is_not_imported_for_nothing(glmsse: ModuleType) -> None:
    script = "import sys, glmsse; assert 'asyncio' not in sys.modules, 'imported'"

    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0


# Draining


def test_drain_reads_on_to_the_end_of_the_body(glmsse: ModuleType, way: str) -> None:
    source = source_for(way, [TEXT, b": bye\n\n", b""])

    read_all(glmsse, way, source, drain=5)

    assert (source.reads, source.closed) == (4, 1)


def test_drain_has_a_limit_in_bytes(glmsse: ModuleType, way: str) -> None:
    source = source_for(way, [TEXT, b"x" * 65536, AssertionError("64 KiB are enough")])

    read_all(glmsse, way, source, drain=5)

    assert source.reads == 2


def test_drain_has_a_limit_in_time(glmsse: ModuleType) -> None:
    clock = Clock()

    def tick() -> None:
        clock.now += 3

    source = Source([TEXT] + [b"x"] * 9, on_read=tick)
    glmsse.collect(source, drain=5, clock=clock)

    assert source.reads == 3


def test_async_drain_breaks_off_a_read_that_waits(glmsse: ModuleType) -> None:
    async def read() -> AsyncSource:
        source = AsyncSource([TEXT, asyncio.Event()])
        await asyncio.wait_for(glmsse.acollect(source, drain=0.02), 10)
        return source

    assert asyncio.run(read()).closed == 1


# Kinds of sources


@pytest.mark.parametrize(
    "kind", [bytes, bytearray, memoryview, io.BytesIO, lambda body: [body], lambda body: iter([body])]
)
def test_sources_of_many_kinds(glmsse: ModuleType, kind: Callable[[bytes], Any]) -> None:
    assert glmsse.collect(kind(TEXT))[1].accepted


def test_a_file_is_read_in_pieces_not_in_lines(glmsse: ModuleType) -> None:
    class Pieces(io.BytesIO):
        def __next__(self) -> bytes:
            raise AssertionError("a line has no limit")

    source = Pieces(b"data: " + b"x" * 200_000)
    _, verdict = glmsse.collect(source, glmsse.ChatStream(limits=glmsse.Limits(max_event_bytes=1000)))

    assert verdict.code == "event_too_large"
    assert source.closed


@pytest.mark.parametrize("source", ["text", 7, None, {}, object()])
def test_what_is_no_source_is_misuse(glmsse: ModuleType, source: object) -> None:
    for adapter in (glmsse.iter_events, glmsse.aiter_events, glmsse.iter_sse, glmsse.aiter_sse, glmsse.collect):
        with pytest.raises(glmsse.MisuseError, match="source takes an"):
            adapter(source)


def test_the_wrong_twin_is_named(glmsse: ModuleType) -> None:
    with pytest.raises(glmsse.MisuseError, match="use the async twin"):
        glmsse.iter_events(AsyncSource([]))
    with pytest.raises(glmsse.MisuseError, match="use the twin without `a`"):
        glmsse.aiter_events([b""])


@pytest.mark.parametrize(
    "options",
    [{"stream": 1}, {"deadlines": 5}, {"drain": -1}, {"drain": True}, {"on_error": 1}],
)
def test_wrong_options_are_misuse_at_once(glmsse: ModuleType, options: dict[str, Any]) -> None:
    for adapter, source in ((glmsse.iter_events, Source([])), (glmsse.aiter_events, AsyncSource([]))):
        with pytest.raises(glmsse.MisuseError, match=f"{next(iter(options))} takes"):
            adapter(source, **options)


# Event streams of any kind


def read_sse(glmsse: ModuleType, way: str, source: Any, *args: Any, **options: Any) -> Iterator[Any]:
    if way == "sync":
        yield from glmsse.iter_sse(source, *args, **options)
        return
    loop = asyncio.new_event_loop()
    events = glmsse.aiter_sse(source, *args, **options)
    try:
        while True:
            try:
                yield loop.run_until_complete(events.__anext__())
            except StopAsyncIteration:
                return
    finally:
        loop.run_until_complete(events.aclose())
        loop.close()


def test_sse_events_of_the_whole_body(glmsse: ModuleType, way: str) -> None:
    source = source_for(way, [b"event: a\ndata: 1\n", b"\n: x\n\ndata: [DONE]\n\ndata: 2\n\n"])

    events = list(read_sse(glmsse, way, source))

    assert [(event.event, event.data) for event in events] == [("a", "1"), ("message", "[DONE]"), ("message", "2")]
    assert source.closed == 1


def test_sse_events_before_a_fault_come_first(glmsse: ModuleType, way: str) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_event_bytes=16))
    source = source_for(way, [b"data: 1\n\ndata: " + b"x" * 99])
    events = read_sse(glmsse, way, source, framer)

    assert next(events).data == "1"
    with pytest.raises(glmsse.LimitError, match="event_too_large"):
        next(events)
    assert source.closed == 1


def test_sse_that_ends_in_an_event_is_incomplete(glmsse: ModuleType, way: str) -> None:
    events = read_sse(glmsse, way, source_for(way, [b"data: 1\n\ndata: 2"]))

    assert next(events).data == "1"
    with pytest.raises(glmsse.IncompleteStream, match="unterminated_event"):
        next(events)


def test_sse_lets_the_exceptions_of_the_source_through(glmsse: ModuleType, way: str) -> None:
    source = source_for(way, [b"data: 1\n\n", ConnectionResetError()])
    events = read_sse(glmsse, way, source)

    assert next(events).data == "1"
    with pytest.raises(ConnectionResetError):
        next(events)
    assert source.closed == 1


def test_sse_deadlines_raise(glmsse: ModuleType, way: str) -> None:
    clock = Clock()

    def tick() -> None:
        clock.now += 4

    source = source_for(way, [b"data: 1\n\n"] + [b": x\n\n"] * 9, on_read=tick)
    events = read_sse(glmsse, way, source, None, glmsse.Deadlines(idle=10), clock=clock)

    assert next(events).data == "1"
    with pytest.raises(glmsse.IncompleteStream, match="deadline_idle"):
        next(events)
    assert source.reads == 4


def test_an_async_sse_read_is_broken_off_in_time(glmsse: ModuleType) -> None:
    async def read() -> None:
        async for _ in glmsse.aiter_sse(AsyncSource([asyncio.Event()]), None, glmsse.Deadlines(total=0.02)):
            pass

    with pytest.raises(glmsse.IncompleteStream, match="deadline_total"):
        asyncio.run(read())


def test_leaving_an_sse_loop_closes_the_source(glmsse: ModuleType, way: str) -> None:
    source = source_for(way, [b"data: 1\n\n", b"data: 2\n\n"])

    with closing(read_sse(glmsse, way, source)) as events:  # type: ignore[type-var]
        next(events)

    assert (source.reads, source.closed) == (1, 1)


def test_sse_refuses_pieces_that_are_no_bytes(glmsse: ModuleType, way: str) -> None:
    with pytest.raises(glmsse.MisuseError):
        list(read_sse(glmsse, way, source_for(way, ["text"])))


# What is shown


def frames_of(error: BaseException) -> str:
    """The traceback through the package, with the locals of each frame."""
    trace = traceback.TracebackException.from_exception(error, capture_locals=True)
    shown = [f"{frame.name} {frame.locals}" for frame in trace.stack if "test_adapters" not in frame.filename]
    assert shown
    return "\n".join(shown)


@pytest.mark.parametrize("piece", ["CANARY", b"data: ok\n\ndata: CANARY\xff\n\n"])
def test_no_traceback_holds_input(glmsse: ModuleType, piece: Any) -> None:
    adapters = [lambda: list(glmsse.iter_sse([piece])), lambda: list(read_sse(glmsse, "async", AsyncSource([piece])))]
    if isinstance(piece, str):
        adapters += [lambda: glmsse.collect([piece]), lambda: asyncio.run(glmsse.acollect(AsyncSource([piece])))]
    for adapter in adapters:
        with pytest.raises(glmsse.GlmsseError) as caught:
            adapter()
        assert "CANARY" not in frames_of(caught.value)
        assert "CANARY" not in repr(caught.value) + str(caught.value)
        assert caught.value.__cause__ is None
        assert caught.value.__context__ is None


def test_a_tail_that_a_profile_reads_makes_events(glmsse: ModuleType) -> None:
    body = TEXT[: TEXT.index(b"data: [DONE]") - 2]

    events = list(glmsse.iter_events([body], glmsse.ChatStream("gateway")))

    assert [event.type for event in events][-1] == "finish"
    assert events == glmsse.ChatStream("gateway").feed(body + b"\n\n")


def test_a_fault_in_a_tail_is_one_event(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream("gateway")

    events = list(glmsse.iter_events([b'data: {"choices": 5}'], stream))

    assert events == [glmsse.events.Failed(stream.close().error)]
