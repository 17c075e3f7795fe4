"""Faults that somebody met, rebuilt small: bytes in, the pinned outcome out, however the bytes are cut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from wire import cut_at, each_byte, feed_all, plain, single_cuts

CASES: list[dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "stream_cases.json").read_text())

NOTHING = {
    "verdict": "accepted",
    "stage": None,
    "error": None,
    "content": "",
    "reasoning": "",
    "tool_calls": [],
    "finish_reason": None,
    "usage": None,
    "done": False,
    "missing": None,
}


def _raw(case: dict[str, Any]) -> bytes:
    sent = case["body"]
    return sent["text"].encode() if "text" in sent else sent["latin1"].encode("latin-1")


def _cuttings(case: dict[str, Any]) -> Iterator[tuple[str, list[bytes]]]:
    raw = _raw(case)
    yield "whole", [raw]
    yield "one byte at a time", each_byte(raw)
    if "cuts" in case:
        yield "as cut", cut_at(raw, case["cuts"])
    for pieces in single_cuts(raw, 1 if len(raw) <= 700 else 7):
        yield f"cut at {len(pieces[0])}", pieces


def _open(glmsse: Any, case: dict[str, Any], allow: list[str]) -> Any:
    stream = glmsse.ChatStream(allow=allow, limits=glmsse.Limits(**case["limits"]) if "limits" in case else None)
    if "http" in case:
        http = case["http"]
        headers = {
            name: http[key]
            for name, key in (("Content-Type", "content_type"), ("Content-Encoding", "content_encoding"))
            if http.get(key) is not None
        }
        stream.start(http.get("status", 200), headers)
    return stream


def _close(stream: Any, how: str) -> Any:
    if how == "open":
        return stream.verdict
    return stream.close(ConnectionError("reset by peer") if how.startswith("error") else None)


def _call(call: Any) -> dict[str, Any]:
    return {name: getattr(call, name) for name in ("index", "id", "type", "name", "arguments")}


def _usage(usage: Any) -> dict[str, Any] | None:
    names = ("prompt_tokens", "completion_tokens", "total_tokens", "cached_tokens")
    return usage and {name: getattr(usage, name) for name in names}


def _outcome(stream: Any, verdict: Any) -> dict[str, Any]:
    first = stream.snapshot.choices[0]
    return {
        "verdict": verdict.outcome,
        "stage": verdict.stage,
        "error": verdict.error and (verdict.error.parent_code or verdict.code),
        "content": first.content,
        "reasoning": first.reasoning_content,
        "tool_calls": [_call(call) for call in verdict.tool_calls],
        "finish_reason": verdict.finish_reason,
        "usage": _usage(verdict.usage),
        "done": verdict.done,
        "missing": sorted(verdict.missing),
    }


def _choices(stream: Any) -> dict[str, Any]:
    return {
        str(choice.index): {
            "content": choice.content,
            "finish_reason": choice.finish_reason,
            "tool_calls": [_call(call) for call in choice.tool_calls],
        }
        for choice in stream.snapshot.choices
    }


def _expected(wanted: dict[str, Any]) -> dict[str, Any]:
    full = NOTHING | {key: value for key, value in wanted.items() if key in NOTHING}
    if full["usage"]:
        full["usage"] = {"cached_tokens": None, **full["usage"]}
    full["tool_calls"] = [
        {"id": None, "type": "function", "name": None, "arguments": "", "index": 0, **call}
        for call in full["tool_calls"]
    ]
    if "missing" not in wanted:
        del full["missing"]  # not every record says it
    return full


def _check(glmsse: Any, case: dict[str, Any], wanted: dict[str, Any], allow: list[str]) -> None:
    expected = _expected(wanted)
    first_events = None
    for how, pieces in _cuttings(case):
        stream = _open(glmsse, case, allow)
        events = plain(feed_all(stream, pieces))
        verdict = _close(stream, case.get("close", "clean"))

        outcome = _outcome(stream, verdict)
        assert {key: outcome[key] for key in expected} == expected, how
        assert sorted(verdict.tolerated) == sorted(allow), how
        assert bool(verdict) is (wanted["verdict"] == "accepted"), how
        if "choices" in wanted:
            assert _choices(stream) == wanted["choices"], how
        if "http" not in case:
            assert stream.bytes_seen == len(_raw(case)), how
        first_events = events if first_events is None else first_events
        assert events == first_events, how


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_strict_outcome_is_the_pinned_one_for_every_cutting(glmsse: Any, case: dict[str, Any]) -> None:
    _check(glmsse, case, case["strict"], [])


@pytest.mark.parametrize("case", [case for case in CASES if "tolerant" in case], ids=lambda case: case["id"])
def test_tolerances_of_the_case_and_no_others_change_the_outcome(glmsse: Any, case: dict[str, Any]) -> None:
    _check(glmsse, case, case["tolerant"], case["tolerant"]["policy"])


@pytest.mark.parametrize(
    "case", [case for case in CASES if case["strict"]["verdict"] == "accepted"], ids=lambda case: case["id"]
)
@pytest.mark.parametrize("profile", ["router", "hosted", "gateway"])
def test_profiles_leave_a_strictly_accepted_stream_alone(glmsse: Any, case: dict[str, Any], profile: str) -> None:
    stream = glmsse.ChatStream(profile, limits=glmsse.Limits(**case["limits"]) if "limits" in case else None)
    stream.feed(_raw(case))

    verdict = stream.close()

    assert (verdict.outcome, verdict.tolerated) == ("accepted", ())
