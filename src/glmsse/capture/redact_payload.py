"""One event's payload: which of its texts stay, which are names, and which are drawn anew."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

from ..limits import DEFAULT_LIMITS
from ..strict_json import measure
from . import protocol_words as protocol
from .json_spans import Change, Token, tokens
from .lookalikes import Pseudonyms
from .replacing import Changes, Document, Piece, arguments, literal, model_text, number, plain, quoted, stray

FINISH = re.compile(r"[a-z_]{1,40}")
"""A finish reason that stays; what looks otherwise may be anybody's text."""
_CODE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
"""What a verdict shows of a provider's code (`provider.safe_word`)."""
_MOST_SPLICES = 16


class Redaction(Protocol):
    """What takes the texts of a payload."""

    def add(self, key: object, piece: Piece, changes: Changes, *, joined: bool) -> None:
        """A piece of the text that `key` names."""

    def keeps(self, text: str, key: str | None) -> bool:
        """Whether the caller wants the field as it is."""
        ...

    def keep_word(self, text: str) -> None:
        """This one stays."""

    def call_key(self, choice: int, index: object, call_id: object) -> object:
        """Which call an argument piece belongs to."""


def read_payload(redaction: Redaction, document: Document) -> None:
    """Hand over every text of a payload."""
    for start, end in _json_texts(document.text):
        _Payload(redaction, document, start, end).read()


class _Payload:
    """One JSON text of a document, whole or broken."""

    def __init__(self, redaction: Redaction, document: Document, start: int, end: int) -> None:
        self._redaction = redaction
        self._document = document
        self._start = start
        self._text = document.text[start:end]
        self._value = _value(self._text)
        self._read: dict[str, Piece] = {}
        self._others: list[tuple[str, object, Piece]] = []

    def read(self) -> None:
        for token in tokens(self._text):
            start, end = token.start + self._start, token.end + self._start
            text = self._text[token.start : token.end]
            key = next((step for step in reversed(token.path) if isinstance(step, str)), None)
            if token.kind == "key":
                self._key(token, quoted(self._document, start, end))
            elif token.kind == "string":
                self._string(token, key, quoted(self._document, start, end))
            elif token.kind == "stray":
                self._other("stray", token, literal(self._document, start, end), stray)
            elif not self._redaction.keeps(text, key) and not self._number_stays(token, key):
                self._other("number", token, literal(self._document, start, end), number)
        self._pair_up()

    def _key(self, token: Token, piece: Piece) -> None:
        name = piece.text
        if name in protocol.KEYS and "arguments" not in token.path[:-1]:
            self._redaction.keep_word(name)
        elif not self._redaction.keeps(name, name):
            self._redaction.add(("name", name), piece, whole_name, joined=False)

    def _string(self, token: Token, key: str | None, piece: Piece) -> None:
        redaction, text = self._redaction, piece.text
        inside = "arguments" in token.path[:-1]
        if key not in protocol.REASONING and redaction.keeps(text, key):
            return
        if _is_protocol_word(token.path, key, text) and not inside:
            redaction.keep_word(text)
        elif key in protocol.PSEUDONYMS and not inside:
            redaction.add(("name", text), piece, whole_name, joined=False)
        elif key in ("arguments", "partial_json") and not inside:
            redaction.add(("arguments", *self._call(token.path)), piece, arguments, joined=True)
            self._read.setdefault(text, piece)
        elif key in protocol.TEXTS and "reasoning_details" not in token.path and not inside:
            redaction.add((key, self._choice(token.path)), piece, model_text, joined=True)
            self._read.setdefault(text, piece)
        else:
            self._others.append((text, ("own", token.path, *self._call(token.path)), piece))

    def _pair_up(self) -> None:
        """A text that is there twice in a payload stays there twice."""
        for text, key, piece in self._others:
            twin = self._read.get(text) if text else None
            if twin is not None and twin.spelling == piece.spelling:
                twin.again.append((piece.document, piece.units))
            else:
                self._redaction.add(key, piece, plain, joined=False)

    def _other(self, kind: str, token: Token, piece: Piece, changes: Changes) -> None:
        self._redaction.add((kind, token.path, *self._call(token.path)), piece, changes, joined=False)

    def _number_stays(self, token: Token, key: str | None) -> bool:
        return "arguments" not in token.path and (key in protocol.NUMBERS or "usage" in token.path)

    def _choice(self, path: tuple[Any, ...]) -> int:
        choice = _at(self._value, path, "choices")
        index = choice.get("index") if isinstance(choice, dict) else None
        return index if type(index) is int else 0

    def _call(self, path: tuple[Any, ...]) -> tuple[int, object]:
        choice = self._choice(path)
        if "tool_calls" not in path:
            index = self._value.get("index") if isinstance(self._value, dict) else None
            return choice, index if type(index) is int else None
        call = _at(self._value, path, "tool_calls")
        call = call if isinstance(call, dict) else {}
        return choice, self._redaction.call_key(choice, call.get("index"), call.get("id"))


def whole_name(text: str, start: int, end: int, pseudonyms: Pseudonyms) -> Iterator[Change]:
    """A text that is a name as a whole, with its escapes read already."""
    for at, char in enumerate(pseudonyms(text[start:end]), start):
        if char != text[at]:
            yield Change(at, at + 1, char)


def _is_protocol_word(path: tuple[Any, ...], key: str | None, text: str) -> bool:
    if key == "model":
        return True
    if key in ("finish_reason", "native_finish_reason", "stop_reason"):
        return FINISH.fullmatch(text) is not None
    if key in ("code", "type", "status") and ("error" in path or len(path) == 1) and _CODE.fullmatch(text):
        return True
    return key in ("role", "object", "type") and text in protocol.VALUES


def _json_texts(text: str) -> Iterator[tuple[int, int]]:
    """The text; or where a whole object stands behind a cut one, both (as the splice that a reader looks for)."""
    if _value(text) is None:
        at = 0
        for _ in range(_MOST_SPLICES):
            at = text.find("data: ", at + 1)
            if at < 0:
                break
            if isinstance(_value(text[at + 6 :]), dict):
                yield 0, at
                yield at + 6, len(text)
                return
    yield 0, len(text)


def _value(text: str) -> Any:
    if measure(text)[0] > DEFAULT_LIMITS.max_json_depth:
        return None
    try:
        return json.loads(text, parse_int=_short_int)
    except (ValueError, RecursionError):
        return None


def _short_int(digits: str) -> int:
    return int(digits) if len(digits) < 20 else -1


def _at(value: Any, path: tuple[Any, ...], name: str) -> Any:
    """The item of the list called `name` that the path leads through."""
    for place, step in enumerate(path):
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
        if place and path[place - 1] == name:
            return value
    return None
