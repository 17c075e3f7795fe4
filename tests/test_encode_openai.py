"""Typed events → OpenAI chunks: what `ChatStream` reads back from them is what they were made of."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from encoding import each_recording, each_scenario, encode, encoder_for, limits_of, merged, read
from glmsse import (
    ArgumentsDelta,
    ContentDelta,
    Done,
    Failed,
    Finish,
    MisuseError,
    ReasoningDelta,
    ToolCall,
    ToolCallEnd,
    ToolCallStart,
    Usage,
    Verdict,
)
from glmsse.encode import OpenAIEncoder
from glmsse.errors import fault
from glmsse.scenarios import Scenario, body, finish, reasoning, text, tool_piece

RAW = {"prompt_tokens": 15, "completion_tokens": 8, "total_tokens": 23}
PASSED_ON = ("length", "sensitive")


def accepted(usage: Usage | None = None) -> Verdict:
    return Verdict("accepted", finish_reason="stop", usage=usage, done=True)


def new() -> OpenAIEncoder:
    return OpenAIEncoder("glm-5.2", id="resp_1", created=7)


def chunks(data: bytes) -> list[Any]:
    """The payloads of a stream of single `data: ` lines."""
    assert data.endswith(b"\n\n")
    found = []
    for block in data[:-2].split(b"\n\n"):
        assert block.startswith(b"data: ")
        assert b"\n" not in block
        found.append(block[6:].decode() if block == b"data: [DONE]" else json.loads(block[6:]))
    return found


def assert_read_back(glmsse: ModuleType, data: bytes, events: list[Any], verdict: Any, snapshot: Any) -> None:
    choices = len(snapshot.choices)
    again, verdict_again, snapshot_again = read(glmsse, data, choices=choices)
    assert verdict_again.outcome == "accepted" if verdict.accepted else verdict_again.outcome != "accepted"
    mine = [(c.content, c.reasoning_content, c.tool_calls) for c in snapshot.choices]
    assert [(c.content, c.reasoning_content, c.tool_calls) for c in snapshot_again.choices] == mine
    assert verdict_again.tool_calls == verdict.tool_calls
    if verdict.accepted:
        assert snapshot_again.usage == snapshot.usage
        assert deltas(again) == deltas(events)


def deltas(events: list[Any]) -> list[Any]:
    """Text and calls in their order; where calls end and the stream finishes is decided at its end."""
    return merged(event for event in events if event.type.endswith((".delta", ".start")))


# Whole streams.


@each_scenario
def test_every_scenario_is_read_back_with_its_verdict(glmsse: ModuleType, scenario: Scenario) -> None:
    events, verdict, snapshot = read(glmsse, scenario.body, limits=limits_of(glmsse, scenario))
    data = encode(encoder_for(glmsse, "openai"), events, verdict)
    again, verdict_again, snapshot_again = read(glmsse, data)
    assert (snapshot_again.choices[0].content, snapshot_again.choices[0].reasoning_content) == (
        snapshot.choices[0].content,
        snapshot.choices[0].reasoning_content,
    )
    if verdict.accepted or scenario.name in PASSED_ON:
        assert merged(again) == merged(events)
        assert snapshot_again.choices == snapshot.choices
        assert snapshot_again.usage == snapshot.usage
        assert (verdict_again.outcome, verdict_again.code) == (verdict.outcome, verdict.code)
        assert verdict_again.tool_calls == verdict.tool_calls
    else:
        assert chunks(data)[-1].keys() == {"error"}
        assert chunks(data)[-1]["error"]["code"] == verdict.code
        assert b"[DONE]" not in data
        assert b'"finish_reason":"' not in data
        assert (verdict_again.outcome, verdict_again.provider_code) == ("provider_error", verdict.code)


@each_recording
def test_every_recording_is_read_back_with_its_verdict(
    glmsse: ModuleType, path: Path, facts: dict[str, Any], profile: str
) -> None:
    events, verdict, snapshot = read(glmsse, path.read_bytes(), profile=profile)
    data = encode(encoder_for(glmsse, "openai"), events, verdict)
    again, verdict_again, snapshot_again = read(glmsse, data)
    if facts["errors"]:
        assert verdict_again.outcome == "provider_error"
        assert verdict_again.category == verdict.category
        return
    assert (verdict_again.outcome, verdict_again.code) == (verdict.outcome, verdict.code)
    assert verdict_again.tool_calls == verdict.tool_calls
    assert verdict_again.tolerated == ()
    assert deltas(again) == deltas(events)
    assert snapshot_again.choices == snapshot.choices
    assert snapshot_again.usage == snapshot.usage


@each_scenario
def test_the_bytes_do_not_depend_on_how_the_events_were_handed_in(glmsse: ModuleType, scenario: Scenario) -> None:
    events, verdict, _ = read(glmsse, scenario.body, limits=limits_of(glmsse, scenario))
    at_once = encode(encoder_for(glmsse, "openai"), events, verdict)
    assert encode(encoder_for(glmsse, "openai"), events, verdict, one_by_one=True) == at_once


def test_the_exact_chunks_of_a_short_answer() -> None:
    events = [
        ReasoningDelta("r"),
        ContentDelta("ü"),
        ToolCallStart(0, "c", "add"),
        ArgumentsDelta(0, '{"a":1}'),
        ToolCallEnd(0),
        Finish("tool_calls"),
        Usage(15, 8, 23, None, RAW),
        Done(),
    ]
    data = encode(new(), events, None)
    head = {"id": "resp_1", "object": "chat.completion.chunk", "created": 7, "model": "glm-5.2"}

    def choice(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
        return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}

    first = {"index": 0, "id": "c", "type": "function", "function": {"name": "add", "arguments": ""}}
    assert chunks(data) == [
        choice({"role": "assistant", "content": ""}),
        choice({"reasoning_content": "r"}),
        choice({"content": "ü"}),
        choice({"tool_calls": [first]}),
        choice({"tool_calls": [{"index": 0, "function": {"arguments": '{"a":1}'}}]}),
        choice({}, "tool_calls"),
        {**head, "choices": [], "usage": RAW},
        "[DONE]",
    ]
    assert '"content":"ü"'.encode() in data


def test_several_choices_each_have_a_role_and_a_finish(glmsse: ModuleType) -> None:
    parts = [text("a"), text("b", choice=1), tool_piece('{"x":', call_id="c", name="add", choice=2), text("A")]
    parts += [
        reasoning("B", choice=1),
        tool_piece("1}", choice=2),
        finish("stop", None),
        finish("stop", None, choice=1),
    ]
    events, verdict, snapshot = read(glmsse, body([*parts, finish("tool_calls", 23, choice=2)]), choices=3)
    assert verdict.accepted
    data = encode(encoder_for(glmsse, "openai"), events, verdict)
    assert_read_back(glmsse, data, events, verdict, snapshot)
    seen = [part["choices"][0] for part in chunks(data)[:-1] if part["choices"]]
    for index, reason in ((0, "stop"), (1, "stop"), (2, "tool_calls")):
        mine = [part for part in seen if part["index"] == index]
        assert mine[0]["delta"] == {"role": "assistant", "content": ""}
        assert [part["finish_reason"] for part in mine] == [None] * (len(mine) - 1) + [reason]


def test_interleaved_calls_are_written_as_they_come(glmsse: ModuleType) -> None:
    parts = [
        tool_piece('{"a":', index=1, call_id="x", name="add"),
        tool_piece('{"b":', index=4, call_id="y", name="add"),
    ]
    parts += [tool_piece("1}", index=1), tool_piece("2}", index=4), finish("tool_calls", 23)]
    events, verdict, snapshot = read(glmsse, body(parts))
    data = encode(encoder_for(glmsse, "openai"), events, verdict)
    assert_read_back(glmsse, data, events, verdict, snapshot)
    order = [part["choices"][0]["delta"]["tool_calls"][0]["index"] for part in chunks(data)[1:7]]
    assert order == [1, 1, 4, 4, 1, 4]


# Tolerated streams are written so that a strict reader takes them.


def test_stop_with_calls_is_written_as_tool_calls(glmsse: ModuleType) -> None:
    data = body([tool_piece("{}", call_id="c", name="now"), finish("stop", 23)])
    events, verdict, _ = read(glmsse, data, profile="hosted")
    _, again, _ = read(glmsse, encode(encoder_for(glmsse, "openai"), events, verdict))
    assert (again.outcome, again.finish_reason) == ("accepted", "tool_calls")


@pytest.mark.parametrize("pieces", [[""], [" "], ["{}"], ["{}", '{"a":1}'], ["{}", "\n", '{"a":', "1}", "\n"]])
def test_a_call_without_id_and_with_odd_arguments_is_written_as_it_was_accepted(
    glmsse: ModuleType, pieces: list[str]
) -> None:
    parts = [tool_piece(pieces[0], name="now"), *map(tool_piece, pieces[1:]), finish("tool_calls", 23)]
    events, verdict, _ = read(glmsse, body(parts), profile="hosted", allow=("args_leading_empty_object",))
    assert verdict.accepted
    _, again, _ = read(glmsse, encode(encoder_for(glmsse, "openai"), events, verdict))
    assert again.accepted
    assert again.tool_calls == verdict.tool_calls


def test_an_accepted_stream_without_done_or_usage_ends_normally(glmsse: ModuleType) -> None:
    events, verdict, _ = read(glmsse, body([text("a"), finish("stop", None)], done=False), profile="gateway")
    data = encode(encoder_for(glmsse, "openai"), events, verdict)
    assert chunks(data)[-1] == "[DONE]"
    assert "usage" not in chunks(data)[-2]
    _, again, _ = read(glmsse, data, allow=("usage_optional",))
    assert again.accepted


def test_calls_that_were_cut_by_length_are_written_as_far_as_they_came(glmsse: ModuleType) -> None:
    parts = [tool_piece('{"a', call_id="c", name="add"), tool_piece("{", index=1), finish("length", 23)]
    events, verdict, snapshot = read(glmsse, body(parts))
    again, verdict_again, snapshot_again = read(glmsse, encode(encoder_for(glmsse, "openai"), events, verdict))
    assert snapshot_again.choices == snapshot.choices
    assert verdict_again.code == verdict.code == "finish_length"
    assert merged(again) == merged(events)


# Ends.


def test_a_finish_waits_so_that_a_stream_which_fails_late_never_looks_finished() -> None:
    encoder = new()
    data = encoder.encode([ContentDelta("a"), Finish("stop")])
    assert b'"finish_reason":"stop"' not in data
    data += encoder.finish(Verdict("incomplete", code="incomplete_stream", error=fault("incomplete_stream", offset=9)))
    assert chunks(data)[-1] == {
        "error": {
            "message": "incomplete_stream at byte 9: the stream ended without all evidence of a complete answer",
            "type": "api_error",
            "param": None,
            "code": "incomplete_stream",
        }
    }
    assert b'"finish_reason":"stop"' not in data


def test_calls_that_were_rejected_end_in_an_error(glmsse: ModuleType) -> None:
    events, verdict, _ = read(glmsse, body([tool_piece("{", call_id="c", name="add"), finish("tool_calls", 23)]))
    data = encode(encoder_for(glmsse, "openai"), events, verdict)
    assert chunks(data)[-1]["error"]["code"] == "arguments_not_json"


@pytest.mark.parametrize("reason", ["network_error", "odd"])
def test_a_reason_that_is_neither_complete_nor_cut_is_an_error(glmsse: ModuleType, reason: str) -> None:
    events, verdict, _ = read(glmsse, body([text("a"), finish(reason, 23)]))
    data = encode(encoder_for(glmsse, "openai"), events, verdict)
    assert chunks(data)[-1]["error"]["code"] == f"finish_{reason}"


def test_choices_beside_a_cut_one_pass_unless_they_look_like_calls(glmsse: ModuleType) -> None:
    beside = [text("b", choice=1), finish("stop", None, choice=1)]
    calls = [tool_piece("{}", call_id="c", name="now", choice=1), finish("tool_calls", None, choice=1)]
    for more, code in ((beside, "finish_length"), (calls, "provider_error")):
        events, verdict, _ = read(glmsse, body([text("a"), *more, finish("length", 23)]), choices=2)
        _, again, _ = read(glmsse, encode(encoder_for(glmsse, "openai"), events, verdict), choices=2)
        assert again.code == code


def test_a_failed_event_ends_the_stream_at_once() -> None:
    encoder = new()
    error = fault("provider_error", category="overload", provider_code="1305", request_id="r-1")
    data = encoder.encode([ContentDelta("a"), Failed(error), ContentDelta("b")])
    assert chunks(data)[-1]["error"] == {
        "message": "provider_error: the provider reported an error in the stream (category overload)"
        "; provider code 1305; request id r-1",
        "type": "overloaded_error",
        "param": None,
        "code": "provider_error",
    }
    assert encoder.encode([Done()]) == encoder.ping() == encoder.finish(None) == b""


def test_a_call_that_changed_after_it_was_written_is_an_error() -> None:
    events = [ToolCallStart(0, "c", "add"), ArgumentsDelta(0, '{"a":1}'), Finish("tool_calls")]
    other = ToolCall(0, "c", "add", '{"a":12}', complete=True)
    data = encode(new(), events, replace(accepted(), tool_calls=(other,)))
    assert chunks(data)[-1]["error"]["code"] == "arguments_not_json"
    overrun = [ToolCallStart(0, "c", "add"), ArgumentsDelta(0, '{"a":1}2'), Finish("tool_calls")]
    assert chunks(encode(new(), overrun, accepted()))[-1]["error"]["code"] == "arguments_not_json"


# Usage, pings, options.


@pytest.mark.parametrize(
    "raw",
    [
        {},
        {**RAW, "total_tokens": 24},
        {**RAW, "cost": float("nan")},
        {**RAW, "note": "\ud800"},
        {**RAW, "note": {1, 2}},
    ],
)
def test_a_usage_object_that_cannot_be_written_is_replaced_by_its_counts(raw: dict[str, Any]) -> None:
    data = encode(new(), [Finish("stop"), Usage(15, 8, 23, 2, raw)], None)
    assert chunks(data)[-2]["usage"] == {**RAW, "prompt_tokens_details": {"cached_tokens": 2}}
    data = encode(new(), [Finish("stop"), Usage(15, 8, 23, None, raw)], None)
    assert chunks(data)[-2]["usage"] == RAW


def test_usage_keeps_the_fields_of_the_wire() -> None:
    raw = {**RAW, "completion_tokens_details": {"reasoning_tokens": 3}, "cost": 0.5}
    data = encode(new(), [Finish("stop")], accepted(Usage(15, 8, 23, None, raw)))
    assert chunks(data)[-2]["usage"] == raw
    assert chunks(data)[-2]["choices"] == []


def test_a_ping_is_a_comment(glmsse: ModuleType) -> None:
    encoder = encoder_for(glmsse, "openai")
    assert encoder.ping() == b": ping\n\n"
    events, verdict, _ = read(glmsse, body([text("a"), finish("stop", 23)]))
    data = encoder.ping() + encoder.encode(events) + encoder.ping() + encoder.finish(verdict)
    assert read(glmsse, data)[1].accepted


@pytest.mark.parametrize("options", [{"model": 1}, {"id": b"x"}, {"created": -1}, {"created": 1.5}, {"created": True}])
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(MisuseError, match=r"model|id|created"):
        OpenAIEncoder(**{"model": "m", "id": "i", **options})


def test_half_a_surrogate_pair_in_an_event_is_misuse_and_not_shown() -> None:
    with pytest.raises(MisuseError, match="surrogate") as caught:
        new().encode([ContentDelta("secret\ud83d")])
    assert caught.value.__context__ is None
