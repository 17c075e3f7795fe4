"""Sources of chat.jsonl: Payloads and fields at fault, reported errors, refused responses, caps."""

from __future__ import annotations

from typing import Any

from wire import DONE, HELLO, USAGE, body, chunk, content, end, event, piece, reasoning, tools

from .chat_build import CAP, CHOICES, CUT, ERROR, FIELDS, HTTP, SETTINGS, STRICT, SURROGATE, TOOL_END, n, raw, y

SSE = {"content-type": "text/event-stream"}


def _faults() -> list[dict[str, Any]]:
    hi = content("Hi")
    made = [
        n(
            f"json_{name}",
            STRICT,
            code,
            hi,
            f"data: {text}\n\n".encode() if isinstance(text, str) else b"data: " + text + b"\n\n",
            at=1,
            content="Hi",
            outcome="protocol_error",
            stage="event_decoding",
        )
        for name, text, code in (
            ("cut", '{"choices":[', "bad_json"),
            ("text", "hello", "bad_json"),
            ("html", "<html>", "bad_json"),
            ("two_objects", "{}{}", "bad_json"),
            ("trailing_comma", '{"a":1,}', "bad_json"),
            ("single_quotes", "{'choices':[]}", "bad_json"),
            ("control", '{"a":"\x01"}', "bad_json"),
            ("backslash", '{"a":"\\x"}', "bad_json"),
            ("two_lines", '{"a":1}\ndata: {"b":2}', "bad_json"),
            ("nan", '{"a":NaN}', "json_nonfinite"),
            ("infinity", '{"a":[Infinity]}', "json_nonfinite"),
            ("huge", '{"a":-1e999}', "json_nonfinite"),
            ("number", "5", "event_not_object"),
            ("null", "null", "event_not_object"),
            ("list", "[{}]", "event_not_object"),
            ("string", '"x"', "event_not_object"),
            ("duplicate_key", '{"id":"a","id":"a"}', "duplicate_key"),
            ("duplicate_key_in_delta", '{"choices":[{"delta":{"content":"a","content":"b"}}]}', "duplicate_key"),
            ("duplicate_key_escaped", '{"choices":[],"\\u0063hoices":[]}', "duplicate_key"),
            ("duplicate_key_not_read", '{"x":{"y":1,"y":2}}', "duplicate_key"),
            ("deep", '{"x":' + "[" * 64 + "]" * 64 + "}", "json_too_deep"),
            ("very_deep", "[" * 3000, "json_too_deep"),
            ("long_number", '{"x":' + "1" * 65 + "}", "json_number_too_long"),
            ("4301_digits", '{"x":' + "1" * 4301 + "}", "json_number_too_long"),
            ("surrogate_id", '{"id":"\\ud800","choices":[{}]}', "lone_surrogate"),
            ("surrogate_content", '{"choices":[{"delta":{"content":"\\udc00"}}]}', "lone_surrogate"),
            (
                "surrogate_name",
                '{"choices":[{"delta":{"tool_calls":[{"function":{"name":"\\ud800"}}]}}]}',
                "lone_surrogate",
            ),
            ("surrogate_finish", '{"choices":[{"finish_reason":"\\ud800"}]}', "lone_surrogate"),
        )
    ]
    hello = [content(text) for text in ("one", "two", "three")]
    made += [
        n(f"json_escape_{name}_after_pieces", STRICT, "bad_json", *hello, event(content("@")).replace(b"@", text), at=3)
        for name, text in {"blank": b"\\u 123", "underscore": b"\\u1_23", "letter": b"\\uzzzz", "cut": b"\\u12"}.items()
    ]
    made += [
        n(f"shape_{name}", FIELDS, "unexpected_shape", hi, sent, at=1)
        for name, sent in {
            "choices_object": {"choices": {}, "usage": USAGE},
            "choices_text": {"choices": "x"},
            "choices_number": {"choices": 5},
            "choice_null": {"choices": [None]},
            "choice_text": {"choices": ["x"]},
            "id_number": {**hi, "id": 5},
            "id_object": {**hi, "id": {}},
            "usage_list": {**hi, "usage": [1]},
            "usage_text": {**hi, "usage": "x"},
            "delta_list": {"choices": [{"delta": []}]},
            "delta_text": {"choices": [{"delta": "Hi"}]},
            "content_number": content(5),
            "content_true": content(True),
            "content_object": content({}),
            "content_list": content([]),
            "reasoning_number": reasoning(5),
            "tool_calls_object": chunk({"tool_calls": {}}),
            "tool_calls_text": chunk({"tool_calls": "x"}),
            "tool_call_null": chunk({"tool_calls": [None]}),
            "tool_index_text": tools(piece(index="0")),
            "tool_index_negative": tools(piece(index=-1)),
            "tool_index_true": tools(piece(index=True)),
            "tool_index_fraction": tools(piece(index=0.0)),
            "tool_id_number": tools(piece(id=5)),
            "tool_type_number": tools(piece(type=5)),
            "tool_function_text": tools({"index": 0, "function": "f"}),
            "tool_name_number": tools(piece(name=5)),
            "index_text": content("x", index="0"),
            "index_negative": content("x", index=-1),
            "index_true": content("x", index=True),
            "index_fraction": content("x", index=0.0),
            "index_huge_fraction": raw('"index":1e9'),
            "finish_number": chunk({}, finish=5),
            "finish_object": chunk({}, finish={}),
            "finish_true": chunk({}, finish=True),
            "function_call_text": chunk({"function_call": "f"}),
        }.items()
    ]
    made += [
        n("message", "a message is no delta", "message_not_delta", {"choices": [{"message": {"content": "Hi"}}]}, at=0),
        y(
            "message_beside_a_delta",
            "a message beside a delta is not read",
            {"choices": [{"delta": {"content": "Hi"}, "message": {"content": "no"}}]},
            end(),
            content="Hi",
        ),
        n(
            "id_changed",
            "two responses were mixed",
            "response_id_changed",
            hi,
            content("x", id="r-2"),
            at=1,
            content="Hi",
        ),
        y(
            "id_changed_without_choices",
            "the id of a chunk without choices is not read",
            hi,
            {"id": "r-2", "choices": [], "usage": USAGE},
            end(usage=None),
            content="Hi",
        ),
        y("id_empty", "an empty id is absent", {**hi, "id": ""}, end(), content="Hi"),
        n(
            "spliced",
            "one event holds a cut object and a whole one",
            "spliced_frame",
            hi,
            b'data: {"id":"A","cdata: {"id":"B"}\n\n',
            at=1,
            parent_code="bad_json",
        ),
        n(
            "spliced_two_lines",
            "two whole objects on two lines are no splice",
            "bad_json",
            hi,
            b'data: {"id":"A"}\ndata: {"id":"B"}\n\n',
            at=1,
            parent_code=None,
        ),
        n("utf8", "bytes are UTF-8", "invalid_utf8", event(hi) + b'data: {"x":"\xff"}\n\n', offset=len(event(hi)) + 12),
        n(
            "utf8_in_a_comment",
            "bytes are UTF-8, in ignored lines too",
            "invalid_utf8",
            event(hi) + b": \xc3\n\n",
            offset=len(event(hi)) + 2,
        ),
        n(
            "utf8_surrogate",
            "bytes are UTF-8, which has no surrogates",
            "invalid_utf8",
            event(hi) + b"data: \xed\xa0\x80\n\n",
            offset=len(event(hi)) + 6,
        ),
        n("choice_not_promised", CHOICES, "unexpected_choice", hi, content("x", index=1), at=1),
        n("choice_far", CHOICES, "unexpected_choice", hi, content("x", index=10**9), at=1),
        n("choice_of_hash", CHOICES, "unexpected_choice", hi, content("x", index=2**61 - 1), at=1),
        y(
            "choices_two",
            CHOICES,
            content("a"),
            content("b", index=1),
            end(usage=None),
            end(index=1),
            options={"choices": 2},
            choices=[[0, "a", "stop"], [1, "b", "stop"]],
        ),
        n(
            "choices_one_unfinished",
            CHOICES,
            "incomplete_stream",
            content("a"),
            content("b", index=1),
            end(),
            options={"choices": 2},
            missing=["finish_reason"],
        ),
        n(
            "choices_one_never_seen",
            CHOICES,
            "incomplete_stream",
            content("a"),
            end(),
            options={"choices": 2},
            missing=["finish_reason"],
        ),
        n(
            "choices_one_length",
            CHOICES,
            "finish_length",
            end(usage=None),
            end("length", index=1),
            options={"choices": 2},
            finish_reason="length",
            choice=1,
        ),
        y(
            "choice_without_index",
            "an absent choice index is 0",
            chunk({"content": "Hi"}, index=None),
            end(),
            content="Hi",
        ),
    ]
    made += [
        y(
            "surrogate_pair_escaped",
            SURROGATE,
            raw('"delta":{"content":"\\ud83d\\ude00"}'),
            end(),
            content="\U0001f600",
        ),
        y(
            "surrogate_halves_over_two_pieces",
            SURROGATE,
            raw('"delta":{"content":"a\\ud83d"}'),
            raw('"delta":{"content":"\\ude00b"}'),
            end(),
            content="a\U0001f600b",
        ),
        y(
            "surrogate_halves_around_an_empty_piece",
            SURROGATE,
            raw('"delta":{"content":"\\ud83d"}'),
            content(""),
            raw('"delta":{"content":"\\ude00"}'),
            end(),
            content="\U0001f600",
        ),
        y(
            "surrogate_halves_in_arguments",
            SURROGATE,
            raw('"delta":{"tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{\\"a\\":\\"\\ud83d"}}]}'),
            raw('"delta":{"tool_calls":[{"function":{"arguments":"\\ude00\\"}"}}]}'),
            TOOL_END,
            calls=[("c1", "f", '{"a":"\U0001f600"}')],
            finish_reason="tool_calls",
        ),
        n(
            "surrogate_halves_in_two_fields",
            SURROGATE,
            "lone_surrogate",
            raw('"delta":{"content":"\\ud83d"}'),
            raw('"delta":{"reasoning_content":"\\ude00"}'),
            at=1,
        ),
        n(
            "surrogate_high_waits_at_finish",
            SURROGATE,
            "lone_surrogate",
            raw('"delta":{"content":"a\\ud83d"}'),
            end(),
            at=1,
            content="a",
        ),
        n(
            "surrogate_high_waits_at_done",
            SURROGATE,
            "lone_surrogate",
            raw('"delta":{"content":"\\ud83d"}'),
            DONE,
            done=False,
            at=1,
        ),
        n(
            "surrogate_high_then_letter",
            SURROGATE,
            "lone_surrogate",
            raw('"delta":{"content":"\\ud83d"}'),
            content("x"),
            at=1,
        ),
        n(
            "surrogate_high_twice",
            SURROGATE,
            "lone_surrogate",
            raw('"delta":{"content":"\\ud83d"}'),
            raw('"delta":{"content":"\\ud83d"}'),
            at=1,
        ),
        y("surrogate_not_read", FIELDS, raw('"delta":{"content":"Hi"},"x":"\\ud800"'), end(), content="Hi"),
        n("surrogate_cut", CUT, "incomplete_stream", raw('"delta":{"content":"a\\ud83d"}'), done=False, content="a"),
    ]
    return made


