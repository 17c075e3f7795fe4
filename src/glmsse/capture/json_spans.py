"""Where the strings and numbers of a JSON text are, however broken it is, and how each character is spelt there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Union

from .lookalikes import pool

Path = tuple[Union[str, int, None], ...]

LITERALS = frozenset(("true", "false", "null", "NaN", "Infinity"))

MOST_LEVELS = 64
"""Of a path; what nests deeper is no chunk of any provider."""

_NUMBER = re.compile(r"-?[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?")
_LETTERS = re.compile(r"[^\W\d_]+")
_UNIT = re.compile(r'\\u([0-9a-fA-F]{4})|\\(["\\/bfnrt])|(\\u[0-9a-fA-F]{0,3}[^"\\]?|\\.)|(.)', re.DOTALL)
_NO_CHARACTER = "\0"
"""For what begins like an escape and is none: it stays, so that it stays none."""

_SHORT_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_BLANKS = re.compile(r"[ \t\r\n]*")


class Token(NamedTuple):
    """`start` to `end` is the inside of a string, a number, or letters that belong to nothing; `path` leads to it."""

    kind: Literal["key", "string", "number", "stray"]
    start: int
    end: int
    path: Path


@dataclass(slots=True)
class _Level:
    is_object: bool
    place: str | int | None
    key_follows: bool = field(default=False)


def tokens(text: str) -> Iterator[Token]:
    """Every token; of a text that is no JSON what it looks like."""
    levels: list[_Level] = []
    at = 0
    while at < len(text):
        char = text[at]
        level = levels[-1] if levels else None
        if char == '"':
            end, closed = string_end(text, at + 1)
            behind = _BLANKS.match(text, end + 1)
            has_colon = closed and behind is not None and text.startswith(":", behind.end())
            is_key = has_colon or (level is not None and level.key_follows)
            if is_key and level is not None and level.is_object:
                level.place, level.key_follows = decoded(text, at + 1, end), False
            path = _path(levels)
            yield Token("key" if is_key else "string", at + 1, end, path)
            at = end + 1
            continue
        number, letters = _NUMBER.match(text, at), _LETTERS.match(text, at)
        if number:
            yield Token("number", at, number.end(), _path(levels))
            at = number.end()
            continue
        if letters:
            if letters.group() not in LITERALS:
                yield Token("stray", at, letters.end(), _path(levels))
            at = letters.end()
            continue
        if char in "{[":
            levels.append(_Level(char == "{", None if char == "{" else 0, char == "{"))
        elif char in "}]" and levels:
            levels.pop()
        elif char == "," and level is not None:
            level.key_follows = level.is_object
            level.place = level.place + 1 if isinstance(level.place, int) else None
        elif char == ":" and level is not None:
            level.key_follows = False
        at += 1


def _path(levels: list[_Level]) -> Path:
    return tuple(level.place for level in levels[:MOST_LEVELS])


def string_end(text: str, start: int) -> tuple[int, bool]:
    """Where the inside of a string that begins at `start` ends, and whether it is closed there."""
    at = start
    while at < len(text):
        if text[at] == "\\":
            at += 2
        elif text[at] == '"':
            return at, True
        else:
            at += 1
    return len(text), False


class Unit(NamedTuple):
    """One character as it is spelt from `start` to `end`; half of a surrogate pair where the other one is not there."""

    start: int
    end: int
    char: str


def units(text: str, start: int, end: int) -> list[Unit]:
    """The characters of the inside of a string."""
    found: list[Unit] = []
    for match in _UNIT.finditer(text, start, end):
        code, short, none, plain = match.groups()
        char = chr(int(code, 16)) if code else _NO_CHARACTER if none else _SHORT_ESCAPES.get(short, short) or plain
        if code and found and "\udc00" <= char <= "\udfff" and _is_escaped_high(text, found[-1], match.start()):
            high = found.pop()
            pair = chr(0x10000 + ((ord(high.char) - 0xD800) << 10) + ord(char) - 0xDC00)
            found.append(Unit(high.start, match.end(), pair))
        else:
            found.append(Unit(match.start(), match.end(), char))
    return found


def _is_escaped_high(text: str, unit: Unit, end: int) -> bool:
    return unit.end == end and "\ud800" <= unit.char <= "\udbff" and text[unit.start] == "\\"


def decoded(text: str, start: int, end: int) -> str:
    return "".join(unit.char for unit in units(text, start, end))


def spelt(char: str, like: str) -> str:
    """A character, spelt as the one that it stands for."""
    if not like.startswith("\\u"):
        return char
    code = ord(char)
    halves = (code,) if code < 0x10000 else (0xD800 + ((code - 0x10000) >> 10), 0xDC00 + ((code - 0x10000) & 0x3FF))
    digits = "04X" if any("A" <= digit <= "F" for digit in like) else "04x"
    return "".join(f"\\u{half:{digits}}" for half in halves)


class Change(NamedTuple):
    """One character to be replaced: from `start` to `end`, by one of `choices`, which are of the same width."""

    start: int
    end: int
    choices: str


def changes_in_text(text: str, start: int, end: int) -> Iterator[Change]:
    """Every character that says something, without escapes."""
    for at in range(start, end):
        choices = pool(text[at])
        if choices:
            yield Change(at, at + 1, choices)


def changes_in_string(text: str, start: int, end: int) -> Iterator[Change]:
    """The same for the inside of a string."""
    for unit in units(text, start, end):
        choices = pool(unit.char)
        if choices:
            yield Change(unit.start, unit.end, choices)


def changes_in_number(text: str, start: int, end: int) -> Iterator[Change]:
    """The digits, but for the exponent and for a zero in front: a number stays one, as long and as finite."""
    mantissa, _, power = text[start:end].lower().partition("e")
    if len(mantissa) > 300 or len(power) > 2:
        return
    first = start + mantissa.startswith("-")
    for at in range(first, start + len(mantissa)):
        if not text[at].isdigit() or (at == first and text[at] == "0"):
            continue
        yield Change(at, at + 1, "123456789" if at == first else "0123456789")


def changes_in_stray(text: str, start: int, end: int) -> Iterator[Change]:
    """Letters outside of any string, which may stand beside digits: no exponent comes and none goes."""
    for change in changes_in_text(text, start, end):
        if text[change.start] not in "eE":
            yield Change(change.start, change.end, change.choices.replace("e", "").replace("E", ""))
