"""Every tolerance: what it changes, what stands without it, and that it is recorded only where it was needed."""

from __future__ import annotations

from typing import Any

import pytest

from wire import (
    CALL,
    DONE,
    HELLO,
    USAGE,
    body,
    chunk,
    content,
    end,
    event,
    piece,
    plain,
    read,
    reasoning,
    tools,
    types,
)

NAMES = [
    "reasoning_alias",
    "args_empty_as_object",
    "usage_optional",
    "id_keep_first",
    "content_parts",
    "id_synthesize",
    "stop_with_tools",
    "done_optional",
    "flush_tail",
    "index_by_id",
    "index_reuse_split",
    "response_id_unstable",
    "finish_null_string",
    "finish_aliases",
    "ignore_non_object_events",
    "ignore_comment_data",
    "name_concat",
    "args_object_serialize",
    "args_leading_empty_object",
    "args_any_json",
    "split_adjacent_json_lines",
    "dup_keys_last",
    "nonfinite_ok",
    "surrogate_replace",
    "finish_keep_tool_calls",
    "finish_advisory",
    "multi_choice",
    "choice_index_ignore",
    "legacy_function_call",
    "message_as_delta",
    "content_type_optional",
]

ROUTER = ["reasoning_alias", "args_empty_as_object"]
HOSTED = [*ROUTER, "usage_optional", "id_keep_first", "content_parts", "id_synthesize", "stop_with_tools"]
GATEWAY = [
    *HOSTED,
    "done_optional",
    "flush_tail",
    "index_by_id",
    "index_reuse_split",
    "response_id_unstable",
    "finish_null_string",
    "finish_aliases",
    "ignore_non_object_events",
    "ignore_comment_data",
]

CONFLICTS = ("id_keep_first", "index_by_id", "index_reuse_split")
"""Another of these can take over where one is off."""

CALL_0 = tools(piece('{"a":1}', id="c1", name="f"))
TOOL_END = end("tool_calls")


def raw(fields: str) -> bytes:
    return event('{"id":"r-1","choices":[{' + fields + "}]}")


