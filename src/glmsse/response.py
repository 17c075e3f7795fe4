"""The response before its stream: status, then media type, then content coding; and the body of a refused one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Protocol, Union

from .errors import GlmsseError, MisuseError, fault
from .limits import DEFAULT_LIMITS
from .profiles import Policy
from .provider import ProviderReport, read_report, safe_word
from .strict_json import JSONFault, StrictDecoder

MOST_BODY_BYTES = 64 * 1024
"""As much of a refused response's body is read for its error code."""


class HeaderItems(Protocol):
    """What mappings have, and the message of a urllib response, which is none."""

    def items(self) -> Iterable[tuple[str, str]]: ...


Headers = Union[HeaderItems, Iterable[tuple[Union[str, bytes], Union[str, bytes]]]]
"""Anything with `items()` (any letter case), or pairs of str or bytes as servers and clients keep them."""

_MEDIA_TYPE = "text/event-stream"


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """What matters of a response's status line and headers."""

    status: int
    media_types: tuple[str, ...]
    codings: tuple[str, ...]
    retry_after: int | None
    request_id: str | None

    def fault(self, policy: Policy) -> GlmsseError | None:
        """The ResponseError if no event stream may be read from this response."""
        code = self._fault_code(policy)
        return None if code is None else fault(code, status=self.status)

    def _fault_code(self, policy: Policy) -> str | None:
        if self.status != 200:
            return "http_status"
        if not self.media_types and not policy.use("content_type_optional"):
            return "content_type"
        if any(media_type != _MEDIA_TYPE for media_type in self.media_types):
            return "content_type"
        if any(coding not in ("", "identity") for coding in self.codings):
            return "content_encoding"
        return None

    def report(self, body: bytes) -> ProviderReport:
        """What a refused response's body says: a business code by the provider's table, else the status decides."""
        status = None if self.status == 200 else self.status
        report = read_report(_object_in(body), status)
        return report if report.request_id else replace(report, request_id=self.request_id)


def read_head(status: int, headers: Headers) -> ResponseHead:
    """The head of a response; MisuseError for a status or headers of another type."""
    if not isinstance(status, int) or isinstance(status, bool):
        raise MisuseError(f"status takes an int, not {type(status).__name__}")
    values = header_values(headers)
    return ResponseHead(
        status=int(status),
        media_types=tuple(value.partition(";")[0].strip().lower() for value in values.get("content-type", ()) if value),
        codings=tuple(value.lower() for value in values.get("content-encoding", ())),
        retry_after=_seconds(values.get("retry-after", ())),
        request_id=next(map(safe_word, values.get("x-request-id", ())), None),
    )


def header_values(headers: Headers) -> dict[str, list[str]]:
    """The values of each header by its name in lower case; MisuseError for what are no headers."""
    values: dict[str, list[str]] = {}
    for name, value in _pairs(headers):
        values.setdefault(_text(name).lower(), []).append(_text(value).strip())
    return values


def _pairs(headers: Headers) -> Iterable[tuple[str | bytes, str | bytes]]:
    items = getattr(headers, "items", None)
    given: Any = items() if callable(items) else headers
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise MisuseError(f"headers takes a mapping or pairs, not {type(given).__name__}")
    pairs = list(given)
    if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in pairs):
        raise MisuseError("headers takes pairs of a name and a value")
    return pairs


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("latin-1")
    if not isinstance(value, str):
        raise MisuseError(f"header names and values are str or bytes, not {type(value).__name__}")
    return value


def _seconds(values: Iterable[str]) -> int | None:
    """The delta-seconds of Retry-After (RFC 9110 §10.2.3); its date form needs a clock, which the core has not."""
    for value in values:
        if value.isascii() and value.isdigit() and len(value) <= 9:
            return int(value)
    return None


def _object_in(body: bytes) -> object:
    try:
        return StrictDecoder(DEFAULT_LIMITS).decode(body.decode())
    except (UnicodeDecodeError, JSONFault):
        return None
