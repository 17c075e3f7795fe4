"""The fast lane changes nothing but speed: with and without it every result is the same, in both builds."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import pytest

from conftest import BUILDS, RECORDINGS

Outcome = dict[str, Any]
HEAD = {"id": "r-1", "created": 1, "model": "glm-5.2"}


def outcome_of(glmsse: ModuleType, pieces: Iterable[bytes], fast: bool, **options: Any) -> Outcome:
    chat = glmsse.chat
    chat.FAST_LANE = fast
    try:
        stream = chat.ChatStream(**options)
    finally:
        chat.FAST_LANE = True
    events = [event.to_dict() for piece in pieces for event in stream.feed(piece)]
    verdict = stream.close()
    return {
        "events": json.dumps(events),
        "verdict": verdict.to_dict(),
        "calls": [(call.index, call.id, call.name, call.arguments) for call in verdict.tool_calls],
        "snapshot": stream.snapshot.to_dict(),
        "seen": (stream.events_seen, stream.bytes_seen, stream.pieces_seen, stream.phase),
    }


def assert_all_paths_agree(body: bytes, cuts: Iterable[int] = (), **options: Any) -> Outcome:
    places = sorted({0, len(body), *(cut for cut in cuts if 0 < cut < len(body))})
    pieces = [body[start:stop] for start, stop in itertools.pairwise(places)]
    outcomes = [outcome_of(glmsse, pieces, fast, **options) for glmsse in BUILDS.values() for fast in (True, False)]
    for outcome in outcomes[1:]:
        assert outcome == outcomes[0]
    return outcomes[0]


def event(payload: str) -> bytes:
    return b"data: " + payload.encode("utf-8", "surrogatepass") + b"\n\n"


def chunk(delta: dict[str, Any], ascii_only: bool = False, **more: Any) -> bytes:
    return event(json.dumps({**HEAD, "choices": [{"index": 0, "delta": delta, **more}]}, ensure_ascii=ascii_only))


START = chunk({"content": "a"}) + chunk({"content": "b"}) + chunk({"content": "c"})
END = (
    event(
        json.dumps(
            {
                **HEAD,
                "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
            }
        )
    )
    + b"data: [DONE]\n\n"
)


def test_lane_takes_the_middle_of_a_plain_stream(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    stream.feed(START + chunk({"content": "d"}) * 10 + END)
    assert 10 <= stream.fast_events_seen < stream.events_seen == 15
    assert stream.snapshot.choices[0].content == "abc" + "d" * 10


def test_digest_and_events_do_not_depend_on_the_lane() -> None:
    assert assert_all_paths_agree(START + END, digest=True)["verdict"]["digest"]


ODD_PAYLOADS = {
    "decoy key in an unread object": '{"id":"r-1","x":{"content":"z"},"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "same key twice in the delta": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"d","content":"e"}}]}',
    "same key twice, one escaped": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"d","c\\u006fntent":"e"}}]}',
    "same key twice in an unread object": '{"id":"r-1","x":{"k":1,"k":2},"choices":[{"delta":{"content":"d"}}]}',
    "escaped key": '{"id":"r-1","choices":[{"index":0,"delta":{"c\\u006fntent":"d"}}]}',
    "another id": '{"id":"r-2","choices":[{"index":0,"delta":{"content":"d"}}]}',
    "no id": '{"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "an error beside the text": '{"id":"r-1","error":{"code":"1302"},"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "a null error": '{"id":"r-1","error":null,"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "object is error": '{"id":"r-1","object":"error","choices":[{"index":0,"delta":{"content":"d"}}]}',
    "object is error, escaped": '{"id":"r-1","object":"\\u0065rror","choices":[{"index":0,"delta":{"content":"d"}}]}',
    "type is error": '{"id":"r-1","type":"error","choices":[{"index":0,"delta":{"content":"d"}}]}',
    "two choices": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"d"}},{"index":0,"delta":{"content":"e"}}]}',
    "another choice": '{"id":"r-1","choices":[{"index":1,"delta":{"content":"d"}}]}',
    "no index": '{"id":"r-1","choices":[{"delta":{"content":"d"}}]}',
    "an index of true": '{"id":"r-1","choices":[{"index":true,"delta":{"content":"d"}}]}',
    "an index of 0.0": '{"id":"r-1","choices":[{"index":0.0,"delta":{"content":"d"}}]}',
    "an index of -0": '{"id":"r-1","choices":[{"index":-0,"delta":{"content":"d"}}]}',
    "an index of 00": '{"id":"r-1","choices":[{"index":00,"delta":{"content":"d"}}]}',
    "an index of 0e0": '{"id":"r-1","choices":[{"index":0e0,"delta":{"content":"d"}}]}',
    "both texts": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"d","reasoning_content":"r"}}]}',
    "an alias beside the text": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"d","reasoning":"r"}}]}',
    "an empty text": '{"id":"r-1","choices":[{"index":0,"delta":{"content":""}}]}',
    "a number as text": '{"id":"r-1","choices":[{"index":0,"delta":{"content":7}}]}',
    "a list as text": '{"id":"r-1","choices":[{"index":0,"delta":{"content":[{"type":"text","text":"d"}]}}]}',
    "a message beside the delta": '{"id":"r-1","choices":[{"delta":{"content":"d"},"message":{"content":"e"}}]}',
    "a message in place of it": '{"id":"r-1","choices":[{"index":0,"delta":{},"message":{"content":"e"}}]}',
    "an early finish": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"d"},"finish_reason":"length"}]}',
    "an empty finish": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"d"},"finish_reason":""}]}',
    "usage beside": '{"id":"r-1","usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2},'
    '"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "a function_call": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"d","function_call":{"name":"f"}}}]}',
    "a long number": '{"id":"r-1","n":' + "1" * 65 + ',"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "a number beyond a double": '{"id":"r-1","n":1e999,"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "a big exponent": '{"id":"r-1","n":1e308,"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "NaN": '{"id":"r-1","n":NaN,"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "a leading zero": '{"id":"r-1","n":01,"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "a bare minus": '{"id":"r-1","n":-,"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "a trailing comma": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"d"}}],}',
    "text behind": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"d"}}]} x',
    "blanks around": ' {"id" : "r-1" , "choices" : [ { "index" : 0 , "delta" : { "content" : "d" } } ] } ',
    "deep nesting": '{"id":"r-1","x":' + "[" * 70 + "]" * 70 + ',"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "nesting under the cap": '{"id":"r-1","x":'
    + "[" * 40
    + "]" * 40
    + ',"choices":[{"index":0,"delta":{"content":"d"}}]}',
    "a raw control character": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"d\x01"}}]}',
    "an unknown escape": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"\\x"}}]}',
    "a cut escape": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"\\u12"}}]}',
    "a pair of surrogates": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"\\ud83d\\ude00"}}]}',
    "a high half": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}',
    "a low half": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"\\ude00"}}]}',
    "every escape": '{"id":"r-1","choices":[{"delta":{"content":"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u4e2d"}}]}',
    "a NUL": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"\\u0000"}}]}',
    "a DEL and a line separator": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"\x7f\u2028"}}]}',
    "no object": "[1]",
    "no JSON": "d",
    "nothing": "",
    "the sentinel, early": "[DONE]",
}


@pytest.mark.parametrize("name", ODD_PAYLOADS)
def test_odd_payload_between_plain_ones_is_read_alike(name: str) -> None:
    payload = event(ODD_PAYLOADS[name])
    for profile in ("zai", "gateway"):
        assert_all_paths_agree(START + payload + chunk({"content": "z"}) + END, profile=profile)
        assert_all_paths_agree(START + payload * 3 + chunk({"content": "z"}) + END, profile=profile)


def test_invalid_utf8_in_a_plain_piece_is_the_framers_fault() -> None:
    bad = chunk({"content": "XX"}).replace(b"XX", b"\xc3\x28")
    outcome = assert_all_paths_agree(START + bad + END)
    assert outcome["verdict"]["code"] == "invalid_utf8"
    skipped = event('{"id":"r-1","x":"XX","choices":[{"index":0,"delta":{"content":"d"}}]}').replace(b"XX", b"\xff\xfe")
    assert assert_all_paths_agree(START + skipped + END)["verdict"]["code"] == "invalid_utf8"


def test_caps_trip_in_the_lane_as_they_do_elsewhere(glmsse: ModuleType) -> None:
    long = START + b"".join(chunk({"content": letter * 7}) for letter in "defghijklm") + END
    for limits in (
        {"max_content_bytes": 24},
        {"max_events": 6},
        {"max_event_bytes": len(chunk({"content": "d" * 7})) - 9},
        {"max_stream_bytes": len(START) + 150},
        {"max_number_chars": 1},
        {"max_json_depth": 3},
        {"max_json_depth": 4},
    ):
        outcomes = [
            outcome_of(package, [long], fast, limits=package.Limits(**limits))
            for package in BUILDS.values()
            for fast in (True, False)
        ]
        assert all(outcome == outcomes[0] for outcome in outcomes), limits


def test_key_that_changes_with_the_text_makes_no_template() -> None:
    def decoyed(text: str) -> bytes:
        return event('{"id":"r-1","x":{"T":1,"fixed":2},"choices":[{"delta":{"content":"T"}}]}'.replace("T", text))

    outcome = assert_all_paths_agree(START + decoyed("p") + decoyed("q") + decoyed("r") + decoyed("fixed") + END)
    assert outcome["verdict"]["code"] == "duplicate_key"


def test_text_that_comes_twice_is_read_once() -> None:
    def twice(text: str) -> bytes:
        return chunk({"reasoning": text, "reasoning_details": [{"type": "reasoning.text", "text": text, "index": 0}]})

    body = b"".join(map(twice, ("a", "b", "c", "d", "x")))
    odd = chunk({"reasoning": "y", "reasoning_details": [{"type": "reasoning.text", "text": "other", "index": 0}]})
    outcome = assert_all_paths_agree(body + odd + body + END, profile="router")
    assert outcome["snapshot"]["choices"][0]["message"]["reasoning_content"] == "abcdxyabcdx"


USAGES = (
    '{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}',
    '{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"prompt_tokens_details":{"cached_tokens":1}}',
    '{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"cost":0.5}',
    '{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"total_tokens":3}',
    '{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"note":"\\ud83d"}',
    '{"prompt_tokens":1,"completion_tokens":1,"total_tokens":1e999}',
    '{"prompt_tokens":true,"completion_tokens":1,"total_tokens":2}',
    '{"prompt_tokens":-1,"completion_tokens":1,"total_tokens":2}',
    '{"prompt_tokens":1,"completion_tokens":1,"total_tokens":1111111111111111111111}',
    '{"prompt_tokens":1}',
    *("{}", "null", "[]", "7", '"x"', "{", "false", '{"a":' * 70 + "1" + "}" * 70),
)


@pytest.mark.parametrize("usage", USAGES)
def test_usage_beside_each_piece_is_read_alike(usage: str) -> None:
    def counted(text: str) -> bytes:
        payload = '{"id":"r-1","usage":U,"choices":[{"index":0,"delta":{"content":"T"}}]}'
        return event(payload.replace("U", usage).replace("T", text))

    body = b"".join(map(counted, ("a", "b", "c", "\\ud83d", "\\ude00", "d")))
    for profile in ("zai", "gateway"):
        assert_all_paths_agree(START + body + END, cuts=range(0, 2000, 77), profile=profile)
        assert_all_paths_agree(START + body + END, profile=profile, deltas=False, collect=False)
    capped = [
        outcome_of(package, [START + body + END], fast, limits=package.Limits(max_content_bytes=5))
        for package in BUILDS.values()
        for fast in (True, False)
    ]
    assert all(outcome == capped[0] for outcome in capped)


def test_events_of_the_general_path_are_not_counted_as_fast(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream(digest=True)  # which looks at every event
    stream.feed(START + chunk({"content": "d"}) * 10 + END)
    assert (stream.fast_events_seen, stream.events_seen) == (0, 15)


def test_lane_takes_pieces_with_usage_beside_them(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    totals = '{"prompt_tokens":1,"completion_tokens":N,"total_tokens":2}'
    payload = '{"id":"r-1","usage":U,"choices":[{"index":0,"delta":{"content":"x"}}]}'.replace("U", totals)
    events = [item for number in range(9) for item in stream.feed(event(payload.replace("N", str(number))))]
    assert [item.type for item in events] == ["usage", "content.delta"] * 9
    assert stream.usage.completion_tokens == 8
    assert stream.pieces_seen == 18
    assert (stream._lane.hits > 5) == (glmsse.IMPLEMENTATION == "compiled")


PADDED = {
    "behind the text": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"T"}}],"pad":"P"}',
    "before the text": '{"id":"r-1","pad":"P","choices":[{"index":0,"delta":{"content":"T"}}]}',
    "in the delta": '{"id":"r-1","choices":[{"index":0,"delta":{"pad":"P","content":"T"}}]}',
    "in a list": '{"id":"r-1","choices":[{"index":0,"delta":{"content":"T"}}],"pad":["x","P"]}',
    "on both sides": '{"a":"P","id":"r-1","choices":[{"index":0,"delta":{"content":"T"}}],"pad":"P"}',
}
ODD_PADDING = (
    *("", "\\n", "\\u00e9", "\\ud83d", "\\", '\\"', "\\x", "\\u12", '"', '","error":{"code":"1302"},"x":"', "\x01"),
    *("é", "\ufffd", "z" * 400, '","content":"Z', '"}],"choices":[{"x":"', "data: {", "\x7f"),
)


@pytest.mark.parametrize("where", PADDED)
def test_random_padding_beside_the_text_is_left_out_of_the_template(glmsse: ModuleType, where: str) -> None:
    pick = random.Random(where)

    def padded(text: str, padding: str | None = None) -> bytes:
        padding = "".join(pick.choices("abcdef", k=pick.randint(1, 30))) if padding is None else padding
        return event(PADDED[where].replace("T", text).replace("P", padding))

    usual = [padded(text) for text in ("a", "b", " c", "\\n", "é", "f")]
    body = b"".join(usual)
    stream = glmsse.ChatStream()
    stream.feed(body * 5)
    if glmsse.IMPLEMENTATION == "compiled" and where != "on both sides":
        assert stream._lane.template_hits >= 26
    for odd in ODD_PADDING:
        outcome = assert_all_paths_agree(body + padded("o", odd) + body + END)
        assert_all_paths_agree(body + padded("o", odd) + body + END, cuts=range(0, 3000, 61), profile="gateway")
    assert outcome["snapshot"]["choices"][0]["message"]["content"] == "ab c\néfoab c\néf"
    invalid = padded("o", "XX").replace(b"XX", b"\xc3\x28")
    assert assert_all_paths_agree(body + invalid + body + END)["verdict"]["code"] == "invalid_utf8"


def piece(index: int | None, arguments: str, **more: Any) -> bytes:
    call: dict[str, Any] = {"type": "function", "function": {"arguments": arguments}, **more}
    if index is not None:
        call["index"] = index
    return chunk({"tool_calls": [call]})


def opening(index: int, name: str, call_id: str) -> bytes:
    call = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
    return chunk({"tool_calls": [call]})


TOOL_END = END.replace(b'"stop"', b'"tool_calls"')


def test_interleaved_calls_keep_their_arguments_apart() -> None:
    pieces = ['{"k":"', "a", "b", "c", "d", '"}']
    body = opening(0, "f", "c0") + opening(1, "g", "c1") + opening(5, "h", "c5")
    body += b"".join(piece(index, text) for text in pieces for index in (0, 1, 5)) + TOOL_END
    outcome = assert_all_paths_agree(body, cuts=range(0, len(body), 37))
    assert [call[3] for call in outcome["calls"]] == ['{"k":"abcd"}'] * 3


def test_call_id_and_name_in_every_piece_do_not_keep_the_lane_out(glmsse: ModuleType) -> None:
    def named(text: str, name: str = "f", call_id: str = "c0") -> bytes:
        return chunk({"tool_calls": [{"index": 0, "id": call_id, "function": {"name": name, "arguments": text}}]})

    body = b"".join(map(named, ('{"k":"', "a", "b", "c", "d")))
    stream = glmsse.ChatStream()
    stream.feed(body * 3)
    assert stream._lane.hits >= 12
    assert assert_all_paths_agree(body + named('"}') + TOOL_END)["calls"] == [(0, "c0", "f", '{"k":"abcd"}')]
    for other in (named("x", name="g"), named("x", call_id="c1"), named("x", name="f\n"), named("x", call_id="")):
        for profile in ("zai", "gateway"):
            outcome = assert_all_paths_agree(body + other + named('"}') + TOOL_END, profile=profile)
    assert assert_all_paths_agree(body + named("x", name="g") + TOOL_END)["verdict"]["code"] == "stable_conflict"
    assert outcome["verdict"]["accepted"]


def test_call_that_started_without_id_or_name_goes_on_after_its_finish() -> None:
    early = chunk({}, finish_reason="tool_calls")
    for first in (piece(0, "{"), piece(0, "{", id="c0")):
        outcome = assert_all_paths_agree(first + piece(0, " ") + early + piece(0, " ") * 3 + piece(0, "}") + TOOL_END)
        assert outcome["verdict"]["code"] == "tool_name_missing"


def test_call_id_spelt_like_another_one_is_a_conflict() -> None:
    # The id is a backslash and an n; later the same bytes on the wire are a line feed.
    first = event(
        '{"id":"r-1","choices":[{"delta":{"tool_calls":[{"index":0,"id":"\\\\n",'
        '"function":{"name":"f","arguments":"{"}}]}}]}'
    )
    later = event(
        '{"id":"r-1","choices":[{"delta":{"tool_calls":[{"index":0,"id":"\\n","function":{"arguments":"}"}}]}}]}'
    )
    outcome = assert_all_paths_agree(first + piece(0, " ") + piece(0, " ") + later + TOOL_END)
    assert outcome["verdict"]["code"] == "stable_conflict"


def test_index_that_a_tolerance_sends_elsewhere_is_not_taken_for_the_first_call() -> None:
    body = opening(0, "f", "c0") + b"".join(piece(0, text) for text in ("{", "}"))
    again = opening(0, "g", "c1") + b"".join(piece(0, text) for text in ('{"a"', ":", "1", "}"))
    outcome = assert_all_paths_agree(body + again + TOOL_END, profile="gateway")
    assert [call[3] for call in outcome["calls"]] == ["{}", '{"a":1}']


def test_pieces_without_index_follow_the_call_opened_last() -> None:
    body = b"".join(
        opening(index, "f", f"c{index}") + b"".join(piece(None, text) for text in ("{", '"a"', ":", "1", "}"))
        for index in (0, 1)
    )
    outcome = assert_all_paths_agree(body + TOOL_END, profile="gateway")
    assert [call[3] for call in outcome["calls"]] == ['{"a":1}'] * 2


def test_call_that_goes_on_after_its_finish_is_read_alike() -> None:
    body = opening(0, "f", "c0") + b"".join(piece(0, text) for text in ('{"a"', ":", "1"))
    early = chunk({}, finish_reason="tool_calls")
    outcome = assert_all_paths_agree(body + early + piece(0, "2") + piece(0, "3") + piece(0, "}") + TOOL_END)
    assert [call[3] for call in outcome["calls"]] == ['{"a":123}']


EMPTY_PIECES = ([{"index": 0}], [{"index": 0, "function": {"arguments": ""}}], [{"index": 3, "function": None}], [{}])


@pytest.mark.parametrize("pieces", EMPTY_PIECES)
@pytest.mark.parametrize("before", [b"", opening(0, "f", "c0"), opening(1, "f", "c1")])
def test_piece_of_a_call_without_arguments_is_not_lost_beside_text(before: bytes, pieces: list[Any]) -> None:
    beside = b"".join(chunk({"content": text, "tool_calls": pieces}) for text in "bcde")
    for end in (END, TOOL_END, b""):
        assert_all_paths_agree(before + START + beside + end)
    outcome = assert_all_paths_agree(START + chunk({"content": "b", "tool_calls": [{"index": 0}]}) + END)
    assert outcome["verdict"]["code"] == "tools_without_tool_finish"


@pytest.mark.parametrize("field", ["object", "type", "id", "model"])
def test_field_that_holds_the_same_string_as_the_text_is_still_read(field: str) -> None:
    def same(text: str) -> bytes:
        return event('{"F":"T","choices":[{"index":0,"delta":{"content":"T"}}]}'.replace("F", field).replace("T", text))

    outcome = assert_all_paths_agree(
        b"".join(map(same, ("a", "b", "c", "error", "d"))) + END, allow=["response_id_unstable"]
    )
    assert outcome["verdict"]["code"] == ("provider_error" if field in ("object", "type") else None)


def test_finish_reason_that_is_the_same_string_as_the_text_is_still_read() -> None:
    def same(text: str) -> bytes:
        return chunk({"content": text}, finish_reason=text)

    allow = ["finish_aliases", "finish_keep_tool_calls", "finish_advisory"]
    body = chunk({"content": "x"}, finish_reason="tool_calls")
    body += b"".join(map(same, ("stop", "eos", "stop", "eos", "length")))
    assert assert_all_paths_agree(body + END, allow=allow)["verdict"]["code"] == "finish_conflict"


def test_unlimited_sizes_do_not_keep_the_lane_out(glmsse: ModuleType) -> None:
    limits = glmsse.Limits(max_event_bytes=None, max_stream_bytes=None, max_content_bytes=None, max_events=None)
    stream = glmsse.ChatStream(limits=limits)
    stream.feed(START + chunk({"content": "d"}) * 10 + END)
    assert 10 <= stream.fast_events_seen < stream.events_seen == 15


def test_model_and_created_are_those_of_the_first_chunk_with_choices() -> None:
    first, late = event('{"id":"r-1","choices":[{"index":0,"delta":{"content":"a"}}]}'), chunk({"content": "b"})
    assert assert_all_paths_agree(first + late * 3 + END)["snapshot"]["model"] is None
    assert assert_all_paths_agree(late + first * 3 + END)["snapshot"]["model"] == "glm-5.2"


def test_leading_empty_object_is_left_out_in_the_lane_too() -> None:
    body = opening(0, "f", "c0") + piece(0, "{}") + piece(0, '{"a"') + piece(0, ":1}") + TOOL_END
    outcome = assert_all_paths_agree(body, allow=["args_leading_empty_object"])
    assert outcome["calls"] == [(0, "c0", "f", '{"a":1}')]
    body = opening(0, "f", "c0") + b"".join(piece(0, text) for text in ("{", "}", '{"a":1}')) + TOOL_END
    assert assert_all_paths_agree(body, allow=["args_leading_empty_object"])["verdict"]["code"] == "arguments_not_json"


def test_clean_end_without_the_sentinel_settles_what_waits() -> None:
    body = opening(0, "f", "c0") + piece(0, "{") + piece(0, "}") + TOOL_END.replace(b"data: [DONE]\n\n", b"")
    late = event('{"id":"r-1","choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"\\ud83d"}}]}}]}')
    allow = ["done_optional"]
    assert assert_all_paths_agree(body, allow=allow)["verdict"]["code"] is None
    assert assert_all_paths_agree(body + late, allow=allow)["verdict"]["code"] == "lone_surrogate"


def test_splice_is_seen_whatever_the_texts_say() -> None:
    cut = 'data: {"id":"a","chodata: {"id":"b","choices":[{"delta":{"content":"data: hi"}}]}'
    outcome = assert_all_paths_agree(START + cut.encode() + b"\n\n" + END)
    assert outcome["verdict"]["code"] == "spliced_frame"


def test_pickles_of_deltas_name_no_build(glmsse: ModuleType) -> None:
    for delta in (glmsse.ContentDelta("ab", 1), glmsse.ReasoningDelta("ab"), glmsse.ArgumentsDelta(2, "{}", 1)):
        rebuild, fields = delta.__reduce__()
        assert fields[0] == delta.type
        assert rebuild(*fields) == delta


def random_delta(pick: random.Random) -> dict[str, Any]:
    texts = ("a", " word", "", "é", "中", "\U0001f642", '"', "\\", "\n", "\u2028", "{", "data: ", "\x7f")
    text = "".join(pick.choice(texts) for _ in range(pick.randint(1, 3)))
    kind = pick.random()
    if kind < 0.4:
        return {"content": text}
    if kind < 0.6:
        return {"role": "assistant", "reasoning_content": text, "content": pick.choice(("", None))}
    if kind < 0.7:
        return {"reasoning": text, "reasoning_details": [{"text": text}]}
    function: dict[str, Any] = {"arguments": text}
    call: dict[str, Any] = {"index": pick.randint(0, 2), "function": function}
    if pick.random() < 0.3:
        call["id"] = f"c{call['index']}"
        function["name"] = "f"
    return {"tool_calls": [call]}


def random_body(pick: random.Random) -> bytes:
    body = b""
    ascii_only = pick.random() < 0.3
    more: dict[str, Any] = {"finish_reason": None, "logprobs": None} if pick.random() < 0.5 else {}
    for _ in range(pick.randint(5, 40)):
        delta = random_delta(pick)
        whole = chunk(delta, ascii_only, **more)
        if pick.random() < 0.1:
            whole = whole.replace(b'"id"', b'"usage": ' + pick.choice(USAGES).encode() + b', "id"', 1)
        body += whole * pick.randint(1, 3)
        if pick.random() < 0.02:
            body += event(pick.choice(list(ODD_PAYLOADS.values())))
        if pick.random() < 0.05:
            body += b": keep-alive\n\n"
    end = pick.choice((END, TOOL_END, b""))
    body += end
    return body.replace(b"\n", b"\r\n") if pick.random() < 0.1 else body


@pytest.mark.parametrize("seed", range(150))
def test_random_streams_are_read_alike(seed: int) -> None:
    pick = random.Random(seed)
    body = random_body(pick)
    cuts = [pick.randrange(len(body)) for _ in range(pick.choice((0, 1, 5, 50)))]
    options: dict[str, Any] = {
        "profile": pick.choice(("zai", "router", "gateway")),
        "deltas": pick.random() < 0.7,
        "collect": pick.random() < 0.7,
    }
    assert_all_paths_agree(body, cuts, **options)


@pytest.mark.skipif(not RECORDINGS.is_dir(), reason="the recordings are not there")
def test_recordings_are_read_alike() -> None:
    for path in sorted(RECORDINGS.glob("*.sse")):
        body = path.read_bytes()
        for cuts in ((), range(0, len(body), 1460), range(0, len(body), 97)):
            assert_all_paths_agree(body, cuts, profile="gateway")


def test_deltas_of_both_builds_look_alike(glmsse: ModuleType) -> None:
    content, arguments = glmsse.ContentDelta("ab"), glmsse.ArgumentsDelta(1, "{}", 2)
    assert (content.text, content.choice, content.type) == ("ab", 0, "content.delta")
    assert repr(content) == "ContentDelta(text=<2 chars>, choice=0)"
    assert repr(arguments) == "ArgumentsDelta(index=1, arguments=<2 chars>, choice=2)"
    assert content == glmsse.ContentDelta("ab", 0)
    assert content != glmsse.ReasoningDelta("ab")
    assert hash(content) == hash(glmsse.ContentDelta(text="ab", choice=0))
    assert arguments.to_dict() == {"type": "tool_call.arguments.delta", "index": 1, "arguments": "{}", "choice": 2}
    assert content.__match_args__ == ("text", "choice")
    with pytest.raises(AttributeError):
        content.text = "x"
    match arguments:
        case glmsse.ArgumentsDelta(index, text):
            assert (index, text) == (1, "{}")
        case _:
            pytest.fail("no match")
