"""One task of an audit: a batch of files in, a row for each out. Runs in any process, and never raises for a file."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from ..capture.packed import BrokenGzip, unpacked
from ..capture.recording import MOST_SIDECAR_BYTES, stream_for
from ..capture.sidecar import LONGEST_SECONDS, Reading, Sidecar, UnfitSidecar
from ..chat import ChatStream
from ..errors import MisuseError, finish_code
from ..events import Usage
from ..verdict import Verdict
from .columns import Cell, Row, row_of, unreadable
from .finding import Found, Unread, error_of, is_url, sidecar_of

READ_BYTES = 64 * 1024
MAX_FILE_BYTES = 1024**3
LARGEST_NUMBER = 2**63 - 1
"""That a column can hold; providers may write larger ones."""

_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)


@dataclass(frozen=True, slots=True)
class Settings:
    """How files are read.

    reading         where no sidecar says it
    sha256          also take the digest of each body, and hold it against its sidecar
    max_file_bytes  the most that is read of a file, unpacked
    """

    reading: Reading = field(default_factory=Reading)
    sha256: bool = False
    max_file_bytes: int = MAX_FILE_BYTES


class _Unfit(Exception):
    """The file cannot be judged; the message is one of columns.ERRORS."""


def read_batch(settings: Settings, batch: Sequence[Found]) -> list[Row]:
    """The rows of a batch, in its order."""
    return [_row(settings, found) for found in batch]


def _row(settings: Settings, found: Found) -> Row:
    error, error_class = found.error, found.error_class
    if error is None:
        try:
            return _read(settings, found)
        except _Unfit as problem:
            error = str(problem)
        except Unread as problem:
            error, error_class = "unreadable", str(problem)
        except Exception as problem:  # whatever it is, it is about one file of many
            error, error_class = _word_for(problem), type(problem).__name__
    return unreadable(found.path, found.size, error, error_class)


def _word_for(problem: Exception) -> str:
    if isinstance(problem, BrokenGzip):
        return "broken_gzip"
    if isinstance(problem, OSError):
        return error_of(problem)
    if isinstance(problem, UnfitSidecar):
        return "unfit_sidecar"
    if isinstance(problem, MisuseError):
        return "unfit_reading"
    return "out_of_memory" if isinstance(problem, MemoryError) else "failed"


def _read(settings: Settings, found: Found) -> Row:
    if (found.size or 0) > settings.max_file_bytes:
        raise _Unfit("too_large")
    sidecar, total_seconds = _sidecar(found)
    reading = settings.reading if sidecar is None else sidecar.reading
    stream = stream_for(reading, deltas=False)
    if sidecar is not None and sidecar.status is not None:
        stream.start(sidecar.status, sidecar.headers)
    digest = sha256() if settings.sha256 else None
    size = 0
    for piece in _pieces(found):
        size += len(piece)
        if size > settings.max_file_bytes:
            raise _Unfit("too_large")
        stream.feed(piece)
        if digest is not None:
            digest.update(piece)
    hexdigest = None if digest is None else digest.hexdigest()
    if sidecar is not None and (sidecar.bytes != size or hexdigest not in (None, sidecar.sha256)):
        raise _Unfit("unfit_sidecar")  # it belongs to another body
    verdict = stream.close(None if sidecar is None else sidecar.terminal.ending())
    cells: dict[str, Cell] = {"path": found.path, "size": found.size, "sha256": hexdigest, "profile": reading.profile}
    if sidecar is not None:
        cells["route"], cells["model"] = _plain(sidecar.route), _plain(sidecar.model)
        cells["first_event_seconds"] = sidecar.first_event_seconds
        cells["first_content_seconds"] = sidecar.first_content_seconds
        cells["total_seconds"] = total_seconds
    cells.update(_verdict_cells(verdict))
    cells.update(_counts(stream))
    cells.update(_usage(verdict.usage))
    return row_of(cells)


def _plain(text: str | None) -> str | None:
    """The text as it can be written: JSON may hold halves of surrogate pairs, UTF-8 may not."""
    return text and text.encode(errors="replace").decode()


def _verdict_cells(verdict: Verdict) -> dict[str, Cell]:
    reason = verdict.finish_reason
    return {
        "outcome": verdict.outcome,
        "accepted": verdict.accepted,
        "stage": verdict.stage,
        "code": verdict.code,
        "category": verdict.category,
        "offset": None if verdict.error is None else verdict.error.offset,
        "replay": verdict.replay,
        "finish_reason": reason and finish_code(reason).removeprefix("finish_"),
        "done": verdict.done,
    }


def _counts(stream: ChatStream) -> dict[str, Cell]:
    choices = stream.snapshot.choices
    return {
        "events": stream.events_seen,
        "content_chars": sum(len(choice.content) for choice in choices),
        "reasoning_chars": sum(len(choice.reasoning_content) for choice in choices),
        "tool_calls": sum(len(choice.tool_calls) for choice in choices),
    }


def _usage(usage: Usage | None) -> dict[str, Cell]:
    if usage is None:
        return {}
    names = ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens")
    numbers = {name: getattr(usage, name) for name in names}
    return {
        name: None if number is None or number > LARGEST_NUMBER else int(number) for name, number in numbers.items()
    }


def _pieces(found: Found) -> Iterator[bytes]:
    """The body, unpacked."""
    if is_url(found.path):
        from .remote import read_remote  # needs the extra

        stored = read_remote(found.path, found.size)
    else:
        stored = _stored(found.path)
    return unpacked(found.path, stored)


def _stored(path: str) -> Iterator[bytes]:
    file = os.open(path, _FLAGS)
    try:
        while data := os.read(file, READ_BYTES):
            yield data
    finally:
        os.close(file)


def _sidecar(found: Found) -> tuple[Sidecar | None, float | None]:
    """What is known of the body, and when its last bytes came. The times of all the others are not looked at."""
    beside = None if found.has_sidecar is False else sidecar_of(found.path)
    raw = None if beside is None else _sidecar_bytes(beside)
    if raw is None:
        return None, None
    if len(raw) > MOST_SIDECAR_BYTES:
        raise UnfitSidecar
    document: Any = None
    with suppress(ValueError, RecursionError):
        document = json.loads(raw)
    chunks = document.pop("chunks", None) if isinstance(document, dict) else None
    return Sidecar.from_dict(document), _last_second(chunks)


def _sidecar_bytes(path: str) -> bytes | None:
    """A sidecar, of a too large one the beginning; None if it has gone since the body was found."""
    if is_url(path):
        from .remote import read_remote_sidecar  # needs the extra

        return read_remote_sidecar(path)
    with suppress(FileNotFoundError):
        pieces, size = [], 0
        for piece in _stored(path):
            pieces.append(piece)
            size += len(piece)
            if size > MOST_SIDECAR_BYTES:
                break
        return b"".join(pieces)
    return None


def _last_second(chunks: object) -> float | None:
    if not isinstance(chunks, list) or not chunks or not isinstance(chunks[-1], list):
        return None
    seconds = chunks[-1][0] if chunks[-1] else None
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return None
    return float(seconds) if 0 <= seconds <= LONGEST_SECONDS else None
