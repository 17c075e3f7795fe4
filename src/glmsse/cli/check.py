"""`glmsse check`: the verdicts of recorded bodies, as a table and a summary."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from typing import Any

from ..verdict import Verdict
from .outcome import UNREADABLE, Unreadable, exit_code
from .source import add_stream_options, read_pieces, stream_for
from .terminal import safe, table


def add_to(commands: Any) -> None:
    parser = commands.add_parser("check", help="print the verdicts of recorded bodies, and a summary")
    parser.add_argument("files", nargs="+", metavar="FILE", help="recorded bodies, *.gz packed ones; - is stdin")
    parser.add_argument("--json", action="store_true", help="print one JSON object a file (default: a table)")
    add_stream_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """The exit code is 2 if a file cannot be read, else the highest one of the single verdicts."""
    rows: list[tuple[str, ...]] = []
    outcomes: Counter[str] = Counter()
    codes = [0]
    stream_for(args)  # wrong options are one error, not one a file
    for path in args.files:
        try:
            events, verdict = _read(path, args)
        except Unreadable as problem:
            outcomes["unreadable"] += 1
            codes.append(UNREADABLE)
            print(f"glmsse: {problem}", file=sys.stderr)
            continue
        outcomes[verdict.outcome] += 1
        codes.append(exit_code(verdict))
        if args.json:
            print(json.dumps({"file": path, "events": events, **verdict.to_dict()}), flush=True)
        else:
            rows.append(_row(path, events, verdict))
    if rows:
        print(table(("file", "events", "outcome", "code", "finish", "tokens", "replay"), rows))
    if not args.json:
        counts = ", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common())
        print(f"\n{len(args.files)} checked: {counts}")
    return UNREADABLE if outcomes["unreadable"] else max(codes)


def _read(path: str, args: argparse.Namespace) -> tuple[int, Verdict]:
    stream = stream_for(args, deltas=False)
    for data in read_pieces(path):
        stream.feed(data)
    verdict = stream.close()
    return stream.events_seen, verdict


def _row(path: str, events: int, verdict: Verdict) -> tuple[str, ...]:
    tokens = "-" if verdict.usage is None else str(verdict.usage.total_tokens)
    return (
        safe(path),
        str(events),
        verdict.outcome,
        verdict.code or "-",
        verdict.finish_reason or "-",
        tokens,
        verdict.replay,
    )
