"""Many recordings at a glance, in memory that does not grow with their number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from heapq import heappush, heappushpop
from itertools import count
from statistics import median_low
from typing import Any

from ..capture import Recording
from ..capture.drift import drift_between, shape_of
from .timeline import Timeline

MOST_ROWS = 2000
MOST_SHAPES = 5000
TOP = 10
UNREADABLE = "unreadable"

OUTCOMES = (
    "accepted",
    "incomplete",
    "not_accepted",
    "provider_error",
    "http_error",
    "protocol_error",
    "limit_exceeded",
    UNREADABLE,
)
"""In the order in which they are drawn."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One recording in the collection; None is "not known". An unreadable one has its `code` only."""

    name: str
    outcome: str
    code: str | None = None
    model: str | None = None
    route: str | None = None
    recorded_at: str | None = None
    bytes: int | None = None
    events: int | None = None
    tokens: int | None = None
    first_content_seconds: float | None = None
    seconds: float | None = None


def entry_of(name: str, recording: Recording, timeline: Timeline) -> Entry:
    sidecar, usage = recording.sidecar, timeline.verdict.usage
    return Entry(
        name=name,
        outcome=timeline.verdict.outcome,
        code=timeline.verdict.code,
        model=timeline.snapshot.model or sidecar.model,
        route=sidecar.route,
        recorded_at=sidecar.recorded_at,
        bytes=len(recording.body),
        events=timeline.events,
        tokens=None if usage is None else usage.total_tokens,
        first_content_seconds=sidecar.first_content_seconds,
        seconds=timeline.end if timeline.timed else None,
    )


@dataclass(frozen=True, slots=True)
class Drift:
    """What changed between the older and the newer half of the recordings of one model by one route."""

    group: str
    older: int
    newer: int
    changes: tuple[str, ...]


class _Top:
    """The entries with the highest values."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Entry]] = []
        self._number = count()

    def add(self, value: float | None, entry: Entry) -> None:
        if value is None:
            return
        item = (value, -next(self._number), entry)
        if len(self._heap) < TOP:
            heappush(self._heap, item)
        else:
            heappushpop(self._heap, item)

    def entries(self) -> tuple[Entry, ...]:
        return tuple(entry for _, _, entry in sorted(self._heap, reverse=True, key=lambda item: item[:2]))


@dataclass(slots=True)
class Collection:
    """Counts of everything that was added, the slowest and the largest, and the first MOST_ROWS of all."""

    outcomes: Counter[str] = field(default_factory=Counter)
    codes: Counter[tuple[str, str]] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    bytes: int = 0
    events: int = 0
    rows: list[Entry] = field(default_factory=list)
    _slowest: _Top = field(default_factory=_Top)
    _largest: _Top = field(default_factory=_Top)
    _shapes: dict[tuple[str, str], list[tuple[str, str, dict[str, Any]]]] = field(default_factory=dict)
    _shapes_kept: int = 0

    @property
    def total(self) -> int:
        return sum(self.outcomes.values())

    @property
    def slowest(self) -> tuple[Entry, ...]:
        return self._slowest.entries()

    @property
    def largest(self) -> tuple[Entry, ...]:
        return self._largest.entries()

    def add(self, entry: Entry) -> None:
        self.outcomes[entry.outcome] += 1
        self.models[entry.model or "unknown"] += 1
        self.bytes += entry.bytes or 0
        self.events += entry.events or 0
        if entry.code is not None:
            self.codes[entry.outcome, entry.code] += 1
        if len(self.rows) < MOST_ROWS:
            self.rows.append(entry)
        self._slowest.add(entry.seconds, entry)
        self._largest.add(entry.bytes, entry)

    def add_shape(self, entry: Entry, recording: Recording) -> None:
        """Take the recording into the comparison of older with newer ones; the first MOST_SHAPES are."""
        if self._shapes_kept < MOST_SHAPES:
            self._shapes_kept += 1
            group = self._shapes.setdefault((entry.model or "unknown model", entry.route or ""), [])
            group.append((entry.recorded_at or "", entry.name, shape_of(recording)))

    def drift(self) -> tuple[Drift, ...]:
        """By model and route, wherever there are two recordings or more. Sizes and times are those in the middle."""
        found = []
        for (model, route), shapes in sorted(self._shapes.items()):
            if len(shapes) < 2:
                continue
            ordered = [shape for _, _, shape in sorted(shapes, key=lambda item: item[:2])]
            half = len(ordered) // 2
            older, newer = ordered[:half], ordered[half:]
            changes = tuple(drift_between(_merged(older), _merged(newer)))
            found.append(Drift(f"{model} {route}".strip(), len(older), len(newer), changes))
        return tuple(found)


def _merged(shapes: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """One shape for several answers: what any of them has, and the middle of their figures."""
    values: dict[str, list[Any]] = {}
    for shape in shapes:
        for name, value in shape.items():
            values.setdefault(name, []).append(value)
    return {name: _together(found) for name, found in values.items()}


def _together(values: list[Any]) -> Any:
    if isinstance(values[0], list):
        return sorted({item for value in values for item in value})
    known = [value for value in values if value is not None]
    return median_low(known) if known else None
