"""What of a sidecar stays when its recording is redacted: known fields, with numbers and known words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from . import protocol_words as protocol
from .lookalikes import Pseudonyms, words
from .recorder import KEPT_HEADERS
from .recording import digest_of
from .redact_payload import FINISH
from .sidecar import Sidecar

_DAY = r"[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT"
_CODING = r"(?:gzip|x-gzip|deflate|br|zstd|identity)"
_PLAIN_HEADERS = {
    "content-type": re.compile(r"(?:text|application)/[a-z0-9.+-]+(?:; ?charset=[a-z0-9-]+)?", re.IGNORECASE),
    "content-encoding": re.compile(rf"{_CODING}(?:, ?{_CODING})*", re.IGNORECASE),
    "content-length": re.compile(r"\d+"),
    "retry-after": re.compile(rf"\d+|{_DAY}"),
    "date": re.compile(_DAY),
}
"""Of values that stay; all others become pseudonyms."""

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_PROGRAM = re.compile(r"glmsse(?: gate --init| \d[0-9a-z.+]*)?")
_CLASS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\.[A-Za-z_][A-Za-z0-9_]*)*")


class SidecarRedaction:
    """Redacts one sidecar. `stays` says of a text whether the body keeps it."""

    def __init__(self, pseudonyms: Pseudonyms, stays: Callable[[str], bool]) -> None:
        self._pseudonyms = pseudonyms
        self._stays = stays
        self.kept_words: set[str] = set()

    def result(self, sidecar: Sidecar, body: bytes) -> Sidecar:
        """What may be shown; it belongs to `body`."""
        terminal, reading = sidecar.terminal, sidecar.reading
        return replace(
            sidecar,
            bytes=len(body),
            sha256=digest_of(body),
            stream_digest=None,
            recorded_at=self._fitting(_MOMENT, sidecar.recorded_at),
            recorded_by=self._fitting(_PROGRAM, sidecar.recorded_by),
            model=sidecar.model and self._kept(sidecar.model),
            route=sidecar.route and self._path(sidecar.route),
            request_template=sidecar.request_template and self._pseudonyms(sidecar.request_template),
            headers={
                name: self._header(name, value) for name, value in sidecar.headers.items() if name in KEPT_HEADERS
            },
            terminal=replace(
                terminal,
                end=terminal.end and self._kept(terminal.end),
                finish_reason=self._reason(terminal.finish_reason),
                code=self._known(terminal.code),
                error_class=self._fitting(_CLASS, terminal.error_class),
            ),
            usage=None if sidecar.usage is None else self._fields(sidecar.usage),
            verdict=None if sidecar.verdict is None else self._fields(sidecar.verdict),
            reading=replace(reading, tools=None if reading.tools is None else tuple(map(self._name, reading.tools))),
            redacted=True,
        )

    def _kept(self, text: str) -> str:
        self.kept_words.update(words(text))
        return text

    def _fitting(self, pattern: re.Pattern[str], text: str | None) -> str | None:
        return self._kept(text) if text is not None and pattern.fullmatch(text) else None

    def _header(self, name: str, value: str) -> str:
        plain = _PLAIN_HEADERS.get(name)
        return self._kept(value) if plain is not None and plain.fullmatch(value) else self._pseudonyms(value)

    def _path(self, route: str) -> str:
        return "/".join(
            self._kept(step) if step in protocol.PATHS else self._pseudonyms(step) for step in route.split("/")
        )

    def _name(self, text: str) -> str:
        return self._kept(text) if self._stays(text) else self._pseudonyms(text)

    def _reason(self, reason: str | None) -> str | None:
        if reason is None:
            return None
        return self._kept(reason) if FINISH.fullmatch(reason) else self._pseudonyms(reason)

    def _known(self, word: str | None) -> str | None:
        """A word of verdicts; None for any other text."""
        if word is None:
            return None
        reason = word.removeprefix("finish_")
        is_known = word in protocol.VERDICT_WORDS or (reason != word and FINISH.fullmatch(reason))
        return self._kept(word) if is_known else None

    def _fields(self, document: dict[str, Any]) -> dict[str, Any]:
        """The known fields of a verdict, of what is in it, or of a usage."""
        return {name: self._value(name, value) for name, value in document.items() if name in protocol.VERDICT_FIELDS}

    def _value(self, name: str, value: object) -> object:
        if isinstance(value, dict):
            return self._fields(value)
        if isinstance(value, (list, tuple)):
            return [self._value(name, item) for item in value]
        if not isinstance(value, str):
            return value
        if name == "request_id":
            return self._pseudonyms(value)
        if name == "provider_code":  # which the body may have as a number
            return value if value.isdecimal() else self._name(value)
        return self._reason(value) if name == "finish_reason" else self._known(value)


def texts(sidecar: Sidecar, *, keys: bool = False) -> Iterator[str]:
    """Everything in it that could be anybody's text, `keys` of its objects too."""
    document = sidecar.to_dict() | {"schema": None, "sha256": None, "reading": sidecar.reading.tools}
    yield from _texts(document, keys)


def _texts(value: object, keys: bool) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        if keys:
            yield from value
        for item in value.values():
            yield from _texts(item, keys)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item, keys)
