"""A complete gate to start from, made in code: a fixture for every state, to be replaced by recordings of your own."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from ..limits import DEFAULT_LIMITS, Limits
from ..scenarios import ANSWER, MODEL, REASONING, SCENARIOS, body, evenly, finish, reasoning, text, tool_piece
from .gate import MANIFEST, Fixture, Manifest, UnfitGate, update_gate
from .recorder import Recorder
from .recording import Recording, reading_limits, stream_for
from .sidecar import Reading, Terminal

SECONDS_AN_EVENT = 0.04
_EVENT = re.compile(rb".+?(?:\n\n|\Z)", re.DOTALL)
_ROUTE = "/api/paas/v4/chat/completions"


def write_starter(directory: str | os.PathLike[str]) -> list[str]:
    """Write the fixtures and their manifest into a directory that has none; the names of what was written."""
    root = Path(directory)
    if (root / MANIFEST).exists() or any(root.glob("*.sse")):
        raise UnfitGate("the directory has a gate or recordings already")
    root.mkdir(parents=True, exist_ok=True)
    fixtures = {}
    for name, data, fixture, retries in _fixtures():
        _recorded(data, fixture, retries).write(root / f"{name}.sse")
        after = None if fixture.after is None else f"{fixture.after}.sse"
        fixtures[f"{name}.sse"] = replace(fixture, after=after)
    Manifest(fixtures).write(root)
    update_gate(root, "the starter set")
    return sorted(fixtures)


def _fixtures() -> Iterable[tuple[str, bytes, Fixture, int]]:
    """Name, body, what the gate does with it, and how often its request was sent before."""
    both = (*map(text, ("The harbour", " lies in the north.")), finish("stop", 31))
    thinking = (*map(reasoning, evenly(REASONING, 24)), text(ANSWER), finish("stop", 131, prompt_tokens=24))
    tool_stream = SCENARIOS["tool_stream"].body
    unknown = tool_stream[: tool_stream.rindex(b"data: [DONE]")]

    def fixture(*covers: str, limits: Limits = DEFAULT_LIMITS, **more: str) -> Fixture:
        return Fixture(covers, Reading(limits=reading_limits(limits)), **more)  # type: ignore[arg-type]

    yield "text", body(both), fixture("normal_text", "finish_stop"), 0
    yield "thinking", body(thinking), fixture("thinking", "finish_stop"), 0
    yield "tool", SCENARIOS["tool"].body, fixture("tool_call_without_content", "finish_tool_calls"), 0
    yield "tool_stream", tool_stream, fixture("fragmented_arguments", "repeated_stable_fields"), 0
    yield "several_tools", _several_tools(), fixture("several_tool_calls", "finish_tool_calls"), 0
    yield "length", SCENARIOS["length"].body, fixture("finish_length"), 0
    yield "provider_error", SCENARIOS["provider_error"].body, fixture("provider_error"), 0
    yield "client_timeout", body(both[:1], done=False), fixture("client_timeout", close="deadline_idle"), 0
    yield "abrupt_close", SCENARIOS["truncated"].body, fixture("abrupt_close", close="error"), 0
    for name, state in (
        ("event_too_large", "oversized_event"),
        ("too_many_events", "too_many_events"),
        ("argument_too_large", "argument_over_limit"),
    ):
        scenario = SCENARIOS[name]
        yield name, scenario.body, fixture(state, limits=scenario.limits), 0
    for moment in ("before", "after"):
        state = f"cancelled_{moment}_approval"
        yield state, SCENARIOS["tool"].body, fixture(state, cancelled=f"{moment}_approval"), 0
    yield "unknown_completion", unknown, fixture("abrupt_close", close="error"), 0
    retried = fixture("retry_after_unknown_completion", after="unknown_completion")
    yield "retried", tool_stream, retried, 1


def _several_tools() -> bytes:
    calls = [
        tool_piece(f'{{"city":"{city}"}}', index=index, call_id=f"call_{index}", name="lookup_timezone")
        for index, city in enumerate(("Hong Kong", "Reykjavík"))
    ]
    return body([*calls, finish("tool_calls", 177, prompt_tokens=160)])


def _recorded(data: bytes, fixture: Fixture, retries: int) -> Recording:
    recorder = Recorder(
        model=MODEL, route=_ROUTE, retries=retries, reading=fixture.reading, recorded_by="glmsse gate --init"
    )
    stream = stream_for(fixture.reading)
    recorder.start(200, {"content-type": "text/event-stream"})
    stream.start(200, {"content-type": "text/event-stream"})
    for number, piece in enumerate(_EVENT.findall(data), 1):
        recorder.piece(piece, number * SECONDS_AN_EVENT)
        stream.feed(piece)
    verdict = stream.close(Terminal(fixture.close).ending())
    recording = recorder.finish(verdict, error_class="ReadError" if fixture.close == "error" else None)
    assert recording is not None
    return recording
