"""An audit of many recordings against the library alone: `python benchmarks/audit.py [--only WORD]`.

The library has the same bodies in memory, 64 KiB a feed, and comes to a verdict on each; its time is CPU time. An audit
of one worker reads them from files and writes a row for each; its CPU time is that of the process, in the kernel too.
An audit of two workers counts all its processes. Each is measured in a process of its own, without that process's
start, in interleaved rounds; the least time of each counts. Exit 1 if a ratio is below its floor.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import corpus

from glmsse import ChatStream
from glmsse.audit import audit
from glmsse.capture import Recorder

FEED = 64 * 1024
DISTINCT = 40
"""Bodies that differ. All other files are links to these: each is opened and read, from the page cache."""

EVENTS_A_READ = 4
SECONDS_AN_EVENT = 0.02
CORE_FLOOR = 0.8
WORKERS_FLOOR = 1.8


@dataclass(frozen=True)
class Case:
    """A collection: what its files are like, and what part of the library's speed is asked of each core."""

    name: str
    bodies: Callable[[], Iterable[bytes]]
    bytes: int
    sidecars: bool = False
    floor: float | None = None


def large() -> Iterator[bytes]:
    """Answers of 160 to 460 kB."""
    return (corpus.glm(800 + 36 * number) for number in range(DISTINCT))


def short() -> Iterator[bytes]:
    """Answers of 4 kB."""
    return (corpus.glm_short() for _ in range(DISTINCT))


CASES = (
    Case("large", large, 2_000_000_000, floor=CORE_FLOOR),
    Case("large with sidecars", large, 1_000_000_000, sidecars=True),
    Case("short", short, 40_000_000),
)


def write(case: Case, folder: Path, share: float) -> None:
    """The collection, a thousand files a folder."""
    originals = []
    for number, body in enumerate(case.bodies()):
        original = folder / f"{number}.sse"
        if case.sidecars:
            _record(body, original)
        else:
            original.write_bytes(body)
        originals.append(original)
    size = sum(original.stat().st_size for original in originals)
    for number in range(1, max(1, round(case.bytes * share / size))):
        below = folder / f"{number * DISTINCT // 1000:04}"
        below.mkdir(exist_ok=True)
        for original in originals:
            for path in (original, *(original.with_suffix(".json"),) * case.sidecars):
                os.link(path, below / f"{number}-{path.name}")


def _record(body: bytes, path: Path) -> None:
    recorder = Recorder(model="glm-5.2", route="/api/paas/v4/chat/completions")
    stream = ChatStream()
    recorder.start(200, {"content-type": "text/event-stream"})
    events = corpus.event_pieces(body)
    for at in range(0, len(events), EVENTS_A_READ):
        piece = b"".join(events[at : at + EVENTS_A_READ])
        recorder.piece(piece, round((at + EVENTS_A_READ) * SECONDS_AN_EVENT, 6))
        stream.feed(piece)
    recording = recorder.finish(stream.close())
    assert recording is not None
    recording.write(path)


def of_library(folder: Path) -> dict[str, float]:
    """The library over all the bodies, which are in memory."""
    bodies = [corpus.pieces(path.read_bytes(), FEED) for path in sorted(folder.glob("*.sse"))]
    times = sum(path.suffix == ".sse" for _, path in _files(folder)) // len(bodies)
    events = 0
    start, began = time.process_time(), time.perf_counter()
    for _ in range(times):
        for pieces in bodies:
            stream = ChatStream(deltas=False)
            for piece in pieces:
                stream.feed(piece)
            stream.close()
            events += stream.events_seen
    cpu, seconds = time.process_time() - start, time.perf_counter() - began
    size = times * sum(len(piece) for pieces in bodies for piece in pieces)
    return {"cpu": cpu, "seconds": seconds, "files": times * len(bodies), "events": events, "bytes": size}


def of_audit(folder: Path, workers: int) -> dict[str, float]:
    """An audit by so many workers."""
    with TemporaryDirectory(prefix="glmsse-audit-") as results:
        start, began = _cpu(), time.perf_counter()
        summary = audit([folder], Path(results) / "rows.jsonl", workers=workers)
        cpu, seconds = _cpu() - start, time.perf_counter() - began
    numbers = {"files": summary.recordings, "events": summary.events, "bytes": summary.size}
    return {"cpu": cpu, "seconds": seconds, **numbers}


def _cpu() -> float:
    """Of this process and of its children that have ended, in the kernel too."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _files(folder: Path) -> Iterator[tuple[str, Path]]:
    return ((root, Path(root, name)) for root, _, names in os.walk(folder) for name in names)


MEASURES: dict[str, Callable[[Path], dict[str, float]]] = {
    "library": of_library,
    "one": lambda folder: of_audit(folder, 1),
    "two": lambda folder: of_audit(folder, 2),
}


def measured(folder: Path, what: str) -> dict[str, float]:
    """A measurement in a process of its own."""
    command = [sys.executable, __file__, "--measure", what, "--folder", str(folder)]
    numbers: dict[str, float] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return numbers


def best(folder: Path, rounds: int) -> dict[str, dict[str, float]]:
    """The least times of each; what is counted has to agree."""
    found: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for what in MEASURES:
            now = measured(folder, what)
            before = found.setdefault(what, now)
            found[what] = {name: min(number, before[name]) for name, number in now.items()}
            if any(now[name] != found["library"][name] for name in ("files", "events", "bytes")):
                raise SystemExit(f"{what}: its counts are not those of the library")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=5, help="rounds a case (default: 5)")
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name has this in it (default: all)")
    parser.add_argument("--size", type=float, default=1.0, help="part of the usual collections (default: 1)")
    parser.add_argument("--share", type=float, default=1.0, help="part of a floor that must be reached (default: 1)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where the collections are made (default: a temporary)")
    parser.add_argument("--measure", choices=MEASURES, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(MEASURES[args.measure](args.folder)))
        return 0
    below = 0
    head = ("case", "files", "library", "one worker", "two", "per core", "of two", "wall")
    print("{:21}{:>7}{:>13}{:>13}{:>13}{:>10}{:>8}{:>7}".format(*head))
    print("{:28}{:>13}{:>13}{:>13}{:>10}{:>8}{:>7}".format("", *("MB/s of CPU",) * 3, "of it", "of it", "ratio"))
    for case in CASES:
        if args.only not in case.name:
            continue
        with TemporaryDirectory(dir=args.folder, prefix="glmsse-audit-") as folder:
            write(case, Path(folder), args.size)
            found = best(Path(folder), args.rounds)
        library, one, two = (found[what] for what in MEASURES)
        speeds = [numbers["bytes"] / numbers["cpu"] / 1e6 for numbers in (library, one, two)]
        per_core, of_two = library["cpu"] / one["cpu"], library["cpu"] / two["cpu"]
        wall = one["seconds"] / two["seconds"]
        rates = "".join(f"{speed:13.0f}" for speed in speeds)
        print(f"{case.name:21}{library['files']:7}{rates}{per_core:10.2f}{of_two:8.2f}{wall:7.2f}", flush=True)
        if case.floor is not None:
            below += (per_core < case.floor * args.share) + (wall < WORKERS_FLOOR * args.share)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
