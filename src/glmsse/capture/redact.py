"""Makes a recording shareable: text becomes other text of the same length and class, ids and names become pseudonyms.

What stays is everything that a reader's behaviour depends on: sizes, line ends, event boundaries, cuts, escapes, UTF-8
widths, the words and numbers of the protocol, and which ids, names and keys are equal. That it stays is checked, on
each recording, before anything is handed out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import Any

from ..errors import MisuseError
from . import protocol_words as protocol
from .lookalikes import Pseudonyms, words
from .recording import Recording, stream_for
from .redact_payload import FINISH, read_payload, whole_name
from .redact_sidecar import SidecarRedaction, texts
from .replacing import (
    TAG,
    Changes,
    Document,
    Piece,
    Stream,
    literal,
    model_text,
    plain,
)

_MOST_TRIES = 12
_LINE = re.compile(rb"[^\r\n]*(\r\n|\r|\n|\Z)")
_FIELD_LINE = re.compile(rb"(?:\A|[\r\n])(?:\xef\xbb\xbf)?(?:data|event|id|retry)(?:[:\r\n]|\Z)")
_BOM = b"\xef\xbb\xbf"
_BLANKS = " \t\n"


class CannotRedact(ValueError):
    """No redacted form behaves as the recording does without its words, so none is handed out."""


def redact(recording: Recording, *, keep: Iterable[str] = (), seed: int | None = None) -> Recording:
    """The recording with another text in it. `keep` names fields whose values stay; reasoning never does.

    `seed` makes the result repeatable, for tests: whoever knows it can try out guesses.
    """
    return redact_with(recording, kept_fields(keep), seed)[0]


def kept_fields(names: Iterable[str]) -> frozenset[str]:
    """MisuseError if one of them is never kept."""
    kept = frozenset(names)
    if kept & protocol.REASONING:
        raise MisuseError("reasoning is always redacted")
    return kept


def redact_with(
    recording: Recording, kept: frozenset[str], seed: int | None = None
) -> tuple[Recording, frozenset[str]]:
    """The recording with another text in it, and those of the `kept` fields that it has."""
    wanted = _behaviour(recording)
    closest: tuple[Recording, frozenset[str]] | None = None
    same_verdict = False
    for attempt in range(_MOST_TRIES):
        random: Random = SystemRandom() if seed is None else Random(seed + attempt)
        redaction = _Redaction(recording, kept, random)
        redacted = redaction.result()
        found = _behaviour(redacted)
        if found.verdict != wanted.verdict:
            continue
        same_verdict = True
        if not redaction.surviving_words(redacted):
            this = redacted, frozenset(redaction.matched)
            closest = closest or this
            if found.lane_hits == wanted.lane_hits:
                return this
    if closest is None:
        problem = "no redacted form gets the same verdict"
        if same_verdict:
            problem = "words of the original stay in every redacted form"
        raise CannotRedact(problem)
    return closest


@dataclass(frozen=True, slots=True)
class _Behaviour:
    verdict: dict[str, Any]
    lane_hits: int


def _behaviour(recording: Recording) -> _Behaviour:
    """What a reader makes of it, without what may change: ids."""
    stream = stream_for(recording.sidecar.reading)
    status = recording.sidecar.status
    if status is not None:
        stream.start(status, recording.sidecar.headers)
    stream.feed(recording.body)
    fields = stream.close(recording.sidecar.terminal.ending()).to_dict()
    fields["request_id"] = None if fields["request_id"] is None else len(fields["request_id"])
    reason = fields["finish_reason"]
    if isinstance(reason, str) and not FINISH.fullmatch(reason):
        fields["finish_reason"] = len(reason.encode(errors="surrogatepass"))
    if fields["error"] is not None:
        fields["error"] = {name: value for name, value in fields["error"].items() if "id" not in name.split("_")}
    fields["counts"] = (stream.events_seen, stream.bytes_seen, stream.pieces_seen)
    fields["sizes"] = [
        (
            choice.index,
            len(choice.content.encode(errors="surrogatepass")),
            len(choice.reasoning_content.encode(errors="surrogatepass")),
            [(call.index, len(call.arguments.encode(errors="surrogatepass"))) for call in choice.tool_calls],
        )
        for choice in stream.snapshot.choices
    ]
    return _Behaviour(fields, stream.fast_events_seen)


class _Redaction:
    """One attempt: the body as documents, their texts as streams, and what is drawn for them."""

    def __init__(self, recording: Recording, keep: frozenset[str], random: Random) -> None:
        self._recording = recording
        self._keep = keep
        self.matched: set[str] = set()
        """Those of `keep` that the recording has."""
        self._random = random
        self._streams: dict[object, Stream] = {}
        self._kept_words = set(protocol.FRAMING_WORDS)
        self._kept_texts: set[str] = set()
        self._last_call: dict[int, object] = {}
        if _is_event_stream(recording):
            self._parts = list(self._event_stream(recording.body))
        else:
            self._parts = [self._payload(_text(recording.body))]
        self._words = frozenset(words(_text(recording.body)))
        for stream in self._streams.values():
            if stream.changes is model_text:
                self._kept_words.update(word for tag in TAG.findall(stream.text) for word in words(tag))
        spoken = {word for stream in self._streams.values() for word in words(stream.text)}
        spoken |= {word for stream in self._streams.values() for piece in stream.pieces for word in words(piece.text)}
        self._sidecar_words = {word for text in texts(recording.sidecar, keys=True) for word in words(text)}
        avoided = self._words | spoken | self._sidecar_words
        self._pseudonyms = Pseudonyms(random, avoided)
        names = frozenset((recording.sidecar.reading.tools or ()) if "name" in keep else ())
        self._pseudonyms.keep(("", *names))
        if names:
            self.matched.add("name")
        self._sidecar = SidecarRedaction(self._pseudonyms, (self._kept_texts | names).__contains__)
        for stream in self._streams.values():
            stream.replace(random, self._pseudonyms, avoided)

    def result(self) -> Recording:
        body = b"".join(part if isinstance(part, bytes) else _bytes(part.result()) for part in self._parts)
        return Recording(body, self._sidecar.result(self._recording.sidecar, body))

    def surviving_words(self, redacted: Recording) -> frozenset[str]:
        """Words of the original that are still there and should not be."""
        in_body = (self._words & set(words(_text(redacted.body)))) - self._kept_words
        in_sidecar = {word for text in texts(redacted.sidecar) for word in words(text)} - self._sidecar.kept_words
        return in_body | (in_sidecar & (self._words | self._sidecar_words))

    # The body as documents.

    def _event_stream(self, body: bytes) -> Iterator[bytes | Document]:
        """The body in parts; what the lines of an event's data are in the document comes out line by line."""
        if body.startswith(_BOM):
            yield _BOM
            body = body[len(_BOM) :]
        block: list[tuple[str, str, str]] = []  # of each line: what stands before its text, the text, the line end
        for line in _LINE.finditer(body):
            if not line.group():
                break
            text, end = _text(line.group()[: line.start(1) - line.start()]), _text(line.group(1))
            if not text:
                yield from self._block(block)
                block = []
                yield _bytes(end)
                continue
            head, colon, rest = text.partition(":")
            blank = " " if colon and rest.startswith(" ") else ""
            block.append((head + colon + blank, rest[len(blank) :], end))
        yield from self._block(block)

    def _block(self, lines: list[tuple[str, str, str]]) -> Iterator[bytes | Document]:
        data = [rest for head, rest, _ in lines if _field(head) == "data"]
        payload = _Lines(self._payload("\n".join(data)), len(data)) if data else None
        for head, rest, end in lines:
            name = _field(head)
            if name == "data" and payload is not None:
                yield _bytes(head)
                yield payload.line()
            else:
                yield from self._other_line(name, head, rest)
            yield _bytes(end)

    def _other_line(self, name: str, head: str, rest: str) -> Iterator[bytes | Document]:
        if name == "event" and rest in protocol.EVENT_NAMES:
            self._kept_words.update(words(rest))
            yield _bytes(head + rest)
        elif name in ("event", "id"):
            document = Document(rest)
            self.add(("field", name, rest), literal(document, 0, len(rest)), whole_name, joined=False)
            yield _bytes(head)
            yield document
        elif name == "retry":
            document = Document(rest)
            self.add(("field", name), literal(document, 0, len(rest)), plain, joined=False)
            yield _bytes(head)
            yield document
        else:
            document = Document(head + rest)
            self.add(("field", ""), literal(document, 0, len(document.text)), plain, joined=False)
            yield document

    def _payload(self, text: str) -> Document:
        document = Document(text)
        if text.strip(_BLANKS) == "[DONE]":
            self._kept_words.update(words(text))
            return document
        read_payload(self, document)
        return document

    # What is called by the payloads.

    def add(self, key: object, piece: Piece, changes: Changes, *, joined: bool) -> None:
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = Stream(changes, joined)
        stream.pieces.append(piece)

    def keeps(self, text: str, key: str | None) -> bool:
        """Whether the caller wants the field as it is."""
        if key in self._keep:
            self.matched.add(key)
            self._kept_words.update(words(text))
            return True
        return False

    def keep_word(self, text: str) -> None:
        self._kept_texts.add(text)
        self._kept_words.update(words(text))

    def call_key(self, choice: int, index: object, call_id: object) -> object:
        """Which call an argument piece belongs to."""
        if isinstance(index, int):
            self._last_call[choice] = index
        elif isinstance(call_id, str) and call_id:
            self._last_call[choice] = call_id
        return self._last_call.get(choice, 0)


class _Lines:
    """A document of several lines, which the body has in several places."""

    def __init__(self, document: Document, count: int) -> None:
        self._document = document
        self._count = count
        self._handed_out = 0
        self._results: list[str] | None = None

    def line(self) -> Document:
        """The next one."""
        at, self._handed_out = self._handed_out, self._handed_out + 1
        return self._document if self._count == 1 else _Line(self, at)

    def result(self, at: int) -> str:
        if self._results is None:
            self._results = self._document.result().split("\n")
        return self._results[at]


class _Line(Document):
    __slots__ = ("_at", "_lines")

    def __init__(self, lines: _Lines, at: int) -> None:
        super().__init__("")
        self._lines = lines
        self._at = at

    def result(self) -> str:
        return self._lines.result(self._at)


def _is_event_stream(recording: Recording) -> bool:
    sidecar = recording.sidecar
    if sidecar.status is not None and stream_for(sidecar.reading).start(sidecar.status, sidecar.headers):
        return False
    return _FIELD_LINE.search(recording.body) is not None or recording.body.lstrip()[:1] not in (b"{", b"<")


def _field(head: str) -> str:
    return head.rstrip(" ").removesuffix(":") if head.endswith((":", ": ")) else head


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
