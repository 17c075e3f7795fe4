"""A leak is growth in each settled round: of references or of blocks."""

from __future__ import annotations

import refcounts


def output(*rounds: tuple[int, int]) -> str:
    lines = [f"pure round {at} references {deltas[0]} blocks {deltas[1]}" for at, deltas in enumerate(rounds, 1)]
    return "\n".join([*lines, "25"])


def test_growth_that_ends_is_no_leak() -> None:
    assert refcounts.grows(output((900, 80), (40, 2), (0, 0), (0, 0), (2, 0), (0, 0), (-2, 1)), rounds=8) == []


def test_a_reference_each_round_is_a_leak() -> None:
    assert len(refcounts.grows(output((900, 80), (40, 2), (9, 0), (1, 0), (1, 0), (1, 0), (1, 0)), rounds=8)) == 4


def test_a_block_each_round_is_a_leak() -> None:
    assert len(refcounts.grows(output((900, 80), (40, 2), (9, 0), (0, 3), (0, 3), (0, 3), (0, 3)), rounds=8)) == 4


def test_a_run_that_told_nothing_is_no_proof() -> None:
    assert refcounts.grows("", rounds=8) == ["no round was counted"]
