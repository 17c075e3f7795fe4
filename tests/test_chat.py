"""ChatStream: when calls start and end, what each option changes, what the caller may do, and what a fault leaves."""

from __future__ import annotations

import copy
import ctypes
import pickle
from array import array
from typing import Any

import pytest

from wire import (
    CALL,
    DONE,
    HELLO,
    USAGE,
    body,
    chunk,
    codes,
    content,
    each_byte,
    end,
    event,
    feed_all,
    piece,
    plain,
    read,
    reasoning,
    single_cuts,
    tools,
    types,
    verdict_of,
)

# Events of text, of calls and of the end


def test_text_turn_gives_its_events_in_order(glmsse: Any) -> None:
    events, verdict, _ = read(glmsse, body(reasoning("Hm"), content("Hi"), end()))

    assert plain(events) == [
        {"type": "reasoning.delta", "text": "Hm", "choice": 0},
        {"type": "content.delta", "text": "Hi", "choice": 0},
        {
            "type": "usage",
            "prompt_tokens": 10,
            "completion_tokens": 5,
            "total_tokens": 15,
            "cached_tokens": None,
            "raw": USAGE,
            "choice": 0,
        },
        {"type": "finish", "reason": "stop", "choice": 0},
        {"type": "done", "choice": 0},
    ]
    assert verdict.accepted


def test_one_chunk_is_read_as_usage_reasoning_content_tools_finish(glmsse: Any) -> None:
    everything = chunk(
        {"tool_calls": [piece("{}", id="c1", name="f")], "content": "Hi", "reasoning_content": "Hm"},
        finish="tool_calls",
        usage=USAGE,
    )

    events = glmsse.ChatStream().feed(event(everything))

    assert types(events) == [
        "usage",
        "reasoning.delta",
        "content.delta",
        "tool_call.start",
        "tool_call.arguments.delta",
        "tool_call.end",
        "finish",
    ]


def test_call_starts_when_id_and_name_are_known_and_earlier_arguments_follow_at_once(glmsse: Any) -> None:
    stream = glmsse.ChatStream()

    assert stream.feed(event(tools(piece('{"a"', name="f")))) == []
    assert stream.feed(event(tools(piece(":1")))) == []
    events = stream.feed(event(tools(piece("}", id="c1"))))

    assert plain(events) == [
        {"type": "tool_call.start", "index": 0, "id": "c1", "name": "f", "choice": 0},
        {"type": "tool_call.arguments.delta", "index": 0, "arguments": '{"a":1', "choice": 0},
        {"type": "tool_call.arguments.delta", "index": 0, "arguments": "}", "choice": 0},
    ]


