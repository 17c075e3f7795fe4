"""What of a stream may go on to the client. No I/O.

Bytes go on as they came, in whole events: an event is held until its blank line is there, so that the one which turns
out to be at fault can be withheld. What is held is bounded by `Limits.max_event_bytes`.
"""

from __future__ import annotations

import re

from ..chat import ChatStream
from ..errors import ProviderError
from ..events import Failed
from ..verdict import Verdict
from .passage import Passage, WriteError, may_end, verdict_comment

# A CR before an LF is half of a line end, never one of its own.
_BLANK_LINE = re.compile(rb"(?:\r\n|\r(?!\n)|\n){2,}")
_EVENT_END = re.compile(rb"(?:\r\n|\r(?!\n)|\n)[\r\n]")
_SENTINEL_LINE = re.compile(rb"(?:\A|[\r\n])(?:\xef\xbb\xbf)?data:[ \t]*\[DONE\][ \t]*[\r\n]")
_LONGEST_SPLIT = 3  # of the four bytes of CR LF CR LF, so many can have come before


class Tap(Passage):
    """Lets the bytes of a stream pass as they are.

    In enforce mode (`withhold`) a fault ends the stream: the event at
    fault and all that follows are withheld, and an error event is sent instead. A provider's own error event goes on
    before it. The sentinel goes on only if the answer is accepted, or if its finish reason says by itself that it is
    cut or withheld. Otherwise everything goes on at once.
    """

    __slots__ = ("_comment", "_held", "_withhold", "_write_error")

    def __init__(
        self, stream: ChatStream, write_error: WriteError, *, withhold: bool = True, comment: bool = False
    ) -> None:
        super().__init__(stream)
        self._write_error = write_error
        self._withhold = withhold
        self._comment = comment
        self._held = bytearray()

    def feed(self, data: bytes) -> bytes:
        if self.over:
            return b""
        events = self.stream.feed(data)
        if not events and not self._held and data.endswith(b"\n\n"):
            return data  # what nearly every read comes to: whole events, and nothing about them to say
        if not self._withhold:
            return data
        verdict = self.stream.verdict
        if verdict is None:
            return self._release(data)
        self.over = True
        self._held += data
        return self._last(verdict, events[-1])

    def finish(self, error: BaseException | str | None = None) -> bytes:
        verdict = self.stream.close(error)
        if self.over or not self._withhold:
            return b""
        self.over = True
        return bytes(self._held) if may_end(verdict) else self._write_error(verdict)

    def _release(self, data: bytes) -> bytes:
        held = self._held
        searched = max(0, len(held) - _LONGEST_SPLIT)
        held += data
        end = _last_boundary(held, searched, len(held))
        ready = bytes(held[:end])
        del held[:end]
        return ready

    def _last(self, verdict: Verdict, event: object) -> bytes:
        held = self._held
        if isinstance(event, Failed):
            offset = event.error.offset
            base = self.stream.bytes_seen - len(held)
            limit = 0 if offset is None else max(0, offset - base)
            end = _whole_events(held, limit)
            own = _block(held, end) if isinstance(event.error, ProviderError) else b""
            return bytes(held[:end]) + own + self._write_error(verdict)
        found = _SENTINEL_LINE.search(held)
        start = _whole_events(held, found.start() + 1) if found else len(held)
        if not may_end(verdict):
            return bytes(held[:start]) + self._write_error(verdict)
        comment = verdict_comment(verdict) if self._comment else b""
        return bytes(held[:start]) + comment + _block(held, start)


def _last_boundary(data: bytearray, start: int, end: int) -> int:
    """Behind the last blank line between the two places, or 0."""
    if data.find(b"\r", start, end) < 0:
        return data.rfind(b"\n\n", start, end) + 2 if data.find(b"\n\n", start, end) >= 0 else 0
    last = 0
    for found in _BLANK_LINE.finditer(data, start, end):
        last = found.end()
    return last


def _whole_events(data: bytearray, end: int) -> int:
    """Behind the last blank line before `end`.

    Where there is none, behind the line ends at the start: they belong to what went on before, like the LF of its CR.
    """
    last = _last_boundary(data, 0, end)
    if last:
        return last
    start = data[:end]
    return len(start) - len(start.lstrip(b"\r\n"))


def _block(data: bytearray, start: int) -> bytes:
    """The block at `start`, leading blank lines included, with the blank line that ends its event and no other.

    An event is read at the first byte of that line, wherever a read ends; if it is half of a CR LF, the rest is added.
    """
    text = start
    while data.startswith((b"\r", b"\n"), text):
        text += 1
    found = _EVENT_END.search(data, text)
    if found is None:
        return bytes(data[start:])
    block = bytes(data[start : found.end()])
    return block + b"\n" if block.endswith(b"\n\r") else block
