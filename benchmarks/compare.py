"""Times the framers against httpx-sse: `python benchmarks/compare.py [--rounds N] [--events N]`.

All candidates of a row get the same pieces in the same process, in interleaved rounds; the ratio of a row is the median
of the ratios of its rounds, by CPU time. Exit 1 if a ratio is below its floor.
"""

from __future__ import annotations

import argparse
import codecs
import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType

from httpx_sse._decoders import SSEDecoder, SSELineDecoder

import corpus

Run = Callable[[Iterable[bytes]], int]


@dataclass(frozen=True)
class Row:
    """One comparison: who reads which pieces, and how many times faster than httpx-sse it has to be."""

    name: str
    build: str
    pieces: list[bytes]
    floor: float
    goal: float | None = None


def load(build: str) -> ModuleType:
    """The package with this build, in a copy of its own."""
    os.environ["GLMSSE_PURE_PYTHON"] = "1" if build == "pure" else "0"
    for name in [name for name in sys.modules if name.partition(".")[0] == "glmsse"]:
        del sys.modules[name]
    package = importlib.import_module("glmsse")
    if build != package.IMPLEMENTATION:
        raise SystemExit(f"the {build} build is not there")
    return package


def framer_run(package: ModuleType) -> Run:
    limits = package.Limits(max_events=None, max_stream_bytes=None, max_event_bytes=None, max_event_lines=None)

    def run(pieces: Iterable[bytes]) -> int:
        framer = package.SSEFramer(limits)
        events = 0
        for piece in pieces:
            events += len(framer.feed(piece))
        return events

    return run


def httpx_sse_run(pieces: Iterable[bytes]) -> int:
    """What httpx-sse does between the bytes and its events, without httpx's own layers."""
    decode = codecs.getincrementaldecoder("utf-8")().decode
    lines, decoder = SSELineDecoder(), SSEDecoder()
    events = 0
    for piece in pieces:
        found = []
        for line in lines.decode(decode(piece)):
            event = decoder.decode(line.rstrip("\n"))
            if event is not None:
                found.append(event)
        events += len(found)
    return events


def cpu_seconds(run: Run, pieces: list[bytes]) -> float:
    start = time.process_time()
    run(pieces)
    return time.process_time() - start


def ratio(run: Run, pieces: list[bytes], rounds: int) -> float:
    """How many times faster than httpx-sse."""
    run(pieces)
    ratios = []
    for _ in range(rounds):
        ours = cpu_seconds(run, pieces)
        ratios.append(cpu_seconds(httpx_sse_run, pieces) / ours)
    return statistics.median(ratios)


def rows(events: int) -> list[Row]:
    stream = corpus.glm(events)
    size = len(stream) // 4
    usual = {
        "16 KiB a feed": corpus.pieces(stream, 16 * 1024),
        "1,460 bytes a feed": corpus.pieces(stream, 1460),
        "one event a feed": corpus.event_pieces(stream),
    }
    floors = {"compiled": ((8, 14), (7, 12), (5, 9)), "pure": ((2.5, 4), (1.8, 2.5), (1.2, 1.6))}
    made = [
        Row(name, build, pieces, floor, goal)
        for build in floors
        for (name, pieces), (floor, goal) in zip(usual.items(), floors[build], strict=True)
    ]
    hostile = {
        "one byte a feed": corpus.pieces(stream[: size // 8], 1),
        "comments only": corpus.pieces(corpus.comments_only(size), 16 * 1024),
        "comments only, one a feed": corpus.event_pieces(corpus.comments_only(size // 4)),
        "blank lines only": corpus.pieces(corpus.blank_lines(size // 8), 16 * 1024),
        "many data lines": corpus.pieces(corpus.many_data_lines(size), 16 * 1024),
        "CR line ends": corpus.pieces(corpus.cr_line_ends(size), 16 * 1024),
        "CRLF line ends": corpus.pieces(corpus.crlf_line_ends(size), 16 * 1024),
        "named events": corpus.pieces(corpus.named_events(size), 16 * 1024),
        "one line in 64-byte feeds": corpus.pieces(corpus.endless_line(size), 64),
    }
    return made + [Row(name, build, pieces, 1) for build in ("compiled", "pure") for name, pieces in hostile.items()]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds a row (default: 5)")
    parser.add_argument("--events", type=int, default=20_000, help="events of the usual stream (default: 20000)")
    args = parser.parse_args()
    runs = {build: framer_run(load(build)) for build in ("compiled", "pure")}
    print(f"{'times httpx-sse':12}{'':17}{'ratio':>8}{'floor':>8}{'goal':>8}")
    below = 0
    for row in rows(args.events):
        times = ratio(runs[row.build], row.pieces, args.rounds)
        below += times < row.floor
        goal = "" if row.goal is None else f"{row.goal:8.1f}"
        note = "  below its floor" if times < row.floor else ""
        print(f"{row.build:9} {row.name:27}{times:6.1f}{row.floor:8.1f}{goal}{note}", flush=True)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
