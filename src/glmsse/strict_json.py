"""JSON as RFC 8259 has it, with the same answer on every interpreter.

The standard decoder does the work; this module adds what it leaves open: nesting and number length are capped before
the interpreter's own limits can show, equal keys and numbers beyond a double are seen.
"""

from __future__ import annotations

import builtins
import json.decoder
import json.scanner
from collections.abc import Callable
from math import isinf
from typing import Any

from .limits import Limits

_BLANKS = " \t\n\r"
_NUMBER_CHARS = frozenset("0123456789+-.eE")
_NUMBER_STARTS = frozenset("0123456789-")
_HEX_DIGITS = frozenset("0123456789abcdefABCDEF")

# The standard library's pure scanner, the only one of PyPy, reads `\u 12f`, `\u1_2f` and digits of other scripts.
SCANS_LOOSELY = None in (json.decoder.c_scanstring, json.scanner.c_make_scanner)  # type: ignore[attr-defined]

PlainDecoder = Callable[[str, int, int, Any], Any]
"""(text, most levels, most characters of a number, what to return instead) → the value of a text that is plain."""


class JSONFault(Exception):
    """Text that strict JSON refuses; `code` is json_too_deep, json_number_too_long or bad_json."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class StrictDecoder:
    """Decodes one text after the other under the JSON caps of `limits`.

    After each `decode`, `duplicate_key` and `nonfinite` say whether the text had equal keys in one object, or NaN,
    Infinity or a number beyond a double. The value is built all the same (the last key wins): the caller judges.

    decode_plain  reads what is not out of the ordinary, and only faster; see `framing.decode_plain`
    """

    __slots__ = ("_decode_plain", "_hooks", "_max_depth", "_max_number", "_scan_once", "duplicate_key", "nonfinite")

    def __init__(self, limits: Limits, decode_plain: PlainDecoder | None = None) -> None:
        self._max_depth = limits.max_json_depth
        self._max_number = limits.max_number_chars
        self._decode_plain = decode_plain
        self._hooks: _Hooks | None = None
        self._scan_once: Callable[[str, int], tuple[Any, int]] | None = None
        self.duplicate_key = self.nonfinite = False

    def decode(self, text: str) -> Any:
        """The value of `text`, which must be one JSON text with nothing but blanks around it; else JSONFault.

        Judged in this order: nesting, length of numbers, grammar.
        """
        self.duplicate_key = self.nonfinite = False
        if self._decode_plain is not None:
            value = self._decode_plain(text, self._max_depth, self._max_number, self)
            if value is not self:
                return value
        return self._decode_any(text.strip(_BLANKS))

    def _decode_any(self, text: str) -> Any:
        if self._scan_once is None or self._hooks is None:
            # The scanner holds the hooks and not this object, so that there is no cycle to collect.
            self._hooks = _Hooks(self._max_number)
            self._scan_once = self._hooks.scanner()
        hooks = self._hooks
        hooks.duplicate_key = hooks.nonfinite = hooks.number_too_long = False
        # Brackets inside of strings count here too, so this only says when a closer look is not needed.
        if text.count("{") + text.count("[") > self._max_depth:
            self._judge_size(text)
        code = None
        value = None
        try:
            value, end = self._scan_once(text, 0)
        except (ValueError, StopIteration):
            code = "bad_json"
        else:
            if end != len(text) or (SCANS_LOOSELY and not is_strictly_spelt(text)):
                code = "bad_json"
        if code or hooks.number_too_long:
            self._judge_size(text)
        if code:
            raise JSONFault(code)
        self.duplicate_key, self.nonfinite = hooks.duplicate_key, hooks.nonfinite
        return value

    def _judge_size(self, text: str) -> None:
        """Raise JSONFault if the text nests too deep or has a number that is too long, JSON or not."""
        depth, number = measure(text)
        if depth > self._max_depth:
            raise JSONFault("json_too_deep")
        if number > self._max_number:
            raise JSONFault("json_number_too_long")


class _Hooks:
    """What the standard decoder calls for objects and numbers; notes what strict JSON has to know."""

    __slots__ = ("_max_number", "duplicate_key", "nonfinite", "number_too_long")

    def __init__(self, max_number: int) -> None:
        self._max_number = max_number
        self.duplicate_key = self.nonfinite = self.number_too_long = False

    def scanner(self) -> Callable[[str, int], tuple[Any, int]]:
        decoder = json.JSONDecoder(
            object_pairs_hook=self.object,
            parse_int=self.integer,
            parse_float=self.float,
            parse_constant=self.constant,
        )
        return decoder.scan_once  # type: ignore[attr-defined, no-any-return]

    def object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            self.duplicate_key = True
        return value

    def integer(self, digits: str) -> int:
        if len(digits) > self._max_number:
            self.number_too_long = True
            return 0
        return int(digits)  # exact, however many digits the caller allows

    def float(self, digits: str) -> builtins.float:
        if len(digits) > self._max_number:
            self.number_too_long = True
            return 0.0
        value = float(digits)
        if isinf(value):
            self.nonfinite = True
        return value

    def constant(self, name: str) -> builtins.float:
        self.nonfinite = True
        return float(name)


def is_strictly_spelt(text: str) -> bool:
    """Whether a text that a loose scanner took has four hex digits behind each `\\u`, and outside of strings ASCII."""
    at = 0
    while at < len(text):
        quote = text.find('"', at)
        if not text[at : quote if quote >= 0 else len(text)].isascii():
            return False
        if quote < 0:
            return True
        at = _string_end(text, quote)
        escape = text.find("\\", quote, at)
        while escape >= 0:
            if text[escape + 1] == "u" and not _HEX_DIGITS.issuperset(text[escape + 2 : escape + 6]):
                return False
            escape = text.find("\\", escape + 2, at)
    return True


def is_blank(text: str) -> bool:
    """Whether there is nothing but what JSON counts as white space."""
    return not text.strip(_BLANKS)


def measure(text: str) -> tuple[int, int]:
    """The deepest nesting and the longest number outside of strings, for any text, in linear time."""
    deepest = depth = longest = 0
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        if char == '"':
            at = _string_end(text, at)
        elif char in _NUMBER_STARTS:
            start = at
            while at < end and text[at] in _NUMBER_CHARS:
                at += 1
            longest = max(longest, at - start)
        else:
            if char in "{[":
                depth += 1
                deepest = max(deepest, depth)
            elif char in "}]":
                depth -= 1
            at += 1
    return deepest, longest


def _string_end(text: str, start: int) -> int:
    """The position behind the string that opens at `start`; the end of the text if it never closes."""
    at = start + 1
    while True:
        quote = text.find('"', at)
        if quote < 0:
            return len(text)
        before = quote
        while before > at and text[before - 1] == "\\":
            before -= 1
        at = quote + 1
        if (quote - before) % 2 == 0:
            return at


def has_lone_surrogate(text: str) -> bool:
    """Whether the text cannot be encoded because half of a surrogate pair stands alone."""
    if text.isascii():
        return False
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def nests_deeper(value: object, depth: int) -> bool:
    """Whether a value that was decoded elsewhere nests deeper than that; it may even hold itself."""
    level = [value]
    for _ in range(depth + 1):
        holders = {id(item): item for item in level if isinstance(item, (dict, list, tuple))}
        if not holders:
            return False
        level = [inner for item in holders.values() for inner in (item.values() if isinstance(item, dict) else item)]
    return True


def holds_lone_surrogate(text: str, value: object) -> bool:
    """Whether any string or key in the value has a lone surrogate; only an escape can bring one."""
    if "\\u" not in text:
        return False
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            if has_lone_surrogate(item):
                return True
        elif isinstance(item, dict):
            pending += (*item, *item.values())
        elif isinstance(item, list):
            pending += item
    return False


def read_strictly(text: str, limits: Limits) -> tuple[Any, str | None]:
    """The value of a text, and the code of the first strict rule that it breaks: no tolerance, blank is bad_json."""
    decoder = StrictDecoder(limits)
    try:
        value = decoder.decode(text)
    except JSONFault as refusal:
        return None, refusal.code
    if decoder.duplicate_key:
        return None, "duplicate_key"
    if decoder.nonfinite:
        return None, "json_nonfinite"
    if holds_lone_surrogate(text, value):
        return None, "lone_surrogate"
    return value, None
