"""Records a response while an adapter reads it: the bytes pass through, and the files are written at the end."""

from __future__ import annotations

import os
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from ..chat import ChatStream
from ..events import ChatEvent
from ..response import Headers
from .recorder import Recorder
from .recording import Recording, stream_for
from .sidecar import Reading

if TYPE_CHECKING:
    from typing_extensions import Buffer


class Tape:
    """What `record` hands out.

    stream     the ChatStream to read with: hand it to `iter_events` and its twins
    recording  what was written, once the block is left
    """

    def __init__(self, recorder: Recorder, stream: ChatStream, clock: Callable[[], float]) -> None:
        self.stream = stream
        self.recording: Recording | None = None
        self._recorder = recorder
        self._clock = clock
        self._began = clock()
        self._broke: str | None = None
        self._ended = False

    def start(self, status: int, headers: Headers) -> list[ChatEvent]:
        """The response's head; returns what `ChatStream.start` does."""
        events = self.stream.start(status, headers)
        self._recorder.start(status, headers)
        return events

    def tee(self, source: Iterable[Buffer]) -> Iterator[bytes]:
        """The same pieces, as bytes."""
        try:
            for data in source:
                yield self._kept(data)
            self._ended = True
        except Exception as error:
            self._broke = type(error).__name__
            raise
        finally:
            close = getattr(source, "close", None)
            if callable(close):
                close()

    async def atee(self, source: AsyncIterable[Buffer]) -> AsyncIterator[bytes]:
        """`tee` for an async source."""
        try:
            async for data in source:
                yield self._kept(data)
            self._ended = True
        except Exception as error:
            self._broke = type(error).__name__
            raise
        finally:
            close = getattr(source, "aclose", None)
            if close is not None:
                await close()

    def finish(self, error: BaseException | None = None) -> Recording | None:
        """The recording; a stream without a verdict gets one."""
        left_early: BaseException | str | None = error or (None if self._ended else "cancelled")
        verdict = self.stream.close(left_early)
        self.recording = self._recorder.finish(verdict, error_class=self._broke)
        return self.recording

    def _kept(self, data: Buffer) -> bytes:
        piece = bytes(data)
        self._recorder.piece(piece, self._clock() - self._began)
        return piece


@contextmanager
def record(
    path: str | os.PathLike[str],
    reading: Reading | None = None,
    *,
    stream: ChatStream | None = None,
    model: str | None = None,
    route: str | None = None,
    request_template: str | None = None,
    retries: int = 0,
    secrets: Iterable[str] = (),
    max_bytes: int | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Generator[Tape, None, None]:
    """Record one response, from here, where its clock starts, to the end of the block, where `path` and its sidecar are
    written. Enter it before the request is sent.

    with record("answer.sse", model="glm-5.2") as tape, client.stream("POST", URL, json=BODY) as response:
        tape.start(response.status_code, response.headers)
        for event in iter_events(tape.tee(response.iter_bytes()), tape.stream):
            ...

    The other arguments are those of Recorder; `stream` is the caller's own, which `reading` then has to describe. A
    response of which neither a head nor a byte came, and a body beyond `max_bytes`, are not written. What has come is
    written too when the block is left by an exception.
    """
    reading = reading or Reading()
    recorder = Recorder(
        model=model,
        route=route,
        request_template=request_template,
        retries=retries,
        reading=reading,
        recorded_at=now(),
        secrets=secrets,
        max_bytes=max_bytes,
    )
    tape = Tape(recorder, stream_for(reading) if stream is None else stream, clock)
    problem: BaseException | None = None
    try:
        yield tape
    except BaseException as error:
        problem = error
        raise
    finally:
        recording = tape.finish(problem)
        if recording is not None and not recorder.is_empty:
            recording.write(path)


def now() -> str:
    """Date and time as sidecars have them."""
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
