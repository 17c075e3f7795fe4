"""`glmsse demo`: the founding measurement's table, and every way to fail, from streams made in code."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..chat import ChatStream
from ..events import ArgumentsDelta
from ..framing import IMPLEMENTATION
from ..scenarios import FAILING, MEASURED, SCENARIOS, Scenario, uneven_pieces
from .evidence import terminal_evidence
from .extras import missing_from
from .outcome import ACCEPTED, NOT_ACCEPTED, Unreadable
from .terminal import quoted, safe, table

MEASURED_HEAD = ("case", "JSON events", "what came", "terminal evidence", "verdict")
FAILING_HEAD = ("what went wrong", "verdict", "stage", "code", "at byte", "replay")


def add_to(commands: Any) -> None:
    parser = commands.add_parser("demo", help="read made-up streams, good and broken, and show their verdicts")
    parser.add_argument("--json", action="store_true", help="print one JSON object a stream (default: two tables)")
    parser.add_argument(
        "--in-process",
        action="store_true",
        help="open no connection (default: the good streams come over HTTP on loopback if both extras are there)",
    )
    parser.add_argument("--write", metavar="DIR", help="write each stream into DIR as NAME.sse, and read none")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 if every stream got the verdict that its table promises."""
    if args.write is not None:
        return _write(Path(args.write))
    base, way, measured = _measured(args.in_process)
    failing = [_in_process(scenario) for scenario in FAILING]
    if args.json:
        for reading in (*measured, *failing):
            fields = {"case": reading.title, "events": reading.json_events, **reading.verdict.to_dict()}
            print(json.dumps({**fields, "over_http": base is not None and reading in measured}))
    else:
        print(
            f"glmsse demo ({IMPLEMENTATION} build): every stream is made in code; in process it is fed in uneven pieces"
        )
        print(f"the first five {way}\n")
        print(table(MEASURED_HEAD, [reading.measured_row() for reading in measured]))
        print()
        print(table(FAILING_HEAD, [reading.failing_row() for reading in failing]))
    as_promised = all(reading.verdict for reading in measured) and not any(reading.verdict for reading in failing)
    return ACCEPTED if as_promised else NOT_ACCEPTED


def _write(folder: Path) -> int:
    """The bodies as files; one that is there already is kept, and is an error."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for scenario in SCENARIOS.values():
            with open(folder / f"{scenario.name}.sse", "xb") as file:
                file.write(scenario.body)
    except OSError as problem:
        raise Unreadable(f"{safe(str(problem.filename))}: {problem.strerror or 'cannot be written'}") from None
    print(f"{len(SCENARIOS)} streams are in {safe(str(folder))}; try: glmsse text {safe(str(folder / 'text.sse'))}")
    return ACCEPTED


def _measured(in_process: bool) -> tuple[str | None, str, list[_Reading]]:
    """The server's address if there was one, how the streams came, and the readings."""
    missing = [package for extra in ("server", "http") for package in missing_from(extra)]
    if in_process:
        why = "as asked"
    elif missing:
        why = f"without {' and '.join(missing)}"
    else:
        from .over_http import read_over_http  # only here, since it imports what the extras bring

        try:
            base, readings = read_over_http(MEASURED, _Reading)
        except OSError:
            why = "since loopback could not be used"
        else:
            return base, f"over HTTP, from {base}", readings
    return None, f"in process, {why}", [_in_process(scenario) for scenario in MEASURED]


def _in_process(scenario: Scenario) -> _Reading:
    return _Reading(scenario, ChatStream(limits=scenario.limits), uneven_pieces(scenario.body))


class _Reading:
    """One scenario, read to its end."""

    def __init__(self, scenario: Scenario, stream: ChatStream, pieces: Iterable[bytes]) -> None:
        self.title = scenario.title
        events = [event for piece in pieces for event in stream.feed(piece)]
        self.verdict = stream.close()
        events += stream.closing_events
        self.choice = stream.snapshot.choices[0]
        self.json_events = stream.events_seen - stream.done
        self.argument_pieces = sum(isinstance(event, ArgumentsDelta) for event in events)

    def measured_row(self) -> tuple[str, ...]:
        evidence = terminal_evidence(self.verdict, self.choice, self.argument_pieces)
        return self.title, str(self.json_events), self._received(), evidence, self.verdict.outcome

    def failing_row(self) -> tuple[str, ...]:
        verdict = self.verdict
        offset = verdict.error.offset if verdict.error else None
        place = "-" if offset is None else str(offset)
        return self.title, verdict.outcome, verdict.stage or "-", verdict.code or "-", place, verdict.replay

    def _received(self) -> str:
        parts = []
        if self.choice.reasoning_content:
            parts.append(f"{len(self.choice.reasoning_content)} characters of reasoning")
        if self.choice.content:
            parts.append(f"content {quoted(self.choice.content)}")
        for call in self.choice.tool_calls:
            pieces = "1 piece" if self.argument_pieces == 1 else f"{self.argument_pieces} pieces"
            parts.append(f"{call.name} {call.arguments} in {pieces}")
        return ", ".join(parts)
