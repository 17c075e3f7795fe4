"""When what came in a recorded stream. Of its texts only their sizes are here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import NamedTuple

from ..capture import Recording
from ..capture.recording import stream_for
from ..completion import Completion
from ..events import ChatEvent, ContentDelta, ReasoningDelta
from ..verdict import Verdict

LANES = {
    "reasoning": "reasoning",
    "content": "answering",
    "tool_calls": "calling",
    "control": "",
}
"""What events are about, in the order in which they are drawn, and the phase that the stream is in while they come."""

PHASES = ("waiting", "reasoning", "answering", "calling")

_LANE_OF = {
    "reasoning.delta": "reasoning",
    "content.delta": "content",
    "tool_call.start": "tool_calls",
    "tool_call.arguments.delta": "tool_calls",
    "tool_call.end": "tool_calls",
}
_MOST_UNTIMED_PIECES = 1000


class Moment(NamedTuple):
    """One event: where it is on the axis, its `type`, what it is about, and the UTF-8 bytes of its text."""

    at: float
    type: str
    lane: str
    size: int


class Phase(NamedTuple):
    """What the stream did, from one place on the axis to another."""

    name: str
    start: float
    end: float


@dataclass(frozen=True, slots=True, repr=False)
class Timeline:
    """A recorded stream as it went.

    timed      the axis is seconds since the request was sent; else it is the number of the event
    end        where the axis ends
    moments    every event
    phases     one after the other, without gaps
    received   (place, bytes so far) after each read
    tokens     (place, completion tokens so far), shared out by the bytes of text, since only their sum is told
    verdict, snapshot    of the whole; the snapshot has the texts
    events     Server-Sent Events
    """

    timed: bool
    end: float
    moments: tuple[Moment, ...]
    phases: tuple[Phase, ...]
    received: tuple[tuple[float, int], ...]
    tokens: tuple[tuple[float, int], ...]
    verdict: Verdict
    snapshot: Completion
    events: int

    def first(self, *lanes: str) -> float | None:
        """Where the first event of one of these lanes is."""
        return next((moment.at for moment in self.moments if moment.lane in lanes), None)

    def longest_pause(self) -> tuple[float, float] | None:
        """The two reads between which the stream was silent for longest; None where times are not known."""
        places = [at for at, _ in self.received]
        return max(pairwise(places), key=lambda pair: pair[1] - pair[0], default=None) if self.timed else None

    def tokens_per_second(self) -> float | None:
        """Completion tokens over the time in which text and calls came."""
        spoken = [moment.at for moment in self.moments if moment.lane != "control"]
        if not self.timed or self.verdict.usage is None or len(spoken) < 2 or spoken[-1] == spoken[0]:
            return None
        return self.verdict.usage.completion_tokens / (spoken[-1] - spoken[0])


def timeline_of(recording: Recording) -> Timeline:
    """Read a recording as its sidecar says; MisuseError names what of that this version does not know."""
    sidecar = recording.sidecar
    stream = stream_for(sidecar.reading)
    moments: list[Moment] = []
    received: list[tuple[float, int]] = []

    def take(events: Iterable[ChatEvent], seconds: float) -> None:
        for event in events:
            at = seconds if recording.timed else float(len(moments))
            moments.append(Moment(at, event.type, _LANE_OF.get(event.type, "control"), _size(event)))

    take([] if sidecar.status is None else stream.start(sidecar.status, sidecar.headers), 0.0)
    seconds = 0.0
    for seconds, piece in _timed_pieces(recording):
        take(stream.feed(piece), seconds)
        received.append((seconds if recording.timed else float(len(moments)), stream.bytes_seen))
    verdict = stream.close(sidecar.terminal.ending())
    take(stream.closing_events, seconds)
    end = seconds if recording.timed else float(len(moments))
    return Timeline(
        timed=recording.timed,
        end=end,
        moments=tuple(moments),
        phases=tuple(_phases(moments, end)),
        received=tuple(received),
        tokens=tuple(_tokens(moments, verdict)),
        verdict=verdict,
        snapshot=stream.snapshot,
        events=stream.events_seen,
    )


def _timed_pieces(recording: Recording) -> Iterator[tuple[float, bytes]]:
    """The reads; of a body whose reads are not known so many equal parts that the bytes can be drawn."""
    if recording.timed:
        yield from recording.timed_pieces()
        return
    size = max(1, -(-len(recording.body) // _MOST_UNTIMED_PIECES))
    for start in range(0, len(recording.body), size):
        yield 0.0, recording.body[start : start + size]


def _size(event: ChatEvent) -> int:
    text = event.text if isinstance(event, (ContentDelta, ReasoningDelta)) else getattr(event, "arguments", "")
    return len(text.encode(errors="surrogatepass"))


def _tokens(moments: Iterable[Moment], verdict: Verdict) -> Iterator[tuple[float, int]]:
    spoken = [moment for moment in moments if moment.size]
    whole = sum(moment.size for moment in spoken)
    if verdict.usage is not None:
        for moment, so_far in zip(spoken, accumulate(moment.size for moment in spoken), strict=True):
            yield moment.at, verdict.usage.completion_tokens * so_far // whole


def _phases(moments: Iterable[Moment], end: float) -> Iterator[Phase]:
    name, start = "waiting", 0.0
    for moment in moments:
        now = LANES[moment.lane] or name
        if now != name:
            if moment.at > start:
                yield Phase(name, start, moment.at)
            name, start = now, moment.at
    if end > start or name != "waiting":
        yield Phase(name, start, end)