# name → (stream, what is there without the tolerance, what the verdict shows with it)
TOLERATED: dict[str, tuple[bytes, str | None, dict[str, Any]]] = {
    "reasoning_alias": (body(chunk({"reasoning": "Hm"}), end()), None, {"reasoning": "Hm"}),
    "args_empty_as_object": (
        body(tools(piece(" ", id="c1", name="f")), TOOL_END),
        "arguments_empty",
        {"calls": [("c1", "f", "{}")]},
    ),
    "usage_optional": (body(content("Hi"), end(usage=None)), "incomplete_stream", {"missing": ("usage",)}),
    "id_keep_first": (
        body(CALL_0, tools(piece(" ", id="c2", name="f")), TOOL_END),
        "stable_conflict",
        {"calls": [("c1", "f", '{"a":1} ')]},
    ),
    "content_parts": (
        body(content([{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}]), end()),
        "unexpected_shape",
        {"content": "Hi", "reasoning": "Hm"},
    ),
    "id_synthesize": (
        body(tools(piece("{}", index=2, name="f")), TOOL_END),
        "tool_id_missing",
        {"calls": [("local-2", "f", "{}")]},
    ),
    "stop_with_tools": (
        body(CALL_0, end("stop")),
        "tools_without_tool_finish",
        {"calls": [("c1", "f", '{"a":1}')], "finish_reason": "tool_calls"},
    ),
    "done_optional": (
        body(content("Hi"), end(), done=False),
        "incomplete_stream",
        {"missing": ("done",), "done": False},
    ),
    "flush_tail": (HELLO[:-1], "unterminated_event", {"content": "Hello", "done": True}),
    "index_by_id": (
        body(
            tools(piece('{"a":', index=None, id="c1", name="f")),
            tools(piece("{}", index=None, id="c2", name="g")),
            tools(piece("1}", index=None, id="c1")),
            TOOL_END,
        ),
        "stable_conflict",
        {"calls": [("c1", "f", '{"a":1}'), ("c2", "g", "{}")]},
    ),
    "index_reuse_split": (
        body(CALL_0, tools(piece("{", id="c2", name="g")), tools(piece("}")), TOOL_END),
        "stable_conflict",
        {"calls": [("c1", "f", '{"a":1}'), ("c2", "g", "{}")]},
    ),
    "response_id_unstable": (body(content("Hi"), {**end(), "id": "r-2"}), "response_id_changed", {"content": "Hi"}),
    "finish_null_string": (
        body(content("Hi", finish="null"), content("!"), end()),
        "delta_after_finish",
        {"content": "Hi!"},
    ),
    "finish_aliases": (body(content("Hi"), end("end_turn")), "finish_end_turn", {"finish_reason": "stop"}),
    "ignore_non_object_events": (body(content("Hi"), event('"ping"'), end()), "event_not_object", {"content": "Hi"}),
    "ignore_comment_data": (body(content("Hi"), event(" : ping {"), end()), "bad_json", {"content": "Hi"}),
    "name_concat": (
        body(tools(piece(id="c1", name="get_")), tools(piece("{}", name="time")), TOOL_END),
        "stable_conflict",
        {"calls": [("c1", "get_time", "{}")]},
    ),
    "args_object_serialize": (
        body(tools(piece({"b": [1, "é\u2028"], "a": {}}, id="c1", name="f")), TOOL_END),
        "arguments_type",
        {"calls": [("c1", "f", '{"b":[1,"é\u2028"],"a":{}}')]},
    ),
    "args_leading_empty_object": (
        body(tools(piece("{}", id="c1", name="f")), tools(piece('{"a":')), tools(piece("1}")), TOOL_END),
        "arguments_not_json",
        {"calls": [("c1", "f", '{"a":1}')]},
    ),
    "args_any_json": (
        body(tools(piece("[1]", id="c1", name="f")), TOOL_END),
        "arguments_not_object",
        {"calls": [("c1", "f", "[1]")]},
    ),
    "split_adjacent_json_lines": (
        body(b"data: " + event(content("Hi"))[6:-1] + event(end())),
        "bad_json",
        {"content": "Hi", "finish_reason": "stop"},
    ),
    "dup_keys_last": (body(raw('"delta":{"content":"no","content":"Hi"}'), end()), "duplicate_key", {"content": "Hi"}),
    "nonfinite_ok": (
        body(raw('"delta":{"content":"Hi"},"x":[NaN,-Infinity,1e999]'), end()),
        "json_nonfinite",
        {"content": "Hi"},
    ),
    "surrogate_replace": (
        body(raw('"delta":{"content":"a\\ud800b"}'), end()),
        "lone_surrogate",
        {"content": "a\ufffdb"},
    ),
    "finish_keep_tool_calls": (body(CALL_0, TOOL_END, end("stop")), "finish_conflict", {"finish_reason": "tool_calls"}),
    "finish_advisory": (
        body(content("Hi"), end(), content("!"), reasoning("Hm")),
        "delta_after_finish",
        {"content": "Hi!", "reasoning": "Hm"},
    ),
    "multi_choice": (
        body(content("Hi"), content("b", index=3), end(), end(index=3, usage=None)),
        "unexpected_choice",
        {"content": "Hi"},
    ),
    "choice_index_ignore": (
        body(content("Hi"), content("!", index=3), end(index=9)),
        "unexpected_choice",
        {"content": "Hi!"},
    ),
    "legacy_function_call": (
        body(
            chunk({"function_call": {"name": "f", "arguments": "{"}}),
            chunk({"function_call": {"arguments": "}"}}),
            end("function_call"),
        ),
        "legacy_function_call",
        {"calls": [("legacy-0", "f", "{}")], "finish_reason": "tool_calls"},
    ),
    "message_as_delta": (
        body({"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": USAGE}),
        "message_not_delta",
        {"content": "Hi"},
    ),
}


def _shown(verdict: Any, stream: Any) -> dict[str, Any]:
    first = stream.snapshot.choices[0]
    return {
        "content": first.content,
        "reasoning": first.reasoning_content,
        "calls": [(call.id, call.name, call.arguments) for call in verdict.tool_calls],
        "finish_reason": verdict.finish_reason,
        "missing": verdict.missing,
        "done": verdict.done,
    }


def test_names_and_profiles_are_the_pinned_ones(glmsse: Any) -> None:
    assert list(glmsse.TOLERANCES) == NAMES
    assert {name: list(tolerances) for name, tolerances in glmsse.PROFILES.items()} == {
        "zai": [],
        "router": ROUTER,
        "hosted": HOSTED,
        "gateway": GATEWAY,
    }


def test_every_tolerance_has_a_case_here() -> None:
    assert {*TOLERATED, "content_type_optional"} == set(NAMES)


@pytest.mark.parametrize("name", TOLERATED)
def test_tolerance_alone_makes_the_stream_acceptable(glmsse: Any, name: str) -> None:
    data, _, wanted = TOLERATED[name]

    _, verdict, stream = read(glmsse, data, allow=[name])

    assert (verdict.outcome, verdict.code, verdict.tolerated) == ("accepted", None, (name,))
    shown = _shown(verdict, stream)
    assert {key: shown[key] for key in wanted} == wanted


