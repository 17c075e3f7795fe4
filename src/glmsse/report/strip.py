"""A timeline in a few lines of text, for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from . import figures
from .charts import binned
from .timeline import LANES, Timeline

_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = ".:-=+*#@"
_MARKS = {"usage": "u", "finish": "f", "done": "d", "failed": "X"}
_LABEL = 12


class Line(NamedTuple):
    """What it is about, by name, and the text."""

    kind: str
    label: str
    text: str


def strip(timeline: Timeline, width: int, *, ascii_only: bool = False) -> list[Line]:
    """The lines, each at most `width` characters long with its label."""
    cells = max(10, width - _LABEL - 2)
    lines = [Line("phase", "phase", _phases(timeline, cells))]
    bars = _PLAIN_BARS if ascii_only else _BARS
    lines += [Line(lane, lane, _lane(timeline, lane, cells, bars)) for lane in LANES if lane != "control"]
    lines += [Line("control", "control", _control(timeline, cells))]
    drawn = [line for line in lines if line.text.strip()]
    return [*drawn, Line("axis", "", _axis(timeline, cells))] if drawn else []


def plain(lines: list[Line]) -> Iterator[str]:
    """The lines with their labels."""
    return (f"{line.label:>{_LABEL}}  {line.text}".rstrip() for line in lines)


def _phases(timeline: Timeline, cells: int) -> str:
    """The first letter of the phase that each cell begins in."""
    row = [" "] * cells
    for phase in timeline.phases:
        start, end = (int(place / timeline.end * cells) if timeline.end else 0 for place in (phase.start, phase.end))
        row[start : max(end, start + 1)] = phase.name[0] * (max(end, start + 1) - start)
    return "".join(row[:cells])


def _lane(timeline: Timeline, lane: str, cells: int, bars: str) -> str:
    sizes = [sum(moment.size for moment in part) if part else -1 for part in binned(timeline, lane, cells)]
    largest = max(max(sizes), 1)
    return "".join(" " if size < 0 else bars[min(len(bars) - 1, size * len(bars) // (largest + 1))] for size in sizes)


def _control(timeline: Timeline, cells: int) -> str:
    """A mark for each event; for the last one of several in a cell."""
    return "".join(_MARKS[part[-1].type] if part else " " for part in binned(timeline, "control", cells))


def _axis(timeline: Timeline, cells: int) -> str:
    start, middle, end = (figures.place(timeline.end * share, timeline.timed) for share in (0, 0.5, 1))
    left = f"{start}{middle:^{max(0, cells - len(start) - len(end))}}"
    return f"{left}{end}"
