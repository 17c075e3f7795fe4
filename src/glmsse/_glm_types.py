"""The offered tools: which names may be called, and how a value is written as JSON by its declared type."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from .errors import MisuseError
from .limits import Limits
from .strict_json import JSONFault, StrictDecoder

STRING = frozenset(("string",))
NULLABLE = frozenset(("string", "null"))

_TYPES = frozenset(("string", "number", "integer", "boolean", "null", "object", "array"))
# A schema may hold itself in Python; unions nested deeper than this count as a string.
_UNION_DEPTH = 16

_NAME_MOST = 64
_NOT_IN_NAMES = frozenset("<>{}[]()\"'`,;=/\\|&")
_BLANKS = " \t\r\n"
_CLOSER_OF = {"{": "}", "[": "]"}

_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def json_text(value: Any) -> str:
    """A value as compact JSON that can be encoded: surrogates are escaped, all other text beyond ASCII is raw."""
    text = _encode(value)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            # Only strings hold such characters, and this writes each one as JSON escapes it.
            return text.encode("utf-8", "backslashreplace").decode()
    return text


def escaped(text: str) -> str:
    """The inside of `text` as a JSON string."""
    return json_text(text)[1:-1]


class Tool(NamedTuple):
    """A callable name and the schemas of its parameters."""

    name: str
    properties: Mapping[str, Any]
    offered: bool = True

    def types_of(self, key: str) -> frozenset[str]:
        """STRING, NULLABLE or the set of JSON types declared for `key`."""
        types = _types(self.properties.get(key), 0)
        if types is None or "string" not in types:
            return types or STRING
        return NULLABLE if "null" in types else STRING


def _types(schema: Any, depth: int) -> frozenset[str] | None:
    """The declared JSON types; None where the schema does not say all of them."""
    if not isinstance(schema, Mapping) or depth > _UNION_DEPTH:
        return None
    if "type" in schema:
        declared = schema["type"]
        names = [declared] if isinstance(declared, str) else declared
        if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) and n in _TYPES for n in names):
            return None
        return frozenset(names) or None
    branches = schema["anyOf"] if "anyOf" in schema else schema.get("oneOf")
    if not isinstance(branches, (list, tuple)):
        return None
    union: frozenset[str] = frozenset()
    for branch in branches:
        types = _types(branch, depth + 1)
        if types is None:
            return None
        union |= types
    return union or None


class Tools:
    """The caller's tools. `untouched` says that there are none, so that no markup is to be read."""

    __slots__ = ("_any_sane", "_by_folded", "_by_name", "_is_list", "_lengths", "untouched")

    def __init__(self, tools: Sequence[Mapping[str, Any]] | None, send_unoffered: bool) -> None:
        self._by_name: dict[str, Tool] = {}
        self._by_folded: dict[str, Tool] = {}
        self._is_list = tools is not None
        self._any_sane = send_unoffered or tools is None
        if tools is not None:
            if isinstance(tools, (str, bytes)) or not isinstance(tools, Sequence):
                raise MisuseError(f"tools takes a list of tools or None, not {type(tools).__name__}")
            for entry in tools:
                self._add(entry)
        self._lengths = sorted({len(name) for name in self._by_name}, reverse=True)
        self.untouched = tools is not None and not self._by_name

    def _add(self, entry: Any) -> None:
        if not isinstance(entry, Mapping):
            return
        nested = entry.get("function")
        tool = nested if isinstance(nested, Mapping) else entry
        name = tool.get("name")
        if not isinstance(name, str) or not name.strip() or "\n" in name or "\r" in name:
            return
        parameters = tool.get("parameters")
        if not isinstance(parameters, Mapping):
            parameters = tool.get("input_schema")
        properties = parameters.get("properties") if isinstance(parameters, Mapping) else None
        made = Tool(name, properties if isinstance(properties, Mapping) else {})
        # Regions are stripped, so a name is known by its stripped form; it is sent as it was offered.
        self._by_name.setdefault(name.strip(), made)
        self._by_folded.setdefault(name.strip().casefold(), made)

    def find(self, name: str) -> Tool | None:
        """The tool that a call of `name` (stripped) is sent as, if one may be sent."""
        tool = self._by_name.get(name) or self._by_folded.get(name.casefold())
        if tool is None and self._any_sane and is_sane(name):
            return Tool(name, {}, offered=not self._is_list)
        return tool

    def find_with_key(self, region: str) -> tuple[Tool, str] | None:
        """A name and a key whose opener is missing, out of a stripped name region."""
        words = region.rsplit(None, 1)
        if len(words) == 2:
            tool = self.find(words[0].rstrip())
            return (tool, words[1]) if tool else None
        for length in self._lengths:
            if length < len(region) and region[:length] in self._by_name:
                return self._by_name[region[:length]], region[length:]
        return None


def is_sane(name: str) -> bool:
    """Whether a name that nobody offered could be one at all."""
    if not 1 <= len(name) <= _NAME_MOST or not _NOT_IN_NAMES.isdisjoint(name):
        return False
    return not any(
        char.isspace() or char < " " or "\x7f" <= char <= "\x9f" or "\ud800" <= char <= "\udfff" for char in name
    )


class ValueReader:
    """Reads JSON under the caps of `limits`, for typed values and for the buffered envelopes."""

    __slots__ = ("_decoder",)

    def __init__(self, limits: Limits) -> None:
        self._decoder = StrictDecoder(limits)

    def value(self, text: str) -> tuple[Any, bool]:
        """The value of a strict and finite JSON text, and whether it is one."""
        try:
            value = self._decoder.decode(text)
        except JSONFault:
            return None, False
        return value, not self._decoder.nonfinite

    def typed(self, text: str, types: frozenset[str]) -> tuple[str, bool]:
        """`text` as JSON of one of `types`, else as a JSON string; and whether brackets had to be added for that."""
        value, fits = self.value(text)
        if fits:
            return json_text(value if types & _types_of(value) else text), False
        if types & {"array", "object"}:
            closers = missing_closers(text)
            value, fits = self.value(text + closers) if closers else (None, False)
            if fits and types & _types_of(value):
                return json_text(value), True
        return json_text(text), False


def _types_of(value: Any) -> set[str]:
    if value is None:
        return {"null"}
    if isinstance(value, bool):
        return {"boolean"}
    if isinstance(value, int):
        return {"integer", "number"}
    if isinstance(value, float):
        return {"number"}
    if isinstance(value, str):
        return {"string"}
    return {"array"} if isinstance(value, list) else {"object"}


def missing_closers(text: str) -> str:
    """The brackets that close what JSON `text` leaves open; none where it ends in a string or its closers mismatch."""
    missing: list[str] = []
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        at += 1
        if char in _CLOSER_OF:
            missing.append(_CLOSER_OF[char])
        elif char in "]}":
            if not missing or missing.pop() != char:
                return ""
        elif char == '"':
            at = string_end(text, at)
            if at < 0:
                return ""
    return "".join(reversed(missing))


def string_end(text: str, at: int) -> int:
    """The position behind the JSON string whose opening quote is before `at`; -1 if it never closes."""
    quote = text.find('"', at)
    while quote >= 0:
        slash = text.find("\\", at, quote)
        if slash < 0:
            return quote + 1
        at = slash + 2
        if at > quote:
            quote = text.find('"', at)
    return -1
