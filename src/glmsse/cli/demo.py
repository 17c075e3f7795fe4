"""`glmsse demo`: the founding measurement's table, and every way to fail, from streams made in code."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..chat import ChatStream
from ..events import ArgumentsDelta
from ..framing import IMPLEMENTATION
from ..scenarios import FAILING, MEASURED, Scenario, uneven_pieces
from .outcome import ACCEPTED, NOT_ACCEPTED
from .terminal import quoted, table

MEASURED_HEAD = ("case", "JSON events", "what came", "terminal evidence", "verdict")
FAILING_HEAD = ("what went wrong", "verdict", "stage", "code", "at byte", "replay")


def add_to(commands: Any) -> None:
    parser = commands.add_parser("demo", help="read made-up streams, good and broken, and show their verdicts")
    parser.add_argument("--json", action="store_true", help="print one JSON object a stream (default: two tables)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 0 if every stream got the verdict that its table promises."""
    measured = [_Reading(scenario) for scenario in MEASURED]
    failing = [_Reading(scenario) for scenario in FAILING]
    if args.json:
        for reading in (*measured, *failing):
            print(json.dumps({"case": reading.title, "events": reading.json_events, **reading.verdict.to_dict()}))
    else:
        print(f"glmsse demo ({IMPLEMENTATION} build): every stream is made in code and fed in uneven pieces\n")
        print(table(MEASURED_HEAD, [reading.measured_row() for reading in measured]))
        print()
        print(table(FAILING_HEAD, [reading.failing_row() for reading in failing]))
    as_promised = all(reading.verdict for reading in measured) and not any(reading.verdict for reading in failing)
    return ACCEPTED if as_promised else NOT_ACCEPTED


class _Reading:
    """One scenario, read to its end."""

    def __init__(self, scenario: Scenario) -> None:
        self.title = scenario.title
        stream = ChatStream(limits=scenario.limits)
        events = [event for piece in uneven_pieces(scenario.body) for event in stream.feed(piece)]
        self.verdict = stream.close()
        self.choice = stream.snapshot.choices[0]
        self.json_events = stream.events_seen - stream.done
        self.argument_pieces = sum(isinstance(event, ArgumentsDelta) for event in events)

    def measured_row(self) -> tuple[str, ...]:
        return self.title, str(self.json_events), self._received(), self._evidence(), self.verdict.outcome

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

    def _evidence(self) -> str:
        """What the end of the stream shows: finish reason, arguments, tokens, sentinel."""
        verdict = self.verdict
        parts = [verdict.finish_reason or "no finish reason"]
        if self.choice.tool_calls:
            assembled = "assembled " if self.argument_pieces > 1 else ""
            parts.append(f"{'valid' if verdict.tool_calls else 'unusable'} {assembled}arguments")
        parts.append(f"{verdict.usage.total_tokens} tokens" if verdict.usage else "no usage")
        parts.append("[DONE]" if verdict.done else "no [DONE]")
        return ", ".join(parts)