@pytest.mark.parametrize("name", TOLERATED)
def test_without_the_tolerance_the_strict_outcome_stands(glmsse: Any, name: str) -> None:
    data, code, _ = TOLERATED[name]
    if name == "reasoning_alias":  # strictly the alias is a field that is not read
        _, verdict, stream = read(glmsse, data)
        assert verdict.accepted
        assert stream.snapshot.choices[0].reasoning_content == ""
        return

    verdict = read(glmsse, data)[1]

    assert verdict.code == code
    assert verdict.tolerated == ()


@pytest.mark.parametrize("name", TOLERATED)
def test_deny_wins_over_allow_and_over_the_profile(glmsse: Any, name: str) -> None:
    data, code, _ = TOLERATED[name]
    denied = read(glmsse, data, allow=[name], deny=[name])[1]
    assert (denied.code, denied.tolerated) == (code, ())
    if name in GATEWAY and name not in CONFLICTS:
        profile = read(glmsse, data, profile="gateway", deny=[name])[1]
        assert profile.code == code
        assert name not in profile.tolerated


@pytest.mark.parametrize("name", [name for name in GATEWAY if name not in CONFLICTS])
def test_profile_turns_its_tolerances_on(glmsse: Any, name: str) -> None:
    data = TOLERATED[name][0]
    for profile, names in (("router", ROUTER), ("hosted", HOSTED), ("gateway", GATEWAY)):
        verdict = read(glmsse, data, profile=profile)[1]
        assert (verdict.tolerated == (name,)) is (name in names), profile


@pytest.mark.parametrize("data", [HELLO, CALL, body(reasoning("Hm"), content("Hi"), CALL_0, TOOL_END)])
def test_tolerance_that_is_not_needed_is_not_recorded(glmsse: Any, data: bytes) -> None:
    """All are on at once, and the stream needs none."""
    strict_events, strict, _ = read(glmsse, data)
    events, verdict, _ = read(glmsse, data, allow=NAMES)

    assert verdict.accepted
    assert verdict.tolerated == ()
    assert verdict == strict
    assert plain(events) == plain(strict_events)


@pytest.mark.parametrize(
    "data",
    [TOLERATED[name][0] for name in NAMES if name in TOLERATED],
    ids=[name for name in NAMES if name in TOLERATED],
)
def test_tolerated_is_in_the_order_of_the_table(glmsse: Any, data: bytes) -> None:
    tolerated = read(glmsse, data, allow=NAMES)[1].tolerated
    assert list(tolerated) == [name for name in NAMES if name in tolerated]


# What each tolerance leaves alone


def _code(glmsse: Any, name: str, *parts: Any, done: bool = True) -> tuple[str | None, tuple[str, ...]]:
    verdict = read(glmsse, body(*parts, done=done), allow=name.split())[1]
    return verdict.code, verdict.tolerated


def test_reasoning_alias_never_adds_to_reasoning_content(glmsse: Any) -> None:
    both = chunk({"reasoning_content": "Hm", "reasoning": "Hm", "reasoning_details": [{"text": "Hm"}]})
    _, verdict, stream = read(glmsse, body(both, end()), allow=["reasoning_alias"])
    assert stream.snapshot.choices[0].reasoning_content == "Hm"
    assert verdict.tolerated == ()


@pytest.mark.parametrize("empty", ["", None])
def test_reasoning_alias_is_read_where_the_other_is_empty(glmsse: Any, empty: Any) -> None:
    sent = chunk({"reasoning_content": empty, "reasoning": "Hm"})
    _, verdict, stream = read(glmsse, body(sent, end()), profile="router")
    assert stream.snapshot.choices[0].reasoning_content == "Hm"
    assert verdict.tolerated == ("reasoning_alias",)


def test_reasoning_alias_that_is_read_is_judged_and_counts_as_used(glmsse: Any) -> None:
    """Strictly nobody reads it, so it was the tolerance that decided."""
    assert _code(glmsse, "reasoning_alias", chunk({"reasoning": []}), end()) == (
        "unexpected_shape",
        ("reasoning_alias",),
    )
    assert _code(glmsse, "", chunk({"reasoning": []}), end()) == (None, ())


def test_reasoning_details_are_never_read(glmsse: Any) -> None:
    sent = chunk({"reasoning_details": [{"type": "reasoning.text", "text": "Hm"}]})
    assert read(glmsse, body(sent, end()), allow=NAMES)[2].snapshot.choices[0].reasoning_content == ""


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
def test_made_up_arguments_show_in_the_verdict_only(glmsse: Any, blank: str) -> None:
    events, verdict, stream = read(
        glmsse, body(tools(piece(blank, id="c1", name="f")), TOOL_END), allow=["args_empty_as_object"]
    )
    assert verdict.tool_calls[0].arguments == "{}"
    assert stream.snapshot.choices[0].tool_calls[0].arguments == blank
    assert "".join(item.arguments for item in events if item.type == "tool_call.arguments.delta") == blank


