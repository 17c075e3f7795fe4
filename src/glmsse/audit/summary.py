"""An audit in one value: what a table, a report or a program shows of it."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, cast

from .columns import UNREADABLE
from .journal import Journal

MOST_LISTED = 10
MOST_WORDS = 1000
"""Finish reasons are the peers' words, so there may be any number of codes."""


@dataclass(frozen=True, slots=True)
class Summary:
    """What came of an audit, over all its rows.

    outcomes, codes, errors, models, profiles   how many rows have each, the most frequent first
    size      bytes of the files as stored
    largest   paths with their size; slowest: paths with their total_seconds, where sidecars say it
    """

    recordings: int
    accepted: int
    size: int
    events: int
    content_chars: int
    reasoning_chars: int
    tool_calls: int
    total_tokens: int
    outcomes: dict[str, int]
    codes: dict[str, int]
    errors: dict[str, int]
    models: dict[str, int]
    profiles: dict[str, int]
    largest: tuple[tuple[str, int], ...]
    slowest: tuple[tuple[str, float], ...]

    @property
    def unreadable(self) -> int:
        return self.outcomes.get(UNREADABLE, 0)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


_SUMS = ("accepted", "size", "events", "content_chars", "reasoning_chars", "tool_calls", "total_tokens")


def summarise(journal: Journal) -> Summary:
    """The summary of all rows, which are counted where they are."""
    # Not SUM, which fails where the numbers of a hostile body add up to more than 64 bits.
    sums = ", ".join(f"CAST(TOTAL({name}) AS INTEGER)" for name in _SUMS)
    recordings, *totals = cast("list[tuple[int, ...]]", journal.ask(f"SELECT COUNT(*), {sums} FROM rows"))[0]
    return Summary(
        recordings=recordings,
        **dict(zip(_SUMS, totals, strict=True)),
        outcomes=_frequent(journal, "outcome"),
        codes=_frequent(journal, "code"),
        errors=_frequent(journal, "error"),
        models=_frequent(journal, "model"),
        profiles=_frequent(journal, "profile"),
        largest=cast("tuple[tuple[str, int], ...]", _most(journal, "size")),
        slowest=cast("tuple[tuple[str, float], ...]", _most(journal, "total_seconds")),
    )


def _frequent(journal: Journal, name: str) -> dict[str, int]:
    counted = journal.ask(
        f"SELECT {name}, COUNT(*) FROM rows WHERE {name} IS NOT NULL "
        f"GROUP BY {name} ORDER BY COUNT(*) DESC, {name} LIMIT {MOST_WORDS}"
    )
    return dict(cast("list[tuple[str, int]]", counted))


def _most(journal: Journal, name: str) -> tuple[tuple[object, ...], ...]:
    return tuple(
        journal.ask(
            f"SELECT path, {name} FROM rows WHERE {name} IS NOT NULL ORDER BY {name} DESC, path LIMIT {MOST_LISTED}"
        )
    )
