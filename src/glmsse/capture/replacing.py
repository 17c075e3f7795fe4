"""Texts that arrive in pieces, and other texts in their place.

What is drawn does not depend on what was there, but for the class of each character; only pieces that were equal to the
one before stay equal, and others different: a reader may go by that.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from random import Random

from .json_spans import (
    LITERALS,
    Change,
    Unit,
    changes_in_number,
    changes_in_stray,
    changes_in_string,
    changes_in_text,
    spelt,
    tokens,
    units,
)
from .lookalikes import Pseudonyms

_MOST_TRIES = 50
_LETTERS = re.compile(r"[^\W\d_]+")
TAG = re.compile(
    r"</?(?:[A-Za-z_][A-Za-z0-9_.-]*:)?tool_call>|<\|tool_call>|<tool_call\|>|</?think>|</?arg_(?:key|value)>"
    r"|<\|(?:observation|user|assistant|system|endoftext)\|>|<function=|</function>|<parameter=|</parameter>"
    r'|</?｜DSML｜(?:tool_calls|invoke|parameter)|<\|"\|>'
)
_NAME_OPENERS = ("tool_call>", "<function=", "<parameter=", "<arg_key>")
_CLOSES_NAME = re.compile(r"[<>\n]")

Changes = Callable[[str, int, int, Pseudonyms], Iterable[Change]]


@dataclass(slots=True, eq=False)
class Document:
    """A text in the body, such as an event's payload, and what is to stand where in it."""

    text: str
    changed: list[tuple[int, int, str]] = field(default_factory=list)

    def result(self) -> str:
        parts: list[str] = []
        at = 0
        for start, end, new in sorted(self.changed):
            parts += (self.text[at:start], new)
            at = end
        return "".join((*parts, self.text[at:]))


@dataclass(slots=True, eq=False)
class Piece:
    """A part of a document, by its characters as they are spelt there. `again` are other parts with the same text."""

    document: Document
    units: list[Unit]
    again: list[tuple[Document, list[Unit]]] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(unit.char for unit in self.units)

    @property
    def spelling(self) -> str:
        return "".join(self.document.text[unit.start : unit.end] for unit in self.units)

    def replace_by(self, text: str) -> None:
        for document, places in ((self.document, self.units), *self.again):
            for unit, char in zip(places, text, strict=True):
                if char != unit.char:
                    new = spelt(char, document.text[unit.start : unit.end])
                    document.changed.append((unit.start, unit.end, new))


def literal(document: Document, start: int, end: int) -> Piece:
    """A part without escapes."""
    return Piece(document, [Unit(at, at + 1, document.text[at]) for at in range(start, end)])


def quoted(document: Document, start: int, end: int) -> Piece:
    """The inside of a JSON string."""
    return Piece(document, units(document.text, start, end))


@dataclass(slots=True, eq=False)
class Stream:
    """Pieces of one text, in their order. `changes` plans over the whole of it, or over each piece if not `joined`."""

    changes: Changes
    joined: bool = True
    pieces: list[Piece] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces)

    def replace(self, random: Random, pseudonyms: Pseudonyms, avoided: frozenset[str]) -> None:
        """Draw a text for every piece."""
        _Drawing(self, random, pseudonyms, avoided).run()


