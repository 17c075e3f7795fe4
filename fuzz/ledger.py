"""How often each target was executed: one JSON line for each part of a run, counted for the sources as they are now.

python -m fuzz.ledger FILE …    takes the runs of other ledgers into this one, one line a run, if their sources are
                                those of now; a run that is here already is replaced by its longer account
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from .builds import ROOT, source_hash
from .targets import NAMES, target

LEDGER = Path(__file__).resolve().parent / "ledger.jsonl"
CLEAN = "clean"


@dataclass(frozen=True)
class Entry:
    """A run, or a part of it."""

    run: str
    """Its time of start and target, the same in all its parts."""
    target: str
    driver: str
    executions: int
    seconds: float
    seed: int
    commit: str
    hash: str
    """Of the target's SOURCES."""
    result: str
    """"clean", or the name of the file with the input that was found."""


def append(path: Path, entry: Entry) -> None:
    """Adds a line; what is written stays if the run is cut off."""
    with path.open("a", encoding="ascii") as file:
        file.write(json.dumps(asdict(entry)) + "\n")


def read(path: Path) -> list[Entry]:
    """All lines; none if there is no such file."""
    if not path.is_file():
        return []
    return [Entry(**json.loads(line)) for line in path.read_text("ascii").splitlines()]


def joined(entries: Iterable[Entry]) -> dict[str, Entry]:
    """The runs, with their parts added up."""
    runs: dict[str, Entry] = {}
    for entry in entries:
        before = runs.get(entry.run)
        if before is not None:
            executions, seconds = before.executions + entry.executions, round(before.seconds + entry.seconds, 1)
            entry = replace(entry, executions=executions, seconds=seconds)
        runs[entry.run] = entry
    return runs


def current(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Those whose sources are still the same."""
    hashes = {name: source_hash(target(name).SOURCES) for name in NAMES}
    return (entry for entry in entries if hashes.get(entry.target) == entry.hash)


def collect(into: Path, others: Iterable[Path]) -> int:
    """Takes over the current runs of other ledgers; how many lines are new or longer."""
    kept = joined(read(into))
    changed = 0
    for path in others:
        for run, entry in joined(current(read(path))).items():
            if run not in kept or kept[run].executions < entry.executions:
                kept[run] = entry
                changed += 1
    ordered = sorted(kept.values(), key=lambda entry: (entry.run, entry.target))
    into.write_text("".join(json.dumps(asdict(entry)) + "\n" for entry in ordered), "ascii")
    return changed


def table(path: Path) -> str:
    """Executions by target: of the sources as they are now, and of all time."""
    entries = read(path)
    rows = [("target", "executions", "hours", "found", "of all time")]
    for name in NAMES:
        mine = [entry for entry in entries if entry.target == name]
        now = list(current(mine))
        counts = sum(entry.executions for entry in now), sum(entry.executions for entry in mine)
        hours = sum(entry.seconds for entry in now) / 3600
        found = sum(entry.result != CLEAN for entry in now)
        rows.append((name, f"{counts[0]:,}", f"{hours:.1f}", str(found), f"{counts[1]:,}"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows)


def commit() -> str:
    """The commit that is checked out, marked if it was changed; "" outside of git."""
    command = ["git", "describe", "--always", "--abbrev=12", "--dirty=+", "--exclude=*"]
    asked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    return asked.stdout.strip()


if __name__ == "__main__":
    print(f"{collect(LEDGER, map(Path, sys.argv[1:]))} runs taken over")
    print(table(LEDGER))
