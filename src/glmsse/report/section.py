"""What a page says of one recording, in words and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..capture import Recording
from . import figures
from .charts import Chart, chart_of
from .timeline import Moment, Timeline

LAST_EVENTS = 8
MOST_TEXT_CHARS = 100_000

Facts = tuple[tuple[str, str], ...]

_PASSED = {True: "passed", False: "failed", None: "not judged"}


@dataclass(frozen=True, slots=True)
class Section:
    """One recording on a page.

    outcome, code, stage, why    the verdict; `why` is its message, "" when accepted
    facts      what is known of the recording, and figures, by label
    chart      the timeline as shapes
    evidence   how the stream ended, by label
    checks     (name, passed, failed or not judged)
    last       the last events: place, type, bytes of text
    text       visible content, if it was asked for
    """

    name: str
    anchor: str
    outcome: str
    code: str | None
    stage: str | None
    why: str
    facts: Facts
    chart: Chart
    evidence: Facts
    checks: Facts
    last: tuple[tuple[str, str, str], ...]
    text: str | None


def section_of(name: str, recording: Recording, timeline: Timeline, *, anchor: str = "", show_text: bool) -> Section:
    verdict = timeline.verdict
    return Section(
        name=name,
        anchor=anchor,
        outcome=verdict.outcome,
        code=verdict.code,
        stage=verdict.stage,
        why="" if verdict.error is None else str(verdict.error),
        facts=tuple(_facts(recording, timeline)),
        chart=chart_of(timeline),
        evidence=tuple(_evidence(recording, timeline)),
        checks=tuple((check, _PASSED[passed]) for check, passed in verdict.checks),
        last=tuple(_event(moment, timeline) for moment in timeline.moments[-LAST_EVENTS:]),
        text=_text(timeline) if show_text else None,
    )


def _facts(recording: Recording, timeline: Timeline) -> Iterator[tuple[str, str]]:
    sidecar, usage = recording.sidecar, timeline.verdict.usage
    known: tuple[tuple[str, object], ...] = (
        ("model", timeline.snapshot.model or sidecar.model),
        ("route", sidecar.route),
        ("recorded", sidecar.recorded_at),
        ("recorded by", sidecar.recorded_by),
        ("request template", sidecar.request_template),
        ("read as", sidecar.reading.profile),
        ("HTTP status", sidecar.status),
        ("retries before", sidecar.retries or None),
        ("bytes", figures.size(len(recording.body))),
        ("events", figures.number(timeline.events)),
    )
    yield from ((label, str(value)) for label, value in known if value is not None)
    if timeline.timed:
        first_event, first_text = timeline.first(), timeline.first("content", "tool_calls")
        pause = timeline.longest_pause()
        times = (
            ("whole time", timeline.end),
            ("first event after", sidecar.first_event_seconds if first_event is None else first_event),
            ("first content after", first_text),
            ("longest pause", pause and pause[1] - pause[0]),
        )
        yield from ((label, figures.seconds(value)) for label, value in times if value is not None)
    if usage is not None:
        cached = "" if usage.cached_tokens is None else f" ({usage.cached_tokens:,} cached)"
        yield "prompt", f"{usage.prompt_tokens:,} tokens{cached}"
        yield "completion", f"{usage.completion_tokens:,} tokens"
    speed = timeline.tokens_per_second()
    if speed is not None:
        yield "speed", f"{speed:,.0f} tokens/s"


def _evidence(recording: Recording, timeline: Timeline) -> Iterator[tuple[str, str]]:
    verdict, terminal = timeline.verdict, recording.sidecar.terminal
    yield "finish reason", verdict.finish_reason or "none came"
    yield "usage", "came" if verdict.usage is not None else "none came"
    yield "[DONE]", "came" if verdict.done else "none came"
    if terminal.end is not None:
        yield "response ended by", terminal.end + (f" ({terminal.error_class})" if terminal.error_class else "")
    if verdict.error is not None and verdict.error.offset is not None:
        yield "fault at byte", f"{verdict.error.offset:,}"
    calls = sum(len(choice.tool_calls) for choice in timeline.snapshot.choices)
    if calls:
        yield "tool calls", f"{calls:,} begun, {len(verdict.tool_calls):,} usable"
    if verdict.tolerated:
        yield "tolerated", ", ".join(verdict.tolerated)
    yield "replay", verdict.replay


def _event(moment: Moment, timeline: Timeline) -> tuple[str, str, str]:
    return figures.place(moment.at, timeline.timed), moment.type, figures.size(moment.size) if moment.size else ""


def _text(timeline: Timeline) -> str:
    text = "\n\n".join(choice.content for choice in timeline.snapshot.choices)
    return text if len(text) <= MOST_TEXT_CHARS else f"{text[:MOST_TEXT_CHARS]}…"