def _errors() -> list[dict[str, Any]]:
    hi, error = content("Hi"), {"code": "1302", "message": "slow down"}
    made = [
        n(f"error_{name}", ERROR, "provider_error", hi, sent, at=1, content="Hi", replay="ambiguous", category=category)
        for name, sent, category in (
            ("object", {"error": error}, "rate"),
            ("object_named", event({"error": error}, "error"), "rate"),
            ("text", {"error": "broken"}, "unknown"),
            ("empty", {"error": {}}, "unknown"),
            ("true", {"error": True}, "unknown"),
            ("false", {"error": False}, "unknown"),
            ("flat", {"object": "error", "code": 1302, "message": "x"}, "rate"),
            ("type", {"type": "error", "error": {"type": "overloaded_error", "message": "x"}}, "unknown"),
            ("event_name_text", event("something broke", "error"), "unknown"),
            ("event_name_bad_json", event("{", "error"), "unknown"),
            ("event_name_chunk", event(hi, "error"), "unknown"),
            ("event_name_done", event("[DONE]", "error"), "unknown"),
            ("beside_choices", {**hi, "error": error}, "rate"),
            ("beside_finish_and_usage", {**end(), "error": error}, "rate"),
            ("status_429", {"error": {"code": 429}}, "rate"),
            ("status_503", {"error": {"code": "503"}}, "server"),
            ("unknown_code", {"error": {"code": "9999"}}, "unknown"),
        )
        if name != "type"
    ]
    made += [
        n(
            "error_type",
            ERROR,
            "provider_error",
            hi,
            {"type": "error", "error": {"type": "overloaded_error"}},
            at=1,
            category="overload",
            provider_code="overloaded_error",
        ),
        y("error_null", "a null error is none", {**hi, "error": None}, end(), content="Hi"),
        y(
            "error_word_elsewhere",
            "the word elsewhere is no error",
            {**content('{"error":{}}'), "x": {"error": 1}, "type": "x"},
            end(),
            content='{"error":{}}',
        ),
        n(
            "error_then_a_good_end",
            "an error is never healed",
            "provider_error",
            {"error": error},
            hi,
            end(),
            at=0,
            content="",
            done=False,
            replay="safe",
        ),
        n(
            "error_after_finish",
            "an error is never healed",
            "provider_error",
            hi,
            end(),
            {"error": error},
            at=2,
            replay="ambiguous",
            finish_reason="stop",
        ),
        n(
            "error_request_id",
            "code and request id are kept, the message never",
            "provider_error",
            {"error": error, "request_id": "req-1.a_b:c"},
            at=0,
            provider_code="1302",
            request_id="req-1.a_b:c",
        ),
        n(
            "error_odd_code",
            "a code that is long or not of harmless characters is not kept",
            "provider_error",
            {"error": {"code": "two words", "type": "\x1b[0m"}, "request_id": "x" * 65},
            at=0,
            provider_code=None,
            request_id=None,
        ),
    ]
    for code, category, replay in (
        ("500", "server", "ambiguous"),
        ("1001", "auth", "pointless"),
        ("1112", "account", "pointless"),
        ("1113", "balance", "pointless"),
        ("1220", "entitlement", "pointless"),
        ("1308", "quota", "pointless"),
        ("1303", "rate", "safe"),
        ("1305", "overload", "safe"),
        ("1210", "request", "pointless"),
        ("1261", "context", "pointless"),
        ("1301", "content", "pointless"),
        ("1234", "server", "ambiguous"),
        ("1231", "duplicate", "ambiguous"),
    ):
        made.append(
            n(
                f"error_code_{code}",
                "what a business code means, and whether to ask again",
                "provider_error",
                {"error": {"code": code, "message": "x"}},
                at=0,
                category=category,
                replay=replay,
                provider_code=code,
            )
        )

    def http(name: str, code: str, status: int, headers: Any, sent: bytes = b"", **claim: Any) -> None:
        made.append(
            n(
                f"http_{name}",
                HTTP,
                code,
                sent,
                done=False,
                start={"status": status, "headers": headers},
                outcome="http_error",
                stage="before_sse",
                **claim,
            )
        )

    def http_fine(name: str, headers: Any) -> None:
        made.append(y(f"http_{name}", HTTP, hi, end(), start={"status": 200, "headers": headers}, content="Hi"))

    http_fine("fine", SSE)
    http_fine("charset", {"Content-Type": "text/event-stream;charset=UTF-8"})
    http_fine("upper", {"CONTENT-TYPE": "Text/Event-Stream ; x=y"})
    http_fine("identity", {**SSE, "content-encoding": "identity"})
    http_fine("pairs", [["content-type", "text/event-stream"], ["x", "y"]])
    http(
        "json",
        "content_type",
        200,
        {"content-type": "application/json"},
        b'{"error":{"code":"1113","message":"x"}}',
        category="balance",
        provider_code="1113",
        replay="pointless",
    )
    http("html", "content_type", 200, {"content-type": "text/html"}, b"<html>", category="unknown")
    http("prefix", "content_type", 200, {"content-type": "text/event-streams"})
    http("no_type", "content_type", 200, {})
    http("two_types", "content_type", 200, [["content-type", "text/event-stream"], ["content-type", "text/html"]])
    http("gzip", "content_encoding", 200, {**SSE, "content-encoding": "gzip"})
    http(
        "401",
        "http_status",
        401,
        {"content-type": "application/json"},
        b'{"error":{"code":"1001"}}',
        category="auth",
        replay="pointless",
    )
    http("429", "http_status", 429, {**SSE, "retry-after": "7"}, b"", category="rate", replay="safe", retry_after=7)
    http("429_quota", "http_status", 429, {}, b'{"error":{"code":"1308"}}', category="quota", replay="pointless")
    http("429_date", "http_status", 429, {"retry-after": "Tue, 01 Dec 2026 00:00:00 GMT"}, retry_after=None)
    http("500", "http_status", 500, {}, b"\xff\xfe", category="server", replay="ambiguous")
    http(
        "404_gateway",
        "http_status",
        404,
        {},
        b'{"timestamp":1,"status":404,"error":"Not Found","path":"/"}',
        category="request",
    )
    http("204", "http_status", 204, SSE)
    http("302", "http_status", 302, {"location": "x"})
    http("201_stream", "http_status", 201, SSE, HELLO, content="")
    http("status_before_type", "http_status", 500, {"content-type": "text/html", "content-encoding": "gzip"})
    http("type_before_coding", "content_type", 200, {"content-type": "text/html", "content-encoding": "gzip"})
    return made


