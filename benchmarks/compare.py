"""Times glmsse against its peers: `python benchmarks/compare.py [--rounds N] [--events N] [--only WORD]`.

All candidates of a row get the same pieces in the same process, in interleaved rounds; the ratio of a row is the median
of the ratios of its rounds, by CPU time. Exit 1 if a ratio is below its floor. What the peers do is in `peers.py`.
"""

from __future__ import annotations

import argparse
import importlib
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType

import corpus
import peers

Pieces = Sequence[bytes]
Run = Callable[[Pieces], object]


@dataclass(frozen=True)
class Row:
    """One comparison: who reads which pieces, against whom, and how many times faster it has to be."""

    name: str
    ours: Run
    peer: Run
    pieces: Pieces
    floor: float
    goal: float | None = None
    peer_pieces: Pieces | None = None
    """Fewer pieces for a peer that is slow by nature; times are then taken per byte."""


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

    def run(pieces: Pieces) -> int:
        framer = package.SSEFramer(limits)
        return sum(len(framer.feed(piece)) for piece in pieces)

    return run


def chat_run(package: ModuleType, **options: object) -> Run:
    def run(pieces: Pieces) -> object:
        stream = package.ChatStream(**options)
        for piece in pieces:
            stream.feed(piece)
        return stream.close()

    return run


def many(run: Run, streams: int) -> Run:
    """The same short stream so many times, construction included."""

    def run_all(pieces: Pieces) -> None:
        for _ in range(streams):
            run(pieces)

    return run_all


def cpu_seconds(run: Run, pieces: Pieces) -> float:
    start = time.process_time()
    run(pieces)
    return time.process_time() - start


def ratio(row: Row, rounds: int) -> float:
    """How many times faster than the peer."""
    theirs = row.pieces if row.peer_pieces is None else row.peer_pieces
    scale = sum(map(len, row.pieces)) / sum(map(len, theirs))
    row.ours(row.pieces)
    ratios = []
    for _ in range(rounds):
        ours = cpu_seconds(row.ours, row.pieces)
        ratios.append(cpu_seconds(row.peer, theirs) * scale / ours)
    return statistics.median(ratios)


FRAMER_BARS = {"compiled": ((8, 14), (7, 12), (5, 9)), "pure": ((2.5, 4), (1.8, 2.5), (1.2, 1.6))}
HOSTILE_FLOOR = 1.0


