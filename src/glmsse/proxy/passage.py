"""What the body of an answer goes through on its way to the client. No I/O."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from ..chat import ChatStream
from ..encode import write_comment
from ..errors import GENERATION
from ..verdict import Verdict
from .requests import RawHeaders

WriteError = Callable[[Verdict], bytes]


class Passage(ABC):
    """Judges one answer; `feed` and `finish` return what may be sent of it.

    stream  reads what the upstream sends
    over    nothing more is to be read
    """

    __slots__ = ("over", "stream")

    def __init__(self, stream: ChatStream) -> None:
        self.stream = stream
        self.over = False

    def start(self, status: int, headers: RawHeaders) -> bool:
        """Whether the body may go through; if not, `stream` may still be fed with it, to learn why."""
        return not self.stream.start(status, headers)

    @abstractmethod
    def feed(self, data: bytes) -> bytes:
        """What may be sent now."""

    @abstractmethod
    def finish(self, error: BaseException | str | None = None) -> bytes:
        """What may be sent at the end of the body, or when something else ended it."""

    def ping(self) -> bytes:
        """A sign of life for the client, or nothing where there must be none."""
        return b""

    @property
    def verdict(self) -> Verdict:
        """The verdict; asking for it ends the reading."""
        return self.stream.close()

    @property
    def received_bytes(self) -> int:
        """Of the body, from the upstream."""
        return self.stream.bytes_seen


def may_end(verdict: Verdict) -> bool:
    """Whether the client may see a normal end."""
    return verdict.accepted or verdict.stage == GENERATION


def verdict_comment(verdict: Verdict) -> bytes:
    """The verdict as a comment in the stream."""
    return write_comment(verdict_line(verdict))


def verdict_line(verdict: Verdict) -> str:
    """The verdict in one line of ASCII, for a comment or a trailer."""
    return f"glmsse outcome={verdict.outcome} code={verdict.code or '-'} replay={verdict.replay}"