def test_call_without_an_id_starts_at_the_finish_reason(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    assert stream.feed(event(tools(piece("{}", name="f")))) == []

    events = stream.feed(event(end("tool_calls", usage=None)))

    assert plain(events) == [
        {"type": "tool_call.start", "index": 0, "id": None, "name": "f", "choice": 0},
        {"type": "tool_call.arguments.delta", "index": 0, "arguments": "{}", "choice": 0},
        {"type": "tool_call.end", "index": 0, "choice": 0},
        {"type": "finish", "reason": "tool_calls", "choice": 0},
    ]


@pytest.mark.parametrize("reason", ["stop", "tool_calls"])
def test_call_ends_at_a_finish_reason_that_means_whole(glmsse: Any, reason: str) -> None:
    events, _, stream = read(glmsse, body(tools(piece("{}", id="c1", name="f")), end(reason)))

    assert "tool_call.end" in types(events)
    assert stream.snapshot.choices[0].tool_calls[0].complete is True


@pytest.mark.parametrize("reason", ["length", "sensitive", "network_error", "made_up"])
def test_call_stays_open_at_any_other_finish_reason(glmsse: Any, reason: str) -> None:
    events, _, stream = read(glmsse, body(tools(piece("{}", id="c1", name="f")), end(reason)))

    assert "tool_call.end" not in types(events)
    assert stream.snapshot.choices[0].tool_calls[0].complete is False


def test_call_that_comes_after_the_finish_reason_ends_at_the_sentinel(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    stream.feed(event(tools(piece("{}", id="c1", name="f"), finish="tool_calls", usage=USAGE)))
    late = stream.feed(event(tools(piece("{}", index=1, id="c2", name="g"))))

    last = stream.feed(DONE)

    assert types(late) == ["tool_call.start", "tool_call.arguments.delta"]
    assert plain(last) == [{"type": "tool_call.end", "index": 1, "choice": 0}, {"type": "done", "choice": 0}]
    assert [call.name for call in stream.verdict.tool_calls] == ["f", "g"]


def test_each_call_with_its_own_finish_reason_ends_once(glmsse: Any) -> None:
    """GLM-4.5 sends its finish reason with each call, and again at the end."""
    events, verdict, _ = read(
        glmsse,
        body(
            tools(piece("{}", id="c1", name="f"), finish="tool_calls"),
            tools(piece("{}", index=1, id="c2", name="g"), finish="tool_calls"),
            end("tool_calls"),
        ),
    )

    assert [(item.type, item.index) for item in events if item.type == "tool_call.end"] == [
        ("tool_call.end", 0),
        ("tool_call.end", 1),
    ]
    assert types(events).count("finish") == 1
    assert verdict.accepted


def test_calls_may_interleave_and_skip_indexes(glmsse: Any) -> None:
    _, verdict, _ = read(
        glmsse,
        body(
            tools(piece('{"a":', index=3, id="c3", name="f")),
            tools(piece('{"b":', index=1, id="c1", name="g")),
            content("between"),
            tools(piece("3}", index=3), piece("1}", index=1)),
            end("tool_calls"),
        ),
    )

    assert [(call.index, call.arguments) for call in verdict.tool_calls] == [(1, '{"b":1}'), (3, '{"a":3}')]


@pytest.mark.parametrize("empty", ["", None])
def test_empty_pieces_make_no_event_and_change_nothing(glmsse: Any, empty: Any) -> None:
    delta = {"content": empty, "reasoning_content": empty, "tool_calls": empty or None}
    same = {"index": 0, "id": empty, "type": empty, "function": {"name": empty, "arguments": empty}}
    stream = glmsse.ChatStream()
    stream.feed(event(tools(piece("{}", id="c1", name="f"))))

    events = feed_all(stream, [event(chunk(delta, finish=empty or None)), event(tools(same)), event(chunk(finish=""))])

    assert events == []
    call = stream.snapshot.choices[0].tool_calls[0]
    assert (call.id, call.name, call.arguments) == ("c1", "f", "{}")


def test_null_finish_reason_does_not_clear_the_one_that_came(glmsse: Any) -> None:
    late = chunk({})
    late["choices"][0]["finish_reason"] = None
    assert verdict_of(glmsse, content("Hi"), end(), late).accepted


def test_arguments_pass_byte_for_byte(glmsse: Any) -> None:
    exact = '{ "a" : "\\u0041\\/ \\"",\t"b":1.0e0 ,"ü":"\U0001f600"}\n'
    verdict = verdict_of(
        glmsse, *[tools(piece(letter)) for letter in exact], tools(piece(id="c", name="f")), end("tool_calls")
    )

    assert verdict.tool_calls[0].arguments == exact


def test_surrogate_halves_over_two_deltas_are_one_character(glmsse: Any) -> None:
    high, low = (
        b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\ude00b"}}]}\n\n',
    )
    stream = glmsse.ChatStream()

    first, second = stream.feed(high), stream.feed(low)

    assert [item.text for item in first] == ["a"]
    assert [item.text for item in second] == ["\U0001f600b"]


def test_halves_in_different_fields_are_not_joined(glmsse: Any) -> None:
    high = b'data: {"choices":[{"delta":{"reasoning_content":"\\ud83d"}}]}\n\n'
    low = b'data: {"choices":[{"delta":{"content":"\\ude00"}}]}\n\n'
    assert verdict_of(glmsse, high, low, end()).code == "lone_surrogate"


# Sentinel and ignored payloads


@pytest.mark.parametrize(
    "sentinel", ["[DONE]", " [DONE]", "[DONE] ", "\t[DONE]\t ", "[DONE]\ndata: ", "\ndata: [DONE]"]
)
def test_sentinel_is_read_with_blanks_around_it(glmsse: Any, sentinel: str) -> None:
    stream = glmsse.ChatStream()
    stream.feed(HELLO.replace(b"[DONE]", sentinel.encode()))
    assert stream.done
    assert stream.verdict.accepted


@pytest.mark.parametrize(
    "wrong", ["[done]", "[DONE", "[DONE].", "DONE", '"[DONE]"', "\x0b[DONE]", "\u00a0[DONE]", "[DONE][DONE]"]
)
def test_nothing_else_is_the_sentinel(glmsse: Any, wrong: str) -> None:
    verdict = verdict_of(glmsse, content("Hi"), end(), event(wrong))
    assert verdict.outcome == "protocol_error"
    assert not verdict.done


def test_verdict_is_there_at_the_sentinel_without_the_end_of_the_body(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    assert stream.verdict is None
    stream.feed(HELLO)
    assert stream.verdict.accepted


@pytest.mark.parametrize(
    "later", [b"data: {bad\n\n", b"\xff\xfe\n\n", DONE, b'event: error\ndata: {"error":{}}\n\n', b"\x00" * 100]
)
def test_bytes_after_the_sentinel_are_counted_and_not_read(glmsse: Any, later: bytes) -> None:
    together = glmsse.ChatStream()
    events = together.feed(HELLO + later)
    apart = glmsse.ChatStream()
    apart.feed(HELLO)

    assert apart.feed(later) == []
    assert types(events)[-1] == "done"
    assert together.close() == apart.close()
    assert together.verdict.accepted
    assert together.bytes_seen == apart.bytes_seen == len(HELLO + later)
    assert together.events_seen == apart.events_seen == 3


@pytest.mark.parametrize(
    "ignored",
    [
        b"data:\n\n",
        b"data: \t \n\n",
        b"data:\ndata:\n\n",
        b"data: {}\n\n",
        b'data: {"choices":[]}\n\n',
        b'data: {"choices":null,"usage":null,"error":null}\n\n',
        b'event: ping\ndata: {"type":"ping"}\n\n',
        b"event: anything\ndata: \n\n",
        b'data: {"id":"another","object":"x","model":5}\n\n',
    ],
)
def test_payload_without_anything_to_read_is_ignored_and_counted(glmsse: Any, ignored: bytes) -> None:
    events, verdict, stream = read(glmsse, body(content("Hi"), ignored, end()))

    assert types(events) == ["content.delta", "usage", "finish", "done"]
    assert verdict.accepted
    assert stream.events_seen == 4


def test_comments_and_events_without_data_are_not_counted_as_events(glmsse: Any) -> None:
    _, verdict, stream = read(glmsse, body(b": ping\n\n", b"event: x\n\n", b"\n\n\n", content("Hi"), end()))
    assert verdict.accepted
    assert stream.events_seen == 3


def test_event_name_other_than_error_changes_nothing(glmsse: Any) -> None:
    assert verdict_of(glmsse, event(content("Hi"), "chunk"), event(end(), "Error")).accepted


# Errors of the provider


@pytest.mark.parametrize(
    "sent",
    [
        event("overloaded, sorry", "error"),
        event("[DONE]", "error"),
        event("", "error"),
        event("{broken", "error"),
        event(content("looks fine"), "error"),
        event({"error": {}}),
        event({"error": "text"}),
        event({"error": False}),
        event({"error": 0}),
        event({"error": []}),
        event({"object": "error", "message": "x"}),
        event({"type": "error"}),
        event({**end(), "error": {"code": 1}}),
    ],
)
def test_error_objects_are_found_before_anything_else(glmsse: Any, sent: bytes) -> None:
    events, verdict, stream = read(glmsse, body(content("Hi"), sent, end()))

    assert types(events) == ["content.delta", "failed"]
    assert (verdict.outcome, verdict.stage, verdict.code) == ("provider_error", "provider", "provider_error")
    assert stream.usage is None


@pytest.mark.parametrize("delta", [{"content": '{"error":{"code":"1302"}}'}, {"content": "x", "error": "inner"}])
def test_word_error_in_other_places_is_no_error(glmsse: Any, delta: Any) -> None:
    assert verdict_of(glmsse, chunk(delta), end()).accepted


def test_error_is_never_healed_by_a_good_looking_end(glmsse: Any) -> None:
    verdict = verdict_of(glmsse, content("Hi"), end(), event({"error": {"code": "1302"}}))
    assert verdict.outcome == "provider_error"
    assert not verdict.done


# Shapes


@pytest.mark.parametrize(
    "sent",
    [
        {"choices": "x"},
        {"choices": {"a": 1}},
        {"choices": {}},
        {"choices": ""},
        {"choices": 0},
        {"choices": [1]},
        {"choices": [None]},
        {"choices": [[]]},
        {"choices": [{"index": "0"}]},
        {"choices": [{"index": True}]},
        {"choices": [{"index": 0.0}]},
        {"choices": [{"index": -1}]},
        {"choices": [{"delta": "x"}]},
        {"choices": [{"delta": []}]},
        {"choices": [{"delta": {"content": 5}}]},
        {"choices": [{"delta": {"content": []}}]},
        {"choices": [{"delta": {"content": {}}}]},
        {"choices": [{"delta": {"content": False}}]},
        {"choices": [{"delta": {"reasoning_content": []}}]},
        {"choices": [{"delta": {"tool_calls": {}}}]},
        {"choices": [{"delta": {"tool_calls": "x"}}]},
        {"choices": [{"delta": {"tool_calls": [None]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 1.5}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": False}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": -1}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "id": 7}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "type": "custom"}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "type": 1}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": "f"}]}}]},
        {"choices": [{"delta": {"tool_calls": [{"index": 0, "function": {"name": ["f"]}}]}}]},
        {"choices": [{"delta": {}, "finish_reason": 5}]},
        {"choices": [{"delta": {}, "finish_reason": False}]},
        {"id": 5, "choices": [{"delta": {}}]},
        {"usage": "x"},
        {"usage": []},
        {"choices": [], "usage": 5},
    ],
)
def test_field_that_is_read_with_another_type_is_an_unexpected_shape(glmsse: Any, sent: Any) -> None:
    verdict = verdict_of(glmsse, content("Hi"), sent, end())
    assert (verdict.outcome, verdict.stage, verdict.code) == ("protocol_error", "event_decoding", "unexpected_shape")


@pytest.mark.parametrize(
    "fields",
    [
        {"object": 5, "created": "x", "model": {}, "system_fingerprint": 1, "request_id": []},
        {"choices": [{"delta": {"role": 5, "refusal": [], "reasoning": 7, "reasoning_details": "x"}, "logprobs": 1}]},
        {"choices": [{"delta": {"tool_calls": []}, "native_finish_reason": 5, "matched_stop": {}}]},
        {"choices": [{"index": None, "delta": None, "finish_reason": None}]},
        {"choices": [{"delta": {"function_call": None}, "message": None}]},
        {"choices": [{"delta": {"function_call": {"name": "", "arguments": None}}}]},
        {"choices": [{"delta": {"function_call": {}}}]},
        {"choices": [{}]},
        {"id": None, "choices": [{"delta": {}}]},
        {"id": "", "choices": [{"delta": {}}]},
        {"choices": [{"delta": {"content": "x"}, "message": {"content": "y"}}]},
    ],
)
def test_field_that_is_not_read_is_never_judged(glmsse: Any, fields: Any) -> None:
    assert verdict_of(glmsse, content("Hi"), fields, end()).accepted


@pytest.mark.parametrize("arguments", [{}, [], 5, True, {"a": 1}])
def test_arguments_of_another_type_have_a_code_of_their_own(glmsse: Any, arguments: Any) -> None:
    assert verdict_of(glmsse, tools(piece(arguments, id="c", name="f"))).code == "arguments_type"


@pytest.mark.parametrize(
    "second",
    [piece(id="c2"), piece(name="g"), piece("x", id="c1", name="g"), piece(id="c2", name="f")],
)
def test_stable_field_that_changes_is_a_conflict(glmsse: Any, second: Any) -> None:
    assert verdict_of(glmsse, tools(piece("{", id="c1", name="f")), tools(second)).code == "stable_conflict"


def test_piece_without_index_is_call_0_until_another_call_is_open(glmsse: Any) -> None:
    first = tools(piece('{"a":', index=None, id="c1", name="f"))
    assert verdict_of(glmsse, first, tools(piece("1}", index=None)), end("tool_calls")).accepted

    other = tools(piece("{}", index=1, id="c2", name="g"))
    assert verdict_of(glmsse, first, other, tools(piece("1}", index=None))).code == "unexpected_shape"


@pytest.mark.parametrize("function_call", [{"name": "f"}, {"arguments": "{"}, {"name": "f", "arguments": "{}"}])
def test_old_function_call_is_refused_by_name(glmsse: Any, function_call: Any) -> None:
    assert verdict_of(glmsse, chunk({"function_call": function_call})).code == "legacy_function_call"


@pytest.mark.parametrize("delta", [None, {}])
def test_message_instead_of_a_delta_is_refused_by_name(glmsse: Any, delta: Any) -> None:
    sent = {"choices": [{"delta": delta, "message": {"content": "Hi"}}]}
    assert verdict_of(glmsse, sent).code == "message_not_delta"


@pytest.mark.parametrize("late", [{"content": "x"}, {"reasoning_content": "x"}])
@pytest.mark.parametrize("reason", ["stop", "tool_calls", "length"])
def test_text_after_the_finish_reason_is_refused(glmsse: Any, late: Any, reason: str) -> None:
    assert verdict_of(glmsse, end(reason), chunk(late)).code == "delta_after_finish"


def test_tool_pieces_may_follow_tool_calls_but_no_other_reason(glmsse: Any) -> None:
    late = tools(piece("{}", id="c1", name="f"))
    assert verdict_of(glmsse, end("tool_calls"), late).accepted
    assert verdict_of(glmsse, end("stop"), late).code == "delta_after_finish"


def test_other_finish_reason_is_a_conflict_and_an_equal_one_passes(glmsse: Any) -> None:
    assert verdict_of(glmsse, end(), end(usage=None)).accepted
    assert verdict_of(glmsse, end(), end("length")).code == "finish_conflict"


def test_response_id_may_not_change_but_on_chunks_without_choices(glmsse: Any) -> None:
    other = {"id": "r-2", "choices": [], "usage": USAGE}
    assert verdict_of(glmsse, content("Hi"), end(usage=None), other).accepted
    assert verdict_of(glmsse, content("Hi"), {**end(), "id": "r-2"}).code == "response_id_changed"
    assert verdict_of(glmsse, {**content("Hi"), "id": ""}, end()).accepted


def test_faulty_piece_adds_nothing_and_what_came_before_it_stays(glmsse: Any) -> None:
    sent = chunk(
        {
            "reasoning_content": "kept",
            "content": "kept too",
            "tool_calls": [piece("{}", id="c1", name="f"), piece("x", id="c2")],
        },
        usage=USAGE,
        finish="stop",
    )

    events, verdict, stream = read(glmsse, body(sent))

    assert types(events) == [
        "usage",
        "reasoning.delta",
        "content.delta",
        "tool_call.start",
        "tool_call.arguments.delta",
        "failed",
    ]
    choice = stream.snapshot.choices[0]
    assert (choice.reasoning_content, choice.content, choice.tool_calls[0].arguments) == ("kept", "kept too", "{}")
    assert choice.finish_reason is None
    assert verdict.usage.total_tokens == 15


def test_usage_before_choices_of_the_wrong_type_stays(glmsse: Any) -> None:
    for choices in ("x", {}, "", 0, False):
        events, verdict, _ = read(glmsse, body({"usage": USAGE, "choices": choices}))
        assert types(events) == ["usage", "failed"], choices
        assert verdict.code == "unexpected_shape"


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"prompt_tokens": 1},
        {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": True},
        {"prompt_tokens": -1, "completion_tokens": 1, "total_tokens": 0},
        {"prompt_tokens": 1.0, "completion_tokens": 1, "total_tokens": 2},
        {"prompt_tokens": "1", "completion_tokens": "1", "total_tokens": "2"},
    ],
)
def test_last_usage_with_three_totals_wins(glmsse: Any, other: Any) -> None:
    events, verdict, stream = read(
        glmsse, body(content("Hi", usage=USAGE), end(usage={**USAGE, "total_tokens": 99}), {"usage": other})
    )

    assert types(events).count("usage") == 2
    assert verdict.usage.total_tokens == stream.usage.total_tokens == 99


