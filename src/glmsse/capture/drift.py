"""What has changed between two runs over the same fixtures, beside verdicts: fields, their order, finish reasons, sizes
and the shape of the timing. Says nothing of any text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from .recording import Recording, framed
from .sidecar import Reading

MOST_FIELDS = 400
SIZE_STEP = 1.5
TIME_STEP = 2.0
LEAST_SECONDS = 0.5
"""A size that grows or shrinks by this factor is drift, and so is a time; times below half a second are noise."""

_PLAIN_KEY_CHARS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.-")


def shape_of(recording: Recording, reading: Reading | None = None) -> dict[str, Any]:
    """The shape of a recording, as JSON; read as its sidecar says, unless there is another `reading`."""
    events = framed(recording.body, reading or recording.sidecar.reading)
    fields: dict[str, None] = {}
    reasons: dict[str, None] = {}
    largest = 0
    for event in events:
        largest = max(largest, len(event.data.encode(errors="replace")))
        try:
            value = json.loads(event.data)
        except (ValueError, RecursionError):
            continue
        for path, leaf in _paths(value):
            if len(fields) < MOST_FIELDS:
                fields.setdefault(path)
            if path.endswith(".finish_reason") and isinstance(leaf, str):
                reasons.setdefault(leaf if _is_plain(leaf) else "other")
    sidecar = recording.sidecar
    seconds = [seconds for seconds, _ in sidecar.chunks]
    pauses = [two - one for one, two in pairwise(seconds)]
    return {
        "fields": list(fields),
        "finish_reasons": sorted(reasons),
        "bytes": len(recording.body),
        "events": len(events),
        "largest_event_bytes": largest,
        "first_event_seconds": sidecar.first_event_seconds,
        "first_content_seconds": sidecar.first_content_seconds,
        "total_seconds": seconds[-1] if seconds else None,
        "longest_pause_seconds": round(max(pauses, default=0.0), 6) if seconds else None,
    }


def drift_between(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What has changed, one sentence each."""
    return list(_drift(before, now))


def _drift(before: dict[str, Any], now: dict[str, Any]) -> Iterator[str]:
    old, new = before.get("fields", []), now["fields"]
    added, gone = [path for path in new if path not in old], [path for path in old if path not in new]
    if added:
        yield f"new fields: {', '.join(added)}"
    if gone:
        yield f"fields gone: {', '.join(gone)}"
    both = set(old) & set(new)
    if [path for path in old if path in both] != [path for path in new if path in both]:
        yield "the order of fields has changed"
    reasons = [reason for reason in now["finish_reasons"] if reason not in before.get("finish_reasons", [])]
    if reasons:
        yield f"new finish reasons: {', '.join(reasons)}"
    for name in ("bytes", "events", "largest_event_bytes"):
        if _has_moved(before.get(name), now[name], SIZE_STEP, 0):
            yield f"{name.replace('_', ' ')}: {before.get(name)} → {now[name]}"
    for name in ("first_event_seconds", "first_content_seconds", "total_seconds", "longest_pause_seconds"):
        if _has_moved(before.get(name), now[name], TIME_STEP, LEAST_SECONDS):
            yield f"{name.replace('_', ' ')}: {before.get(name)} → {now[name]}"


def _has_moved(before: object, now: object, step: float, least: float) -> bool:
    if not isinstance(before, (int, float)) or not isinstance(now, (int, float)):
        return (before is None) != (now is None)
    low, high = sorted((before, now))
    return high > least and high > low * step


def _paths(value: object, path: str = "", depth: int = 0) -> Iterator[tuple[str, object]]:
    """Every leaf with its path, list places left out; keys that could be text are `*`."""
    if isinstance(value, dict) and value and depth < 32:
        for key, item in value.items():
            step = key if _is_plain(key) else "*"
            yield from _paths(item, f"{path}.{step}" if path else step, depth + 1)
    elif isinstance(value, list) and value and depth < 32:
        for item in value:
            yield from _paths(item, f"{path}[]", depth + 1)
    else:
        yield path, value


def _is_plain(word: str) -> bool:
    return 0 < len(word) <= 64 and _PLAIN_KEY_CHARS.issuperset(word)