def test_made_up_id_shows_in_the_verdict_only(glmsse: Any) -> None:
    events, verdict, stream = read(
        glmsse,
        body(
            tools(piece("{}", name="f")),
            tools(piece("{}", index=2, name="g"), index=1),
            TOOL_END,
            end("tool_calls", index=1),
        ),
        allow=["id_synthesize"],
        choices=2,
    )
    assert [call.id for call in verdict.tool_calls] == ["local-0", "local-1-2"]
    assert [item.id for item in events if item.type == "tool_call.start"] == [None, None]
    assert stream.snapshot.choices[0].tool_calls[0].id is None


def test_id_synthesize_makes_no_name_up(glmsse: Any) -> None:
    assert _code(glmsse, "id_synthesize", tools(piece("{}")), TOOL_END) == ("tool_name_missing", ())


def test_id_keep_first_needs_the_same_name_or_none(glmsse: Any) -> None:
    assert _code(glmsse, "id_keep_first", CALL_0, tools(piece(id="c2")), TOOL_END) == (None, ("id_keep_first",))
    assert _code(glmsse, "id_keep_first", CALL_0, tools(piece(id="c2", name="g")), TOOL_END) == ("stable_conflict", ())
    assert _code(glmsse, "id_keep_first", CALL_0, tools(piece(name="g")), TOOL_END) == ("stable_conflict", ())


@pytest.mark.parametrize(
    "part",
    [
        "text",
        5,
        None,
        [],
        {},
        {"type": "image", "text": "x"},
        {"type": "text"},
        {"type": "text", "text": 5},
        {"type": "thinking"},
        {"type": "thinking", "thinking": 5},
        {"type": "thinking", "thinking": ["x"]},
        {"type": "thinking", "thinking": [{"type": "x"}]},
    ],
    ids=repr,
)
def test_content_parts_of_other_kinds_are_an_unexpected_shape(glmsse: Any, part: Any) -> None:
    assert _code(glmsse, "content_parts", content([part]))[0] == "unexpected_shape"


def test_thinking_part_may_be_a_list_of_text_parts(glmsse: Any) -> None:
    inner = [{"type": "text", "text": "H"}, {"type": "text", "text": "m"}]
    stream = read(glmsse, body(content([{"type": "thinking", "thinking": inner}]), end()), allow=["content_parts"])[2]
    assert stream.snapshot.choices[0].reasoning_content == "Hm"


@pytest.mark.parametrize("name", ["usage_optional", "done_optional"])
def test_tolerated_absence_does_not_make_up_for_other_evidence(glmsse: Any, name: str) -> None:
    assert _code(glmsse, name, content("Hi"), done=False) == ("incomplete_stream", ())
    assert _code(glmsse, name, content("Hi")) == ("incomplete_stream", ())
    assert _code(glmsse, name, done=False) == ("empty_stream", ())
    assert _code(glmsse, "usage_optional done_optional", content("Hi"), done=False) == ("incomplete_stream", ())
    assert _code(glmsse, "usage_optional done_optional", content("Hi"), end(usage=None), done=False) == (
        None,
        ("usage_optional", "done_optional"),
    )


@pytest.mark.parametrize("left_out", ["finish", "usage"])
def test_half_that_waits_is_not_judged_where_the_end_makes_no_answer(glmsse: Any, left_out: str) -> None:
    cut = '{"id":"r-1","choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}'
    allow = "done_optional surrogate_replace finish_advisory"
    chunks = (cut,) if left_out == "finish" else (end(usage=None), cut)
    assert _code(glmsse, allow, *chunks, done=False) == (
        "incomplete_stream",
        () if left_out == "finish" else ("finish_advisory",),
    )


def test_usage_optional_keeps_a_usage_that_came(glmsse: Any) -> None:
    verdict = read(glmsse, HELLO, allow=["usage_optional"])[1]
    assert verdict.usage.total_tokens == 15
    assert verdict.missing == ()


@pytest.mark.parametrize("cut", [1, 2])
def test_flush_tail_reads_the_sentinel_or_a_whole_object(glmsse: Any, cut: int) -> None:
    assert read(glmsse, HELLO[:-cut], allow=["flush_tail"])[1].tolerated == ("flush_tail",)
    no_done = body(content("Hi"), end(), done=False)
    verdict = read(glmsse, no_done[:-cut], allow=["flush_tail", "done_optional"])[1]
    assert (verdict.accepted, verdict.tolerated) == (True, ("done_optional", "flush_tail"))


