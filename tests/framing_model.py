"""The framing rules once more, one byte at a time and without any care for speed: what both builds are held against."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

BOM = b"\xef\xbb\xbf"
NO_CAPS: dict[str, int | None] = dict.fromkeys(("max_event_bytes", "max_event_lines", "max_events", "max_stream_bytes"))


@dataclass
class Outcome:
    """What a stream comes to: events as (event, data, id, retry, offset), then an error as its facts, or None."""

    events: list[tuple[Any, ...]] = field(default_factory=list)
    error: tuple[Any, ...] | None = None


def framed(stream: bytes, limits: dict[str, int | None], errors: str = "strict") -> Outcome:
    """What the rules say about a whole stream and its end."""
    model = _Model({name: most or 2**63 for name, most in limits.items()}, errors)
    for offset, byte in enumerate(stream):
        if model.outcome.error is None:
            model.take(byte, offset)
    if model.outcome.error is None:
        model.end(len(stream))
    return model.outcome


def fed(glmsse: ModuleType, pieces: list[bytes], limits: dict[str, int | None], errors: str = "strict") -> Outcome:
    """What a framer of this build says about a stream that comes in these pieces, and then ends."""
    framer = glmsse.SSEFramer(glmsse.Limits(**limits), errors=errors)
    events: list[Any] = []
    error = None
    try:
        for piece in pieces:
            events += framer.feed(piece)
        events += framer.close()
    except glmsse.GlmsseError as fault:
        events += fault.events
        error = facts(fault)
    return Outcome([(e.event, e.data, e.id, e.retry, e.offset) for e in events], error)


def facts(fault: Any) -> tuple[Any, ...]:
    """An error of either build as plain values."""
    return (fault.code, fault.offset, *(getattr(fault, name, None) for name in ("limit", "maximum", "seen", "tail")))


class _Model:
    def __init__(self, limits: dict[str, int], errors: str) -> None:
        self.limits = limits
        self.errors = errors
        self.outcome = Outcome()
        self.held = b""
        self.bom_is_open = True
        self.after_cr = False
        self.line = b""
        self.lines = self.size = self.blanks = self.block_offset = 0
        self.event = self.id = ""
        self.retry: int | None = None
        self.data: list[bytes] = []

    def trip(self, code: str, limit: str, offset: int) -> None:
        most = self.limits[limit]
        self.outcome.error = (code, offset, limit, most, most + 1, None)

    def take(self, byte: int, offset: int) -> None:
        if offset >= self.limits.get("max_stream_bytes", 2**63):
            self.trip("stream_too_large", "max_stream_bytes", offset)
        elif self.bom_is_open:
            self.held += bytes([byte])
            if self.held == BOM:
                self.bom_is_open = False
                self.held = b""
            elif not BOM.startswith(self.held):
                self.bom_is_open = False
                held, self.held = self.held, b""
                for at, one in enumerate(held):
                    if self.outcome.error is None:
                        self.take_ordinary(one, at)
        else:
            self.take_ordinary(byte, offset)

    def take_ordinary(self, byte: int, offset: int) -> None:
        swallow = self.after_cr and byte == 0x0A
        self.after_cr = byte == 0x0D
        if swallow:
            return
        if byte not in b"\r\n":
            self.count(offset)
            self.line += bytes([byte])
        elif self.line:
            line, self.line = self.line, b""
            self.read(line, offset - len(line))
        elif self.blanks >= self.limits.get("max_events", 2**63):
            self.trip("too_many_events", "max_events", offset)
        else:
            self.blanks += 1
            self.dispatch()

    def count(self, offset: int) -> None:
        if self.size >= self.limits.get("max_event_bytes", 2**63):
            self.trip("event_too_large", "max_event_bytes", offset)
        elif not self.line and self.lines >= self.limits.get("max_event_lines", 2**63):
            self.trip("too_many_event_lines", "max_event_lines", offset)
        if not self.line:
            if not self.lines:
                self.block_offset = offset
            self.lines += 1
        self.size += 1

    def read(self, line: bytes, offset: int) -> None:
        if self.errors == "strict":
            try:
                line.decode()
            except UnicodeDecodeError as error:
                self.outcome.error = ("invalid_utf8", offset + error.start, None, None, None, None)
                return
        name, _, value = line.partition(b":")
        value = value[1:] if value[:1] == b" " else value
        if name == b"data":
            self.data.append(value)
        elif name == b"event":
            self.event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self.id = value.decode("utf-8", "replace")
        elif name == b"retry" and 1 <= len(value) <= 17 and all(0x30 <= digit <= 0x39 for digit in value):
            self.retry = int(value)

    def dispatch(self) -> None:
        if self.data:
            text = "\n".join(value.decode("utf-8", "replace") for value in self.data)
            self.outcome.events.append((self.event or "message", text, self.id, self.retry, self.block_offset))
        self.event = ""
        self.data = []
        self.lines = self.size = 0

    def end(self, offset: int) -> None:
        if self.line or self.data or self.held:
            tail = self.size + len(self.held)
            self.outcome.error = ("unterminated_event", offset, None, None, None, tail)
