"""`glmsse bench`: how fast both builds read a recording of the user's own."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from typing import Any

from ..chat import ChatStream
from ..framing import IMPLEMENTATION
from .outcome import ACCEPTED, Unreadable
from .source import add_stream_options, read_pieces, stream_for, stream_words
from .terminal import table

BUILDS = ("compiled", "pure")
PACKAGE = (__package__ or "").rpartition(".")[0]


def add_to(commands: Any) -> None:
    parser = commands.add_parser("bench", help="time both builds on a recorded body")
    parser.add_argument("file", metavar="FILE", help="a recorded body")
    parser.add_argument("--build", choices=(*BUILDS, "both"), default="both", help="which build (default: both)")
    parser.add_argument("--feed", type=int, default=16 * 1024, metavar="N", help="bytes a feed (default: 16384)")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds; medians count (default: 7)")
    parser.add_argument("--json", action="store_true", help="print one JSON object a build (default: a table)")
    add_stream_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.feed < 1 or args.rounds < 1:
        raise Unreadable("--feed and --rounds take positive numbers")
    if args.build != "both":
        _show([_measure(args)], args)
        return ACCEPTED
    if args.file == "-":
        raise Unreadable("bench reads its file once a build, so it takes no standard input")
    _show([_measure_elsewhere(build, args) for build in BUILDS], args)
    return ACCEPTED


def _measure(args: argparse.Namespace) -> dict[str, Any]:
    if args.build != IMPLEMENTATION:
        raise Unreadable(f"the {args.build} build is not active here; glmsse info says why")
    body = b"".join(read_pieces(args.file))
    pieces = [body[at : at + args.feed] for at in range(0, len(body), args.feed)]
    seconds: list[float] = []
    for _ in range(args.rounds - 1):
        _read(pieces, args, seconds)
    stream = _read(pieces, args, seconds)
    median = max(statistics.median(seconds), 1e-9)
    events = stream.events_seen
    return {
        "build": args.build,
        "bytes": len(body),
        "events": events,
        "seconds": median,
        "events_per_second": events / median,
        "megabytes_per_second": len(body) / median / 1e6,
        "template_share": stream._lane.template_hits / max(events, 1),
        "fast_share": stream.fast_events_seen / max(events, 1),
        "outcome": stream.close().outcome,
    }


def _read(pieces: list[bytes], args: argparse.Namespace, seconds: list[float]) -> ChatStream:
    """One round, whose time is added to the others."""
    stream = stream_for(args, deltas=False)
    start = time.process_time()
    for piece in pieces:
        stream.feed(piece)
    stream.close()
    seconds.append(time.process_time() - start)
    return stream


def _measure_elsewhere(build: str, args: argparse.Namespace) -> dict[str, Any]:
    """The same in a process of its own: a process has one build."""
    environment = {**os.environ, "GLMSSE_PURE_PYTHON": "1" if build == "pure" else "0"}
    command = [sys.executable, "-m", PACKAGE, "bench", args.file, "--build", build, "--json"]
    command += ["--feed", str(args.feed), "--rounds", str(args.rounds), *stream_words(args)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Unreadable(done.stderr.strip().removeprefix("glmsse: ") or f"the {build} build failed")
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def _show(measured: list[dict[str, Any]], args: argparse.Namespace) -> None:
    if args.json:
        for one in measured:
            print(json.dumps(one))
        return
    rows = [
        (
            one["build"],
            f"{one['events']:,}",
            f"{one['events_per_second']:,.0f}",
            f"{one['megabytes_per_second']:.1f}",
            f"{one['template_share']:.1%}",
            f"{one['fast_share']:.1%}",
            one["outcome"],
        )
        for one in measured
    ]
    print(table(("build", "events", "events/s", "MB/s", "by template", "by fast lane", "outcome"), rows))
    if len(measured) == 2:
        print(f"\ncompiled is {measured[1]['seconds'] / measured[0]['seconds']:.1f} times as fast as pure")