@pytest.mark.parametrize(
    ("more", "cached"),
    [
        ({}, None),
        ({"prompt_tokens_details": {"cached_tokens": 1}, "cached_tokens": 2, "prompt_cache_hit_tokens": 3}, 1),
        ({"prompt_tokens_details": None, "cached_tokens": 2, "prompt_cache_hit_tokens": 3}, 2),
        ({"prompt_tokens_details": {}, "prompt_cache_hit_tokens": 3}, 3),
        ({"prompt_tokens_details": {"cached_tokens": 0}, "cached_tokens": 2}, 0),
        ({"prompt_tokens_details": {"cached_tokens": "1"}, "cached_tokens": -2}, None),
        ({"prompt_tokens_details": "x", "cached_tokens": 2}, 2),
    ],
)
def test_cached_tokens_have_three_spellings(glmsse: Any, more: Any, cached: Any) -> None:
    assert verdict_of(glmsse, content("Hi"), end(usage=USAGE | more)).usage.cached_tokens == cached


def test_sums_of_usage_are_not_checked(glmsse: Any) -> None:
    usage = {"prompt_tokens": 698, "completion_tokens": 14, "total_tokens": 8198}
    assert verdict_of(glmsse, content("Hi"), end(usage=usage)).accepted


def test_spliced_frame_is_told_apart_from_bad_json_with_digests_of_both_ids(glmsse: Any) -> None:
    spliced = b'data: {"id":"A","created":1,"object":"chat.cdata: {"id":"B","choices":[]}\n\n'
    verdict = verdict_of(glmsse, content("Hi"), spliced)

    assert (verdict.code, verdict.error.parent_code) == ("spliced_frame", "bad_json")
    assert verdict.error.id_digests == ("559aead08264d579", "df7e70e5021544f4")