def _caps() -> list[dict[str, Any]]:
    hi = content("Hi")
    size = len(event(hi)) - 2

    def cap(
        name: str, limit: str, value: int, code: str, fine: tuple[Any, ...], over: tuple[Any, ...], **more: Any
    ) -> list[Any]:
        settings = {key: more.pop(key) for key in SETTINGS if key in more}
        finish = {"finish_reason": "tool_calls"} if code in ("argument_too_large", "too_many_tool_calls") else {}
        return [
            y(
                f"cap_{name}_at",
                CAP,
                *fine,
                limits={limit: value},
                **settings,
                **finish,
                tolerated=settings.get("allow", []),
            ),
            n(
                f"cap_{name}_over",
                CAP,
                code,
                *over,
                limits={limit: value},
                **settings,
                outcome="limit_exceeded",
                **more,
            ),
        ]

    def call(arguments: str, index: int = 0) -> dict[str, Any]:
        return tools(piece(arguments, index=index, id=f"c{index}", name="f"))

    long_end = event(end())
    most = len(long_end) - 2
    whole = body(hi, end())
    return [
        *cap(
            "event_bytes",
            "max_event_bytes",
            most,
            "event_too_large",
            (hi, end()),
            (hi, b"data: " + b"x" * (most - 5)),
            offset=size + 2 + most,
        ),
        *cap(
            "event_lines",
            "max_event_lines",
            2,
            "too_many_event_lines",
            (b":\n", hi, end()),
            (hi, b":\n:\n:\n"),
            offset=size + 2 + 4,
        ),
        *cap("events", "max_events", 3, "too_many_events", (hi, end()), (hi, b"\n\n\n"), offset=size + 2 + 2),
        *cap(
            "stream_bytes",
            "max_stream_bytes",
            len(whole),
            "stream_too_large",
            (hi, end()),
            (hi, hi, hi, hi, hi, hi),
            offset=len(whole),
        ),
        *cap(
            "content_bytes",
            "max_content_bytes",
            4,
            "content_too_large",
            (hi, hi, end()),
            (hi, content("\u20ac")),
            at=1,
            content="Hi",
        ),
        *cap(
            "reasoning_bytes",
            "max_reasoning_bytes",
            4,
            "reasoning_too_large",
            (reasoning("\u00e9"), reasoning("\u00e9"), end()),
            (reasoning("\u00e9"), reasoning("\u20ac")),
            at=1,
            reasoning="\u00e9",
        ),
        *cap(
            "argument_bytes",
            "max_argument_bytes",
            2,
            "argument_too_large",
            (call("{}"), call("{}", 1), TOOL_END),
            (call("{"), tools(piece("}}"))),
            at=1,
        ),
        *cap(
            "tool_calls",
            "max_tool_calls",
            2,
            "too_many_tool_calls",
            (call("{}"), call("{}", 1), TOOL_END),
            (call("{}"), call("{}", 1), call("{}", 2)),
            at=2,
        ),
        *cap(
            "choices",
            "max_choices",
            2,
            "too_many_choices",
            (hi, content("x", index=1), end(), end(index=1)),
            (hi, content("x", index=2)),
            allow=["multi_choice"],
            at=1,
        ),
        y("cap_json_depth_at", CAP, hi, end(), {"x": [[[]]]}, limits={"max_json_depth": 4}),
        n("cap_json_depth_over", CAP, "json_too_deep", hi, {"x": [[[[]]]]}, limits={"max_json_depth": 4}, at=1),
        y("cap_number_chars_at", CAP, hi, end(), {"x": 1234}, limits={"max_number_chars": 4}),
        n("cap_number_chars_over", CAP, "json_number_too_long", hi, {"x": 12345}, limits={"max_number_chars": 4}, at=1),
        n(
            "cap_events_of_comments",
            "work without output is charged",
            "too_many_events",
            b":\n\n" * 4,
            limits={"max_events": 3},
            offset=11,
        ),
        n(
            "cap_events_of_blank_payloads",
            "work without output is charged",
            "too_many_events",
            b"data:\n\n" * 4,
            limits={"max_events": 3},
            offset=27,
        ),
        n(
            "cap_default_tool_calls",
            "the default cap on calls",
            "too_many_tool_calls",
            *[call("", k) for k in range(65)],
            at=64,
        ),
        n(
            "cap_default_event_lines",
            "the default cap on lines of an event",
            "too_many_event_lines",
            b":\n" * 4097,
            offset=8192,
        ),
    ]


def vectors() -> list[dict[str, Any]]:
    return [*_faults(), *_errors(), *_caps()]
