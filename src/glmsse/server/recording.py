"""A recording as the stand-in provider sends it: its head, its pieces with the pauses before them, its end."""

from __future__ import annotations

from dataclasses import dataclass

from ..capture import Recording, UnfitRecording
from .answers import EVENT_STREAM, Ending, by_event

LONGEST_PAUSE = 600.0
_OF_THE_CONNECTION = frozenset(("content-type", "content-encoding", "content-length", "date"))
_ENDINGS: dict[str, Ending] = {
    "error": "cut",
    "cancelled": "stay",
    "deadline_first_byte": "stay",
    "deadline_idle": "stay",
    "deadline_total": "stay",
}


@dataclass(frozen=True)
class Replay:
    """What is sent. `pieces` are those of the body, each with the seconds to wait before it."""

    pieces: tuple[tuple[float, bytes], ...]
    status: int = 200
    media_type: str = EVENT_STREAM
    headers: tuple[tuple[str, str], ...] = ()
    ending: Ending = "end"

    @classmethod
    def load(cls, path: str, *, pace: float | None = None) -> Replay:
        """OSError, UnfitRecording. A pace (seconds an event) goes before recorded times."""
        recording = Recording.load(path)
        sidecar = recording.sidecar
        pieces = _pauses(recording) if pace is None else tuple((pace, event) for event in by_event(recording.body))
        return cls(
            pieces,
            status=sidecar.status or 200,
            media_type=sidecar.headers.get("content-type", EVENT_STREAM),
            headers=tuple(item for item in sidecar.headers.items() if item[0] not in _OF_THE_CONNECTION),
            ending=_ENDINGS.get(sidecar.terminal.end or "", "end"),
        )


def _pauses(recording: Recording) -> tuple[tuple[float, bytes], ...]:
    pieces = []
    before = 0.0
    for moment, piece in recording.timed_pieces():
        if moment - before > LONGEST_PAUSE:
            raise UnfitRecording("it has a pause that is too long to be sent again")
        pieces.append((moment - before, piece))
        before = moment
    return tuple(pieces)