def test_events_of_a_flushed_tail_are_closing_events(glmsse: Any) -> None:
    last = event({**content("!", finish="stop"), "usage": USAGE})[:-1]
    events, verdict, stream = read(glmsse, event(content("Hi")) + last, allow=["flush_tail", "done_optional"])
    assert types(events) == ["content.delta"]
    assert types(stream.closing_events) == ["usage", "content.delta", "finish"]
    assert stream.snapshot.choices[0].content == "Hi!"
    assert verdict.accepted
    stream.forget()
    assert stream.closing_events == []


@pytest.mark.parametrize(
    "tail",
    [
        "data: [DON",
        'data: {"a":1',
        "data: 5",
        'data: "x"',
        "data: [1]",
        "data: {}{}",
        'data: {"a":1,"a":2}',
        "dat",
        ": comment",
        "event: x",
    ],
)
def test_flush_tail_leaves_other_tails_unterminated(glmsse: Any, tail: str) -> None:
    before = body(content("Hi"), end(), done=False)
    verdict = read(glmsse, before + tail.encode(), allow=["flush_tail", "done_optional"])[1]
    assert (verdict.code, verdict.tolerated) == ("unterminated_event", ())
    assert verdict.error.tail == len(tail)


def test_fault_in_a_flushed_tail_decides(glmsse: Any) -> None:
    before = body(content("Hi"), end(), done=False)
    verdict = read(glmsse, before + b'data: {"error":{"code":"1302"}}', allow=["flush_tail", "done_optional"])[1]
    assert (verdict.outcome, verdict.category, verdict.error.offset) == ("provider_error", "rate", len(before))
    _, verdict, stream = read(glmsse, before + event({"choices": 5})[:-1], allow=["flush_tail"])
    assert verdict.code == "unexpected_shape"
    assert stream.closing_events == [glmsse.events.Failed(verdict.error)]


def test_index_by_id_sends_a_piece_without_id_to_the_call_opened_last(glmsse: Any) -> None:
    parts = [
        tools(piece('{"a":', index=None, id="c1", name="f")),
        tools(piece('{"b":', index=None, id="c2", name="g")),
        tools(piece("2}", index=None)),
        tools(piece("1}", index=None, id="c1")),
        TOOL_END,
    ]
    verdict = read(glmsse, body(*parts), allow=["index_by_id"])[1]
    assert [(call.index, call.arguments) for call in verdict.tool_calls] == [(0, '{"a":1}'), (1, '{"b":2}')]


def test_index_by_id_gives_an_id_to_the_call_opened_last_if_it_has_none(glmsse: Any) -> None:
    parts = [tools(piece(index=None, name="f")), tools(piece("{}", index=None, id="c1")), TOOL_END]
    verdict = read(glmsse, body(*parts), allow=["index_by_id"])[1]
    assert [(call.id, call.name) for call in verdict.tool_calls] == [("c1", "f")]
    assert verdict.tolerated == ()


def test_index_by_id_opens_a_new_id_behind_the_highest_index(glmsse: Any) -> None:
    parts = [
        tools(piece("{}", index=4, id="c4", name="f")),
        tools(piece("{}", index=None, id="c5", name="g")),
        TOOL_END,
    ]
    verdict = read(glmsse, body(*parts), allow=["index_by_id"])[1]
    assert [(call.index, call.id) for call in verdict.tool_calls] == [(4, "c4"), (5, "c5")]


def test_index_reuse_split_needs_a_name_and_is_decided_before_id_keep_first(glmsse: Any) -> None:
    assert _code(glmsse, "index_reuse_split", CALL_0, tools(piece(id="c2")), TOOL_END) == ("stable_conflict", ())
    both = read(
        glmsse,
        body(CALL_0, tools(piece("{}", id="c2", name="f")), TOOL_END),
        allow=["index_reuse_split", "id_keep_first"],
    )[1]
    assert [(call.index, call.id) for call in both.tool_calls] == [(0, "c1"), (1, "c2")]
    assert both.tolerated == ("index_reuse_split",)


