"""What a body may be that holds no piece of a chat completion stream. A hint for people: the verdict is the verdict."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from ..chat import ChatStream
from .source import read_pieces

MOST_HEAD = 2048

_KINDS: tuple[tuple[str, str], ...] = (
    (r"\x1f\x8b", "gzip: decode it first, or ask for Accept-Encoding: identity"),
    (r"HTTP/\d", "a response with its headers: record the body alone (curl without -i)"),
    (r"\s*\{\s*\"error\"", "a JSON error body: the request was refused before any stream began"),
    (r"\s*\{.*\"chat\.completion\"", 'a whole chat completion: the request was sent without "stream": true'),
    (r"\s*[\[{]", "JSON, not an event stream: an error body, or an answer that was not streamed"),
    (r"\s*<", "HTML or XML: a page of a server on the way, not the answer of a model"),
    (r"(.*\n)?(event: ?message_start|data: ?\{\"type\": ?\"message_start\")", "an Anthropic Messages stream"),
    (r"(.*\n)?(event: ?response\.|data: ?\{\"type\": ?\"response\.)", "an OpenAI Responses stream"),
)  # fmt: skip
"""The beginning of a body, and what it looks like; the first that fits is meant."""

_KNOWN = [(re.compile(pattern.encode(), re.DOTALL), words) for pattern, words in _KINDS]


class Pieces:
    """The bytes of a file or of standard input, whose beginning is kept."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._head = b""

    def __iter__(self) -> Iterator[bytes]:
        for data in read_pieces(self._path):
            if len(self._head) < MOST_HEAD:
                self._head += data[: MOST_HEAD - len(self._head)]
            yield data

    def hint(self, stream: ChatStream) -> None:
        """One line on standard error if nothing of a chat stream came, but something else that is known."""
        words = None if stream.pieces_seen else kind_of(self._head)
        if words is not None:
            print(f"glmsse: the input looks like {words}", file=sys.stderr)


def kind_of(head: bytes) -> str | None:
    """What a body looks like that begins so, in words without any of it; None for a chat stream or the unknown."""
    head = head.removeprefix(b"\xef\xbb\xbf")
    return next((words for pattern, words in _KNOWN if pattern.match(head)), None)
