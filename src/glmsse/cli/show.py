"""`glmsse events` and `glmsse text`: one stream, as it arrives."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from ..chat import ChatStream
from ..events import ChatEvent, ContentDelta, Failed, ReasoningDelta
from ..verdict import Verdict
from .mistaken import Pieces
from .outcome import exit_code
from .source import add_stream_options, stream_for
from .terminal import quoted, safe


def add_to(commands: Any) -> None:
    events = commands.add_parser("events", help="print the typed events of a stream, one a line, and its verdict")
    events.add_argument("--json", action="store_true", help="print JSON objects (default: readable lines)")
    events.set_defaults(run=run_events)
    text = commands.add_parser("text", help="print the visible answer as it arrives; the verdict goes to stderr")
    text.add_argument("--raw", action="store_true", help="do not escape control characters (default: escape them)")
    text.set_defaults(run=run_text)
    for parser in (events, text):
        parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="a recorded body (default: -, stdin)")
        parser.add_argument("--reasoning", action="store_true", help="show reasoning too (default: hidden)")
        add_stream_options(parser)


def run_events(args: argparse.Namespace) -> int:
    stream = stream_for(args)
    show = show_json if args.json else show_line
    pieces = Pieces(args.file)
    for event in _events(stream, pieces):
        show(event, args.reasoning)
    verdict = stream.close()
    if args.json:
        print(json.dumps({"type": "verdict", **verdict.to_dict()}))
    else:
        print(f"verdict  {describe(verdict)}", flush=True)
    pieces.hint(stream)
    return exit_code(verdict)


def _events(stream: ChatStream, pieces: Pieces) -> Iterator[ChatEvent]:
    for data in pieces:
        yield from stream.feed(data)
    stream.close()
    yield from stream.closing_events


def show_json(event: ChatEvent, reasoning: bool) -> None:
    fields = event.to_dict()
    if isinstance(event, ReasoningDelta) and not reasoning:
        fields["text"] = None
        fields["chars"] = len(event.text)
    print(json.dumps(fields), flush=True)


def show_line(event: ChatEvent, reasoning: bool) -> None:
    if isinstance(event, Failed):
        print(f"{event.type}  {event.error.code}", flush=True)
        return
    fields = event.to_dict()
    del fields["type"]
    fields.pop("raw", None)
    if isinstance(event, ReasoningDelta) and not reasoning:
        fields["text"] = len(event.text)
    shown = (f"{name}={quoted(value) if isinstance(value, str) else value}" for name, value in fields.items())
    print(event.type, *shown, sep="  ", flush=True)


def run_text(args: argparse.Namespace) -> int:
    stream = stream_for(args)
    shown = (ContentDelta, ReasoningDelta) if args.reasoning else (ContentDelta,)
    last = "\n"
    pieces = Pieces(args.file)
    for event in _events(stream, pieces):
        if isinstance(event, shown):
            last = event.text
            print(last if args.raw else safe(last), end="", flush=True)
    if not last.endswith("\n"):
        print()
    sys.stdout.flush()
    verdict = stream.close()
    print(f"glmsse: {describe(verdict)}", file=sys.stderr)
    pieces.hint(stream)
    return exit_code(verdict)


def describe(verdict: Verdict) -> str:
    """The verdict in one line for people."""
    if verdict.error is None:
        reason, calls = verdict.finish_reason, len(verdict.tool_calls)
        tolerated = f", tolerated: {', '.join(verdict.tolerated)}" if verdict.tolerated else ""
        return f"accepted ({reason}, {calls} tool calls{tolerated})"
    return f"{verdict.outcome} at {verdict.stage}: {verdict.error} [replay: {verdict.replay}]"