@pytest.mark.parametrize(
    "broken", ['{"id":"Adata: {"id"', '{"id":"A"', 'x data: {"id":"B"}', '{"id":"A"}{"id":"B"}', '{"a data: [1]']
)
def test_other_broken_payloads_are_bad_json(glmsse: Any, broken: str) -> None:
    verdict = verdict_of(glmsse, content("Hi"), event(broken))
    assert (verdict.code, verdict.error.parent_code) == ("bad_json", None)


@pytest.mark.parametrize("payload", ["[1]", '"x"', "5", "null", "true", "[]", '[{"choices":[]}]'])
def test_payload_that_is_no_object_is_refused(glmsse: Any, payload: str) -> None:
    assert verdict_of(glmsse, content("Hi"), event(payload)).code == "event_not_object"


# Several choices


def test_promised_choices_each_need_their_finish_reason(glmsse: Any) -> None:
    both = [content("a"), content("b", index=1), end(), end("stop", usage=None, index=1)]

    assert verdict_of(glmsse, *both, choices=2).accepted
    missing = verdict_of(glmsse, *both[:3], choices=2)
    assert (missing.code, missing.missing) == ("incomplete_stream", ("finish_reason",))


def test_choice_that_was_not_promised_is_refused(glmsse: Any) -> None:
    assert verdict_of(glmsse, content("b", index=1)).code == "unexpected_choice"
    assert verdict_of(glmsse, content("c", index=2), choices=2).code == "unexpected_choice"
    assert verdict_of(glmsse, content("c", index=10**9)).code == "unexpected_choice"


