"""The answers of a proxy on disk: bounded in number, in size and in memory, and written beside the event loop."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any
from uuid import uuid4

from ..capture import Reading, Recorder
from ..capture.recording import reading_limits
from ..capture.tape import now
from ..verdict import Verdict
from .requests import KEY_HEADERS, RawHeaders
from .settings import Settings

MOST_AT_ONCE = 32
LOOK_AGAIN_SECONDS = 60
"""Answers recorded at the same time: each is held in memory until it is written."""

_PATH = "/chat/completions"


class Recordings:
    """Hands out a recorder an answer, as long as there is room, and writes what it recorded."""

    def __init__(self, settings: Settings, log: Callable[[dict[str, Any]], None]) -> None:
        self._settings = settings
        self._log = log
        self._directory = None if settings.record is None else Path(settings.record)
        self._room = BoundedSemaphore(MOST_AT_ONCE)
        self._full_until: float | None = None
        self._writer = ThreadPoolExecutor(1, "glmsse-recordings") if self._directory else None

    def recorder(self, headers: RawHeaders, request: dict[str, Any], choices: int) -> Recorder | None:
        """For one answer; None if it is not to be recorded. `headers` are those that go upstream."""
        if self._writer is None or self._is_full() or not self._room.acquire(blocking=False):
            return None
        settings = self._settings
        model = request.get("model")
        return Recorder(
            model=model if isinstance(model, str) else None,
            route=settings.upstream.rstrip("/") + _PATH,
            reading=Reading(
                profile=settings.profile,
                allow=settings.allow,
                deny=settings.deny,
                choices=choices,
                content_markup=settings.content_markup,
                limits=reading_limits(settings.limits),
            ),
            recorded_at=now(),
            secrets=_secrets(settings, headers),
            max_bytes=settings.max_record_bytes,
        )

    def keep(self, recorder: Recorder, verdict: Verdict, error_class: str | None) -> None:
        """Write it soon; a proxy never waits for a disk."""
        if self._writer is None or recorder.is_empty:
            self.drop()
            return
        try:
            self._writer.submit(self._write, recorder, verdict, error_class)
        except RuntimeError:  # of an answer that outlived the drain
            self.drop()
            self._log({"event": "recording_failed", "error": "closed"})

    def drop(self) -> None:
        """The recorder that was handed out is done with."""
        self._room.release()

    def close(self) -> None:
        """Write what is waiting."""
        if self._writer is not None:
            self._writer.shutdown()

    def _write(self, recorder: Recorder, verdict: Verdict, error_class: str | None) -> None:
        assert self._directory is not None
        try:
            if self._count() >= self._settings.max_recordings:
                if self._full_until is None:
                    self._log({"event": "recordings_full", "recordings": self._settings.max_recordings})
                self._full_until = time.monotonic() + LOOK_AGAIN_SECONDS
                return
            self._full_until = None
            recording = recorder.finish(verdict, error_class=error_class)
            if recording is not None:
                recording.write(self._directory / _name())
        except Exception as problem:  # a full disk is no reason to stop answering
            self._log({"event": "recording_failed", "error": type(problem).__name__})
        finally:
            self.drop()

    def _is_full(self) -> bool:
        """What was full a while ago may have been emptied since: the next answer finds out."""
        return self._full_until is not None and time.monotonic() < self._full_until

    def _count(self) -> int:
        assert self._directory is not None
        with os.scandir(self._directory) as entries:
            return sum(entry.name.endswith(".sse") for entry in entries)


def _name() -> str:
    """Of its own for every answer, and in the order of time; nothing of it comes from a request."""
    return f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{uuid4().hex[:16]}.sse"


def _secrets(settings: Settings, headers: RawHeaders) -> list[str]:
    sent = [value.decode("latin-1").removeprefix("Bearer ") for name, value in headers if name in KEY_HEADERS]
    return [secret for secret in (*sent, settings.key, settings.client_key) if secret]
