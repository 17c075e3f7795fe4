"""Makes a recording of a response while somebody else reads it. No I/O and no clock: both are handed in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from .._version import __version__
from ..errors import MisuseError
from ..response import Headers, header_values
from ..verdict import Verdict
from .recording import Recording, digest_of, stream_for
from .sidecar import LONGEST_SECONDS, Reading, Sidecar, Terminal

KEPT_HEADERS = frozenset(
    (
        "content-type",
        "content-encoding",
        "content-length",
        "date",
        "retry-after",
        *("request-id", "x-request-id", "x-log-id", "x-trace-id", "traceparent", "cf-ray"),
        *(f"x-ratelimit-{what}-{unit}" for what in ("limit", "remaining", "reset") for unit in ("requests", "tokens")),
    )
)
"""All others are left out: they may carry keys and cookies."""

_LONGEST_VALUE = 256
_LONGEST_NAME = 128
_UNPRINTABLE = re.compile(r"[^\x20-\x7e]")


class Recorder:
    """One response: `start` if its head is known, `piece` for each read, `finish` once.

    model, request_template, retries   as in Sidecar
    route        the endpoint's URL or path; only the path is kept
    reading      how the body is read for the verdict
    recorded_at  date and time in ISO 8601
    recorded_by  the program
    secrets      texts that are overwritten wherever the response has them; keys are never kept
    max_bytes    of the body; a longer one is given up, and `finish` returns None
    """

    def __init__(
        self,
        *,
        model: str | None = None,
        route: str | None = None,
        request_template: str | None = None,
        retries: int = 0,
        reading: Reading | None = None,
        recorded_at: str | None = None,
        recorded_by: str = f"glmsse {__version__}",
        secrets: Iterable[str] = (),
        max_bytes: int | None = None,
    ) -> None:
        if type(retries) is not int or retries < 0:
            raise MisuseError("retries takes an int from 0 up")
        self._secrets = tuple(secret for secret in secrets if secret)
        self._model = self._name(model)
        self._route = None if route is None else self._name(urlsplit(route).path)
        self._template = self._name(request_template)
        self._retries = retries
        self._reading = reading or Reading()
        self._recorded_at = self._name(recorded_at)
        self._recorded_by = self._name(recorded_by)
        self._max_bytes = max_bytes
        self._status: int | None = None
        self._headers: dict[str, str] = {}
        self._body = bytearray()
        self._chunks: list[tuple[float, int]] = []
        self.overflowed = False
        """The body was longer than `max_bytes`."""
        self.found_secret = False
        """A secret was overwritten; known after `finish`."""

    @property
    def is_empty(self) -> bool:
        """Neither a head nor a byte came."""
        return self._status is None and not self._body

    def start(self, status: int, headers: Headers) -> None:
        """The response's head, of which the headers in KEPT_HEADERS are kept."""
        values = header_values(headers)
        self._status = status
        self._headers = {
            name: self._without_secrets(_UNPRINTABLE.sub("?", ", ".join(values[name])))[:_LONGEST_VALUE]
            for name in sorted(KEPT_HEADERS & values.keys())
        }

    def piece(self, data: bytes, seconds: float) -> None:
        """What one read brought, and the seconds since the request was sent."""
        if not data or self.overflowed:
            return
        if self._max_bytes is not None and len(self._body) + len(data) > self._max_bytes:
            self.overflowed = True
            self._body.clear()
            self._chunks.clear()
            return
        before = self._chunks[-1][0] if self._chunks else 0.0
        self._chunks.append((min(LONGEST_SECONDS, max(before, round(seconds, 6))), len(data)))
        self._body += data

    def finish(self, verdict: Verdict, *, error_class: str | None = None) -> Recording | None:
        """The recording; None if the body was too long. `error_class` names the exception that broke it off."""
        if self.overflowed:
            return None
        body = bytes(self._body)
        for secret in self._secrets:
            hidden = secret.encode()
            self.found_secret |= hidden in body
            body = body.replace(hidden, b"*" * len(hidden))
        recording = Recording(body, Sidecar(chunks=tuple(self._chunks)))
        first_event, first_content = _first_times(recording, self._reading)
        terminal = Terminal.of(verdict, self._name(error_class))
        fields: dict[str, Any] = {
            name: self._without_secrets(value) if isinstance(value, str) else value
            for name, value in verdict.to_dict().items()
        }
        return Recording(
            body,
            Sidecar(
                bytes=len(body),
                sha256=digest_of(body),
                stream_digest=verdict.digest,
                recorded_at=self._recorded_at,
                recorded_by=self._recorded_by,
                model=self._model,
                route=self._route,
                request_template=self._template,
                status=self._status,
                headers=self._headers,
                chunks=tuple(self._chunks),
                first_event_seconds=first_event,
                first_content_seconds=first_content,
                terminal=replace(terminal, finish_reason=self._name(verdict.finish_reason)),
                usage=fields["usage"],
                retries=self._retries,
                verdict=fields,
                reading=self._reading,
            ),
        )

    def _name(self, text: str | None) -> str | None:
        return None if text is None else self._without_secrets(_UNPRINTABLE.sub("?", text))[:_LONGEST_NAME]

    def _without_secrets(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, "*" * len(secret))
        return text


def _first_times(recording: Recording, reading: Reading) -> tuple[float | None, float | None]:
    """When the first event and the first piece of text or call were whole. Reads no further than that."""
    stream = stream_for(reading, deltas=False, collect=False)
    first_event: float | None = None
    for seconds, piece in recording.timed_pieces():
        stream.feed(piece)
        if first_event is None and stream.events_seen:
            first_event = seconds
        if stream.pieces_seen:
            return first_event, seconds
        if stream.verdict is not None:
            break
    return first_event, None