def test_choices_keep_their_text_and_calls_apart(glmsse: Any) -> None:
    events, verdict, stream = read(
        glmsse,
        body(
            tools(piece('{"a":', id="c1", name="f")),
            tools(piece('{"b":', id="c2", name="g"), index=1),
            content("zero"),
            content("one", index=1),
            tools(piece("0}")),
            tools(piece("1}"), index=1),
            end("tool_calls", index=1),
            end("tool_calls"),
        ),
        choices=2,
    )

    assert verdict.accepted
    assert [(call.choice, call.index, call.id, call.arguments) for call in verdict.tool_calls] == [
        (0, 0, "c1", '{"a":0}'),
        (1, 0, "c2", '{"b":1}'),
    ]
    assert [choice.content for choice in stream.snapshot.choices] == ["zero", "one"]
    assert [item.choice for item in events if item.type == "finish"] == [1, 0]


def test_snapshot_holds_every_promised_choice_before_anything_came(glmsse: Any) -> None:
    assert [choice.index for choice in glmsse.ChatStream(choices=3).snapshot.choices] == [0, 1, 2]


# deltas, collect, the tap


def test_without_deltas_the_text_is_still_assembled(glmsse: Any) -> None:
    events, verdict, stream = read(glmsse, CALL, deltas=False)

    assert types(events) == ["usage", "finish", "done"]
    assert verdict.tool_calls[0].arguments == '{"city":"Rome"}'
    assert stream.snapshot.choices[0].tool_calls[0].complete is True


def test_without_collecting_no_text_and_no_arguments_are_kept(glmsse: Any) -> None:
    events, verdict, stream = read(
        glmsse,
        body(reasoning("Hm"), content("Hi"), tools(piece("{}", id="c1", name="f")), end("tool_calls")),
        collect=False,
    )

    choice = stream.snapshot.choices[0]
    assert "content.delta" in types(events)
    assert (choice.content, choice.reasoning_content) == ("", "")
    assert [call.arguments for call in choice.tool_calls] == [""]
    assert verdict.accepted
    assert verdict.tool_calls == ()


def test_late_start_without_collecting_still_gives_the_earlier_arguments(glmsse: Any) -> None:
    events, _, _ = read(
        glmsse, body(tools(piece('{"a":')), tools(piece("1}", id="c1", name="f")), end("tool_calls")), collect=False
    )
    assert "".join(item.arguments for item in events if item.type == "tool_call.arguments.delta") == '{"a":1}'


@pytest.mark.parametrize(
    "data",
    [
        HELLO,
        CALL,
        body(tools(piece('{"a":1,"a":2}', id="c", name="f")), end("tool_calls")),
        body(tools(piece("{}", id="c", name="f")), end("stop")),
        body(content("Hi"), end("length")),
        body(content("Hi"), b"data: {\n\n"),
        body(content("Hi"), content("x" * 100), end()),
        body(content("Hi"), done=False),
        body(content("Hi"), event({"error": {"code": "1302"}})),
        b"",
    ],
)
def test_tap_has_the_same_checks_counters_and_verdict(glmsse: Any, data: bytes) -> None:
    limits = glmsse.Limits(max_content_bytes=50)
    full_events, full, full_stream = read(glmsse, data, limits=limits)
    events, verdict, stream = read(glmsse, data, limits=limits, deltas=False, collect=False)

    kinds = ("finish", "usage", "done", "failed")
    assert plain(events) == [item for item in plain(full_events) if item["type"] in kinds]
    assert {**verdict.to_dict(), "tool_calls": []} == {**full.to_dict(), "tool_calls": []}
    assert (stream.bytes_seen, stream.events_seen) == (full_stream.bytes_seen, full_stream.events_seen)


# Phase and counters


