"""A timeline as shapes: bars, bands, marks and curves, in a drawing WIDTH by HEIGHT that is stretched to fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import NamedTuple

from .figures import place, plural, size
from .timeline import LANES, Moment, Timeline

WIDTH = 1000
HEIGHT = 40
BINS = 250
TICKS = 5
_LEAST_HEIGHT = 3.0
_MOST_POINTS = 500


class Box(NamedTuple):
    """A rectangle, what it is by name, and what it says when pointed at."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    title: str


class Lane(NamedTuple):
    """The events about one thing: a bar for each of BINS parts of the axis in which one came; its area is bytes."""

    name: str
    boxes: tuple[Box, ...]
    events: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Chart:
    """A timeline, drawn.

    bands      the phases, and the longest pause if it is known
    lanes      those that have events; control events are marks, one each
    received, tokens    curves, as the points of an SVG polyline; "" if there is nothing to draw
    ticks      labels at equal distances
    """

    bands: tuple[Box, ...]
    lanes: tuple[Lane, ...]
    received: str
    tokens: str
    ticks: tuple[str, ...]


def chart_of(timeline: Timeline) -> Chart:
    return Chart(
        bands=tuple(_bands(timeline)),
        lanes=tuple(lane for name in LANES if (lane := _lane(timeline, name)).events),
        received=_curve(timeline, timeline.received),
        tokens=_curve(timeline, timeline.tokens),
        ticks=tuple(place(timeline.end * tick / (TICKS - 1), timeline.timed) for tick in range(TICKS)),
    )


def binned(timeline: Timeline, lane: str, bins: int) -> list[list[Moment]]:
    """The lane's events in so many equal parts of the axis."""
    parts: list[list[Moment]] = [[] for _ in range(bins)]
    for moment in timeline.moments:
        if moment.lane == lane:
            parts[min(bins - 1, int(_share(timeline, moment.at) * bins))].append(moment)
    return parts


def _lane(timeline: Timeline, name: str) -> Lane:
    moments = [moment for moment in timeline.moments if moment.lane == name]
    boxes = _marks(timeline, moments) if name == "control" else _bars(timeline, name)
    return Lane(name, tuple(boxes), len(moments), sum(moment.size for moment in moments))


def _bars(timeline: Timeline, lane: str) -> Iterator[Box]:
    parts = binned(timeline, lane, BINS)
    width = WIDTH / BINS
    largest = max((sum(moment.size for moment in part) for part in parts), default=0) or 1
    for number, part in enumerate(parts):
        if part:
            total = sum(moment.size for moment in part)
            height = max(_LEAST_HEIGHT, HEIGHT * sqrt(total / largest))
            title = f"{place(part[0].at, timeline.timed)}: {plural(len(part), 'event')}, {size(total)} of text"
            yield Box(lane, _round(number * width), _round(HEIGHT - height), _round(width), _round(height), title)


def _marks(timeline: Timeline, moments: Sequence[Moment]) -> Iterator[Box]:
    width = WIDTH / BINS
    drawn = set()
    for moment in moments:
        x = _round(min(WIDTH - width, _share(timeline, moment.at) * WIDTH))
        if (x, moment.type) not in drawn:
            drawn.add((x, moment.type))
            yield Box(moment.type, x, 0, width, HEIGHT, f"{place(moment.at, timeline.timed)}: {moment.type}")


def _bands(timeline: Timeline) -> Iterator[Box]:
    for phase in timeline.phases:
        length = (
            place(phase.end - phase.start, True) if timeline.timed else plural(int(phase.end - phase.start), "event")
        )
        yield _band(timeline, phase.name, phase.start, phase.end, f"{phase.name}: {length}")
    pause = timeline.longest_pause()
    if pause is not None:
        yield _band(timeline, "pause", *pause, f"longest pause: {place(pause[1] - pause[0], True)}")


def _band(timeline: Timeline, kind: str, start: float, end: float, title: str) -> Box:
    x = _share(timeline, start) * WIDTH
    width = max(1.0, _share(timeline, end) * WIDTH - x)
    return Box(kind, _round(x), 0, _round(width), HEIGHT, title)


def _curve(timeline: Timeline, points: Sequence[tuple[float, int]]) -> str:
    """From the lower left corner up to the last value."""
    if not points or not points[-1][1]:
        return ""
    step = max(1, len(points) // _MOST_POINTS)
    shown = [(0.0, 0), *points[::step], points[-1], (timeline.end, points[-1][1])]
    highest = max(value for _, value in shown)
    return " ".join(
        f"{_round(_share(timeline, at) * WIDTH)},{_round(HEIGHT - HEIGHT * value / highest)}" for at, value in shown
    )


def _share(timeline: Timeline, at: float) -> float:
    return at / timeline.end if timeline.end else 0.0


def _round(value: float) -> float:
    return round(value, 1)