def test_index_reuse_split_opens_behind_the_highest_index(glmsse: Any) -> None:
    parts = [
        CALL_0,
        tools(piece("{", index=1, id="c2", name="g")),
        tools(piece('{"x":', id="c3", name="h")),
        tools(piece("3}")),
        tools(piece("}", index=1)),
        TOOL_END,
    ]
    verdict = read(glmsse, body(*parts), allow=["index_reuse_split"])[1]
    assert [(call.index, call.id, call.arguments) for call in verdict.tool_calls] == [
        (0, "c1", '{"a":1}'),
        (1, "c2", "{}"),
        (2, "c3", '{"x":3}'),
    ]


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("eos", "stop"),
        ("eos_token", "stop"),
        ("tool_use", "tool_calls"),
        ("tool_call", "tool_calls"),
    ],
)
def test_finish_aliases_are_read_as_the_words_they_mean(glmsse: Any, word: str, reason: str) -> None:
    parts = [CALL_0] if reason == "tool_calls" else [content("Hi")]
    events, verdict, _ = read(glmsse, body(*parts, end(word), end(reason, usage=None)), allow=["finish_aliases"])
    assert (verdict.outcome, verdict.finish_reason) == ("accepted", reason)
    assert [item.reason for item in events if item.type == "finish"] == [reason]


@pytest.mark.parametrize("word", ["END_TURN", "end", "max_tokens", "length", "tool", "complete", "function_call", ""])
def test_finish_aliases_are_no_others(glmsse: Any, word: str) -> None:
    verdict = read(glmsse, body(content("Hi"), end(word)), allow=["finish_aliases"])[1]
    assert not verdict.accepted
    assert verdict.tolerated == ()


@pytest.mark.parametrize("payload", ["5", "null", "[]", '["x",{}]', "true", '""'])
def test_ignored_non_objects_are_counted(glmsse: Any, payload: str) -> None:
    _, verdict, stream = read(glmsse, body(event(payload), content("Hi"), end()), allow=["ignore_non_object_events"])
    assert (verdict.accepted, stream.events_seen) == (True, 4)


def test_only_json_is_an_ignored_non_object(glmsse: Any) -> None:
    assert _code(glmsse, "ignore_non_object_events", event("ping")) == ("bad_json", ())


@pytest.mark.parametrize(
    "payload", [": ping", ":", "\t: [[[", ": " + "[" * 100, ": " + "1" * 100, ': data: {"id":"B"}', ":{}\ndata: {}"]
)
def test_comment_data_is_ignored_whatever_follows_the_colon(glmsse: Any, payload: str) -> None:
    _, verdict, stream = read(glmsse, body(event(payload), content("Hi"), end()), allow=["ignore_comment_data"])
    assert (verdict.outcome, verdict.tolerated) == ("accepted", ("ignore_comment_data",))
    assert stream.events_seen == 4


def test_name_concat_ends_with_the_first_argument_piece(glmsse: Any) -> None:
    start = tools(piece(id="c1", name="get_"))
    assert _code(glmsse, "name_concat", start, tools(piece("{}")), tools(piece(name="time")), TOOL_END) == (
        "stable_conflict",
        (),
    )
    events, verdict, _ = read(
        glmsse, body(start, tools(piece(name="time")), tools(piece("{}")), TOOL_END), allow=["name_concat"]
    )
    assert [item.name for item in events if item.type == "tool_call.start"] == ["get_time"]
    assert verdict.tool_calls[0].name == "get_time"


def test_name_concat_leaves_an_equal_name_alone(glmsse: Any) -> None:
    same = tools(piece(id="c1", name="f"))
    verdict = read(glmsse, body(same, same, tools(piece("{}", name="f")), TOOL_END), allow=["name_concat"])[1]
    assert (verdict.tool_calls[0].name, verdict.tolerated) == ("f", ())


@pytest.mark.parametrize("arguments", [[], 5, True, [{}]])
def test_only_objects_are_serialised(glmsse: Any, arguments: Any) -> None:
    assert _code(glmsse, "args_object_serialize", tools(piece(arguments, id="c", name="f"))) == ("arguments_type", ())


def test_leading_empty_object_stays_in_events_and_snapshot(glmsse: Any) -> None:
    data = TOLERATED["args_leading_empty_object"][0]
    events, verdict, stream = read(glmsse, data, allow=["args_leading_empty_object"])
    assert verdict.tool_calls[0].arguments == '{"a":1}'
    assert stream.snapshot.choices[0].tool_calls[0].arguments == '{}{"a":1}'
    assert "".join(item.arguments for item in events if item.type == "tool_call.arguments.delta") == '{}{"a":1}'


@pytest.mark.parametrize(
    ("pieces", "code"),
    [
        (["{}"], None),
        (["{}", " "], None),
        (["{}{", "}"], "arguments_not_json"),
        (["{", "}", '{"a":1}'], "arguments_not_json"),
        ([" {}", "{}"], "arguments_not_json"),
        (["{}", "x"], "arguments_not_json"),
    ],
)
def test_leading_empty_object_is_left_out_only_where_that_decides(
    glmsse: Any, pieces: list[str], code: str | None
) -> None:
    parts = [tools(piece(id="c1", name="f")), *(tools(piece(text)) for text in pieces)]
    assert _code(glmsse, "args_leading_empty_object", *parts, TOOL_END) == (code, ())


