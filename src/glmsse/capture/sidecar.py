"""What is known of a recorded body, as the JSON document beside it. No I/O.

`SCHEMA` is that document's JSON Schema; `Sidecar` is the document as a value.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import CLOSE_CODES
from ..verdict import Verdict
from .schema import Schema, first_misfit

NAME = "glmsse.recording"
VERSION = 1
LONGEST_SECONDS = 86400 * 7

ENDS = ("done", "end", "error", "refused", "fault", *sorted(CLOSE_CODES))
"""How a response ended: by the sentinel; by itself without one; by a broken connection; refused for its head; given up
at a fault; given up by the reader, for the code that it closed with."""

_WORD = {"type": ["string", "null"], "maxLength": 256}
_COUNT = {"type": ["integer", "null"], "minimum": 0}
_SECONDS = {"type": ["number", "null"], "minimum": 0, "maximum": LONGEST_SECONDS}
_NAMES = {"type": "array", "items": {"type": "string", "maxLength": 64}, "maxItems": 64}


def _object(properties: Schema, *, required: tuple[str, ...] = (), **more: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required), **more}


READING_SCHEMA: Schema = _object(
    {
        "profile": {"type": "string", "maxLength": 64},
        "allow": _NAMES,
        "deny": _NAMES,
        "choices": {"type": "integer", "minimum": 1},
        "tools": {"type": ["array", "null"], "items": {"type": "string", "maxLength": 256}, "maxItems": 1024},
        "content_markup": {"enum": ["none", "glm"]},
        "limits": {"type": "object", "additionalProperties": {"type": ["integer", "null"], "minimum": 1}},
    }
)

SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Sidecar of a recorded stream",
    **_object(
        {
            "schema": {"const": NAME},
            "version": {"const": VERSION},
            "bytes": {"type": "integer", "minimum": 0},
            "sha256": {"type": "string", "maxLength": 64},
            "stream_digest": _WORD,
            "recorded_at": _WORD,
            "recorded_by": _WORD,
            "model": _WORD,
            "route": _WORD,
            "request_template": _WORD,
            "status": {"type": ["integer", "null"], "minimum": 100, "maximum": 999},
            "headers": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 1024}},
            "chunks": {
                "type": "array",
                "items": {"type": "array", "items": {"type": "number", "minimum": 0}, "minItems": 2, "maxItems": 2},
            },
            "first_event_seconds": _SECONDS,
            "first_content_seconds": _SECONDS,
            "terminal": _object(
                {
                    "end": {"enum": [*ENDS, None]},
                    "finish_reason": _WORD,
                    "code": _WORD,
                    "error_class": _WORD,
                }
            ),
            "usage": {"type": ["object", "null"]},
            "retries": {"type": "integer", "minimum": 0},
            "verdict": {"type": ["object", "null"]},
            "reading": READING_SCHEMA,
            "redacted": {"type": "boolean"},
        },
        required=("schema", "version", "bytes", "sha256"),
    ),
}
"""Further fields are allowed and ignored; a change of meaning is a new version."""


class UnfitSidecar(ValueError):
    """The document is no sidecar, or of a version that is not known; the message has none of its text."""


@dataclass(frozen=True, slots=True)
class Terminal:
    """How the response ended: one of ENDS, with the finish reason, the verdict's code, and the class of the client's
    exception if one broke it off."""

    end: str | None = None
    finish_reason: str | None = None
    code: str | None = None
    error_class: str | None = None

    @classmethod
    def of(cls, verdict: Verdict, error_class: str | None = None) -> Terminal:
        """What the verdict shows; `error_class` only where an exception ended the reading."""
        end = next((end for end, is_so in _evidence(verdict, error_class) if is_so), "end")
        return cls(end, verdict.finish_reason, verdict.code, error_class)

    def ending(self) -> str | BaseException | None:
        """What a ChatStream is closed with for the body to end as it did."""
        if self.end == "error":
            return ConnectionError()
        return self.end if self.end in CLOSE_CODES else None


def _evidence(verdict: Verdict, error_class: str | None) -> tuple[tuple[str, bool], ...]:
    code = verdict.code or ""
    return (
        ("done", verdict.done),
        (code, code in CLOSE_CODES),
        ("refused", verdict.stage == "before_sse"),
        ("fault", verdict.stage in ("event_decoding", "provider")),
        ("error", error_class is not None),
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """How the body was read for the verdict: the options of the ChatStream.

    tools            names of those that were offered, None if nothing was said
    content_markup   glm: content is raw model text
    limits           only those that are not the defaults
    """

    profile: str = "zai"
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    choices: int = 1
    tools: tuple[str, ...] | None = None
    content_markup: str = "none"
    limits: dict[str, int | None] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> Reading:
        """The value of a document that fits READING_SCHEMA."""
        known: dict[str, Any] = {name: fields[name] for name in cls.__slots__ if name in fields}
        known = {name: tuple(value) if isinstance(value, list) else value for name, value in known.items()}
        return cls(**known)

    def to_dict(self) -> dict[str, Any]:
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sidecar:
    """What is known of a recorded body; None and empty are "not known".

    bytes, sha256    the body's size and digest; None where there is no sidecar file
    stream_digest    the verdict's digest over the events, if one was asked for
    recorded_at      date and time, ISO 8601
    recorded_by      program and version
    route            the endpoint's path, never a host, a query or a key
    request_template the version of whatever the caller made the request from
    headers          of the response, only those of `recorder.KEPT_HEADERS`
    chunks           seconds since the request was sent, and size, of each read
    first_event_seconds, first_content_seconds   when the first event, and the first piece of text or call, was whole
    usage            as the verdict has it
    retries          requests sent before this one
    verdict          the application's, as `Verdict.to_dict()`
    redacted         text and ids are made up
    """

    bytes: int | None = None
    sha256: str | None = None
    stream_digest: str | None = None
    recorded_at: str | None = None
    recorded_by: str | None = None
    model: str | None = None
    route: str | None = None
    request_template: str | None = None
    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    chunks: tuple[tuple[float, int], ...] = ()
    first_event_seconds: float | None = None
    first_content_seconds: float | None = None
    terminal: Terminal = field(default_factory=Terminal)
    usage: dict[str, Any] | None = None
    retries: int = 0
    verdict: dict[str, Any] | None = None
    reading: Reading = field(default_factory=Reading)
    redacted: bool = False

    @classmethod
    def from_dict(cls, document: object) -> Sidecar:
        """The value of a document; UnfitSidecar, with the first thing that is wrong."""
        problem = _problem(document)
        if problem is not None:
            raise UnfitSidecar(problem)
        assert isinstance(document, dict)
        fields: dict[str, Any] = {name: document[name] for name in cls.__slots__ if name in document}
        terminal = fields.get("terminal", {})
        fields["chunks"] = tuple((seconds, size) for seconds, size in fields.get("chunks", ()))
        fields["terminal"] = Terminal(**{name: terminal.get(name) for name in Terminal.__slots__})
        fields["reading"] = Reading.from_dict(fields.get("reading", {}))
        return cls(**fields)

    def to_dict(self) -> dict[str, Any]:
        """The document, which fits SCHEMA for the sidecar of a recording."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return {
            "schema": NAME,
            "version": VERSION,
            **fields,
            "chunks": [list(chunk) for chunk in self.chunks],
            "terminal": asdict(self.terminal),
            "reading": self.reading.to_dict(),
        }


def _problem(document: object) -> str | None:
    if not isinstance(document, dict) or document.get("schema") != NAME:
        return "it is no sidecar of a recording"
    version = document.get("version")
    if type(version) is int and version != VERSION:
        return f"it has version {version}, and this glmsse reads version {VERSION} only"
    misfit = first_misfit(document, SCHEMA)
    if misfit is not None:
        return misfit
    before = 0.0
    for seconds, size in document.get("chunks", ()):
        if not isinstance(size, int) or size < 1:
            return "chunks has a size that is no positive integer"
        if seconds < before or seconds > LONGEST_SECONDS:
            return "chunks has times that run backwards or too far"
        before = seconds
    if sum(size for _, size in document.get("chunks", ())) not in (0, document["bytes"]):
        return "chunks does not add up to the body's bytes"
    return None
