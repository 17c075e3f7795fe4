"""The verdict: every code at its stage, what is missing, categories, replay, checks, digest, and no text in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wire import (
    CALL,
    HELLO,
    USAGE,
    body,
    by_size,
    chunk,
    content,
    each_byte,
    end,
    event,
    feed_all,
    piece,
    read,
    reasoning,
    tools,
    verdict_of,
)

OUTCOMES = {
    "accepted",
    "http_error",
    "protocol_error",
    "provider_error",
    "limit_exceeded",
    "incomplete",
    "not_accepted",
}

HI = event(content("Hi"))
AT = len(HI)

PROTOCOL = ("protocol_error", "event_decoding")
LIMIT = ("limit_exceeded", "event_decoding")
CLOSE = ("incomplete", "connection_close")
TOOL = ("not_accepted", "tool_validation")


def call(arguments: str | None = "{}", **fields: Any) -> dict[str, Any]:
    return tools(piece(arguments, **{"id": "c1", "name": "f", **fields}))


TOOL_END = end("tool_calls")

# code → (outcome, stage), offset, body, limits
REACHED: dict[str, tuple[tuple[str, str], int | None, bytes, dict[str, int]]] = {
    "invalid_utf8": (PROTOCOL, AT + 7, HI + b"data: x\xff\n\n", {}),
    "bad_json": (PROTOCOL, AT, HI + b"data: {\n\n", {}),
    "spliced_frame": (PROTOCOL, AT, HI + b'data: {"id":"A","cdata: {"id":"B"}\n\n', {}),
    "event_not_object": (PROTOCOL, AT, HI + b"data: 5\n\n", {}),
    "json_nonfinite": (PROTOCOL, AT, HI + b'data: {"a":NaN}\n\n', {}),
    "json_too_deep": (PROTOCOL, AT, HI + b'data: {"a":[[[[]]]]}\n\n', {"max_json_depth": 4}),
    "json_number_too_long": (PROTOCOL, AT, HI + b'data: {"a":12345}\n\n', {"max_number_chars": 4}),
    "duplicate_key": (PROTOCOL, AT, HI + b'data: {"a":1,"a":1}\n\n', {}),
    "lone_surrogate": (PROTOCOL, AT, HI + b'data: {"id":"\\ud800","choices":[{}]}\n\n', {}),
    "unexpected_shape": (PROTOCOL, AT, HI + event({"choices": 5}), {}),
    "stable_conflict": (PROTOCOL, len(event(call())), event(call()) + event(call(id="c2")), {}),
    "arguments_type": (PROTOCOL, AT, HI + event(tools(piece({}))), {}),
    "unexpected_choice": (PROTOCOL, AT, HI + event(content("x", index=1)), {}),
    "finish_conflict": (PROTOCOL, len(event(end())), event(end()) + event(end("length")), {}),
    "delta_after_finish": (PROTOCOL, len(event(end())), event(end()) + HI, {}),
    "response_id_changed": (PROTOCOL, AT, HI + event(content("x", id="r-2")), {}),
    "legacy_function_call": (PROTOCOL, AT, HI + event(chunk({"function_call": {"name": "f"}})), {}),
    "message_not_delta": (PROTOCOL, AT, HI + event({"choices": [{"message": {}}]}), {}),
    "provider_error": (("provider_error", "provider"), AT, HI + event({"error": {}}), {}),
    "event_too_large": (LIMIT, AT + 100, HI + b"data: " + b"x" * 100, {"max_event_bytes": 100}),
    "too_many_event_lines": (LIMIT, AT + 4, HI + b":\n:\n:\n", {"max_event_lines": 2}),
    "too_many_events": (LIMIT, AT + 1, HI + b"\n\n", {"max_events": 2}),
    "stream_too_large": (LIMIT, 200, HI * 20, {"max_stream_bytes": 200}),
    "content_too_large": (LIMIT, AT, HI + HI, {"max_content_bytes": 3}),
    "reasoning_too_large": (LIMIT, AT, HI + event(reasoning("abcd")), {"max_reasoning_bytes": 3}),
    "argument_too_large": (LIMIT, AT, HI + event(call("abcd")), {"max_argument_bytes": 3}),
    "too_many_tool_calls": (LIMIT, AT, HI + event(tools(piece(), piece(index=1))), {"max_tool_calls": 1}),
    "unterminated_event": (CLOSE, AT + 7, HI + b"data: {", {}),
    "incomplete_stream": (CLOSE, AT, HI, {}),
    "empty_stream": (CLOSE, 8, b": ping\n\n", {}),
    "finish_length": (("not_accepted", "generation"), None, body(HI, end("length")), {}),
    "finish_other": (("not_accepted", "generation"), None, body(HI, end("Odd reason!")), {}),
    "tool_id_missing": (TOOL, None, body(call(id=None), TOOL_END), {}),
    "tool_name_missing": (TOOL, None, body(call(name=None), TOOL_END), {}),
    "tool_finish_without_calls": (TOOL, None, body(HI, TOOL_END), {}),
    "tools_without_tool_finish": (TOOL, None, body(call(), end("stop")), {}),
    "arguments_empty": (TOOL, None, body(call(None), TOOL_END), {}),
    "arguments_not_json": (TOOL, None, body(call("{"), TOOL_END), {}),
    "arguments_not_object": (TOOL, None, body(call("[]"), TOOL_END), {}),
}


@pytest.mark.parametrize("code", REACHED)
def test_code_has_its_outcome_stage_and_offset(glmsse: Any, code: str) -> None:
    (outcome, stage), offset, data, limits = REACHED[code]

    verdict = read(glmsse, data, limits=glmsse.Limits(**limits))[1]

    assert (verdict.code, verdict.outcome, verdict.stage) == (code, outcome, stage)
    assert verdict.error.code == code
    assert verdict.error.stage == stage
    assert verdict.error.offset == offset
    assert not verdict.accepted
    assert bool(verdict) is False
    assert verdict.tool_calls == ()
    assert verdict.outcome in OUTCOMES


def test_too_many_choices_is_reached_where_every_choice_is_taken(glmsse: Any) -> None:
    verdict = read(glmsse, HI + event(content("x", index=16)), allow=["multi_choice"])[1]
    assert (verdict.code, verdict.outcome, verdict.stage, verdict.error.offset) == ("too_many_choices", *LIMIT, AT)


@pytest.mark.parametrize(
    ("status", "headers", "code"),
    [
        (500, {"content-type": "text/event-stream"}, "http_status"),
        (200, {"content-type": "application/json"}, "content_type"),
        (200, {"content-type": "text/event-stream", "content-encoding": "gzip"}, "content_encoding"),
    ],
)
def test_code_of_a_refused_start(glmsse: Any, status: int, headers: dict[str, str], code: str) -> None:
    stream = glmsse.ChatStream()
    stream.start(status, headers)
    verdict = stream.close()
    assert (verdict.code, verdict.outcome, verdict.stage) == (code, "http_error", "before_sse")
    assert verdict.error.offset is None


@pytest.mark.parametrize("code", ["deadline_first_byte", "deadline_idle", "deadline_total", "cancelled"])
def test_code_given_to_close(glmsse: Any, code: str) -> None:
    stream = glmsse.ChatStream()
    stream.feed(HI)
    verdict = stream.close(code)
    assert (verdict.code, verdict.outcome, verdict.stage, verdict.error.offset) == (code, *CLOSE, AT)


def test_every_pinned_code_is_in_the_table_of_codes_and_reached_here(glmsse: Any) -> None:
    elsewhere = {
        "http_status",
        "content_type",
        "content_encoding",
        "too_many_choices",
        "deadline_first_byte",
        "deadline_idle",
        "deadline_total",
        "cancelled",
    }
    own = {code for code in REACHED if not code.startswith("finish_") or code == "finish_conflict"}
    assert own | elsewhere <= set(glmsse.errors.CODES)


def test_accepted_verdict_has_no_fault(glmsse: Any) -> None:
    verdict = read(glmsse, HELLO)[1]
    assert (verdict.outcome, verdict.accepted, bool(verdict)) == ("accepted", True, True)
    assert (verdict.stage, verdict.code, verdict.error) == (None, None, None)
    assert (verdict.missing, verdict.tolerated, verdict.tool_calls) == ((), (), ())
    assert (verdict.finish_reason, verdict.done, verdict.replay) == ("stop", True, "pointless")
    assert (verdict.category, verdict.provider_code, verdict.request_id, verdict.retry_after) == (None,) * 4
    assert verdict.digest is None
    assert verdict.raise_for_verdict() is None


def test_tool_calls_are_those_that_may_be_run(glmsse: Any) -> None:
    verdict = read(glmsse, CALL)[1]
    (made,) = verdict.tool_calls
    assert isinstance(made, glmsse.ToolCall)
    assert (made.choice, made.index, made.id, made.type, made.name) == (0, 0, "c1", "function", "weather")
    assert (made.arguments, made.complete) == ('{"city":"Rome"}', True)


@pytest.mark.parametrize(
    "reason", ["length", "sensitive", "network_error", "insufficient_system_resource", "a" * 40, "_"]
)
def test_finish_reason_of_letters_is_a_code(glmsse: Any, reason: str) -> None:
    verdict = verdict_of(glmsse, content("Hi"), end(reason))
    assert (verdict.code, verdict.finish_reason) == (f"finish_{reason}", reason)


@pytest.mark.parametrize("reason", ["a" * 41, "Length", "two words", "stop!", "stop1", "é", " stop", "\x1b[0m"])
def test_other_finish_reason_is_finish_other_and_kept_verbatim(glmsse: Any, reason: str) -> None:
    verdict = verdict_of(glmsse, content("Hi"), end(reason))
    assert (verdict.code, verdict.finish_reason) == ("finish_other", reason)


def test_finish_reason_is_that_of_choice_0_or_the_first_odd_one(glmsse: Any) -> None:
    def both(first: str, second: str) -> Any:
        return verdict_of(glmsse, content("a"), end(second, index=1), end(first, usage=None), choices=2)

    assert both("stop", "stop").finish_reason == "stop"
    assert (both("stop", "length").finish_reason, both("stop", "length").code) == ("length", "finish_length")
    assert both("sensitive", "length").finish_reason == "sensitive"
    assert verdict_of(glmsse, content("b", index=1), end(index=1), choices=2).finish_reason is None


# What is missing


@pytest.mark.parametrize(
    ("parts", "done", "missing"),
    [
        ([], False, ("done", "finish_reason", "usage")),
        ([], True, ("finish_reason", "usage")),
        ([content("Hi")], False, ("done", "finish_reason", "usage")),
        ([content("Hi"), end(usage=None)], False, ("done", "usage")),
        ([content("Hi"), end(None)], True, ("finish_reason",)),
        ([content("Hi"), end()], False, ("done",)),
        ([content("Hi"), end(usage=None)], True, ("usage",)),
        ([content("Hi"), end()], True, ()),
    ],
)
def test_missing_says_what_never_came(glmsse: Any, parts: list[Any], done: bool, missing: tuple[str, ...]) -> None:
    verdict = verdict_of(glmsse, *parts, done=done)
    assert verdict.missing == missing
    assert verdict.accepted is (not missing)
    if missing:
        assert verdict.error.missing == missing


def test_stages_at_the_end_are_judged_in_order(glmsse: Any) -> None:
    """Unterminated event, empty stream, missing evidence; then the finish reason; then the calls."""
    bad_call = call("{", id=None)
    assert read(glmsse, b"data: {")[1].code == "unterminated_event"
    assert read(glmsse, body(bad_call, end("length", usage=None), done=False))[1].code == "incomplete_stream"
    assert verdict_of(glmsse, bad_call, end("length")).code == "finish_length"
    assert verdict_of(glmsse, bad_call, TOOL_END).code == "tool_id_missing"


def test_calls_are_judged_by_choice_and_index_each_by_name_id_arguments(glmsse: Any) -> None:
    def of(*pieces: Any) -> Any:
        verdict = verdict_of(glmsse, tools(*pieces), TOOL_END)
        return verdict.code, verdict.error.choice, verdict.error.index

    assert of(piece("{", index=1, id="c1", name="f"), piece("{")) == ("tool_name_missing", 0, 0)
    assert of(piece("{", index=5), piece("{}", index=7, id="c", name="f")) == ("tool_name_missing", 0, 5)
    assert of(piece("{", index=5, name="f")) == ("tool_id_missing", 0, 5)
    assert of(piece("{", index=5, name="f", id="c")) == ("arguments_not_json", 0, 5)
    second = verdict_of(
        glmsse,
        tools(piece("[]", id="c", name="f"), index=1),
        tools(piece("{}", id="c", name="f")),
        end("tool_calls"),
        end("tool_calls", index=1),
        choices=2,
    )
    assert (second.code, second.error.choice, second.error.index) == ("arguments_not_object", 1, 0)
    assert second.tool_calls == ()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (None, "arguments_empty"),
        ("", "arguments_empty"),
        (" \n\t", "arguments_empty"),
        ("{", "arguments_not_json"),
        ("{}{}", "arguments_not_json"),
        ("\u00a0", "arguments_not_json"),
        ("null", "arguments_not_object"),
        ("[]", "arguments_not_object"),
        ('"{}"', "arguments_not_object"),
        ('{"a":1,"a":1}', "duplicate_key"),
        ('[{"a":1,"a":1}]', "duplicate_key"),
        ('{"a":NaN}', "json_nonfinite"),
        ('{"a":1e999}', "json_nonfinite"),
        ('{"a":' + "[" * 64 + "]" * 64 + "}", "json_too_deep"),
        ('{"a":' + "1" * 65 + "}", "json_number_too_long"),
        ('{"a":"\\udc00"}', "lone_surrogate"),
        (" {} ", None),
    ],
)
def test_arguments_are_judged_by_the_same_strict_json(glmsse: Any, arguments: str | None, code: str | None) -> None:
    verdict = verdict_of(glmsse, call(arguments), TOOL_END)
    assert verdict.code == code
    if code:
        assert verdict.stage == "tool_validation"


def test_empty_answer_is_accepted(glmsse: Any) -> None:
    assert verdict_of(glmsse, end()).accepted
    assert verdict_of(glmsse, reasoning("only"), end()).accepted


# Categories


CATEGORY_OF_CODE = {
    "auth": "1000 1001 1002 1003 1004",
    "account": "1100 1110 1111 1112 1121",
    "balance": "1113",
    "entitlement": "1220 1309 1311 1313",
    "quota": "1304 1308 1310 1316 1317 1318 1319 1320 1321",
    "rate": "1302 1303",
    "overload": "1305 1312",
    "request": "1210 1211 1212 1213 1214 1215 1221 1222",
    "context": "1261",
    "content": "1300 1301",
    "server": "500 1120 1200 1230 1234",
    "duplicate": "1231",
}
CODES = [(code, category) for category, codes in CATEGORY_OF_CODE.items() for code in codes.split()]

REPLAY_OF_CATEGORY = {
    **dict.fromkeys(("rate", "overload"), "safe"),
    **dict.fromkeys(("server", "duplicate", "unknown"), "ambiguous"),
    **dict.fromkeys(
        ("auth", "account", "balance", "entitlement", "quota", "request", "context", "content"), "pointless"
    ),
}


@pytest.mark.parametrize(("code", "category"), CODES)
def test_business_code_has_its_category_in_a_stream_and_before_one(glmsse: Any, code: str, category: str) -> None:
    for spelt in (code, int(code)):
        for shape in ({"error": {"code": spelt, "message": "x"}}, {"code": spelt, "message": "x", "object": "error"}):
            in_stream = verdict_of(glmsse, shape)
            assert (in_stream.category, in_stream.provider_code) == (category, code)
            assert in_stream.replay == REPLAY_OF_CATEGORY[category]

            stream = glmsse.ChatStream()
            stream.start(429, {"content-type": "application/json"})
            stream.feed(json.dumps(shape).encode())
            before = stream.close()
            assert (before.category, before.provider_code) == (category, code)
            assert before.replay == REPLAY_OF_CATEGORY[category]


@pytest.mark.parametrize(
    ("status", "category"),
    [
        (400, "request"),
        (404, "request"),
        (413, "request"),
        (422, "request"),
        (401, "auth"),
        (402, "balance"),
        (403, "entitlement"),
        (429, "rate"),
        (500, "server"),
        (502, "server"),
        (503, "server"),
        (599, "server"),
        (418, "unknown"),
        (302, "unknown"),
        (204, "unknown"),
    ],
)
@pytest.mark.parametrize(
    "sent", [b"", b"<html>", b'{"error":{"code":"9999"}}', b'{"error":"Not Found"}', b"{", b"\xff"]
)
def test_unknown_code_is_classed_by_the_http_status(glmsse: Any, status: int, category: str, sent: bytes) -> None:
    stream = glmsse.ChatStream()
    stream.start(status, {})
    stream.feed(sent)
    verdict = stream.close()
    assert verdict.category == category
    assert verdict.replay == REPLAY_OF_CATEGORY[category]
    assert verdict.provider_code == ("9999" if b"9999" in sent else None)


@pytest.mark.parametrize(
    ("code", "category"),
    [
        ("400", "request"),
        (401, "auth"),
        ("402", "balance"),
        ("403", "entitlement"),
        (429, "rate"),
        ("503", "server"),
        ("418", "unknown"),
        ("9999", "unknown"),
        (None, "unknown"),
        ("rate_limited", "unknown"),
        (["429"], "unknown"),
        (True, "unknown"),
        (429.0, "unknown"),
    ],
)
def test_three_digit_code_in_a_stream_counts_as_a_status(glmsse: Any, code: Any, category: str) -> None:
    assert verdict_of(glmsse, {"error": {"code": code}}).category == category


def test_three_digit_code_before_a_stream_does_not_overrule_the_status(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    stream.start(400, {})
    stream.feed(b'{"error":{"code":"429"}}')
    assert stream.close().category == "request"


def test_category_is_of_http_and_provider_errors_only(glmsse: Any) -> None:
    for verdict in (
        verdict_of(glmsse, content("Hi"), end("length")),
        read(glmsse, b"data: {\n\n")[1],
        read(glmsse, b"")[1],
    ):
        assert (verdict.category, verdict.provider_code, verdict.request_id) == (None, None, None)


@pytest.mark.parametrize("shape", [{"request_id": "req-1"}, {"error": {"request_id": "req-1"}}])
def test_request_id_is_taken_from_the_error(glmsse: Any, shape: Any) -> None:
    merged = (
        {"error": {"code": "1302"}, **shape} if "error" not in shape else {"error": {"code": "1302", **shape["error"]}}
    )
    verdict = verdict_of(glmsse, merged)
    assert (verdict.request_id, verdict.error.request_id) == ("req-1", "req-1")


@pytest.mark.parametrize(
    "odd", ["x" * 65, "two words", "\x1b[31m", "a\nb", "é", "", "<b>", "a/b", {}, [], 1.5, 10**30, True]
)
def test_provider_code_and_request_id_are_bounded_and_sanitised(glmsse: Any, odd: Any) -> None:
    verdict = verdict_of(glmsse, {"error": {"code": odd, "type": odd, "message": "x"}, "request_id": odd})
    assert (verdict.provider_code, verdict.request_id, verdict.category) == (None, None, "unknown")


def test_error_that_is_no_json_has_no_code(glmsse: Any) -> None:
    verdict = verdict_of(glmsse, event("1302 slow down", "error"))
    assert (verdict.outcome, verdict.category, verdict.provider_code) == ("provider_error", "unknown", None)


# Replay


@pytest.mark.parametrize(
    ("parts", "replay"),
    [
        ([content("Hi"), end()], "pointless"),
        ([content("Hi"), end("length")], "pointless"),
        ([content("Hi"), end("model_context_window_exceeded")], "pointless"),
        ([content("Hi"), end("sensitive")], "pointless"),
        ([content("Hi"), end("content_filter")], "pointless"),
        ([content("Hi"), end("network_error")], "ambiguous"),
        ([content("Hi"), end("insufficient_system_resource")], "ambiguous"),
        ([content("Hi"), end("abort")], "ambiguous"),
        ([content("Hi"), end("made_up")], "ambiguous"),
        ([content("Hi"), end("function_call")], "ambiguous"),
        ([content("Hi"), TOOL_END], "ambiguous"),
        ([content("Hi"), end(None)], "ambiguous"),
        ([content("Hi"), b"data: {\n\n"], "ambiguous"),
        ([], "ambiguous"),
        ([event({"error": {"code": "1302"}})], "safe"),
        ([chunk({"role": "assistant", "content": ""}), event({"error": {"code": "1302"}})], "safe"),
        ([end(), event({"error": {"code": "1302"}})], "safe"),
        ([content("H"), event({"error": {"code": "1302"}})], "ambiguous"),
        ([content("H"), event({"error": {"code": "1113"}})], "ambiguous"),
        ([reasoning("H"), event({"error": {"code": "1305"}})], "ambiguous"),
        ([call(), event({"error": {"code": "1305"}})], "ambiguous"),
        ([tools(piece(id="c1")), event({"error": {"code": "1305"}})], "ambiguous"),
    ],
)
def test_replay_follows_its_table(glmsse: Any, parts: list[Any], replay: str) -> None:
    assert verdict_of(glmsse, *parts).replay == replay


def test_empty_and_cut_streams_are_ambiguous(glmsse: Any) -> None:
    for data in (b"", b": ping\n\n", HELLO[:10], HI, HELLO[:-14], CALL[:-14]):
        assert read(glmsse, data)[1].replay == "ambiguous"


def test_stream_that_breaks_the_limits_is_ambiguous(glmsse: Any) -> None:
    assert read(glmsse, HELLO, limits=glmsse.Limits(max_events=1))[1].replay == "ambiguous"


# Checks


NAMES = ("http_status", "media_type", "events_parse", "no_error", "finish_reason", "usage", "done", "tools")


def _checks(verdict: Any) -> dict[str, bool | None]:
    assert tuple(name for name, _ in verdict.checks) == NAMES
    return dict(verdict.checks)


def test_checks_of_an_accepted_stream_all_pass(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    stream.start(200, {"content-type": "text/event-stream"})
    stream.feed(CALL)
    assert _checks(stream.close()) == dict.fromkeys(NAMES, True)


def test_http_checks_are_not_judged_without_start(glmsse: Any) -> None:
    checks = _checks(read(glmsse, HELLO)[1])
    assert (checks["http_status"], checks["media_type"]) == (None, None)
    assert all(checks[name] for name in NAMES[2:7])


@pytest.mark.parametrize(
    ("parts", "done", "failed"),
    [
        ([content("Hi"), b"data: {\n\n"], True, "events_parse"),
        ([content("Hi"), event({"error": {}})], True, "no_error"),
        ([content("Hi"), end("length")], True, "finish_reason"),
        ([content("Hi"), end(None)], True, "finish_reason"),
        ([content("Hi"), end(usage=None)], True, "usage"),
        ([content("Hi"), end()], False, "done"),
        ([call("{"), TOOL_END], True, "tools"),
    ],
)
def test_check_that_failed_is_false(glmsse: Any, parts: list[Any], done: bool, failed: str) -> None:
    assert _checks(verdict_of(glmsse, *parts, done=done))[failed] is False


def test_refused_start_judges_the_http_checks_only(glmsse: Any) -> None:
    for status, headers, wanted in ((500, {}, (False, None)), (200, {"content-type": "text/html"}, (True, False))):
        stream = glmsse.ChatStream()
        stream.start(status, headers)
        checks = _checks(stream.close())
        assert (checks["http_status"], checks["media_type"]) == wanted
        assert checks["events_parse"] is None


# Digest


def test_digest_is_asked_for_and_the_same_for_every_cutting(glmsse: Any) -> None:
    digests = set()
    for pieces in ([CALL], each_byte(CALL), by_size(CALL, 7), [b": comment\n\n" + CALL.replace(b"\n", b"\r\n")]):
        stream = glmsse.ChatStream(digest=True)
        feed_all(stream, pieces)
        digests.add(stream.close().digest)
    (digest,) = digests
    assert len(digest) == 64
    assert digest == digest.lower()
    assert read(glmsse, HELLO, digest=True)[1].digest != digest


def test_digest_is_the_same_in_every_build_and_version(glmsse: Any) -> None:
    fixed = b"event: x\ndata: {}\n\ndata: \xc3\xa9\n\n"
    digest = read(glmsse, fixed, digest=True)[1].digest
    # SHA-256 of b'x\n2\n{}\nmessage\n2\n\xc3\xa9\n': name, size and data of each event.
    assert digest == "68b75a86ddbd95d4b934518b0436c7bef621f784c03305ca926c601a71b2b020"


def test_digest_tells_how_data_is_split_into_events(glmsse: Any) -> None:
    one = read(glmsse, b"data: \ndata: \n\n", digest=True)[1].digest
    two = read(glmsse, b"data: \n\ndata: \n\n", digest=True)[1].digest
    named = read(glmsse, b"event: a\ndata: \n\ndata: \n\n", digest=True)[1].digest
    assert len({one, two, named}) == 3


def test_digest_of_added_chunks_depends_on_them(glmsse: Any) -> None:
    digests = []
    for text in ("a", "b", "a"):
        stream = glmsse.ChatStream(digest=True)
        stream.add(content(text))
        digests.append(stream.close().digest)
    assert digests[0] == digests[2] != digests[1]


# As data, and as an exception


def test_to_dict_has_every_field_as_json_types_and_no_text(glmsse: Any) -> None:
    data = body(
        reasoning("SECRET"), content("SECRET"), tools(piece('{"a":"SECRET"}', id="SECRET", name="SECRET")), TOOL_END
    )
    verdict = read(glmsse, data)[1]
    assert verdict.accepted

    shown = verdict.to_dict()

    assert set(shown) == {
        "outcome",
        "accepted",
        "stage",
        "code",
        "error",
        "missing",
        "tolerated",
        "tool_calls",
        "finish_reason",
        "usage",
        "done",
        "category",
        "provider_code",
        "request_id",
        "retry_after",
        "replay",
        "checks",
        "digest",
    }
    assert "SECRET" not in json.dumps(shown, allow_nan=False)
    assert shown["usage"] == {**USAGE, "cached_tokens": None}


@pytest.mark.parametrize("code", REACHED)
def test_verdict_of_a_fault_is_json_too(glmsse: Any, code: str) -> None:
    _, _, data, limits = REACHED[code]
    verdict = read(glmsse, data, limits=glmsse.Limits(**limits))[1]
    shown = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))
    assert shown["error"]["code"] == shown["code"] == code
    assert shown["accepted"] is False


@pytest.mark.parametrize("code", REACHED)
def test_raise_for_verdict_raises_the_error_of_the_verdict(glmsse: Any, code: str) -> None:
    (outcome, _), _, data, limits = REACHED[code]
    verdict = read(glmsse, data, limits=glmsse.Limits(**limits))[1]
    kind = {
        "protocol_error": glmsse.ProtocolError,
        "limit_exceeded": glmsse.LimitError,
        "provider_error": glmsse.ProviderError,
        "incomplete": glmsse.IncompleteStream,
        "not_accepted": glmsse.RejectedError,
    }[outcome]

    for _ in range(2):
        with pytest.raises(kind) as caught:
            verdict.raise_for_verdict()
        assert caught.value == verdict.error
    assert verdict.error.__traceback__ is None


def test_verdicts_compare_by_value(glmsse: Any) -> None:
    assert read(glmsse, HELLO)[1] == read(glmsse, HELLO)[1]
    assert read(glmsse, HELLO)[1] != read(glmsse, CALL)[1]
    assert read(glmsse, b"data: {\n\n")[1] == read(glmsse, b"data: {\n\n")[1]
    assert read(glmsse, b"data: {\n\n")[1] != read(glmsse, b"\ndata: {\n\n")[1]


# Tools of the request


OFFERED = [{"type": "function", "function": {"name": "f", "parameters": {}}}, {"name": "g", "input_schema": {}}]


@pytest.mark.parametrize(("name", "accepted"), [("f", True), ("g", True), ("F", False), ("h", False)])
def test_tool_that_was_not_offered_is_refused_where_tools_are_given(glmsse: Any, name: str, accepted: bool) -> None:
    verdict = verdict_of(glmsse, call(name=name), TOOL_END, tools=OFFERED)
    assert verdict.accepted is accepted
    if not accepted:
        assert (verdict.stage, verdict.code) == ("tool_validation", "tool_not_offered")


def test_no_tool_is_offered_by_an_empty_list_and_any_without_one(glmsse: Any) -> None:
    assert verdict_of(glmsse, call(), TOOL_END, tools=[]).code == "tool_not_offered"
    assert verdict_of(glmsse, call(), TOOL_END, tools=None).accepted