def test_phase_follows_what_the_model_does(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    phases = [stream.phase]
    for data in (
        b": ping\n\n",
        event({"choices": [{"delta": {"role": "assistant"}}]}),
        event(reasoning("Hm")),
        event(content("Hi")),
        event(tools(piece("{}", id="c1", name="f"))),
        event(content("more")),
        event(end("tool_calls")),
        DONE,
    ):
        stream.feed(data)
        phases.append(stream.phase)

    assert phases == [
        "waiting",
        "waiting",
        "started",
        "reasoning",
        "answering",
        "calling",
        "answering",
        "answering",
        "complete",
    ]
    assert (stream.done, stream.failed) == (True, False)


@pytest.mark.parametrize("data", [b"data: {\n\n", body(end("length")), body(content("Hi"))])
def test_phase_is_failed_after_a_fault_or_a_verdict_that_is_not_accepted(glmsse: Any, data: bytes) -> None:
    _, _, stream = read(glmsse, data)
    assert (stream.phase, stream.failed) == ("failed", True)


def test_counters_count_every_byte_and_every_event_with_data(glmsse: Any) -> None:
    for pieces in ([HELLO], each_byte(HELLO)):
        stream = glmsse.ChatStream()
        feed_all(stream, pieces)
        assert (stream.bytes_seen, stream.events_seen) == (len(HELLO), 3)


# Faults: latched, the same at every cut, at the first byte of their block


FAULTS = {
    "bad_json": b"data: {\n\n",
    "event_not_object": b"data: 5\n\n",
    "duplicate_key": b'data: {"a":1,\ndata: "a":2}\n\n',
    "unexpected_shape": b': comment\nevent: x\ndata: {"choices":5}\n\n',
    "provider_error": b'id: 5\nevent: error\ndata: {"error":{}}\n\n',
    "spliced_frame": b'data: {"id":"A","cdata: {"id":"B"}\n\n',
    "response_id_changed": b'data: {"id":"r-2","choices":[{}]}\n\n',
    "content_too_large": event(content("x" * 99)),
    "json_nonfinite": b'retry: 5\r\ndata: {"a":1e999}\r\n\r\n',
}


@pytest.mark.parametrize("code", FAULTS)
def test_payload_fault_has_the_offset_of_its_block_at_every_cut(glmsse: Any, code: str) -> None:
    before = b": hello\n\n" + event(content("Hi"))
    data = before + FAULTS[code] + HELLO
    limits = glmsse.Limits(max_content_bytes=50)
    whole_events, verdict, _ = read(glmsse, data, limits=limits)
    assert (verdict.code, verdict.error.offset) == (code, len(before))

    for pieces in ([*single_cuts(data)], [each_byte(data)])[0]:
        stream = glmsse.ChatStream(limits=limits)
        events = feed_all(stream, pieces)
        assert plain(events) == plain(whole_events)
        assert events[-1].error == verdict.error
        assert stream.verdict == verdict
        assert stream.bytes_seen == len(data)
    stream = glmsse.ChatStream(limits=limits)
    assert plain(feed_all(stream, each_byte(data))) == plain(whole_events)


@pytest.mark.parametrize(
    ("fault", "code", "at"),
    [
        (b"data: \xff\n\n", "invalid_utf8", 6),
        (b": comment \xc3\x28\n", "invalid_utf8", 10),
        (b"data: " + b"x" * 200, "event_too_large", 120),
        (b"\n" * 20, "too_many_events", 9),
    ],
)
def test_framing_fault_has_its_own_offset_at_every_cut(glmsse: Any, fault: bytes, code: str, at: int) -> None:
    before = event(content("Hi"))
    data = before + fault + HELLO
    limits = glmsse.Limits(max_event_bytes=120, max_events=10)
    whole_events, verdict, _ = read(glmsse, data, limits=limits)
    # A blank line that is one too many is at fault itself, so its first byte is the one after ten.
    assert (verdict.code, verdict.error.offset) == (code, len(before) + at)

    for pieces in (*single_cuts(data, 3), each_byte(data)):
        stream = glmsse.ChatStream(limits=limits)
        assert plain(feed_all(stream, pieces)) == plain(whole_events)
        assert stream.close() == verdict
        assert stream.bytes_seen == len(data)


def test_framing_fault_after_the_sentinel_in_the_same_read_changes_nothing(glmsse: Any) -> None:
    verdict = read(glmsse, HELLO + b"\xff\n\n" + b"x" * 500, limits=glmsse.Limits(max_event_bytes=200))[1]
    assert verdict.accepted


def test_earlier_payload_fault_decides_before_a_later_framing_fault(glmsse: Any) -> None:
    assert read(glmsse, b"data: {\n\ndata: \xff\n\n")[1].code == "bad_json"
    assert read(glmsse, b"data: {\ndata: \xff\n\n")[1].code == "invalid_utf8"


def test_after_a_fault_nothing_is_returned_and_the_verdict_stays(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    events = stream.feed(event(content("Hi")) + b"data: {\n\n" + HELLO)
    verdict = stream.verdict

    assert types(events) == ["content.delta", "failed"]
    assert stream.feed(HELLO) == []
    assert stream.add(content("more")) == []
    assert stream.close() is verdict
    assert stream.close(TimeoutError()) is verdict
    assert stream.snapshot.choices[0].content == "Hi"
    assert events[-1].error == verdict.error


def test_failed_event_and_verdict_carry_an_error_without_traceback_or_context(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    error = stream.feed(b"data: {\n\n")[-1].error
    assert (error.__traceback__, error.__context__, error.__cause__) == (None, None, None)
    assert error.events == []


# close


def test_close_gives_the_same_verdict_again_and_again(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    verdict = stream.close()
    assert verdict.code == "empty_stream"
    assert stream.close() is verdict
    assert stream.close("cancelled") is verdict
    assert stream.verdict is verdict


class Deadline(Exception):
    code = "deadline_idle"


class OddCode(Exception):
    code = ("deadline_idle",)


CLOSES = [
    ("deadline_first_byte", "deadline_first_byte"),
    ("deadline_idle", "deadline_idle"),
    ("deadline_total", "deadline_total"),
    ("cancelled", "cancelled"),
    (Deadline(), "deadline_idle"),
    (OddCode(), None),
    (ConnectionError("reset"), None),
    (KeyboardInterrupt(), None),
    ("whatever", None),
    ("bad_json", None),
    (None, None),
]


@pytest.mark.parametrize(("error", "code"), CLOSES, ids=[repr(error) for error, _ in CLOSES])
@pytest.mark.parametrize(
    ("data", "evidence"),
    [
        (b"", "empty_stream"),
        (b": ping\n\n", "empty_stream"),
        (event(content("Hi")), "incomplete_stream"),
        (body(content("Hi"), end(), done=False), "incomplete_stream"),
        (event(content("Hi")) + b"data: {", "unterminated_event"),
    ],
)
def test_close_with_an_error_takes_over_its_code_or_leaves_it_to_the_evidence(
    glmsse: Any, error: Any, code: str | None, data: bytes, evidence: str
) -> None:
    stream = glmsse.ChatStream()
    stream.feed(data)

    verdict = stream.close(error)

    assert (verdict.outcome, verdict.stage, verdict.code) == ("incomplete", "connection_close", code or evidence)
    assert verdict.replay == "ambiguous"


@pytest.mark.parametrize("error", [error for error, _ in CLOSES], ids=[repr(error) for error, _ in CLOSES])
@pytest.mark.parametrize(
    ("data", "code"), [(HELLO, None), (b"data: {\n\n", "bad_json"), (body(end("length")), "finish_length")]
)
def test_close_with_an_error_changes_nothing_after_the_sentinel_or_a_fault(
    glmsse: Any, error: Any, data: bytes, code: str | None
) -> None:
    stream = glmsse.ChatStream()
    stream.feed(data)
    assert stream.close(error).code == code


@pytest.mark.parametrize(
    "error", [error for error, _ in CLOSES if error is not None], ids=lambda value: type(value).__name__
)
def test_close_with_an_error_is_no_clean_end(glmsse: Any, error: Any) -> None:
    for data in (body(content("Hi"), end(), done=False), body(content("Hi"), end())[:-1]):
        stream = glmsse.ChatStream("gateway")
        stream.feed(data)
        verdict = stream.close(error)
        assert verdict.outcome == "incomplete"
        assert verdict.tolerated == ()


# What the caller may not do


def test_feed_and_add_after_close_are_misuse(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    stream.close()
    with pytest.raises(glmsse.MisuseError, match="after close"):
        stream.feed(b"")
    with pytest.raises(glmsse.MisuseError, match="after close"):
        stream.add({})
    with pytest.raises(glmsse.MisuseError):
        stream.start(200, {})


@pytest.mark.parametrize(
    "wrong", ["text", None, 5, [b"x"], {"a": 1}, memoryview(b"abcdef")[::2]], ids=lambda value: type(value).__name__
)
def test_wrong_type_of_data_is_misuse_and_leaves_the_stream_usable(glmsse: Any, wrong: Any) -> None:
    for stream in (glmsse.ChatStream(), glmsse.ChatStream(), glmsse.ChatStream()):
        stream.feed(HELLO[:20])
        with pytest.raises(glmsse.MisuseError):
            stream.feed(wrong)
        stream.feed(HELLO[20:])
        with pytest.raises(glmsse.MisuseError):
            stream.feed(wrong)
        assert stream.bytes_seen == len(HELLO)
        assert stream.close().accepted


@pytest.mark.parametrize("wrong", ["text", None, 5, memoryview(b"abcdef")[::2]], ids=lambda value: type(value).__name__)
def test_wrong_type_of_data_is_misuse_after_a_refused_start_too(glmsse: Any, wrong: Any) -> None:
    stream = glmsse.ChatStream()
    stream.start(500, {})
    with pytest.raises(glmsse.MisuseError):
        stream.feed(wrong)


@pytest.mark.parametrize(
    "kind",
    [
        bytes,
        bytearray,
        memoryview,
        lambda data: array("B", data),
        lambda data: (ctypes.c_char * len(data)).from_buffer_copy(data),
        lambda data: memoryview(data.ljust(len(data) + -len(data) % 4, b"\n")).cast("I"),
        lambda data: memoryview(data.ljust(len(data) + -len(data) % 4, b"\n")).cast(
            "B", (2, (len(data) + -len(data) % 4) // 2)
        ),
    ],
    ids=["bytes", "bytearray", "memoryview", "array", "ctypes", "cast", "two-dimensional"],
)
@pytest.mark.parametrize("status", [None, 200, 500])
def test_any_contiguous_buffer_is_read(glmsse: Any, kind: Any, status: int | None) -> None:
    data = kind(HELLO)
    stream = glmsse.ChatStream()
    if status:
        stream.start(status, {"content-type": "text/event-stream"})

    stream.feed(data)

    assert stream.bytes_seen == memoryview(data).nbytes
    assert stream.close().outcome == ("http_error" if status == 500 else "accepted")


def test_ctypes_array_of_numbers_is_read_after_a_refused_start_too(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    stream.start(500, {})
    stream.feed((ctypes.c_int32 * 3)(1, 2, 3))
    assert stream.bytes_seen == 12


def test_fed_buffer_may_be_changed_and_resized_afterwards(glmsse: Any) -> None:
    for status in (None, 500):
        stream = glmsse.ChatStream()
        if status:
            stream.start(status, {})
        data = bytearray(HELLO[:40])
        stream.feed(data)
        data[:] = b"\xff" * 1000
        stream.feed(HELLO[40:])
        assert stream.close().outcome == ("accepted" if status is None else "http_error")


@pytest.mark.parametrize(
    "options",
    [
        {"profile": "openai"},
        {"profile": None},
        {"profile": ["zai"]},
        {"allow": "usage_optional"},
        {"allow": ["no_such"]},
        {"allow": [5]},
        {"allow": 5},
        {"allow": None},
        {"deny": "usage_optional"},
        {"deny": ["no_such"]},
        {"limits": {}},
        {"limits": 5},
        {"tools": "f"},
        {"tools": {"name": "f"}},
        {"tools": [5]},
        {"tools": [{}]},
        {"tools": 5},
        {"choices": 0},
        {"choices": -1},
        {"choices": True},
        {"choices": 1.0},
        {"choices": "1"},
        {"choices": 17},
        {"deltas": 1},
        {"deltas": None},
        {"collect": "yes"},
        {"digest": 0},
    ],
    ids=lambda value: type(value).__name__,
)
def test_option_of_another_kind_is_misuse(glmsse: Any, options: Any) -> None:
    with pytest.raises(glmsse.MisuseError):
        glmsse.ChatStream(**options)


def test_unknown_option_is_an_error(glmsse: Any) -> None:
    with pytest.raises(TypeError):
        glmsse.ChatStream(no_such_option=1)


@pytest.mark.parametrize("error", [5, b"cancelled", ["cancelled"], ConnectionError])
def test_close_with_anything_but_an_exception_or_a_word_is_misuse(glmsse: Any, error: Any) -> None:
    stream = glmsse.ChatStream()
    with pytest.raises(glmsse.MisuseError):
        stream.close(error)
    assert stream.verdict is None
    stream.feed(HELLO)
    assert stream.close().accepted


@pytest.mark.parametrize("verb", ["feed", "add", "close", "start"])
def test_call_into_a_stream_that_is_at_work_is_misuse(glmsse: Any, verb: str) -> None:
    stream = glmsse.ChatStream(allow=["done_optional"])
    arguments = {"feed": (b"",), "add": ({},), "close": (), "start": (200, {})}[verb]
    refused = []

    class Nosy(dict):  # type: ignore[type-arg]
        def get(self, key: Any, default: Any = None) -> Any:
            if not refused:
                try:
                    getattr(stream, verb)(*arguments)
                except glmsse.MisuseError as error:
                    refused.append(error)
            return super().get(key, default)

    events = stream.add(Nosy(content("Hi")))

    assert len(refused) == 1
    assert types(events) == ["content.delta"]
    stream.add(end())
    assert stream.close().accepted


def test_interrupted_call_ends_the_reading(glmsse: Any) -> None:
    class Late(dict):  # type: ignore[type-arg]
        def get(self, key: Any, default: Any = None) -> Any:
            if key == "finish_reason":
                raise KeyboardInterrupt
            return super().get(key, default)

    stream = glmsse.ChatStream(allow=["done_optional"])
    stream.add(content("Oh, "))
    added = content("Hi")
    added["choices"] = [Late(added["choices"][0])]
    with pytest.raises(KeyboardInterrupt):
        stream.add(added)

    for call in (lambda: stream.add(end()), lambda: stream.feed(body(end()))):
        with pytest.raises(glmsse.MisuseError, match="interrupted"):
            call()
    verdict = stream.close()
    assert (verdict.accepted, verdict.code, verdict.tolerated) == (False, "incomplete_stream", ())
    assert stream.snapshot.choices[0].content == "Oh, Hi"


def test_interrupted_feed_ends_the_reading(glmsse: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Any) -> None:
        raise KeyboardInterrupt

    stream = glmsse.ChatStream(allow=["done_optional"], content_parser=glmsse.ToolCallParser())
    stream.feed(body(content("a"), done=False))
    with monkeypatch.context() as patched:
        patched.setattr(glmsse.ToolCallParser, "_run", interrupt)
        with pytest.raises(KeyboardInterrupt):
            stream.feed(body(content("b"), end()))

    with pytest.raises(glmsse.MisuseError, match="interrupted"):
        stream.feed(body(end()))
    assert stream.close().code == "incomplete_stream"


def test_streams_are_not_pickled_or_copied(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    for refuse in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(glmsse.MisuseError):
            refuse(stream)


# add


def test_added_chunks_give_the_same_events_as_fed_ones(glmsse: Any) -> None:
    chunks = [reasoning("Hm"), content("Hi"), tools(piece("{}", id="c1", name="f")), end("tool_calls")]
    fed = glmsse.ChatStream().feed(body(*chunks, done=False))
    stream = glmsse.ChatStream(allow=["done_optional"])

    added = [happened for item in chunks for happened in stream.add(item)]

    assert plain(added) == plain(fed)
    verdict = stream.close()
    assert verdict.accepted
    assert verdict.tolerated == ("done_optional",)
    assert verdict.tool_calls[0].arguments == "{}"
    assert stream.events_seen == 4


def test_added_chunks_alone_are_incomplete_without_done_optional(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    stream.add(content("Hi"))
    stream.add(end())
    verdict = stream.close()
    assert (verdict.code, verdict.missing) == ("incomplete_stream", ("done",))


def test_added_chunk_with_a_fault_fails_the_stream(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    assert codes(stream.add({"choices": 5})) == ["unexpected_shape"]
    assert stream.add(content("Hi")) == []
    assert codes(glmsse.ChatStream().add({"error": {"code": "1302"}})) == ["provider_error"]


@pytest.mark.parametrize("wrong", [None, "x", b"{}", [], 5, [("choices", [])]])
def test_adding_anything_but_a_dict_is_misuse(glmsse: Any, wrong: Any) -> None:
    with pytest.raises(glmsse.MisuseError):
        glmsse.ChatStream().add(wrong)


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("options", [{}, {"digest": True}, {"allow": ["args_object_serialize"]}], ids=str)
@pytest.mark.parametrize("depth", [63, 990, 100_000])
def test_added_chunk_of_any_depth_never_raises(glmsse: Any, options: Any, depth: int) -> None:
    stream = glmsse.ChatStream(**options)
    for sent in ({**content("Hi"), "x": _nested(depth)}, tools(piece({"a": _nested(depth)}, id="c", name="f"))):
        stream.add(sent)
    assert stream.close() is not None


@pytest.mark.parametrize("key", [(1, 2), None, 5, b"x"], ids=lambda value: type(value).__name__)
def test_added_chunk_with_odd_keys_never_raises(glmsse: Any, key: Any) -> None:
    stream = glmsse.ChatStream(digest=True, allow=["args_object_serialize"])
    events = stream.add({**content("Hi"), key: 1})
    stream.add(tools(piece({key: 1}, id="c", name="f")))
    assert types(events)[:1] == ["content.delta"]


# start


def test_start_comes_once_and_before_the_body(glmsse: Any) -> None:
    headers = {"content-type": "text/event-stream"}
    stream = glmsse.ChatStream()
    assert stream.start(200, headers) == []
    with pytest.raises(glmsse.MisuseError):
        stream.start(200, headers)
    for used in ("feed", "add"):
        late = glmsse.ChatStream()
        getattr(late, used)(b"x" if used == "feed" else {})
        with pytest.raises(glmsse.MisuseError):
            late.start(200, headers)


def test_refused_start_returns_one_failed_event_and_the_verdict_comes_with_close(glmsse: Any) -> None:
    stream = glmsse.ChatStream()

    events = stream.start(429, {"content-type": "application/json"})

    assert codes(events) == ["http_status"]
    assert (stream.phase, stream.failed, stream.verdict) == ("failed", True, None)
    assert stream.feed(HELLO) == []
    assert stream.add(content("Hi")) == []
    verdict = stream.close()
    assert (verdict.outcome, verdict.stage, verdict.code) == ("http_error", "before_sse", "http_status")
    assert verdict.error == events[0].error
    assert stream.bytes_seen == len(HELLO)
    assert stream.events_seen == 0
    with pytest.raises(glmsse.MisuseError):
        stream.feed(b"")


def test_streams_do_not_share_anything(glmsse: Any) -> None:
    streams = [glmsse.ChatStream() for _ in range(500)]
    bodies = [body(content(f"text {number}"), end()) for number in range(500)]
    for at in range(0, 400, 13):
        for stream, data in zip(streams, bodies, strict=True):
            stream.feed(data[at : at + 13])
    for number, stream in enumerate(streams):
        assert stream.close().accepted
        assert stream.snapshot.choices[0].content == f"text {number}"
