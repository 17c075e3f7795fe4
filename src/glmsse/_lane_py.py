"""The pure twin of `_lane.pxi`: the fast lane of chat streams.

Consecutive payloads of a chat stream are the same but for one JSON string. Two payloads that said nothing but a piece
of the same text, and differ in that string alone, make a template: a JSON parser's state behind the same prefix is
the same, and a string in value position cannot change the rest. The lane accepts or bails, it never judges: whatever is
unusual takes the general path, the only place that makes values, errors and messages.
"""

from __future__ import annotations

import json.decoder
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ._deltas_py import ArgumentsDelta, ContentDelta, ReasoningDelta
from .strict_json import SCANS_LOOSELY

if TYPE_CHECKING:
    from .assembly import CallAssembly, Piece
    from .limits import Limits

NO_LIMIT = 2**63 - 1
CONTENT, REASONING, ARGUMENTS = range(3)
ACTIVITIES = ("answering", "reasoning", "calling")

scanstring: Callable[[str, int], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]

MOST_ENVELOPE = 1024
MOST_TEMPLATES = 8
MOST_FRUITLESS = 16
"""Attempts in a row that bore no hit, after which no more templates are made."""


class TextStore:
    """One text as UTF-8. `size` counts all bytes added, kept or not; `waiting` keeps the fast lane out."""

    __slots__ = ("kept", "maximum", "size", "waiting")

    def __init__(self, maximum: int | None, keep: bool) -> None:
        self.maximum = NO_LIMIT if maximum is None else maximum
        self.kept: bytearray | None = bytearray() if keep else None
        self.size = 0
        self.waiting = False

    def add(self, raw: bytes) -> None:
        """Add bytes whose size has been judged."""
        if self.kept is not None:
            self.kept += raw
        self.size += len(raw)

    @property
    def text(self) -> str:
        """What was kept."""
        return self.kept.decode() if self.kept else ""


class _Template:
    """The bytes before a string and behind it; where the same string comes twice, also those in between."""

    __slots__ = ("least", "middle", "piece", "prefix", "start", "stop", "suffix")

    def __init__(self, piece: Piece, prefix: bytes, middle: bytes | None, suffix: bytes) -> None:
        self.piece = piece
        self.prefix = prefix
        self.middle = middle
        self.suffix = suffix
        self.least = len(prefix) + len(suffix) + len(middle or b"")
        self.start, self.stop = len(prefix), -len(suffix)  # there is a closing quote at least


class ChatLane:
    """Takes plain pieces of text from the framer.

    deltas    whether taken pieces make events
    aliases   whether `delta.reasoning` may be read
    enabled   False: it takes nothing
    """

    __slots__ = (
        "_deltas",
        "_enabled",
        "_events",
        "_fruitless",
        "_last",
        "_receive",
        "_templates",
        "activity",
        "hits",
    )

    def __init__(self, limits: Limits, *, deltas: bool, aliases: bool, enabled: bool) -> None:
        self._deltas = deltas
        self._enabled = enabled
        self._templates: list[_Template] = []
        self._last: dict[TextStore, tuple[str, Piece]] | None = None
        self._fruitless = 0
        self._events: list[Any] = []
        self._receive: Callable[[Any], object] | None = None
        self.activity: str | None = None
        self.hits = 0

    @property
    def template_hits(self) -> int:
        return self.hits

    def open(self, events: list[Any], receive: Callable[[Any], object]) -> None:
        self._events, self._receive = events, receive

    def shut(self) -> None:
        self._events, self._receive = [], None

    def append(self, event: Any) -> None:
        """An event that the framer read line by line: it may be a plain piece all the same."""
        if self._templates and event.event == "message" and self.take(event.data.encode()):
            return
        assert self._receive is not None
        self._receive(event)

    def clear(self) -> None:
        """Forget all texts: something other than a piece of text happened, so they may not be what they were."""
        if self._templates:
            self._templates = []
        self._last = None

    def offer(
        self,
        texts: Iterable[tuple[int, TextStore, int, CallAssembly | None]],
        response_id: str | None,
        aliases_used: bool,
    ) -> None:
        """The texts that pieces may go to from here on. Templates show that by themselves."""
        self.clear()

    def note(self, data: str, piece: Piece, /) -> None:
        """A payload said nothing but one piece of a text: more such pieces may come."""
        if not self._enabled or self._fruitless >= MOST_FRUITLESS or len(data) > 2 * MOST_ENVELOPE:
            return
        if self._last is None:
            self._last = {}
        before = self._last.get(piece.store)
        if before is None and len(self._last) >= MOST_TEMPLATES:
            return
        self._last[piece.store] = (data, piece)
        if before is None or before[1].text == piece.text:
            return
        self._fruitless += 1
        template = _make_template(*before, data, piece)
        if template is not None:
            self._templates.insert(0, template)
            del self._templates[MOST_TEMPLATES:]

    def take(self, payload: bytes) -> bool:
        """Whether the payload was a plain piece of text, which is then taken."""
        for template in self._templates:
            if (
                payload.startswith(template.prefix)
                and payload.endswith(template.suffix)
                and len(payload) > template.least
            ):
                body = payload[template.start : template.stop]
                if template.middle is not None:
                    half = (len(body) - len(template.middle)) // 2
                    if body != body[:half] + template.middle + body[:half]:
                        continue
                    body = body[:half]
                if self._accept(template.piece, body):
                    self._fruitless = 0
                    if template is not self._templates[0]:
                        self._templates.remove(template)
                        self._templates.insert(0, template)
                    return True
        return False

    def _accept(self, piece: Piece, body: bytes) -> bool:
        """Add the inside of a JSON string to its text; False if it is not plain, which changes nothing."""
        store = piece.store
        try:
            text = body.decode()
            if b"\\" in body or b'"' in body or not text.isprintable():
                text, end = scanstring(text + '"', 0)
                if end != len(body.decode()) + 1 or (SCANS_LOOSELY and b"\\u" in body):
                    return False
                body = text.encode()
        except ValueError:  # no string, or no UTF-8, or half of a surrogate pair
            return False
        size = store.size + len(body)
        if not text or store.waiting or size > store.maximum:
            return False
        if store.kept is not None:
            store.kept += body
        store.size = size
        self.hits += 1
        self.activity = ACTIVITIES[piece.kind]
        if self._deltas:
            self._events.append(_delta(piece, text))
        return True


