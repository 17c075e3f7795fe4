"""How much an audit adds to reading: python benchmarks/audit.py

Makes collections in a temporary folder (copies are hard links), and compares in one run, round by round,

- the CPU time of reading the same bytes, in memory already, by ChatStream with the verdict, with that of an audit by
  one worker in this process, its listing, journal and result included;
- the wall time of one worker with that of two, which are started anew each time; what starting takes is measured on a
  single recording and taken off.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent))

from corpus import glm, glm_short, multibyte, vllm
from glmsse import ChatStream
from glmsse.audit import Settings, audit
from glmsse.audit.reading import READ_BYTES
from glmsse.capture import Reading, Recording, Sidecar

CPU_GOAL = 0.8
WORKERS_GOAL = 1.8
SETTINGS = Settings(Reading(allow=("usage_optional", "done_optional")))
HEADERS = {"content-type": "text/event-stream"}
FOLDER_FILES = 500


def collections(scale: float) -> Iterator[tuple[str, list[bytes], int, bool]]:
    """Name, bodies, how often each comes, and whether each has a sidecar with the times of its reads."""
    answers = [glm(1500), vllm(1200), multibyte(1800), glm(900)]  # 180 to 450 kB
    yield "180 to 450 kB", answers, int(1500 * scale), False
    yield "180 to 450 kB, sidecars", answers, int(400 * scale), True
    yield "20 kB", [glm(100)], int(20_000 * scale), False
    yield "4 kB", [glm_short()], int(40_000 * scale), False


@contextmanager
def collection(bodies: list[bytes], copies: int, *, sidecars: bool) -> Iterator[Path]:
    root = Path(tempfile.mkdtemp(prefix="glmsse-audit-"))
    try:
        for kind, body in enumerate(bodies):
            chunks = tuple((at / 1e5, min(1460, len(body) - at)) for at in range(0, len(body), 1460))
            original = root / f"{kind}.sse"
            Recording(body, Sidecar(status=200, headers=HEADERS, chunks=chunks)).write(original)
            for number in range(copies):
                folder = root / "in" / f"{kind}-{number // FOLDER_FILES}"
                folder.mkdir(parents=True, exist_ok=True)
                os.link(original, folder / f"{number}.sse")
                if sidecars:
                    os.link(original.with_suffix(".json"), folder / f"{number}.json")
        yield root
    finally:
        shutil.rmtree(root)


class Spent(NamedTuple):
    cpu: float
    wall: float


def read_in_memory(bodies: list[bytes], copies: int) -> Spent:
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(copies):
        for body in bodies:
            stream = ChatStream(allow=SETTINGS.reading.allow, deltas=False)
            for at in range(0, len(body), READ_BYTES):
                stream.feed(body[at : at + READ_BYTES])
            stream.close()
    return Spent(time.process_time() - cpu, time.perf_counter() - wall)


def audited(root: Path, workers: int) -> Spent:
    for path in root.glob("v.csv*"):
        path.unlink()
    cpu, wall = time.process_time(), time.perf_counter()
    audit([root / "in"], root / "v.csv", workers=workers, settings=SETTINGS)
    return Spent(time.process_time() - cpu, time.perf_counter() - wall)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of recordings")
    args = parser.parse_args()
    with collection([glm_short()], 1, sidecars=False) as single:
        begin = min(audited(single, 2).wall for _ in range(3))
    print(f"starting two workers: {begin:.2f} s. Median and best of {args.rounds} rounds")
    goals = f"CPU share (goal {CPU_GOAL})  2 to 1 (goal {WORKERS_GOAL})"
    print(f"{'recordings':24} {'files':>6} {'MB':>5} {'MB/s':>5}  {goals}")
    for name, bodies, copies, sidecars in collections(args.scale):
        with collection(bodies, copies, sidecars=sidecars) as root:
            audited(root, 1)  # what the system caches is cached now
            rounds = [
                (read_in_memory(bodies, copies), audited(root, 1), audited(root, 2).wall - begin)
                for _ in range(args.rounds)
            ]
        size = copies * sum(map(len, bodies)) / 1e6
        library, alone, together = zip(*rounds, strict=True)
        share = statistics.median(read.cpu / one.cpu for read, one, _ in rounds)
        best_share = min(read.cpu for read in library) / min(one.cpu for one in alone)
        gain = statistics.median(one.wall / two for _, one, two in rounds)
        best_gain = min(one.wall for one in alone) / min(together)
        rate = size / min(one.cpu for one in alone)
        numbers = f"{share:9.2f} {best_share:5.2f}        {gain:9.2f} {best_gain:5.2f}"
        print(f"{name:24} {copies * len(bodies):6} {size:5.0f} {rate:5.0f}  {numbers}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