def rows(packages: dict[str, ModuleType], events: int) -> list[Row]:
    stream = corpus.glm(events)
    read_16k, read_64k = corpus.pieces(stream, 16 * 1024), corpus.pieces(stream, 64 * 1024)
    by_event = corpus.event_pieces(stream)
    feeds = {"16 KiB": read_16k, "1,460 bytes": corpus.pieces(stream, 1460), "one event": by_event}
    made = [
        Row(f"{build} framer, {feed} a feed", framer_run(packages[build]), peers.httpx_sse_events, pieces, floor, goal)
        for build in FRAMER_BARS
        for (feed, pieces), (floor, goal) in zip(feeds.items(), FRAMER_BARS[build], strict=True)
    ]
    compiled, pure = packages["compiled"], packages["pure"]
    text, tap = {"deltas": False}, {"deltas": False, "collect": False}
    short = corpus.event_pieces(corpus.glm_short())
    read_large = partial(corpus.pieces, size=16 * 1024)
    hostile = read_large(corpus.template_hostile(events))
    counted = corpus.usage_in_every_chunk(events // 5)
    few = corpus.pieces(corpus.glm(max(400, events // 50)), 16 * 1024)
    json_peer = peers.httpx_sse_json
    made += [
        Row(
            "compiled framer against decode and split",
            framer_run(compiled),
            peers.decode_and_split,
            read_16k,
            0.6,
            0.85,
        ),
        Row("compiled, text only, 16 KiB a feed", chat_run(compiled, **text), json_peer, read_16k, 60, 170),
        Row("compiled, text only, one event a feed", chat_run(compiled, **text), json_peer, by_event, 30, 70),
        Row("compiled, delta events, 16 KiB a feed", chat_run(compiled), json_peer, read_16k, 30, 80),
        Row("compiled, delta events, one event a feed", chat_run(compiled), json_peer, by_event, 20, 45),
        Row("compiled, template-hostile, 16 KiB a feed", chat_run(compiled, **text), json_peer, hostile, 15, 40),
        Row("compiled, text only, 1,460 bytes a feed", chat_run(compiled, **text), json_peer, feeds["1,460 bytes"], 30),
        Row(
            "compiled, text only, 64 bytes a feed", chat_run(compiled, **text), json_peer, corpus.pieces(stream, 64), 10
        ),
        Row("compiled, Chinese text", chat_run(compiled, **text), json_peer, read_large(corpus.multibyte(events)), 30),
        Row("compiled, vLLM's shape", chat_run(compiled, **text), json_peer, read_large(corpus.vllm(events)), 30),
        Row("compiled, usage in every chunk", chat_run(compiled, **text), json_peer, read_large(counted), 1),
        Row("compiled against the openai SDK", chat_run(compiled), peers.openai_stream, read_16k, 500, 2000, few),
        Row("compiled against the sample script", chat_run(compiled), peers.sample_script, read_16k, 20),
        Row("compiled framer and orjson against json", peers.framed(compiled, "orjson"), json_peer, read_16k, 1),
        Row("compiled framer and msgspec against json", peers.framed(compiled, "msgspec"), json_peer, read_16k, 1),
        Row("pure, text only, 16 KiB a feed", chat_run(pure, **text), json_peer, read_16k, 3, 8),
        Row("pure, text only, one event a feed", chat_run(pure, **text), json_peer, by_event, 2, 4.5),
        Row(
            "compiled tap against memchr, 64 KiB a feed",
            chat_run(compiled, **tap),
            peers.memchr_lines,
            read_64k,
            0.35,
            0.9,
        ),
        Row("compiled, 20 events and construction", many(chat_run(compiled), 200), many(json_peer, 200), short, 6, 15),
    ]
    size = len(stream) // 8
    adversarial = {
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
    return made + [
        Row(f"{build} framer, {name}", framer_run(packages[build]), peers.httpx_sse_events, pieces, HOSTILE_FLOOR)
        for build in packages
        for name, pieces in adversarial.items()
    ]


GROWTH_BAR = 5.0


def growth_rows(package: ModuleType) -> dict[str, Callable[[int], float]]:
    """Worst cases by name; each takes a size in bytes and returns the seconds that it took."""
    unlimited = dict.fromkeys(
        ("max_event_bytes", "max_event_lines", "max_stream_bytes", "max_events", "max_content_bytes"), None
    )

    def chat(pieces: Pieces) -> float:
        return cpu_seconds(chat_run(package, limits=package.Limits(**unlimited)), pieces)

    def fed(make: Callable[[int], bytes], feed: int, size: int) -> float:
        return chat(corpus.pieces(make(size), feed))

    return {
        "one byte a feed": partial(fed, lambda size: corpus.glm(size // 204), 1),
        "endless line in 64-byte feeds": partial(fed, corpus.endless_line, 64),
        "comments only": partial(fed, corpus.comments_only, 1460),
        "blank lines only": partial(fed, corpus.blank_lines, 1460),
        "many data lines": partial(fed, corpus.many_data_lines, 1460),
        "one large event": partial(fed, corpus.large_event, 64 * 1024),
    }


def recording_rows(package: ModuleType, folder: Path) -> list[Row]:
    """Recorded streams of chat completions, read over and over."""
    made = []
    for path in sorted(folder.glob("*.sse")):
        body = path.read_bytes()
        if body.count(b"chat.completion.chunk") > 20 and b'"error"' not in body:
            pieces, times = corpus.pieces(body, 1460), max(1, 400_000 // len(body))
            ours, theirs = chat_run(package, profile="gateway"), peers.httpx_sse_json
            made.append(Row(path.stem, many(ours, times), many(theirs, times), pieces, 1))
    return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5, help="rounds a row (default: 5)")
    parser.add_argument("--events", type=int, default=100_002, help="events of the usual stream (default: 100002)")
    parser.add_argument("--only", default="", metavar="WORD", help="rows whose name has this in it (default: all)")
    parser.add_argument("--recordings", type=Path, metavar="DIR", help="also time each recorded body in this folder")
    parser.add_argument("--share", type=float, default=1.0, help="part of a floor that must be reached (default: 1)")
    args = parser.parse_args()
    packages = {build: load(build) for build in ("compiled", "pure")}
    below = 0
    print(f"{'times faster than the peer':46}{'ratio':>9}{'floor':>8}{'goal':>8}")
    recorded = recording_rows(packages["compiled"], args.recordings) if args.recordings else []
    for row in rows(packages, args.events) + recorded:
        if args.only not in row.name:
            continue
        times = ratio(row, args.rounds)
        if times < row.floor * args.share:
            times = ratio(row, 3 * args.rounds)  # noise is more likely than a loss
        below += times < row.floor * args.share
        goal = "" if row.goal is None else f"{row.goal:8g}"
        note = "  below its floor" if times < row.floor else ""
        print(f"{row.name:46}{times:9.2f}{row.floor:8g}{goal}{note}", flush=True)
    print(f"\n{'growth at four times the size':46}{'ratio':>9}{'bar':>8}")
    for build, package in packages.items():
        size = 400_000 if build == "compiled" else 200_000
        for name, seconds in growth_rows(package).items():
            if args.only not in f"{build} {name}":
                continue
            times = min(seconds(4 * size) / max(seconds(size), 1e-6) for _ in range(3))
            below += times > GROWTH_BAR
            note = "  above its bar" if times > GROWTH_BAR else ""
            print(f"{build + ', ' + name:46}{times:9.2f}{GROWTH_BAR:8g}{note}", flush=True)
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
