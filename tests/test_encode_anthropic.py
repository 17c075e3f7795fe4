"""Typed events → an Anthropic Messages stream: grammar, mapping, and the ways a stream ends."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from encoding import each_recording, each_scenario, encode, encoder_for, limits_of, read
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
from glmsse.encode import AnthropicEncoder
from glmsse.errors import fault, rejected
from glmsse.scenarios import Scenario, body, finish, reasoning, text, tool_piece
from messages_grammar import check, payloads

RAW = {"prompt_tokens": 15, "completion_tokens": 8, "total_tokens": 23}
USAGE = Usage(15, 8, 23, None, RAW)
ENDS = {"length": "max_tokens", "sensitive": "refusal"}


def accepted(*calls: ToolCall, reason: str | None = None, usage: Usage | None = USAGE) -> Verdict:
    return Verdict(
        "accepted",
        tool_calls=calls,
        finish_reason=reason or ("tool_calls" if calls else "stop"),
        usage=usage,
        done=True,
    )


def call(arguments: str, index: int = 0, name: str = "add") -> ToolCall:
    return ToolCall(index, f"call_{index}", name, arguments, complete=True)


def start(index: int = 0, name: str = "add") -> ToolCallStart:
    return ToolCallStart(index, f"call_{index}", name)


def new(**options: Any) -> AnthropicEncoder:
    return AnthropicEncoder("glm-5.2", message_id="msg_1", **options)


# Whole streams.


@each_scenario
def test_every_scenario_becomes_a_valid_stream_that_ends_as_its_verdict(glmsse: ModuleType, scenario: Scenario) -> None:
    events, verdict, snapshot = read(glmsse, scenario.body, limits=limits_of(glmsse, scenario))
    message = check(encode(encoder_for(glmsse, "anthropic"), events, verdict))
    choice = snapshot.choices[0]
    if verdict.accepted or scenario.name in ENDS:
        expected = "tool_use" if choice.tool_calls else "end_turn"
        assert message.stop_reason == ENDS.get(scenario.name, expected)
        assert message.joined("text") == choice.content
        assert message.joined("thinking") == choice.reasoning_content
        assert message.calls == [(made.id, made.name, made.arguments) for made in choice.tool_calls]
        assert message.usage is not None
        assert message.usage["output_tokens"] == verdict.usage.completion_tokens
    else:
        assert message.error is not None
        assert message.error["message"].startswith(verdict.code)
        assert message.stop_reason is None


@each_recording
def test_every_recording_becomes_a_valid_stream(
    glmsse: ModuleType, path: Path, facts: dict[str, Any], profile: str
) -> None:
    events, verdict, snapshot = read(glmsse, path.read_bytes(), profile=profile)
    message = check(encode(encoder_for(glmsse, "anthropic"), events, verdict))
    if facts["errors"]:
        assert message.error is not None
        return
    want = facts["choices"]["0"]
    assert [(name, arguments) for _, name, arguments in message.calls] == [
        (made["name"], made["arguments"]) for made in want["tool_calls"]
    ]
    assert message.joined("text") == snapshot.choices[0].content
    assert message.joined("thinking") == snapshot.choices[0].reasoning_content
    reasons = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
    assert message.stop_reason == reasons[want["finish_reason"]]


@each_scenario
def test_the_bytes_do_not_depend_on_how_the_events_were_handed_in(glmsse: ModuleType, scenario: Scenario) -> None:
    events, verdict, _ = read(glmsse, scenario.body, limits=limits_of(glmsse, scenario))
    at_once = encode(encoder_for(glmsse, "anthropic"), events, verdict)
    assert encode(encoder_for(glmsse, "anthropic"), events, verdict, one_by_one=True) == at_once


def test_the_exact_events_of_a_short_answer() -> None:
    data = encode(new(), [ContentDelta("Hi"), Finish("stop"), USAGE, Done()], accepted())
    zeros = {"input_tokens": 0, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 0}
    assert payloads(data) == [
        {
            "type": "message_start",
            "message": {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "glm-5.2",
                "content": [],
                "stop_reason": None,
                "stop_sequence": None,
                "usage": zeros,
            },
        },
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "content_block_stop", "index": 0},
        {
            "type": "message_delta",
            "delta": {"stop_reason": "end_turn", "stop_sequence": None},
            "usage": {**zeros, "input_tokens": 15, "output_tokens": 8},
        },
        {"type": "message_stop"},
    ]


def test_text_is_raw_utf8_and_cannot_end_a_line() -> None:
    data = encode(new(), [ContentDelta("ü\r\n\u2028😀\0"), Finish("stop")], accepted())
    assert '"text":"ü\\r\\n\u2028😀\\u0000"'.encode() in data
    assert check(data).joined("text") == "ü\r\n\u2028😀\0"


# Text and thinking.


def test_a_change_of_kind_closes_and_opens_blocks() -> None:
    events = [ReasoningDelta("a"), ContentDelta("b"), ContentDelta("c"), ReasoningDelta("d"), Finish("stop")]
    message = check(encode(new(), events, accepted()))
    assert [(block.type, block.text) for block in message.blocks] == [
        ("thinking", "a"),
        ("text", "bc"),
        ("thinking", "d"),
    ]


@pytest.mark.parametrize(("signature", "expected"), [("", [""]), (None, []), ("s", ["s"])])
def test_the_signature_comes_last_in_a_thinking_block_or_not_at_all(signature: str | None, expected: list[str]) -> None:
    events = [ReasoningDelta("a"), ReasoningDelta("b"), ContentDelta("c"), Finish("stop")]
    message = check(encode(new(thinking_signature=signature), events, accepted()))
    assert message.blocks[0].signatures == expected


def test_text_comes_as_it_arrives() -> None:
    encoder = new()
    assert check(encoder.encode([ContentDelta("a")]), whole=False).joined("text") == "a"
    assert b'"text":"b"' in encoder.encode([ContentDelta("b")])


def test_blank_text_is_written_by_default() -> None:
    message = check(encode(new(), [ContentDelta("\n"), ReasoningDelta("a"), Finish("stop")], accepted()))
    assert message.kinds == ["text", "thinking"]


def test_blank_text_can_be_left_out_where_nothing_follows_in_its_block() -> None:
    events = [ContentDelta("\n"), ContentDelta(" "), ReasoningDelta("a"), ContentDelta("\n"), ContentDelta("b")]
    events += [start(), ArgumentsDelta(0, "{}"), ToolCallEnd(0), ContentDelta("\n"), Finish("tool_calls")]
    message = check(encode(new(drop_blank_text=True), events, accepted(call("{}"))))
    assert [(block.type, block.text) for block in message.blocks] == [
        ("thinking", "a"),
        ("text", "\nb"),
        ("tool_use", "{}"),
    ]


def test_blank_text_that_is_left_out_does_not_divide_thinking() -> None:
    events = [ReasoningDelta("a"), ContentDelta(" "), ReasoningDelta("b"), Finish("stop")]
    message = check(encode(new(drop_blank_text=True), events, accepted()))
    assert [(block.type, block.text) for block in message.blocks] == [("thinking", "ab")]


def test_an_answer_of_blank_text_alone_can_be_left_out() -> None:
    assert check(encode(new(drop_blank_text=True), [ContentDelta(" "), Finish("stop")], accepted())).blocks == []


def test_an_empty_answer_has_no_blocks() -> None:
    message = check(encode(new(), [Finish("stop"), USAGE, Done()], accepted()))
    assert message.blocks == []
    assert message.stop_reason == "end_turn"


# Tool calls.


def test_argument_pieces_come_as_they_arrive_after_an_empty_one() -> None:
    encoder = new()
    encoder.encode([start()])
    assert b'"partial_json":"{\\"a\\":"' in encoder.encode([ArgumentsDelta(0, '{"a":')])
    data = encode(new(), [start(), ArgumentsDelta(0, '{"a":'), ArgumentsDelta(0, "1}"), Finish("tool_calls")], None)
    assert check(data).blocks[0].pieces == ["", '{"a":', "1}"]


def test_interleaved_calls_wait_for_the_open_one() -> None:
    events = [
        start(0),
        start(1),
        ArgumentsDelta(1, '{"x":'),
        ArgumentsDelta(0, '{"a":'),
        ArgumentsDelta(1, "1}"),
        ArgumentsDelta(0, '"}"}'),
        ToolCallEnd(0),
        ToolCallEnd(1),
        Finish("tool_calls"),
    ]
    verdict = accepted(call('{"a":"}"}', 0), call('{"x":1}', 1))
    message = check(encode(new(), events, verdict))
    assert [block.pieces for block in message.blocks] == [["", '{"a":', '"}"}'], ["", '{"x":', "1}"]]


def test_a_second_call_is_not_held_once_the_first_is_a_whole_object() -> None:
    encoder = new()
    encoder.encode([start(0), ArgumentsDelta(0, '{"a":"\\"}"'), ArgumentsDelta(0, "}"), start(1)])
    assert b'"partial_json":"{\\"b"' in encoder.encode([ArgumentsDelta(1, '{"b')])


def test_text_between_pieces_of_a_call_waits_for_its_end() -> None:
    events = [start(), ArgumentsDelta(0, '{"a":'), ContentDelta("b"), ReasoningDelta("c"), ArgumentsDelta(0, "1}")]
    encoder = new()
    first = encoder.encode(events[:4])
    assert b"text_delta" not in first
    second = encoder.encode(events[4:])
    assert b"text_delta" in second
    message = check(first + second + encoder.encode([Finish("tool_calls")]) + encoder.finish(accepted(call('{"a":1}'))))
    assert [(block.type, block.text) for block in message.blocks] == [
        ("tool_use", '{"a":1}'),
        ("text", "b"),
        ("thinking", "c"),
    ]


def test_a_call_that_was_ended_may_go_on() -> None:
    events = [start(0), ArgumentsDelta(0, '{"a":'), ToolCallEnd(0), Finish("tool_calls"), start(1)]
    events += [ArgumentsDelta(1, "{}"), ToolCallEnd(1), ArgumentsDelta(0, "1}"), ToolCallEnd(0), ToolCallEnd(1)]
    message = check(encode(new(), events, accepted(call('{"a":1}', 0), call("{}", 1))))
    assert [block.text for block in message.blocks] == ['{"a":1}', "{}"]


def test_white_space_behind_a_closed_call_is_left_out() -> None:
    events = [start(0), ArgumentsDelta(0, '{"a":1}'), start(1), ArgumentsDelta(1, '{"b":2}'), ArgumentsDelta(0, " \n")]
    message = check(encode(new(), [*events, Finish("tool_calls")], accepted(call('{"a":1} \n', 0), call('{"b":2}', 1))))
    assert [block.text for block in message.blocks] == ['{"a":1}', '{"b":2}']


def test_text_behind_a_closed_call_that_cannot_be_shown_any_more_is_an_error() -> None:
    events = [start(0), ArgumentsDelta(0, '{"a":1}'), start(1), ArgumentsDelta(0, "2"), Finish("tool_calls")]
    message = check(encode(new(), events, accepted(call('{"a":1}2', 0), call("{}", 1))))
    assert message.error is not None
    assert message.error["message"].startswith("arguments_not_json")


@pytest.mark.parametrize("blank", ["", " \n"])
def test_arguments_that_the_verdict_made_up_are_what_is_sent(glmsse: ModuleType, blank: str) -> None:
    data = body([tool_piece(blank, call_id="c", name="now"), finish("tool_calls", 23)])
    events, verdict, _ = read(glmsse, data, profile="router")
    assert verdict.tolerated == ("args_empty_as_object",)
    message = check(encode(encoder_for(glmsse, "anthropic"), events, verdict))
    assert message.blocks[0].pieces == ["", "{}"]


def test_made_up_arguments_are_sent_where_no_text_was_kept(glmsse: ModuleType) -> None:
    data = body([tool_piece("", call_id="c", name="now"), finish("tool_calls", 23)])
    events, verdict, _ = read(glmsse, data, profile="router", collect=False)
    assert verdict.tool_calls == ()
    assert check(encode(encoder_for(glmsse, "anthropic"), events, verdict)).calls == [("c", "now", "{}")]


@pytest.mark.parametrize("pieces", [["{}", '{"a":', "1}"], ["{}", " ", '{"a":', "1}"]])
def test_an_empty_object_that_the_verdict_left_out_is_not_sent(glmsse: ModuleType, pieces: list[str]) -> None:
    first, *more = pieces
    chunks = [tool_piece(first, call_id="c", name="add"), *map(tool_piece, more), finish("tool_calls", 23)]
    events, verdict, _ = read(glmsse, body(chunks), allow=("args_leading_empty_object",))
    assert verdict.accepted
    message = check(encode(encoder_for(glmsse, "anthropic"), events, verdict))
    assert message.calls == [("c", "add", verdict.tool_calls[0].arguments)]


def test_a_call_without_id_waits_and_gets_the_id_that_the_verdict_made_up(glmsse: ModuleType) -> None:
    data = body([tool_piece('{"a":1}', name="add"), text("b"), finish("tool_calls", 23)])
    events, verdict, _ = read(glmsse, data, profile="hosted")
    assert verdict.tolerated == ("id_synthesize",)
    message = check(encode(encoder_for(glmsse, "anthropic"), events, verdict))
    assert message.calls == [("local-0", "add", '{"a":1}')]
    assert message.kinds == ["text", "tool_use"]


def test_a_call_without_id_is_not_made_up_here() -> None:
    events = [ToolCallStart(0, None, "add"), ArgumentsDelta(0, "{}"), Finish("tool_calls")]
    for verdict in (None, accepted(reason="tool_calls")):
        message = check(encode(new(), events, verdict))
        assert message.error == {
            "type": "api_error",
            "message": "tool_id_missing: a tool call has no id, so its result could not be returned (choice 0, call 0)",
        }


def test_calls_of_which_no_event_came_are_taken_from_the_verdict(glmsse: ModuleType) -> None:
    data = body([tool_piece('{"a":1}', call_id="c", name="add"), finish("tool_calls", 23)])
    events, verdict, _ = read(glmsse, data, deltas=False)
    assert check(encode(encoder_for(glmsse, "anthropic"), events, verdict)).calls == [("c", "add", '{"a":1}')]


def test_stop_with_calls_is_tool_use(glmsse: ModuleType) -> None:
    data = body([tool_piece("{}", call_id="c", name="now"), finish("stop", 23)])
    events, verdict, _ = read(glmsse, data, profile="hosted")
    assert check(encode(encoder_for(glmsse, "anthropic"), events, verdict)).stop_reason == "tool_use"


def test_a_call_that_was_cut_by_length_is_written_as_far_as_it_came(glmsse: ModuleType) -> None:
    chunks = [tool_piece('{"a":', call_id="a", name="add"), tool_piece('{"b"', index=1, call_id="b", name="add")]
    chunks += [tool_piece("{", index=2, name="add"), finish("length", 23)]
    events, verdict, _ = read(glmsse, body(chunks))
    message = check(encode(encoder_for(glmsse, "anthropic"), events, verdict))
    assert message.stop_reason == "max_tokens"
    assert message.calls == [("a", "add", '{"a":'), ("b", "add", '{"b"')]


def test_glm_4_5_calls_that_each_have_a_finish_reason(glmsse: ModuleType) -> None:
    chunks = [text("\n"), reasoning("r")]
    for index in (0, 1):
        chunk = tool_piece(f'{{"a": {index}}}', index=index, call_id=f"c{index}", name="add")
        chunk["choices"][0]["finish_reason"] = "tool_calls"
        chunks.append(chunk)
    events, verdict, _ = read(glmsse, body([*chunks, finish("tool_calls", 23)]))
    assert verdict.accepted
    message = check(encode(encoder_for(glmsse, "anthropic"), events, verdict))
    assert message.calls == [("c0", "add", '{"a": 0}'), ("c1", "add", '{"a": 1}')]


# Ends.


@pytest.mark.parametrize(
    ("reason", "stop_reason"),
    [
        ("length", "max_tokens"),
        ("model_context_window_exceeded", "model_context_window_exceeded"),
        ("sensitive", "refusal"),
        ("content_filter", "refusal"),
    ],
)
def test_a_cut_or_withheld_answer_says_so(glmsse: ModuleType, reason: str, stop_reason: str) -> None:
    events, verdict, _ = read(glmsse, body([text("a"), finish(reason, 23)]))
    for judged in (verdict, None):
        message = check(encode(encoder_for(glmsse, "anthropic"), events, judged))
        assert message.stop_reason == stop_reason


@pytest.mark.parametrize("reason", ["network_error", "insufficient_system_resource", "Odd <reason>"])
def test_any_other_reason_is_an_error(glmsse: ModuleType, reason: str) -> None:
    events, verdict, _ = read(glmsse, body([text("a"), finish(reason, 23)]))
    for judged in (verdict, None):
        message = check(encode(encoder_for(glmsse, "anthropic"), events, judged))
        assert message.error is not None
        assert message.error["type"] == "api_error"
        assert "<" not in message.error["message"]


@pytest.mark.parametrize(
    ("code", "type_"),
    [
        ("1001", "authentication_error"),
        ("1110", "permission_error"),
        ("1220", "permission_error"),
        ("1113", "billing_error"),
        ("1210", "invalid_request_error"),
        ("1261", "invalid_request_error"),
        ("1301", "invalid_request_error"),
        ("1302", "rate_limit_error"),
        ("1304", "rate_limit_error"),
        ("1305", "overloaded_error"),
        ("1200", "api_error"),
        ("1231", "api_error"),
        ("9999", "api_error"),
    ],
)
def test_provider_errors_keep_their_class_and_lose_their_words(glmsse: ModuleType, code: str, type_: str) -> None:
    error = {"error": {"code": code, "message": "secret input"}, "request_id": "req-7"}
    events, verdict, _ = read(glmsse, body([text("a"), error]))
    data = encode(encoder_for(glmsse, "anthropic"), events, verdict)
    message = check(data)
    assert message.error is not None
    assert message.error["type"] == type_
    assert message.error["message"].endswith(f"; provider code {code}; request id req-7")
    assert b"secret" not in data


def test_a_failed_event_ends_the_stream_at_once() -> None:
    encoder = new()
    data = encoder.encode([ContentDelta("a"), Failed(fault("bad_json", offset=7)), ContentDelta("b"), Done()])
    assert check(data).error == {"type": "api_error", "message": "bad_json at byte 7: an event is not JSON"}
    assert encoder.encode([ContentDelta("c")]) == encoder.ping() == b""
    assert encoder.finish(accepted()) == b""


def test_an_error_before_anything_else_is_the_whole_stream() -> None:
    assert check(encode(new(), [Failed(fault("bad_json"))], None)).head is None


def test_a_refused_response_waits_for_the_verdict_that_knows_its_class(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    encoder = encoder_for(glmsse, "anthropic")
    data = encoder.encode(stream.start(429, {"content-type": "application/json"}))
    data += encoder.encode(stream.feed(b'{"error":{"code":"1113","message":"secret"}}'))
    assert data == b""
    message = check(encoder.finish(stream.close()))
    assert message.error is not None
    assert message.error["type"] == "billing_error"
    assert "provider code 1113" in message.error["message"]


def test_a_refused_response_without_a_verdict_is_an_error_too() -> None:
    message = check(encode(new(), [Failed(fault("http_status", status=500))], None))
    assert message.error is not None
    assert message.error["message"].startswith("http_status")
    encoder = new()
    encoder.encode([Failed(fault("http_status", status=500)), Finish("stop")])
    assert check(encoder.finish(accepted())).error is not None


@pytest.mark.parametrize("code", ["deadline_idle", "cancelled"])
def test_a_reader_that_gave_up_is_an_error(glmsse: ModuleType, code: str) -> None:
    stream = glmsse.ChatStream()
    encoder = encoder_for(glmsse, "anthropic")
    data = encoder.encode(stream.feed(body([text("a")], done=False)))
    message = check(data + encoder.finish(stream.close(code)))
    assert message.error is not None
    assert message.error["message"].startswith(code)


def test_a_verdict_that_was_made_without_an_error_is_an_error_too() -> None:
    message = check(encode(new(), [ContentDelta("a"), Finish("stop")], Verdict("incomplete")))
    assert message.error == {"type": "api_error", "message": "incomplete"}


def test_an_accepted_verdict_over_events_that_say_otherwise_is_an_error() -> None:
    for events in ([Finish("network_error")], [Finish("length")], [Finish("tool_calls")]):
        assert check(encode(new(), events, accepted())).error is not None


def test_calls_that_nobody_judged_are_no_normal_stop_under_another_verdict() -> None:
    error = rejected("finish_length", "generation", choice=0)
    verdict = Verdict("not_accepted", stage="generation", code="finish_length", error=error, finish_reason="length")
    events = [start(), ArgumentsDelta(0, "{}"), Finish("stop")]
    assert check(encode(new(), events, verdict)).error is not None
    assert check(encode(new(), [], verdict)).error is not None


def test_without_a_verdict_the_finish_event_decides() -> None:
    events = [ReasoningDelta("a"), start(), ArgumentsDelta(0, '{"a":1}'), ToolCallEnd(0)]
    message = check(encode(new(), [*events, Finish("tool_calls")], None))
    assert message.stop_reason == "tool_use"
    assert message.calls == [("call_0", "add", '{"a":1}')]
    assert check(encode(new(), [*events, Finish("stop")], None)).stop_reason == "tool_use"
    for odd in ([], events, [*events, Finish(None)], [Finish("tool_calls")]):
        assert check(encode(new(), odd, None)).error is not None


def test_an_accepted_verdict_stands_in_for_a_finish_that_came_with_the_tail(glmsse: ModuleType) -> None:
    data = body([text("a"), finish("stop", 23)], done=False)[:-1]
    events, verdict, _ = read(glmsse, data, profile="gateway")
    assert "flush_tail" in verdict.tolerated
    message = check(encode(encoder_for(glmsse, "anthropic"), events, verdict))
    assert message.stop_reason == "end_turn"
    assert message.usage is not None
    assert message.usage["output_tokens"] == 8


# Usage.


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (Usage(100, 10, 110, 30, {}), (70, 30, 10)),
        (Usage(698, 14, 8198, 7486, {}), (698, 7486, 14)),
        (Usage(432, 68, 636, 400, {}), (32, 400, 68)),
        (Usage(5, 1, 6, 9, {}), (0, 9, 1)),
        (Usage(15, 8, 23, None, {}), (15, 0, 8)),
        (None, (0, 0, 0)),
    ],
)
def test_cached_tokens_stand_beside_the_input(usage: Usage | None, expected: tuple[int, int, int]) -> None:
    message = check(encode(new(), [Finish("stop")], accepted(usage=usage)))
    assert message.usage == {
        "input_tokens": expected[0],
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": expected[1],
        "output_tokens": expected[2],
    }


def test_usage_that_trails_the_finish_is_in_message_delta() -> None:
    encoder = new()
    assert b"message_delta" not in encoder.encode([ContentDelta("a"), Finish("stop"), USAGE])
    message = check(encode(new(), [ContentDelta("a"), Finish("stop"), USAGE], None))
    assert message.usage is not None
    assert message.usage["input_tokens"] == 15


def test_usage_that_is_known_before_the_first_piece_is_in_message_start() -> None:
    message = check(encode(new(), [USAGE, ContentDelta("a"), Finish("stop")], None))
    assert message.head is not None
    assert message.head["usage"]["input_tokens"] == 15


# Pings and misuse.


def test_pings_may_come_anywhere_before_the_end() -> None:
    encoder = new()
    data = encoder.ping() + encoder.encode([ContentDelta("a"), Finish("stop")]) + encoder.ping()
    data += encoder.finish(accepted())
    assert check(data).pings == 2
    assert data.startswith(b'event: ping\ndata: {"type":"ping"}\n\n')
    assert encoder.ping() == b""


def test_another_choice_is_misuse() -> None:
    for events in ([ContentDelta("a", 1)], [Finish("stop", 1)], [start(), ToolCallEnd(0, 1)]):
        with pytest.raises(MisuseError, match="one choice"):
            new().encode(events)
    with pytest.raises(MisuseError, match="one choice"):
        new().finish(accepted(replace(call("{}"), choice=1)))


def test_calls_out_of_turn_and_wrong_types_are_misuse() -> None:
    encoder = new()
    with pytest.raises(MisuseError, match="takes events"):
        encoder.encode(["a"])  # type: ignore[list-item]
    with pytest.raises(MisuseError, match="Verdict or None"):
        encoder.finish("accepted")  # type: ignore[arg-type]
    encoder.finish(None)
    with pytest.raises(MisuseError, match="finish was called twice"):
        encoder.finish(None)
    with pytest.raises(MisuseError, match="after finish"):
        encoder.encode([])


@pytest.mark.parametrize(
    "options",
    [{"model": 1}, {"message_id": None}, {"thinking_signature": 1}, {"drop_blank_text": 1}, {"model": "\ud800"}],
)
def test_options_are_checked(options: dict[str, Any]) -> None:
    with pytest.raises(MisuseError, match=r"model|message_id|thinking_signature|drop_blank_text"):
        AnthropicEncoder(**{"model": "m", "message_id": "i", **options})


def test_an_encoder_is_neither_copied_nor_pickled_and_shows_no_text() -> None:
    encoder = new()
    encoder.encode([start(), ArgumentsDelta(0, "secret")])
    assert repr(encoder) == "<AnthropicEncoder, 1 choices>"
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(MisuseError):
            attempt(encoder)


def test_what_waits_is_written_once_and_in_order() -> None:
    encoder = new(drop_blank_text=True)
    blank = b"".join(encoder.encode([ContentDelta(" ")]) for _ in range(20_000))
    assert payloads(blank)[1:] == []
    encoder.encode([start(), *[ArgumentsDelta(0, " ")] * 20_000, ArgumentsDelta(0, "["), ContentDelta("a")])
    pieces = payloads(encoder.encode([*[ArgumentsDelta(0, "1,")] * 20_000, ContentDelta("b")]))
    assert [piece["delta"]["partial_json"] for piece in pieces] == ["1,"] * 20_000