def test_rest_behind_a_leading_empty_object_is_judged_strictly(glmsse: Any) -> None:
    parts = [tools(piece("{}", id="c1", name="f")), tools(piece('{"a":1,"a":2}')), TOOL_END]
    assert _code(glmsse, "args_leading_empty_object", *parts)[0] == "duplicate_key"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("5", None),
        ('"x"', None),
        ("null", None),
        ("[]", None),
        ("x", "arguments_not_json"),
        ("", "arguments_empty"),
        ("NaN", "json_nonfinite"),
    ],
)
def test_args_any_json_is_still_strict_json(glmsse: Any, arguments: str, code: str | None) -> None:
    assert _code(glmsse, "args_any_json", tools(piece(arguments, id="c", name="f")), TOOL_END)[0] == code


@pytest.mark.parametrize(
    "lines",
    [
        '{"a":1}\ndata: x',
        '{"a":1}\ndata: [1]',
        '{"a":1}{"b":2}',
        '{"a":1}\ndata: \ndata: {"b":1}',
        'x\ndata: {"a":1}',
        '{"a":\ndata: 1}\ndata: {"b":2}',
    ],
)
def test_adjacent_lines_must_be_objects_each(glmsse: Any, lines: str) -> None:
    assert _code(glmsse, "split_adjacent_json_lines", event(lines)) == ("bad_json", ())


def test_one_object_over_several_lines_needs_no_split(glmsse: Any) -> None:
    lines = event('{"choices":\ndata: [{"delta":{"content":"Hi"}}]}')
    assert _code(glmsse, "split_adjacent_json_lines", lines, end()) == (None, ())


def test_error_in_an_adjacent_line_is_an_error(glmsse: Any) -> None:
    lines = event('{"a":1}\ndata: {"error":{}}')
    assert _code(glmsse, "split_adjacent_json_lines", lines, end())[0] == "provider_error"


def test_last_of_equal_keys_wins_in_arguments_and_the_text_stays(glmsse: Any) -> None:
    text = '{"a":1,"a":2}'
    verdict = read(glmsse, body(tools(piece(text, id="c", name="f")), TOOL_END), allow=["dup_keys_last"])[1]
    assert (verdict.tool_calls[0].arguments, verdict.tolerated) == (text, ("dup_keys_last",))


def test_last_of_equal_error_keys_wins_too_but_an_error_that_is_read_counts(glmsse: Any) -> None:
    assert _code(glmsse, "dup_keys_last", event('{"error":null,"error":{"code":"1302"}}'))[0] == "provider_error"


def test_nonfinite_numbers_pass_in_arguments_and_the_text_stays(glmsse: Any) -> None:
    text = '{"a":[NaN,Infinity,-Infinity,1e999]}'
    verdict = read(glmsse, body(tools(piece(text, id="c", name="f")), TOOL_END), allow=["nonfinite_ok"])[1]
    assert (verdict.tool_calls[0].arguments, verdict.tolerated) == (text, ("nonfinite_ok",))


def test_surrogate_that_waits_at_the_end_is_replaced(glmsse: Any) -> None:
    events, verdict, stream = read(
        glmsse, body(raw('"delta":{"content":"a\\ud800"}'), end()), allow=["surrogate_replace"]
    )
    assert [item.text for item in events if item.type == "content.delta"] == ["a", "\ufffd"]
    assert stream.snapshot.choices[0].content == "a\ufffd"
    assert verdict.tolerated == ("surrogate_replace",)


def test_surrogate_pair_over_two_pieces_is_joined_and_not_replaced(glmsse: Any) -> None:
    parts = [raw('"delta":{"content":"\\ud83d"}'), raw('"delta":{"content":"\\ude00"}'), end()]
    _, verdict, stream = read(glmsse, body(*parts), allow=["surrogate_replace"])
    assert stream.snapshot.choices[0].content == "\U0001f600"
    assert verdict.tolerated == ()


def test_escaped_surrogate_in_arguments_stays_as_it_is(glmsse: Any) -> None:
    text = '{"a":"\\ud800"}'
    verdict = read(glmsse, body(tools(piece(text, id="c", name="f")), TOOL_END), allow=["surrogate_replace"])[1]
    assert (verdict.tool_calls[0].arguments, verdict.tolerated) == (text, ("surrogate_replace",))