def _delta(piece: Piece, text: str) -> ContentDelta | ReasoningDelta | ArgumentsDelta:
    if piece.kind == CONTENT:
        return ContentDelta(text, piece.choice)
    if piece.kind == REASONING:
        return ReasoningDelta(text, piece.choice)
    return ArgumentsDelta(piece.call.index if piece.call else 0, text, piece.choice)


def _make_template(first: str, first_piece: Piece, second: str, second_piece: Piece) -> _Template | None:
    """What two payloads have in common, if they differ in nothing but the string that was read.

    Both strings must be the pieces that were read, and these must differ: then the text was read from there and nowhere
    else. Where two strings differ, both must hold the piece, so it does not matter which of them was read.
    """
    ones, twos = _strings(first), _strings(second)
    if len(ones) != len(twos):
        return None
    differing = [
        (one, two) for one, two in zip(ones, twos, strict=True) if first[one[0] : one[1]] != second[two[0] : two[1]]
    ]
    if not 1 <= len(differing) <= 2:
        return None
    for (start, stop), (start_two, stop_two) in differing:
        if _decoded(first[start:stop]) != first_piece.text or _decoded(second[start_two:stop_two]) != second_piece.text:
            return None
    if len(differing) == 2:
        # Only this pair is known to hold the same text twice and to be read once (OpenRouter).
        keys = {_key_before(second, place[0]) for _, place in differing}
        if keys not in ({"reasoning", "text"}, {"reasoning_content", "text"}):
            return None
    (start, stop), (_, last_stop) = differing[0][1], differing[-1][1]
    prefix, suffix = second[:start], second[last_stop:]
    middle = None
    if len(differing) == 2:
        again = differing[1][1][0]
        middle = second[stop:again]
        if second[start:stop] != second[again:last_stop]:
            return None
    body = first[differing[0][0][0] : differing[0][0][1]]
    rebuilt = prefix + body + suffix if middle is None else prefix + body + middle + body + suffix
    behind = (suffix, suffix) if middle is None else (middle, suffix)
    if any(rest[1:].lstrip(" \t\n\r").startswith(":") for rest in behind):
        return None  # a key: another one in its place could be there twice
    if rebuilt != first or len(prefix) + len(suffix) > MOST_ENVELOPE:
        return None
    return _Template(second_piece, prefix.encode(), middle.encode() if middle is not None else None, suffix.encode())


def _strings(payload: str) -> list[tuple[int, int]]:
    """Where the inside of each string of a JSON text begins and ends."""
    places = []
    at = payload.find('"')
    while at >= 0:
        _, end = scanstring(payload, at + 1)
        places.append((at + 1, end - 1))
        at = payload.find('"', end)
    return places


def _key_before(payload: str, start: int) -> str:
    """The key whose value is the string that begins at `start`; "" if it has none, or one that is not spelt plainly."""
    head = payload[: start - 1].rstrip(" \t\n\r")
    if not head.endswith(":"):
        return ""
    head = head[:-1].rstrip(" \t\n\r")
    return head[head.rfind('"', 0, -1) + 1 : -1]


def _decoded(body: str) -> str:
    return scanstring(body + '"', 0)[0]