class _Drawing:
    def __init__(self, stream: Stream, random: Random, pseudonyms: Pseudonyms, avoided: frozenset[str]) -> None:
        self._pieces = stream.pieces
        self._text = stream.text
        self._random = random
        self._avoided = avoided
        self._out = list(self._text)
        self._spans: list[tuple[int, int]] = []
        at = 0
        for piece in self._pieces:
            self._spans.append((at, at + len(piece.units)))
            at += len(piece.units)
        whole = [(0, len(self._text))] if stream.joined else self._spans
        changes = [change for start, end in whole for change in stream.changes(self._text, start, end, pseudonyms)]
        self._of_piece: list[list[Change]] = [[] for _ in self._pieces]
        self._owner: dict[int, int] = {}
        number = 0
        for change in changes:
            while self._spans[number][1] <= change.start:
                number += 1
            self._of_piece[number].append(change)
            self._owner.update(dict.fromkeys(range(change.start, change.end), number))
        self._copies = [number > 0 and self._is_copy(number) for number in range(len(self._pieces))]

    def run(self) -> None:
        for number in range(len(self._pieces)):
            if not self._copies[number]:
                self._draw(number)
        for start, end in [*self._spans, (0, len(self._text))]:
            self._avoid_words(start, end)
        for piece, (start, end) in zip(self._pieces, self._spans, strict=True):
            piece.replace_by("".join(self._out[start:end]))

    def _draw(self, number: int) -> None:
        """A text for the piece, other than that of the piece before; and for the copies behind it."""
        start, end = self._spans[number]
        before = self._out[slice(*self._spans[number - 1])] if number else None
        for _ in range(_MOST_TRIES):
            for change in self._of_piece[number]:
                new = spelt(self._random.choice(change.choices), self._text[change.start : change.end])
                self._out[change.start : change.end] = new
            if self._out[start:end] != before:
                break
        while number + 1 < len(self._pieces) and self._copies[number + 1]:
            number += 1
            self._out[slice(*self._spans[number])] = self._out[start:end]

    def _is_copy(self, number: int) -> bool:
        """Whether the piece is the one before once more, and free to be."""
        (start, end), (before, _) = self._spans[number], self._spans[number - 1]
        if self._pieces[number].spelling != self._pieces[number - 1].spelling:
            return False
        shifted = [
            change._replace(start=change.start + start - before, end=change.end + start - before)
            for change in self._of_piece[number - 1]
        ]
        own = self._of_piece[number]
        return (
            shifted == own
            and all(change.end <= end for change in own)
            and (not own or self._owner.get(start, number) == number)
        )

    def _avoid_words(self, start: int, end: int) -> None:
        """Draw again wherever a word of the original has come out by chance."""
        for _ in range(_MOST_TRIES):
            drawn = "".join(self._out[start:end])
            unlucky = [
                found
                for found in _LETTERS.finditer(drawn)
                if found.group() in LITERALS or (len(found.group()) >= 4 and found.group().casefold() in self._avoided)
            ]
            again = set()
            for found in unlucky:
                places = range(start + found.start(), start + found.end())
                if self._text[places.start : places.stop] not in LITERALS:
                    again |= {self._owner[at] for at in places if at in self._owner}
            for number in again:
                while self._copies[number]:
                    number -= 1
                self._draw(number)
            if not again:
                return


def plain(text: str, start: int, end: int, _: Pseudonyms) -> Iterator[Change]:
    """Text, all of it."""
    return changes_in_text(text, start, end)


def number(text: str, start: int, end: int, _: Pseudonyms) -> Iterator[Change]:
    return changes_in_number(text, start, end)


def stray(text: str, start: int, end: int, _: Pseudonyms) -> Iterator[Change]:
    return changes_in_stray(text, start, end)


def named(text: str, start: int, end: int, pseudonyms: Pseudonyms) -> Iterator[Change]:
    """The inside of a JSON string that is a name: its pseudonym, character by character."""
    found = units(text, start, end)
    pseudonym = pseudonyms("".join(unit.char for unit in found))
    for unit, char in zip(found, pseudonym, strict=True):
        if char != unit.char:
            yield Change(unit.start, unit.end, char)


def arguments(text: str, start: int, end: int, pseudonyms: Pseudonyms) -> Iterator[Change]:
    """JSON, or what was to become JSON: keys by pseudonyms, values as text."""
    inside = text[start:end]
    for token in tokens(inside):
        plan = _PLANS[token.kind]
        for change in plan(inside, token.start, token.end, pseudonyms):
            yield change._replace(start=change.start + start, end=change.end + start)


def _string(text: str, start: int, end: int, _: Pseudonyms) -> Iterator[Change]:
    return changes_in_string(text, start, end)


_PLANS: dict[str, Changes] = {"key": named, "string": _string, "number": number, "stray": stray}


def model_text(text: str, start: int, end: int, pseudonyms: Pseudonyms) -> Iterator[Change]:
    """Text in which a model may have written calls as markup: the tags stay, names and keys get pseudonyms."""
    at, behind = start, ""
    for found in (*TAG.finditer(text, start, end), None):
        stop = end if found is None else found.start()
        yield from _between_tags(text, at, stop, behind, pseudonyms)
        if found is not None:
            at, behind = found.end(), found.group()


def _between_tags(text: str, start: int, end: int, behind: str, pseudonyms: Pseudonyms) -> Iterator[Change]:
    if behind.endswith(_NAME_OPENERS) and not behind.startswith("</"):
        close = _CLOSES_NAME.search(text, start, end)
        stop = end if close is None else close.start()
        name = text[start:stop]
        if not name.lstrip().startswith(("{", "[")):
            first = start + len(name) - len(name.lstrip())
            pseudonym = pseudonyms(name.strip())
            yield from (
                Change(first + at, first + at + 1, char)
                for at, char in enumerate(pseudonym)
                if char != text[first + at]
            )
            start = stop
    if text[start:end].lstrip()[:1] in tuple('{["-0123456789'):
        yield from arguments(text, start, end, pseudonyms)
        return
    yield from changes_in_text(text, start, end)
