"""Strict JSON: one answer on every interpreter, in payloads and in arguments alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from wire import body, content, end, event, piece, tools, verdict_of

VALID = [
    "{}",
    "[]",
    '[""]',
    "[[]   ]",
    " [1]",
    "[1] ",
    "\t\n\r [1]\r\n",
    "[\n1\n,2]",
    '{"a":[]}',
    '{"":0}',
    '{"a":{"b":[null,true,false]}}',
    '{"a":"b","c":"d"}',
    '{"a":null,"A":null,"a ":null,"a\\u0000":null}',
    "[123]",
    "[-0]",
    "[-1]",
    "[0]",
    "[1.5]",
    "[0e1]",
    "[0e+1]",
    "[20e1]",
    "[1E22]",
    "[1E-2]",
    "[1E+2]",
    "[123e45]",
    "[123.456e78]",
    "[-123123123]",
    "[0.000000000000000000000000000001]",
    "[1e-999]",
    "[-1e-999]",
    "[1e308]",
    "[1.7976931348623157e308]",
    "true",
    "false",
    "null",
    '"text"',
    '""',
    "42",
    "-0.1",
    '["\\"\\\\\\/\\b\\f\\n\\r\\t"]',
    '["\\u0060\\u012a\\u12AB"]',
    '["\\uD801\\udc37"]',
    '["\\u0000"]',
    '["\\\\u0000"]',
    '["\\uFFFF\\u2028\\u2029"]',
    '["\u2028\u2029\u0085\x7f"]',
    '["\U0001f600\uffff"]',
    '["\u20ac\U0001d11e"]',
    '["a/*b*/c"]',
    '["NaN","Infinity","]}"]',
    '{"min":-1.0e+28,"max":1.0e+28}',
    '[1,null,"x",{}]',
]

INVALID = [
    "",
    " ",
    "[",
    "]",
    "[[]",
    "[]]",
    "[1,]",
    "[,1]",
    "[1,,2]",
    "[,]",
    "[1 true]",
    '["a" "b"]',
    "[1:2]",
    '["": 1]',
    "[x]",
    "[a\u00e5]",
    "[1\n",
    "[*]",
    "{",
    "}",
    "{}}",
    "{}{}",
    "{} x",
    "[1]x",
    "[][]",
    "1 2",
    "{1:1}",
    "{a:1}",
    "{'a':1}",
    '{"a"}',
    '{"a":}',
    '{"a" "b"}',
    '{"a"::"b"}',
    '{"a":1,}',
    '{"a":1,,"b":2}',
    '{,"a":1}',
    '{"a":1 "b":2}',
    '{"a":"b"}/**/',
    '{"a":1}//',
    '{"a":1}#',
    "{null:null}",
    '{"a":true,"b"',
    "[-]",
    "[+1]",
    "[--1]",
    "[-+1]",
    "[1-1]",
    "[01]",
    "[-01]",
    "[00]",
    "[0x1]",
    "[1.]",
    "[-1.]",
    "[.5]",
    "[-.5]",
    "[1.e1]",
    "[1e]",
    "[1e+]",
    "[1E-]",
    "[1eE2]",
    "[1.2.3]",
    "[1_000]",
    "[1 000]",
    "[1a]",
    "[\uff11]",
    "[1\u0661]",
    "[Inf]",
    "[inf]",
    "[nan]",
    "[-nan]",
    "[+Infinity]",
    "[Infinityx]",
    "[- Infinity]",
    "[True]",
    "[tru]",
    "[truee]",
    "[nul]",
    "[NULL]",
    "[None]",
    '"',
    '["]',
    '["a',
    "['a']",
    '["\\"]',
    '["\\x00"]',
    '["\\a"]',
    '["\\u"]',
    '["\\u00"]',
    '["\\u00G0"]',
    '["\\u 123"]',
    '["\\u+123"]',
    '["\\u0x12"]',
    '["\\U0061"]',
    '["\\\U0001f600"]',
    '["\\\\\\"]',
    '["\n"]',
    '["\t"]',
    '["\r"]',
    '["\x00"]',
    '["\x1f"]',
    "[\x0b1]",
    "[\x0c]",
    "[\u00a0]",
    "\u2060[]",
    "[\u2028]",
    "\ufeff{}",
    "\x00{}",
    "{}\x00",
    "<html>",
    "abc",
    "\\u007b}",
    '{"a":/*x*/1}',
    "[\\n]",
    "`x`",
]


def _judge(glmsse: Any, text: str) -> str | None:
    return glmsse.strict_json.read_strictly(text, glmsse.Limits())[1]


@pytest.mark.parametrize("text", VALID, ids=repr)
def test_valid_json_is_read(glmsse: Any, text: str) -> None:
    assert glmsse.strict_json.read_strictly(text, glmsse.Limits()) == (json.loads(text), None)


@pytest.mark.parametrize("text", INVALID, ids=repr)
def test_invalid_json_is_refused(glmsse: Any, text: str) -> None:
    assert glmsse.strict_json.read_strictly(text, glmsse.Limits()) == (None, "bad_json")


@pytest.mark.parametrize(
    "text", [text for text in INVALID if text.strip() and "\n" not in text and "\r" not in text], ids=repr
)
def test_invalid_json_is_refused_as_a_payload_and_as_arguments(glmsse: Any, text: str) -> None:
    assert verdict_of(glmsse, content("Hi"), event(text)).code == "bad_json"
    judged = verdict_of(glmsse, tools(piece(text, id="c", name="f")), end("tool_calls"))
    assert (judged.stage, judged.code) == ("tool_validation", "arguments_not_json")


# The same rules in a payload (with a code of its own) and in arguments


def _payload(glmsse: Any, value: str, **options: Any) -> Any:
    """The verdict over a stream whose last chunk has this JSON text in a field that nobody reads."""
    chunk = f'{{"id":"r-1","x":{value},"choices":[{{"delta":{{}}}}]}}'
    return verdict_of(glmsse, content("Hi"), end(), event(chunk), **options)


def _arguments(glmsse: Any, value: str, **options: Any) -> Any:
    call = tools(piece(f'{{"x":{value}}}', id="c", name="f"))
    return verdict_of(glmsse, call, end("tool_calls"), **options)


def _both(glmsse: Any, value: str, code: str | None, **limits: int) -> None:
    options = {"limits": glmsse.Limits(**limits)}
    in_payload, in_arguments = _payload(glmsse, value, **options), _arguments(glmsse, value, **options)
    assert in_payload.code == code
    assert in_arguments.code == code
    if code:
        assert (in_payload.outcome, in_payload.stage) == ("protocol_error", "event_decoding")
        assert (in_arguments.outcome, in_arguments.stage) == ("not_accepted", "tool_validation")
        assert in_arguments.tool_calls == ()


def _nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    """A value that nests so deep, the object around it counted."""
    return opening * (depth - 1) + "1" + closing * (depth - 1)


@pytest.mark.parametrize(
    ("depth", "code"),
    [(63, None), (64, None), (65, "json_too_deep"), (990, "json_too_deep"), (100_000, "json_too_deep")],
)
def test_nesting_is_capped_at_the_limit(glmsse: Any, depth: int, code: str | None) -> None:
    _both(glmsse, _nested(depth), code)


@pytest.mark.parametrize(("depth", "code"), [(64, None), (65, "json_too_deep"), (100_000, "json_too_deep")])
def test_nesting_of_objects_is_capped_too(glmsse: Any, depth: int, code: str | None) -> None:
    _both(glmsse, _nested(depth, '{"a":', "}"), code)


@pytest.mark.parametrize(("depth", "code"), [(255, None), (256, None), (257, "json_too_deep")])
def test_deepest_limit_that_can_be_set_is_kept_exactly(glmsse: Any, depth: int, code: str | None) -> None:
    _both(glmsse, _nested(depth), code, max_json_depth=256)


def test_lowest_limits_that_can_be_set_are_kept_exactly(glmsse: Any) -> None:
    read = glmsse.strict_json.read_strictly
    limits = glmsse.Limits(max_json_depth=1, max_number_chars=1)
    assert read("[1,2]", limits) == ([1, 2], None)
    assert read("[[]]", limits)[1] == "json_too_deep"
    assert read("[12]", limits)[1] == "json_number_too_long"
    assert read("5", limits) == (5, None)


@pytest.mark.parametrize(
    "value",
    ["[" + "[]," * 500 + "[]]", '"' + "[" * 500 + '"', '"\\"' + "{" * 500 + '"', '"\\\\",' + "1"],
    ids=lambda v: v[:8],
)
def test_brackets_beside_each_other_or_in_strings_are_no_nesting(glmsse: Any, value: str) -> None:
    _both(glmsse, f"[{value}]", None)


@pytest.mark.parametrize(
    ("number", "code"),
    [
        ("1" * 64, None),
        ("1" * 65, "json_number_too_long"),
        ("-" + "1" * 63, None),
        ("-" + "1" * 64, "json_number_too_long"),
        ("0." + "1" * 62, None),
        ("0." + "1" * 63, "json_number_too_long"),
        ("1e" + "0" * 62, None),
        ("1e" + "0" * 63, "json_number_too_long"),
        ("1e-" + "0" * 60 + "1", None),
        ("1" * 4300, "json_number_too_long"),
        ("1" * 4301, "json_number_too_long"),
        ("1" * 200_000, "json_number_too_long"),
        ("1." + "0" * 5000, "json_number_too_long"),
        ('"' + "1" * 5000 + '"', None),
        ('"\\"' + "1" * 5000 + '"', None),
    ],
    ids=lambda value: str(value)[:12] if value else "accepted",
)
def test_length_of_numbers_is_capped_at_the_limit(glmsse: Any, number: str, code: str | None) -> None:
    _both(glmsse, number, code)


@pytest.mark.parametrize(("digits", "code"), [(4000, None), (4001, "json_number_too_long")])
def test_longest_number_that_can_be_set_is_kept_exactly(glmsse: Any, digits: int, code: str | None) -> None:
    _both(glmsse, "1" * digits, code, max_number_chars=4000)


@pytest.mark.parametrize(
    "number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1e309", "123e99999", "9" * 40 + "e300"]
)
def test_number_beyond_a_double_is_refused(glmsse: Any, number: str) -> None:
    _both(glmsse, number, "json_nonfinite")


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        '{"a":1,"\\u0061":2}',
        '{"\\u00e9":1,"é":2}',
        '{"":1,"":1}',
        '{"a":1,"b":2,"a":1}',
        '[{"x":{"a":1,"a":1}}]',
        '{"\\/":1,"/":1}',
    ],
)
def test_equal_keys_are_refused_however_they_are_spelt(glmsse: Any, text: str) -> None:
    _both(glmsse, text, "duplicate_key")


@pytest.mark.parametrize(
    "text", ['{"a":1,"A":2}', '{"a":1,"a\\u0000":2}', '{"é":1,"e\u0301":2}', '[{"a":1},{"a":2}]', '{"a":{"a":{"a":1}}}']
)
def test_keys_are_compared_exactly(glmsse: Any, text: str) -> None:
    _both(glmsse, text, None)


DEEP, LONG = "[" * 70 + "]" * 70, "1" * 70


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (f'[{LONG},{DEEP},{{"a":1,"a":NaN}}]', "json_too_deep"),
        (f'[{DEEP},{LONG},{{"a":1,"a":NaN}}]', "json_too_deep"),
        (f'[{LONG},{{"a":1,"a":NaN}}]', "json_number_too_long"),
        (f'[{{"a":1,"a":NaN}},{LONG}]', "json_number_too_long"),
        ('{"a":1,"a":NaN}', "duplicate_key"),
        ('{"b":NaN,"a":1,"a":1}', "duplicate_key"),
    ],
)
def test_depth_is_judged_before_length_before_keys_before_numbers(glmsse: Any, value: str, code: str) -> None:
    _both(glmsse, value, code)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f"x{DEEP}", "json_too_deep"),
        (f"{DEEP}x{LONG}", "json_too_deep"),
        (f"[{LONG},", "json_number_too_long"),
        (f"[x,{LONG}]", "json_number_too_long"),
        ("[" * 70, "json_too_deep"),
        ("[" * 100_000, "json_too_deep"),
        ('{"a":' * 100_000, "json_too_deep"),
        ('{"a":1,"a":NaN', "bad_json"),
        ("[NaN,]", "bad_json"),
        ('["' + "[" * 100, "bad_json"),
        ('["' + LONG, "bad_json"),
        ("[" * 64 + "x", "bad_json"),
    ],
    ids=lambda value: value[:12],
)
def test_depth_and_length_are_judged_before_the_grammar(glmsse: Any, text: str, code: str) -> None:
    assert _judge(glmsse, text) == code
    assert verdict_of(glmsse, content("Hi"), event(text)).code == code
    judged = verdict_of(glmsse, tools(piece(text, id="c", name="f")), end("tool_calls"))
    assert judged.code == ("arguments_not_json" if code == "bad_json" else code)


def test_payload_that_is_no_object_is_judged_after_strict_json(glmsse: Any) -> None:
    assert verdict_of(glmsse, content("Hi"), event('[{"a":1,"a":1}]')).code == "duplicate_key"
    assert verdict_of(glmsse, content("Hi"), event("NaN")).code == "json_nonfinite"
    assert verdict_of(glmsse, content("Hi"), event("[NaN]")).code == "json_nonfinite"


# Surrogates: judged where they are read


@pytest.mark.parametrize("half", ["\\ud800", "\\udfff", "\\udc00\\ud800", "\\ud800\\ud800\\udc00", "x\\ud800x"])
@pytest.mark.parametrize(
    "field",
    [
        '"delta":{"content":"%s"}',
        '"delta":{"reasoning_content":"%s"}',
        '"delta":{"tool_calls":[{"index":0,"function":{"arguments":"%s"}}]}',
        '"delta":{"tool_calls":[{"index":0,"function":{"name":"%s"}}]}',
        '"delta":{"tool_calls":[{"index":0,"id":"%s"}]}',
        '"finish_reason":"%s"',
    ],
)
def test_lone_surrogate_in_a_field_that_is_read_is_refused(glmsse: Any, field: str, half: str) -> None:
    sent = event('{"choices":[{' + field.replace("%s", half) + "}]}")
    assert verdict_of(glmsse, sent, end("stop")).code == "lone_surrogate"
    assert verdict_of(glmsse, sent).code == "lone_surrogate"


def test_lone_surrogate_in_the_response_id_is_refused(glmsse: Any) -> None:
    assert verdict_of(glmsse, event('{"id":"\\ud800","choices":[{}]}')).code == "lone_surrogate"


@pytest.mark.parametrize(
    "fields",
    ['"x":"\\ud800"', '"\\ud800":1', '"model":"\\ud800"', '"object":"\\udc00"', '"system_fingerprint":"\\ud800"'],
)
def test_lone_surrogate_in_a_field_that_is_not_read_is_never_judged(glmsse: Any, fields: str) -> None:
    sent = event('{"choices":[{"delta":{"content":"Hi"}}],' + fields + "}")
    verdict = verdict_of(glmsse, sent, end())
    assert verdict.accepted
    json.dumps(verdict.to_dict()).encode()


def test_escaped_lone_surrogate_in_arguments_is_refused_at_the_end(glmsse: Any) -> None:
    for text in ('{"a":"\\ud800"}', '{"\\udc00":1}', '{"a":["x",{"b":"\\ud800\\u0041"}]}'):
        verdict = verdict_of(glmsse, tools(piece(text, id="c", name="f")), end("tool_calls"))
        assert (verdict.stage, verdict.code) == ("tool_validation", "lone_surrogate")
    fine = verdict_of(glmsse, tools(piece('{"a":"\\ud83d\\ude00"}', id="c", name="f")), end("tool_calls"))
    assert fine.accepted


def test_nothing_odd_reaches_the_snapshot_as_json(glmsse: Any) -> None:
    stream = glmsse.ChatStream(allow=["surrogate_replace"])
    stream.feed(body(event('{"choices":[{"delta":{"content":"a\\ud800"}}]}'), end()))
    assert stream.snapshot.choices[0].content == "a\ufffd"
    json.dumps(stream.snapshot.to_dict(), ensure_ascii=False).encode()


@pytest.mark.parametrize("text", ['["\\u012F"]', '{"a\\n":"\\\\u 12f","é":"\\"\\u00e9"}', "[1.5e3, true]", '""', "5"])
def test_strict_spelling_passes_the_second_look(glmsse: Any, text: str) -> None:
    assert glmsse.strict_json.is_strictly_spelt(text)


@pytest.mark.parametrize(
    "text",
    ['["\\u 12f"]', '["\\u+12f"]', '["\\u1_2f"]', '["\\u\uff11111"]', '{"\\u 12f":1}', "[1\u0661]", '["a",\u0661]'],
)
def test_what_only_a_loose_scanner_reads_is_seen_at_the_second_look(glmsse: Any, text: str) -> None:
    assert not glmsse.strict_json.is_strictly_spelt(text)