def test_finish_keep_tool_calls_keeps_that_one_order_only(glmsse: Any) -> None:
    assert _code(glmsse, "finish_keep_tool_calls", CALL_0, end("stop"), TOOL_END) == ("finish_conflict", ())
    assert _code(glmsse, "finish_keep_tool_calls", CALL_0, TOOL_END, end("length")) == ("finish_conflict", ())


def test_finish_advisory_takes_no_tool_pieces_and_no_other_reason(glmsse: Any) -> None:
    assert _code(glmsse, "finish_advisory", content("Hi"), end(), CALL_0) == ("delta_after_finish", ())
    assert _code(glmsse, "finish_advisory", content("Hi"), end(), end("length")) == ("finish_conflict", ())


def test_multi_choice_needs_the_finish_reason_of_each_choice_seen(glmsse: Any) -> None:
    verdict = read(glmsse, body(content("a"), content("b", index=1), end()), allow=["multi_choice"])[1]
    assert (verdict.code, verdict.missing) == ("incomplete_stream", ("finish_reason",))


def test_multi_choice_stops_at_the_limit(glmsse: Any) -> None:
    assert _code(glmsse, "multi_choice", content("b", index=15))[0] == "incomplete_stream"
    assert _code(glmsse, "multi_choice", content("b", index=16))[0] == "too_many_choices"
    assert _code(glmsse, "multi_choice", content("b", index=10**9))[0] == "too_many_choices"


def test_choice_index_is_still_judged_when_ignored(glmsse: Any) -> None:
    assert _code(glmsse, "choice_index_ignore", content("b", index=-1))[0] == "unexpected_shape"


def test_calls_of_a_message_without_index_count_from_0(glmsse: Any) -> None:
    message = {
        "role": "assistant",
        "content": None,
        "tool_calls": [piece("{}", index=None, id="c1", name="f"), piece("{}", index=None, id="c2", name="g")],
    }
    sent = {"choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}], "usage": USAGE}
    verdict = read(glmsse, body(sent), allow=["message_as_delta"])[1]
    assert [(call.index, call.id) for call in verdict.tool_calls] == [(0, "c1"), (1, "c2")]
    assert verdict.tolerated == ("message_as_delta",)


def test_message_beside_a_delta_that_says_something_is_not_read(glmsse: Any) -> None:
    sent = {"choices": [{"delta": {"content": "Hi"}, "message": {"content": "no"}}]}
    _, verdict, stream = read(glmsse, body(sent, end()), allow=["message_as_delta"])
    assert stream.snapshot.choices[0].content == "Hi"
    assert verdict.tolerated == ()


@pytest.mark.parametrize(
    ("headers", "code", "tolerated"),
    [
        ({}, None, ("content_type_optional",)),
        ({"content-type": ""}, None, ("content_type_optional",)),
        ({"content-type": "application/json"}, "content_type", ()),
        ({"content-type": "text/event-stream"}, None, ()),
    ],
)
def test_content_type_optional_lets_a_missing_media_type_pass_and_never_a_wrong_one(
    glmsse: Any, headers: dict[str, str], code: str | None, tolerated: tuple[str, ...]
) -> None:
    stream = glmsse.ChatStream(allow=["content_type_optional"])
    stream.start(200, headers)
    stream.feed(HELLO)
    verdict = stream.close()
    assert (verdict.code, verdict.tolerated) == (code, tolerated)


# Never, under no name


@pytest.mark.parametrize(
    ("parts", "code"),
    [
        ([tools(piece('{"a":1', id="c", name="f")), TOOL_END], "arguments_not_json"),
        ([tools(piece('{"a":1}{"b":2}', id="c", name="f")), TOOL_END], "arguments_not_json"),
        ([tools(piece("{'a':1}", id="c", name="f")), TOOL_END], "arguments_not_json"),
        ([content("Hi"), b"data: {bad\n\n", end()], "bad_json"),
        ([content("Hi"), end("length")], "finish_length"),
        ([content("Hi"), end("sensitive")], "finish_sensitive"),
        ([content("Hi"), event({"error": {"code": "1302"}}), end()], "provider_error"),
        ([content("Hi"), end(None)], "incomplete_stream"),
        ([TOOL_END], "tool_finish_without_calls"),
        ([tools(piece("{}", id="c")), TOOL_END], "tool_name_missing"),
    ],
)
def test_all_tolerances_together_never_heal_these(glmsse: Any, parts: list[Any], code: str) -> None:
    verdict = read(glmsse, body(*parts), allow=NAMES)[1]
    assert verdict.code == code
    assert verdict.tool_calls == ()


def test_tail_after_the_sentinel_needs_no_tolerance(glmsse: Any) -> None:
    assert read(glmsse, HELLO + DONE[:-1], allow=NAMES)[1].tolerated == ()
