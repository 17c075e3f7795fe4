"""Recorded streams of real providers: the recorded facts come out at every read size and with every line end."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest

from conftest import RECORDINGS
from wire import by_size, feed_all, plain

SIZES = (16384, 1460, 64, 7, 1)


def _recorded() -> list[dict[str, Any]]:
    manifest = RECORDINGS / "manifest.json"
    if not manifest.is_file():
        return []
    entries = json.loads(manifest.read_text())["recordings"]
    return [entry for entry in entries if entry["facts"]["protocol"] == "openai-chat"]


RECORDED = _recorded()
pytestmark = pytest.mark.skipif(not RECORDED, reason=f"no recordings at {RECORDINGS}: they are not part of the package")
each_recording = pytest.mark.parametrize("entry", RECORDED, ids=lambda entry: entry["file"])
HEALTHY = [
    entry
    for entry in RECORDED
    if not entry["facts"]["errors"]
    and entry["facts"]["has_done"]
    and entry["facts"]["usage"]
    and all(choice["finish_reason"] in ("stop", "tool_calls") for choice in entry["facts"]["choices"].values())
]


def _raw(entry: dict[str, Any]) -> bytes:
    return (RECORDINGS / entry["file"]).read_bytes()


def _read(glmsse: Any, entry: dict[str, Any], pieces: list[bytes]) -> tuple[list[Any], Any, Any]:
    profile = "zai" if entry["provider"] == "z.ai" else "gateway"
    stream = glmsse.ChatStream(profile, choices=max(1, len(entry["facts"]["choices"])))
    events = feed_all(stream, pieces)
    return events, stream.close(), stream


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@each_recording
def test_every_read_size_gives_the_same_events_verdict_and_snapshot(glmsse: Any, entry: dict[str, Any]) -> None:
    raw = _raw(entry)
    events, verdict, stream = _read(glmsse, entry, [raw])
    for size in SIZES:
        other_events, other_verdict, other_stream = _read(glmsse, entry, by_size(raw, size))
        assert plain(other_events) == plain(events), size
        assert other_verdict == verdict, size
        assert other_stream.snapshot == stream.snapshot, size
        assert (other_stream.bytes_seen, other_stream.events_seen) == (stream.bytes_seen, stream.events_seen), size


@each_recording
def test_recorded_facts_come_out(glmsse: Any, entry: dict[str, Any]) -> None:
    facts = entry["facts"]

    _, verdict, stream = _read(glmsse, entry, [_raw(entry)])

    if facts["errors"]:
        assert verdict.outcome == "provider_error"
        return
    for index, wanted in facts["choices"].items():
        choice = stream.snapshot.choices[int(index)]
        assert _digest(choice.content) == wanted["content_sha256"]
        assert _digest(choice.reasoning_content) == wanted["reasoning_sha256"]
        assert choice.finish_reason == wanted["finish_reason"]
        assert [(call.index, call.id, call.name, call.arguments) for call in choice.tool_calls] == [
            (call["index"], call["id"], call["name"], call["arguments"]) for call in wanted["tool_calls"]
        ]
    assert verdict.done is facts["has_done"]
    assert stream.events_seen == facts["sse_events"]
    if facts["usage"]:
        assert verdict.usage.raw == facts["usage"]


@pytest.mark.parametrize("entry", HEALTHY, ids=lambda entry: entry["file"])
def test_healthy_recording_is_accepted(glmsse: Any, entry: dict[str, Any]) -> None:
    verdict = _read(glmsse, entry, [_raw(entry)])[1]

    assert verdict.accepted
    assert verdict.replay == "pointless"
    assert verdict.missing == ()


@pytest.mark.parametrize(
    "entry", [entry for entry in HEALTHY if entry["provider"] == "z.ai"], ids=lambda entry: entry["file"]
)
def test_recording_of_zai_needs_no_tolerance(glmsse: Any, entry: dict[str, Any]) -> None:
    assert _read(glmsse, entry, [_raw(entry)])[1].tolerated == ()


@each_recording
@pytest.mark.parametrize("line_end", [b"\r\n", b"\r"], ids=["crlf", "cr"])
def test_other_line_ends_give_the_same_events_but_for_offsets(
    glmsse: Any, entry: dict[str, Any], line_end: bytes
) -> None:
    raw = _raw(entry)
    events, verdict, stream = _read(glmsse, entry, [raw])

    changed = raw.replace(b"\n", line_end)
    for pieces in ([changed], by_size(changed, 1460), by_size(changed, 1)):
        other_events, other_verdict, other_stream = _read(glmsse, entry, pieces)
        assert [item for item in plain(other_events) if item["type"] != "failed"] == [
            item for item in plain(events) if item["type"] != "failed"
        ]
        assert (other_verdict.outcome, other_verdict.code) == (verdict.outcome, verdict.code)
        assert other_verdict.tool_calls == verdict.tool_calls
        assert other_stream.snapshot == stream.snapshot


@each_recording
def test_snapshot_equals_the_joined_events(glmsse: Any, entry: dict[str, Any]) -> None:
    events, _, stream = _read(glmsse, entry, by_size(_raw(entry), 64))
    joined: dict[str, str] = {"content.delta": "", "reasoning.delta": ""}
    calls: dict[int, list[Any]] = {}
    for happened in events:
        if happened.type in joined:
            joined[happened.type] += happened.text
        elif happened.type == "tool_call.start":
            calls[happened.index] = [happened.id, happened.name, "", False]
        elif happened.type == "tool_call.arguments.delta":
            calls[happened.index][2] += happened.arguments
        elif happened.type == "tool_call.end":
            calls[happened.index][3] = True

    choice = stream.snapshot.choices[0]

    assert choice.content == joined["content.delta"]
    assert choice.reasoning_content == joined["reasoning.delta"]
    assert [[call.id, call.name, call.arguments, call.complete] for call in choice.tool_calls] == [
        calls[index] for index in sorted(calls)
    ]


@each_recording
def test_tap_gives_the_same_verdict_but_for_the_calls(glmsse: Any, entry: dict[str, Any]) -> None:
    profile = "zai" if entry["provider"] == "z.ai" else "gateway"
    full, verdict, _ = _read(glmsse, entry, [_raw(entry)])
    stream = glmsse.ChatStream(profile, deltas=False, collect=False)

    events = stream.feed(_raw(entry))
    tapped = stream.close()

    assert {happened.type for happened in events} <= {"finish", "usage", "done", "failed"}
    assert plain(events) == [item for item in plain(full) if item["type"] in ("finish", "usage", "done", "failed")]
    assert tapped.tool_calls == ()
    assert (tapped.outcome, tapped.code, tapped.usage, tapped.checks, tapped.replay) == (
        verdict.outcome,
        verdict.code,
        verdict.usage,
        verdict.checks,
        verdict.replay,
    )
