"""The rows of `compare.py` for a history of benchmarks: `python -m pytest benchmarks --benchmark-enable`."""

from __future__ import annotations

from typing import Any

import pytest

import compare

EVENTS = 10_002
PACKAGES = {build: compare.load(build) for build in ("compiled", "pure")}
ROWS = {row.name: row for row in compare.rows(PACKAGES, EVENTS)}


@pytest.mark.parametrize("name", ROWS)
def test_speed(benchmark: Any, name: str) -> None:
    row = ROWS[name]
    benchmark.extra_info["bytes"] = sum(map(len, row.pieces))
    benchmark.pedantic(row.ours, args=(row.pieces,), rounds=5, warmup_rounds=1)
