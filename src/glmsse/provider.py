"""Errors that the provider reports, before or inside a stream: what they mean, by table.

Only a code, a request id and a class are taken from them, never the message: it can echo input.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .errors import GlmsseError, fault

# Z.ai business codes by class (wire-contract §8.3; the provider's error-code page).
_CODES_BY_CATEGORY = {
    "auth": "1000 1001 1002 1003 1004",
    "account": "1100 1110 1111 1112 1121",
    "balance": "1113",
    "entitlement": "1220 1309 1311 1313",
    "quota": "1304 1308 1310 1316 1317 1318 1319 1320 1321",
    "rate": "1302 1303",
    "overload": "1305 1312",
    "request": "1210 1211 1212 1213 1214 1215 1221 1222",
    "context": "1261",
    "content": "1300 1301",
    "server": "500 1120 1200 1230 1234",
    "duplicate": "1231",
}
CATEGORY_OF_CODE = {code: category for category, codes in _CODES_BY_CATEGORY.items() for code in codes.split()}

CATEGORY_OF_STATUS = {
    **dict.fromkeys((400, 404, 413, 422), "request"),
    401: "auth",
    402: "balance",
    403: "entitlement",
    429: "rate",
}

# Anthropic's error types, which the anthropic routes and some relays send instead of codes.
CATEGORY_OF_TYPE = {
    "authentication_error": "auth",
    "billing_error": "balance",
    "permission_error": "entitlement",
    "not_found_error": "request",
    "invalid_request_error": "request",
    "request_too_large": "request",
    "rate_limit_error": "rate",
    "overloaded_error": "overload",
    "api_error": "server",
    "timeout_error": "server",
}

# A retry after one of these starts no second generation that could be billed.
SAFE_CATEGORIES = frozenset(("rate", "overload"))
AMBIGUOUS_CATEGORIES = frozenset(("server", "duplicate", "unknown"))

_WORD_CHARS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.:-")
_LONGEST_WORD = 64


@dataclass(frozen=True, slots=True)
class ProviderReport:
    """What a reported error says, as far as it may be kept."""

    category: str
    provider_code: str | None = None
    request_id: str | None = None

    def as_fault(self) -> GlmsseError:
        return fault(
            "provider_error",
            category=self.category,
            provider_code=self.provider_code,
            request_id=self.request_id,
        )


def read_report(body: object, status: int | None = None) -> ProviderReport:
    """The report in an error object of any known shape (wire-contract §8); `status` is the HTTP one before a stream,
    None inside one."""
    outer: dict[str, Any] = body if isinstance(body, dict) else {}
    error = outer.get("error")
    inner: dict[str, Any] = error if isinstance(error, dict) else outer
    code = safe_word(inner.get("code")) or safe_word(outer.get("code"))
    kind = safe_word(inner.get("type"))
    if kind == "error":
        kind = None
    request_id = safe_word(outer.get("request_id")) or safe_word(inner.get("request_id"))
    return ProviderReport(_category(code, kind, status), code or kind, request_id)


def _category(code: str | None, kind: str | None, status: int | None) -> str:
    known = CATEGORY_OF_CODE.get(code or "")
    if known:
        return known
    if status is None and code and len(code) == 3 and code.isascii() and code.isdigit():
        status = int(code)
    by_status = _category_of_status(status)
    if by_status == "unknown":
        return CATEGORY_OF_TYPE.get(kind or "", "unknown")
    return by_status


def _category_of_status(status: int | None) -> str:
    if status is None:
        return "unknown"
    if 500 <= status <= 599:
        return "server"
    return CATEGORY_OF_STATUS.get(status, "unknown")


def safe_word(value: object) -> str | None:
    """A code or an id that is safe to show: short, and of harmless characters only."""
    text = str(value) if type(value) is int and abs(value) < 10**18 else value
    if isinstance(text, str) and 1 <= len(text) <= _LONGEST_WORD and _WORD_CHARS.issuperset(text):
        return text
    return None
