"""Each rule of raw GLM text. `read` feeds a text whole, in small pieces and at every cut, and wants one outcome."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from glm_text_reading import TOOLS, fed, merged, pieces_of, read
from glmsse.errors import LimitError, MisuseError
from glmsse.events import ArgumentsDelta, ContentDelta, Failed, Finish, ToolCallEnd, ToolCallStart
from glmsse.glm_text import ToolCallParser
from glmsse.limits import Limits

BLANK = " \n\r\t\x0b\x0c\x1c\x1d\x1e\x1f\x85\xa0\u2003\u2028\u3000"


def argument(key: str, value: str) -> str:
    return f"<arg_key>{key}</arg_key><arg_value>{value}</arg_value>"


def call(name: str, *arguments: str) -> str:
    return f"<tool_call>{name}{''.join(arguments)}</tool_call>"


NOW = call("now")
OPEN = "<tool_call>search<arg_key>q</arg_key><arg_value>"


def arguments_of(text: str, **options: Any) -> str:
    """The arguments of the only call of a text that is nothing else."""
    outcome = read(text, **options)
    assert (outcome.content, outcome.reasoning) == ("", "")
    [(_, arguments, complete)] = outcome.calls
    assert complete
    return arguments


# Start


@pytest.mark.parametrize("blank", ["", "\n", BLANK])
def test_auto_start_reads_an_opener_behind_whitespace_as_reasoning(blank: str) -> None:
    outcome = read(f"{blank}<think> a\n</think>{blank}b", start="auto")

    assert (outcome.reasoning, outcome.content, outcome.flags) == (" a\n", "b", ())


def test_auto_start_without_opener_keeps_all_whitespace_as_content() -> None:
    assert read(" \n a ", start="auto").content == " \n a "
    assert read(" <thin", start="auto").content == " <thin"
    assert read(" \n", start="auto").content == " \n"


def test_reasoning_start_drops_one_opener_only() -> None:
    outcome = read(" <think><think>a</think>b", start="reasoning")

    assert (outcome.reasoning, outcome.content) == ("<think>a", "b")


def test_reasoning_start_without_opener_keeps_the_whitespace() -> None:
    assert read(" \n a</think>b", start="reasoning").reasoning == " \n a"


def test_opener_in_content_is_text_and_flagged() -> None:
    outcome = read("<think>a <think>")

    assert (outcome.content, outcome.flags) == ("<think>a <think>", (("stray_marker", None),))


def test_reply_that_ends_in_reasoning_is_flagged() -> None:
    assert read("", start="reasoning").flags == (("reasoning_open", None),)
    outcome = read("a </thin", start="reasoning")

    assert (outcome.reasoning, outcome.flags) == ("a </thin", (("reasoning_open", None),))


def test_turn_token_ends_open_reasoning() -> None:
    assert read("a <|user|>b", start="reasoning") == ("", "a ", [], (("reasoning_open", None), ("stray_marker", None)))


def test_other_tags_do_not_count_in_reasoning() -> None:
    text = "<arg_key></tool_call><think><|tool_call>call:now{}<tool_call|><x:tool_call>now</x:tool_call>"

    assert read(text, start="reasoning").reasoning == text


# Content


def test_whitespace_on_both_sides_of_a_call_is_joined_as_after_it() -> None:
    assert read(f"A\n {NOW} B").content == "A B"


def test_whitespace_behind_a_call_is_dropped_while_content_is_empty() -> None:
    assert read(f" {NOW} \n{NOW} a").content == "a"


def test_whitespace_at_the_end_goes_out_unless_only_it_follows_the_last_call() -> None:
    assert read("a \n").content == "a \n"
    assert read(f"a {NOW} \n").content == "a"
    assert read(f"a {NOW} b \n").content == "a b \n"


def test_stray_think_closer_is_removed_and_nothing_around_it() -> None:
    outcome = read("a </think> b")

    assert (outcome.content, outcome.flags) == ("a  b", (("stray_marker", None),))


def test_whitespace_is_dropped_behind_the_think_closer_that_ends_reasoning_only() -> None:
    assert read("a </think> </think> b", start="reasoning").content == " b"


def test_call_closer_outside_a_call_is_text() -> None:
    outcome = read("a </tool_call>")

    assert (outcome.content, outcome.flags) == ("a </tool_call>", (("malformed", None),))


def test_tags_match_exactly() -> None:
    text = "<TOOL_CALL>now</TOOL_CALL> <tool_call >now <arg_key>a</arg_value>"

    outcome = read(text)

    assert (outcome.content, outcome.flags) == (text, ())


def test_half_a_tag_at_the_end_is_released() -> None:
    for tail in ("<", "<tool_cal", "</think", "<|us", "<｜DSML", "<x:tool_"):
        assert read(f"a {tail}", end="length").content == f"a {tail}"


def test_without_usable_tools_content_is_untouched() -> None:
    text = f" {NOW} </think> <|user|> <think> {NOW} "
    for tools in ([], [None, {}, {"name": ""}, {"name": "a\nb"}, {"function": {"name": 3}}]):
        assert read(text, tools=tools) == (text, "", [], ())


def test_without_usable_tools_reasoning_still_ends() -> None:
    outcome = read(f"<think>a {NOW} <|user|> </think> {NOW}", tools=[], start="auto")

    assert (outcome.reasoning, outcome.content) == (f"a {NOW} <|user|> ", NOW)


# Turn tokens


@pytest.mark.parametrize("turn", ["<|observation|>", "<|user|>", "<|assistant|>", "<|system|>", "<|endoftext|>"])
def test_turn_token_ends_the_reply(turn: str) -> None:
    assert read(f"a {turn}") == ("a ", "", [], ())
    assert read(f"a {turn} \n{turn} ") == ("a ", "", [], ())
    assert read(f"a {turn} {NOW}") == ("a ", "", [], (("stray_marker", None),))
    assert read(f"a{turn}<|us") == ("a", "", [], (("stray_marker", None),))


def test_turn_token_ends_a_call_as_the_model_would() -> None:
    outcome = read(f"<tool_call>run{argument('command', 'ls')} <|user|>", end="length")

    assert outcome.calls == [("run", '{"command":"ls"}', True)]
    assert outcome.flags == (("closed_at_end", 0),)


def test_turn_token_in_a_key_leaves_the_call_incomplete() -> None:
    for text in ("<tool_call>search<arg_key>q<|user|>", "<tool_call>search<arg_key>q</arg_key> <|user|>"):
        outcome = read(text)
        assert outcome.calls == [("search", "{", False)]
        assert outcome.flags == (("incomplete", 0),)


def test_turn_token_in_a_value_is_data() -> None:
    assert arguments_of(call("search", argument("q", "a<|user|>"))) == '{"q":"a<|user|>"}'


def test_finish_repeats_the_reason_behind_a_turn_token() -> None:
    events, parser = fed(["a<|user|>"], end="tool_calls")

    assert events == [ContentDelta("a"), Finish("tool_calls")]
    assert parser.snapshot.choices[0].finish_reason == "tool_calls"


# The name


def test_name_matches_without_case_and_goes_out_as_offered() -> None:
    assert read(call("\n SEARCH \t")).calls == [("search", "{}", True)]


def test_exact_name_wins_over_another_case() -> None:
    tools = [{"name": "GET"}, {"name": "get"}]

    assert read(call("get"), tools=tools).calls == [("get", "{}", True)]
    assert read(call("Get"), tools=tools).calls == [("GET", "{}", True)]


def test_name_with_spaces_can_be_offered() -> None:
    tools = [{"name": "Get Class List"}]

    assert read(call("get class list", argument("k", "v")), tools=tools).calls == [
        ("Get Class List", '{"k":"v"}', True)
    ]
    assert read("<tool_call>Get Class List k</arg_key><arg_value>v</arg_value></tool_call>", tools=tools).calls == [
        ("Get Class List", '{"k":"v"}', True)
    ]


@pytest.mark.parametrize(("blanks", "is_call"), [(509, True), (510, False)])
def test_name_region_has_at_most_512_characters(blanks: int, is_call: bool) -> None:
    text = call("now" + " " * blanks)

    outcome = read(text)

    assert bool(outcome.calls) is is_call
    assert outcome.content == ("" if is_call else text)


@pytest.mark.parametrize("name", ["a" * 64, "any.thing:x-1", "é", "*"])
def test_without_tools_any_sane_name_is_a_call(name: str) -> None:
    outcome = read(call(name, argument("a", "1")), tools=None)

    assert (outcome.calls, outcome.flags) == ([(name, '{"a":"1"}', True)], ())


@pytest.mark.parametrize("name", ["a" * 65, "a b", *(f"a{c}" for c in "\x00\x9f\ud800<>{}[]()\"'`,;=/\\|&")])
def test_name_that_is_not_sane_is_text(name: str) -> None:
    text = call(name, argument("a", "1"))
    for options in ({"tools": None}, {"unoffered": "call"}, {"unoffered": "drop"}):
        outcome = read(text, **options)
        assert (outcome.content, outcome.calls) == (text, [])
        assert outcome.flags == (("malformed", None),)


def test_text_is_read_anew_behind_an_opener_that_is_text() -> None:
    outcome = read(f"use <tool_call> </think> {NOW}")

    assert outcome.content == "use <tool_call>"
    assert outcome.calls == [("now", "{}", True)]


def test_lone_key_closer_behind_an_offered_name_is_residue() -> None:
    outcome = read("<tool_call>run</arg_key><arg_value>x</arg_value></tool_call>")

    assert outcome.calls == [("run", "{}", True)]
    assert outcome.flags == (("residue", 0),)


def test_longest_offered_name_is_split_from_a_glued_key() -> None:
    tools = [{"name": "get"}, {"name": "get_user"}]

    outcome = read("<tool_call>get_userid</arg_key><arg_value>4</arg_value></tool_call>", tools=tools)

    assert outcome.calls == [("get_user", '{"id":"4"}', True)]
    assert outcome.flags == (("repaired_key", 0),)


def test_key_behind_a_name_that_cannot_be_called_makes_the_opener_text() -> None:
    text = "<tool_call>run a b</arg_key><arg_value>x</arg_value></tool_call>"

    assert read(text) == (text, "", [], (("malformed", None),))


def test_second_opener_behind_a_name_is_a_mistyped_key_opener() -> None:
    outcome = read("<tool_call> run <tool_call> command </arg_key><arg_value>ls</arg_value></tool_call>")

    assert outcome.calls == [("run", '{"command":"ls"}', True)]
    assert outcome.flags == (("repaired_key", 0),)


@pytest.mark.parametrize(("length", "is_call"), [(512, True), (513, False)])
def test_mistyped_key_opener_needs_its_closer_within_512_characters(length: int, is_call: bool) -> None:
    outcome = read(f"<tool_call>run<tool_call>{'k' * length}</arg_key>", end="length")

    assert bool(outcome.calls) is is_call


def test_second_opener_with_another_tag_first_begins_its_own_call() -> None:
    outcome = read(f"<tool_call>run<tool_call>search{argument('q', 'a')}</tool_call>")

    assert outcome.content == "<tool_call>run"
    assert outcome.calls == [("search", '{"q":"a"}', True)]


def test_bare_name_at_the_end_is_a_call_only_if_the_model_ended() -> None:
    assert read("a <tool_call> now\n") == ("a", "", [("now", "{}", True)], (("closed_at_end", 0),))
    for end in ("length", "error", None):
        assert read("a <tool_call>now", end=end) == ("a <tool_call>now", "", [], (("malformed", None),))
    assert read("a <tool_call>no") == ("a <tool_call>no", "", [], (("malformed", None),))
    assert read("a <tool_call>now</tool_c") == ("a <tool_call>now</tool_c", "", [], (("malformed", None),))


# Names that were not offered


RAW = call("other", argument("q", f"x {NOW}<think></think> y"), "<|user", argument("q", "z"))


def test_unoffered_call_is_text_to_its_own_end() -> None:
    assert read(f"a {RAW} {NOW} b") == (f"a {RAW} b", "", [("now", "{}", True)], (("unoffered", None),))


def test_unoffered_call_can_be_dropped() -> None:
    assert read(f"a {RAW} b", unoffered="drop") == ("a  b", "", [], (("unoffered", None),))
    assert read("a<tool_call>other<arg_key>q", unoffered="drop") == ("a", "", [], (("unoffered", None),))


def test_unoffered_call_can_be_sent_untyped() -> None:
    outcome = read(f"a {call('other', argument('limit', '1'))}", unoffered="call")

    assert outcome == ("a", "", [("other", '{"limit":"1"}', True)], (("unoffered", 0),))


def test_blank_name_is_text_under_every_policy() -> None:
    text = call(" ", argument("q", NOW))
    for policy in ("text", "call", "drop"):
        assert read(text, unoffered=policy) == (text, "", [], (("malformed", None),))


def test_text_of_an_unoffered_call_that_was_cut_stays() -> None:
    for tail in ("<arg_key>q", "<arg_key>q</arg_key> ", "<arg_value>a</tool_call> ", "</arg_key> w", "<arg_key>q</a"):
        text = f"<tool_call>other{tail}"
        assert read(text, end="length") == (text, "", [], (("unoffered", None),))


def test_unoffered_call_ends_at_the_next_opener() -> None:
    outcome = read(f"<tool_call>other{argument('q', 'a')} {NOW}")

    assert outcome.content == f"<tool_call>other{argument('q', 'a')}"
    assert outcome.calls == [("now", "{}", True)]


def test_call_closer_in_an_open_value_can_end_an_unoffered_call() -> None:
    outcome = read(f"<tool_call>other<arg_key>q</arg_key><arg_value>a</tool_call> \n{NOW} b")

    assert outcome.content == "<tool_call>other<arg_key>q</arg_key><arg_value>a</tool_call> b"
    assert outcome.calls == [("now", "{}", True)]


# Reasoning


def test_offered_call_ends_reasoning_and_drops_the_whitespace_before_it() -> None:
    outcome = read(f"hm \n{NOW}</think>\nb", start="reasoning")

    assert outcome == ("b", "hm", [("now", "{}", True)], (("call_in_reasoning", 0), ("stray_marker", None)))


@pytest.mark.parametrize("policy", ["text", "drop"])
def test_unoffered_call_stays_reasoning(policy: str) -> None:
    outcome = read("hm <tool_call>other</tool_call> \n</think> b", start="reasoning", unoffered=policy)

    assert outcome == ("b", "hm <tool_call>other</tool_call> \n", [], (("unoffered", None),))


def test_opener_without_a_name_stays_reasoning() -> None:
    outcome = read("use <tool_call> or so</think>b", start="reasoning")

    assert (outcome.reasoning, outcome.content) == ("use <tool_call> or so", "b")


def test_think_closer_in_a_json_payload_makes_it_reasoning() -> None:
    outcome = read('a <tool_call>{"name":"now"</think> b</tool_call>', start="reasoning")

    assert (outcome.reasoning, outcome.content) == ('a <tool_call>{"name":"now"', "b</tool_call>")


def test_json_call_ends_reasoning() -> None:
    outcome = read('a <tool_call> {"name":"now"}</tool_call> b', start="reasoning")

    assert outcome == ("b", "a", [("now", "{}", True)], (("call_in_reasoning", 0),))


# Between arguments


def test_text_between_arguments_is_residue() -> None:
    outcome = read(call("search", argument("q", "x"), " b</think><x> ", argument("limit", "1"), "c"))

    assert outcome.calls == [("search", '{"q":"x","limit":1}', True)]
    assert outcome.flags == (("residue", 0),)


def test_last_word_before_a_lone_key_closer_is_the_key() -> None:
    text = f"<tool_call>search{argument('q', 'x')}\nto limit </arg_key><arg_value>3</arg_value></tool_call>"

    assert read(text) == ("", "", [("search", '{"q":"x","limit":3}', True)], (("residue", 0), ("repaired_key", 0)))


@pytest.mark.parametrize(("length", "is_key"), [(256, True), (257, False)])
def test_word_before_a_lone_key_closer_has_at_most_256_characters(length: int, is_key: bool) -> None:
    key = "k" * length
    text = f"<tool_call>search{argument('q', 'x')}{key}</arg_key><arg_value>3</arg_value></tool_call>"

    expected = f'{{"q":"x","{key}":"3"}}' if is_key else '{"q":"x"}'

    assert read(text).calls == [("search", expected, True)]


def test_lone_key_closer_without_a_word_does_nothing() -> None:
    outcome = read(f"<tool_call>search{argument('q', 'x')} </arg_key><arg_value>3</arg_value></tool_call>")

    assert outcome == ("", "", [("search", '{"q":"x"}', True)], (("residue", 0),))


def test_value_without_key_is_skipped_whole() -> None:
    outcome = read(call("search", f"<arg_value>{NOW}<arg_key></arg_value>", argument("q", "x"), "</arg_value>"))

    assert outcome == ("", "", [("search", '{"q":"x"}', True)], (("residue", 0),))


def test_next_opener_between_arguments_closes_the_call() -> None:
    outcome = read(f"<tool_call>search{argument('q', 'x')}\n{NOW}")

    assert outcome.calls == [("search", '{"q":"x"}', True), ("now", "{}", True)]
    assert outcome.flags == (("malformed", 0),)


def test_closer_of_another_envelope_does_not_end_the_call() -> None:
    outcome = read("<x:tool_call>now<arg_key>a</tool_call></arg_key><arg_value>1</arg_value></tool_call></x:tool_call>")

    assert outcome.calls == [("now", '{"a</tool_call>":"1"}', True)]
    assert outcome.flags == (("residue", 0),)


# Keys


def test_key_is_stripped_and_escaped_and_may_be_empty() -> None:
    assert arguments_of(call("now", argument(' a"\n', "1"), argument(" ", "2"))) == '{"a\\"":"1","":"2"}'


def test_key_opener_in_a_key_starts_it_anew() -> None:
    outcome = read(call("search", "<arg_key>q", argument("limit", "5")))

    assert outcome == ("", "", [("search", '{"limit":5}', True)], (("residue", 0),))


def test_value_opener_in_a_key_ends_it() -> None:
    outcome = read(call("search", "<arg_key> limit <arg_value>5</arg_value>"))

    assert outcome == ("", "", [("search", '{"limit":5}', True)], (("repaired_key", 0),))


@pytest.mark.parametrize("end", ["q</arg_value>", "q", "q</arg_key>", "q</arg_key></arg_key>\n"])
def test_key_without_value_is_residue(end: str) -> None:
    outcome = read(call("search", f"<arg_key>{end}"))

    assert outcome == ("", "", [("search", "{}", True)], (("residue", 0),))


@pytest.mark.parametrize("key", ["q", "q</arg_key> "])
def test_next_opener_in_a_key_leaves_the_call_incomplete(key: str) -> None:
    outcome = read(f"<tool_call>search<arg_key>{key}{NOW}")

    assert outcome.calls == [("search", "{", False), ("now", "{}", True)]
    assert outcome.flags == (("residue", 0), ("incomplete", 0))


def test_second_key_closer_is_skipped() -> None:
    outcome = read(call("search", "<arg_key>q</arg_key> </arg_key>\n<arg_value>a</arg_value>"))

    assert outcome == ("", "", [("search", '{"q":"a"}', True)], (("residue", 0),))


def test_value_closer_behind_a_key_is_an_empty_value() -> None:
    for key in ("q", "limit", "to"):
        outcome = read(call("search", f"<arg_key>{key}</arg_key> </arg_value>"))
        assert outcome == ("", "", [("search", f'{{"{key}":""}}', True)], (("repaired_value", 0),))


def test_value_without_opener_starts_at_its_first_character() -> None:
    outcome = read(call("search", "<arg_key>q</arg_key> \n</think> <b> </arg_value>"))

    assert outcome == ("", "", [("search", '{"q":"</think> <b> "}', True)], (("repaired_value", 0),))


def test_repeated_key_goes_out_twice_and_is_flagged() -> None:
    outcome = read(call("search", argument("q", "a"), argument(" q", "b")))

    assert outcome == ("", "", [("search", '{"q":"a","q":"b"}', True)], (("duplicate_key", 0),))


# Call closers in values


def test_call_closer_in_a_value_is_data() -> None:
    outcome = read(f"{OPEN}a</tool_call> \nb</tool_call></arg_value></tool_call>")

    assert outcome.calls == [("search", '{"q":"a</tool_call> \\nb</tool_call>"}', True)]
    assert outcome.flags == (("literal_close", 0),)


@pytest.mark.parametrize("follows", ["", " \n", " <|user|>"])
def test_call_closer_in_a_value_ends_it_at_the_end_of_the_reply(follows: str) -> None:
    outcome = read(f"{OPEN}a </tool_call>{follows}")

    assert outcome == ("", "", [("search", '{"q":"a "}', True)], (("repaired_value", 0),))


def test_call_closer_in_a_value_ends_it_before_the_next_call() -> None:
    outcome = read(f"{OPEN}a</tool_call> {NOW}")

    assert outcome.calls == [("search", '{"q":"a"}', True), ("now", "{}", True)]
    assert outcome.flags == (("repaired_value", 0),)


def test_call_closer_in_a_typed_value_ends_it_too() -> None:
    outcome = read("<tool_call>search<arg_key>limit</arg_key><arg_value>5</tool_call>")

    assert outcome.calls == [("search", '{"limit":5}', True)]


def test_call_closer_in_a_value_is_data_when_the_reply_was_cut() -> None:
    outcome = read(f"{OPEN}a</tool_call> ", end="length")

    assert outcome.calls == [("search", '{"q":"a</tool_call> ', False)]
    assert outcome.flags == (("literal_close", 0), ("incomplete", 0))


def test_half_a_tag_behind_a_call_closer_in_a_value_is_data() -> None:
    outcome = read(f"{OPEN}a</tool_call> <tool_c")

    assert outcome.calls == [("search", '{"q":"a</tool_call> <tool_c', False)]


# The end


def test_model_end_between_arguments_closes_the_call() -> None:
    for end in ("stop", "tool_calls"):
        outcome = read(f"{OPEN}a</arg_value> \n", end=end)
        assert outcome == ("", "", [("search", '{"q":"a"}', True)], (("closed_at_end", 0),))


@pytest.mark.parametrize("end", ["length", "stop_sequence", "content_filter", "sensitive", "disconnect", "", None])
def test_cut_between_arguments_leaves_the_call_incomplete(end: str | None) -> None:
    outcome = read(f"{OPEN}a</arg_value>", end=end)

    assert outcome == ("", "", [("search", '{"q":"a"', False)], (("incomplete", 0),))


@pytest.mark.parametrize("residue", ["x", "</tool_cal", "</arg_value>", " </arg_key>", "<arg_value>b</arg_value>"])
def test_residue_keeps_the_end_from_closing_the_call(residue: str) -> None:
    outcome = read(f"{OPEN}a</arg_value>{residue}")

    assert outcome == ("", "", [("search", '{"q":"a"', False)], (("residue", 0), ("incomplete", 0)))


@pytest.mark.parametrize(
    ("tail", "arguments"),
    [
        ("<arg_key>", "{"),
        ("<arg_key>q</arg_key>", "{"),
        ("<arg_key>q</arg_key><arg_value>", '{"q":"'),
        ("<arg_key>q</arg_key><arg_value>a </arg_valu", '{"q":"a </arg_valu'),
        ("<arg_key>limit</arg_key><arg_value>5", '{"limit":'),
        ("<arg_key>to</arg_key><arg_value>nul", '{"to":'),
        ("<arg_key>to</arg_key><arg_value>nulx", '{"to":"nulx'),
    ],
)
def test_end_inside_an_argument_leaves_the_call_incomplete(tail: str, arguments: str) -> None:
    for end in ("stop", "length"):
        outcome = read(f"<tool_call>search{tail}", end=end)
        assert outcome == ("", "", [("search", arguments, False)], (("incomplete", 0),))


# Types


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("limit", " 42\n", "42"),
        ("limit", "-0", "0"),
        ("limit", "5.0", '"5.0"'),
        ("limit", "1e2", '"1e2"'),
        ("limit", "true", '"true"'),
        ("limit", "007", '"007"'),
        ("limit", "+1", '"+1"'),
        ("limit", "null", '"null"'),
        ("limit", '"5"', '"\\"5\\""'),
        ("limit", "1 2", '"1 2"'),
        ("limit", "\xa01", '"\xa01"'),
        ("limit", "9" * 64, "9" * 64),
        ("limit", "9" * 65, f'"{"9" * 65}"'),
        ("score", "3", "3"),
        ("score", "1e2", "100.0"),
        ("score", "1.50", "1.5"),
        ("score", "1e16", "1e+16"),
        ("score", "0.00001", "1e-05"),
        ("score", "-0.0", "-0.0"),
        ("score", "1e-400", "0.0"),
        ("score", "1e999", '"1e999"'),
        ("score", "-Infinity", '"-Infinity"'),
        ("score", "false", '"false"'),
        ("exact", "false", "false"),
        ("exact", "False", '"False"'),
        ("exact", "0", '"0"'),
        ("cursor", "null", "null"),
        ("cursor", "", '""'),
        ("count", "null", "null"),
        ("count", "3", "3"),
        ("count", "x", '"x"'),
        ("to", "null", "null"),
        ("to", "", '""'),
        ("to", "nul", '"nul"'),
        ("to", "nulll", '"nulll"'),
        ("to", " null", '" null"'),
        ("to", "null</tool_call>", '"null</tool_call>"'),
        ("tags", "[1, [] , {}]", "[1,[],{}]"),
        ("tags", '{"a":1}', '"{\\"a\\":1}"'),
        ("tags", "['a']", "\"['a']\""),
        ("tags", "[1e999]", '"[1e999]"'),
        ("tags", '["\\u00e9\\/\\ud83d\\ude00\\ud800\\u007f\\u0001"]', '["é/😀\\ud800\x7f\\u0001"]'),
        ("tags", "[" * 64 + "]" * 64, "[" * 64 + "]" * 64),
        ("tags", "[" * 65 + "]" * 65, f'"{"[" * 65 + "]" * 65}"'),
        ("opts", '{"a":1,"b":2,"a":3}', '{"a":3,"b":2}'),
        ("opts", '{"a": NaN}', '"{\\"a\\": NaN}"'),
    ],
)
def test_value_is_written_by_its_declared_type(key: str, value: str, expected: str) -> None:
    assert arguments_of(call("search", argument(key, value))) == f'{{"{key}":{expected}}}'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ('["a", ["b"', '["a",["b"]]'),
        ('[{"a":["]"', '[{"a":["]"]}]'),
        ('["\\\\"', '["\\\\"]'),
        ("[1,[2]\n", "[1,[2]]"),
    ],
)
def test_missing_brackets_are_added_at_the_end(value: str, expected: str) -> None:
    outcome = read(call("search", argument("tags", value)))

    assert outcome == ("", "", [("search", f'{{"tags":{expected}}}', True)], (("repaired_value", 0),))


@pytest.mark.parametrize("value", ['["a",', '["a', "[1}", "[1]]", '["\\"', '{"a"', "1", "[nan", '{"a":1'])
def test_what_brackets_alone_do_not_repair_stays_text(value: str) -> None:
    outcome = read(call("search", argument("tags", value)))

    assert outcome == ("", "", [("search", f'{{"tags":{json.dumps(value)}}}', True)], ())


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": "integer"}, "5"),
        ({"type": ["integer", "null"]}, "5"),
        ({"type": "string"}, '"5"'),
        ({"type": ["string", "integer"]}, '"5"'),
        ({"type": []}, '"5"'),
        ({"type": ["integer", "date"]}, '"5"'),
        ({"type": ["integer", None]}, '"5"'),
        ({"type": "date", "anyOf": [{"type": "integer"}]}, '"5"'),
        ({"type": {"a": 1}}, '"5"'),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "5"),
        ({"oneOf": [{"type": ["number"]}, {"anyOf": [{"type": "null"}]}]}, "5"),
        ({"anyOf": [{"type": "integer"}, {"enum": [1]}]}, '"5"'),
        ({"anyOf": []}, '"5"'),
        ({"anyOf": "integer"}, '"5"'),
        ({"enum": [5]}, '"5"'),
        ({"const": 5}, '"5"'),
        ({"$ref": "#/a"}, '"5"'),
        ({}, '"5"'),
        ("integer", '"5"'),
        (None, '"5"'),
    ],
)
def test_type_comes_from_the_schema_only(schema: object, expected: str) -> None:
    tools = [{"name": "t", "parameters": {"properties": {"k": schema}}}]

    assert arguments_of(call("t", argument("k", "5")), tools=tools) == f'{{"k":{expected}}}'


def test_union_that_holds_itself_is_a_string() -> None:
    schema: dict[str, Any] = {}
    schema["anyOf"] = [{"type": "integer"}, schema]

    tools = [{"name": "t", "parameters": {"properties": {"k": schema}}}]

    assert arguments_of(call("t", argument("k", "5")), tools=tools) == '{"k":"5"}'


def test_schema_is_found_in_every_shape_of_a_tool() -> None:
    schema = {"properties": {"k": {"type": "integer"}}}
    for tool in (
        {"type": "function", "function": {"name": "t", "parameters": schema}},
        {"type": "function", "name": "t", "parameters": schema},
        {"name": "t", "input_schema": schema},
        {"name": "t", "parameters": None, "input_schema": schema},
    ):
        assert arguments_of(call("t", argument("k", "5")), tools=[tool]) == '{"k":5}'


def test_broken_schema_is_no_schema() -> None:
    for parameters in (None, [], "x", {}, {"properties": []}):
        tools = [{"name": "t", "parameters": parameters}]
        assert arguments_of(call("t", argument("k", "5")), tools=tools) == '{"k":"5"}'


# JSON


def test_string_is_escaped_as_json() -> None:
    value = '"\\/\b\f\n\r\t\x00\x1f\x7f\x9f\u2028é😀'

    arguments = arguments_of(call("search", argument("q", value)))

    assert arguments == '{"q":"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f\x9f\u2028é😀"}'


def test_each_surrogate_in_a_value_is_escaped() -> None:
    arguments = arguments_of(call("search", argument("q", "é\ud83d\ude00\udfff"), argument("\ud800", "x")))

    assert arguments == '{"q":"é\\ud83d\\ude00\\udfff","\\ud800":"x"}'
    arguments.encode()


def test_surrogates_in_text_pass() -> None:
    assert read("a\ud800</think>b\udc00 ", start="reasoning") == ("b\udc00 ", "a\ud800", [], ())


# Other envelopes


def test_namespaced_envelope_is_read_as_the_plain_one() -> None:
    outcome = read(f"a <a.b-1_:tool_call>search{argument('q', '</tool_call>x')}</a.b-1_:tool_call> b {NOW}")

    assert outcome.content == "a b"
    assert outcome.calls == [("search", '{"q":"</tool_call>x"}', True), ("now", "{}", True)]


@pytest.mark.parametrize("name", ["a" * 65, "1a", "", "a b", "é", "-a"])
def test_envelope_of_another_namespace_is_text(name: str) -> None:
    text = f"<{name}:tool_call>now</{name}:tool_call>"

    assert read(text) == (text, "", [], ())


def test_longest_namespace_has_64_characters() -> None:
    name = "a" * 64

    assert read(f"<{name}:tool_call>now</{name}:tool_call>").calls == [("now", "{}", True)]


@pytest.mark.parametrize(
    ("payload", "arguments"),
    [
        ('{"name":"now"}', "{}"),
        (' \n{"name": " NOW ", "arguments": {"a": 1.0, "a": 2}}\n', '{"a":2}'),
        ('{"tool":"now","args":null}', "{}"),
        ('{"function":"now","parameters":" "}', "{}"),
        ('{"name":"now","arguments":"{\\"a\\":1e2}"}', '{"a":100.0}'),
        ('{"type":"function","id":"1","function":{"name":"now","arguments":{"a":null}}}', '{"a":null}'),
        ('{"name":"now","type":1,"id":2,"call":3,"tool":4,"b":[]}', '{"tool":4,"b":[]}'),
        ('[{"name":"now","arguments":{}}]', "{}"),
    ],
)
def test_json_payload_is_a_call(payload: str, arguments: str) -> None:
    assert read(f"a <tool_call>{payload}</tool_call> b") == ("a b", "", [("now", arguments, True)], ())


def test_json_array_is_several_calls() -> None:
    events, _ = fed(['<tool_call>[{"name":"now"},{"name":"run","args":{"command":"ls"}}]</tool_call>'])

    assert events == [
        ToolCallStart(0, "call_0", "now"),
        ArgumentsDelta(0, "{}"),
        ToolCallEnd(0),
        ToolCallStart(1, "call_1", "run"),
        ArgumentsDelta(1, '{"command":"ls"}'),
        ToolCallEnd(1),
        Finish("stop"),
    ]


@pytest.mark.parametrize(
    "payload",
    ["[]", "[1]", "{}", '{"name":1}', '{"name":"now"} x', '{"name":"now","arguments":[]}',
     '{"name":"now","arguments":"x"}', '{"name":"now","arguments":"[]"}', '{"name":"now","a":NaN}', '{"name":""}',
     '{"name":"a b"}', '[{"name":"now"},{}]', '{"name":"now"'],
)  # fmt: skip
def test_json_payload_that_does_not_fit_is_text(payload: str) -> None:
    text = f"a <tool_call>{payload}</tool_call> b"

    assert read(text) == (text, "", [], (("malformed", None),))


def test_unoffered_name_in_json_decides_over_the_whole() -> None:
    text = '<tool_call>[{"name":"now"},{"name":"other"}]</tool_call>'

    assert read(f"a {text} b") == (f"a {text} b", "", [], (("unoffered", None),))
    assert read(f"a {text} b", unoffered="drop") == ("a  b", "", [], (("unoffered", None),))
    assert read(f"a {text} b", unoffered="call").calls == [("now", "{}", True), ("other", "{}", True)]


def test_closer_inside_a_json_string_ends_the_payload() -> None:
    text = '<tool_call>{"name":"now","a":"</tool_call>"}</tool_call>'

    assert read(text).content == text


def test_buffered_envelope_that_was_cut_is_text() -> None:
    for head in ('<tool_call>{"name":"now"}', "<|tool_call>call:now{}", "<｜DSML｜tool_calls>"):
        text = f"a {head} <|user|> {NOW[:-1]} "
        assert read(text) == (text, "", [], (("incomplete", None),))


def test_json_without_an_envelope_is_content() -> None:
    assert read('{"name":"now"}').content == '{"name":"now"}'


def test_gemma_envelope_is_a_call() -> None:
    text = '<|tool_call> \ncall:run{command:<|"|>a "b"\n<|"|>, "x-y": [1.50, true, {a.b_c-1: null}]}<tool_call|>'

    assert read(f"a {text} b") == (
        "a b", "", [("run", '{"command":"a \\"b\\"\\n","x-y":[1.5,true,{"a.b_c-1":null}]}', True)], ()
    )  # fmt: skip


@pytest.mark.parametrize("body", ["now", "now{a}", "now{a:b}", 'now{a:<|"|>b}', 'now{a:"b}', "now{} x", "{}", "now[1]"])
def test_gemma_envelope_that_does_not_fit_is_text(body: str) -> None:
    text = f"<|tool_call>call:{body}<tool_call|>"

    assert read(text) == (text, "", [], (("malformed", None),))


def test_gemma_opener_without_call_is_text() -> None:
    assert read(f"<|tool_call> {NOW}").content == "<|tool_call>"
    assert read("<|tool_call> cal").content == "<|tool_call> cal"


DSML = "<｜DSML｜tool_calls>{}</｜DSML｜tool_calls>"
INVOKE = '<｜DSML｜invoke name="{}">{}</｜DSML｜invoke>'
PARAMETER = '<｜DSML｜parameter name="{}" string="{}">{}</｜DSML｜parameter>'


def test_dsml_block_is_its_calls() -> None:
    text, number = PARAMETER.format("command", "true", " 5 "), PARAMETER.format("n", "false", " 5 ")
    first = INVOKE.format("run", f"\n{text}\n{number}\n")

    outcome = read(f"a {DSML.format(f' {first} ' + INVOKE.format('now', ''))} b")

    assert outcome == ("a b", "", [("run", '{"command":" 5 ","n":5}', True), ("now", "{}", True)], ())


@pytest.mark.parametrize(
    "body",
    [
        "",
        " x " + INVOKE.format("now", ""),
        INVOKE.format("now", "x"),
        INVOKE.format("now", PARAMETER.format("a", "maybe", "x")),
        INVOKE.format("now", PARAMETER.format("a", "false", "x")),
        INVOKE.format("now", PARAMETER.format("a", "true", "x") * 2),
        INVOKE.format("now", '<｜DSML｜parameter name="a" string="true">x'),
        '<｜DSML｜invoke name="now">',
        '<｜DSML｜invoke name="now',
        '<｜DSML｜invoke name="now" x></｜DSML｜invoke>',
    ],
)
def test_dsml_block_that_does_not_fit_is_text(body: str) -> None:
    text = DSML.format(body)

    assert read(text) == (text, "", [], (("malformed", None),))


# Qwen


def qwen(name: str, *parameters: str) -> str:
    return f"<tool_call>\n<function={name}>\n{''.join(parameters)}</function>\n</tool_call>"


def parameter(key: str, value: str) -> str:
    return f"<parameter={key}>{value}</parameter>\n"


def test_qwen_envelope_streams_its_parameters() -> None:
    outcome = read(f"a {qwen(' Search ', parameter(' q ', ' x '), parameter('limit', chr(10) + '5'))} b")

    assert outcome == ("a b", "", [("search", '{"q":" x ","limit":5}', True)], ())


def test_qwen_header_goes_out_when_its_tag_is_closed() -> None:
    parser = ToolCallParser(TOOLS)

    assert parser.feed("<tool_call>\n<function=now") == []
    assert parser.feed(">") == [ToolCallStart(0, "call_0", "now")]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("\na\n", "a"), ("\r\na\r\n", "a"), ("\n\na\n\n", "\na\n"), ("a", "a"), ("", ""), ("\n", ""), ("\n\n", ""),
        ("\r", "\r"), ("\ra\r", "\ra\r"), ("\r\n\r\n", ""), ("a\n\r\n", "a\n"), ("\n\r", "\r"), ("<b>\n", "<b>"),
        ("a</function>\n", "a</function>"), ("null", None), ("\nnull\n", None), ("\n\nnull", "\nnull"),
    ],
)  # fmt: skip
def test_qwen_value_loses_one_newline_per_side(value: str, expected: str | None) -> None:
    arguments = arguments_of(qwen("search", parameter("to", value)))

    assert json.loads(arguments) == {"to": expected}


def test_qwen_residue_and_repeated_parameters_are_flagged() -> None:
    outcome = read(qwen("search", parameter("q", "a"), "x</parameter>", parameter("q", "b")))

    assert outcome.calls == [("search", '{"q":"a","q":"b"}', True)]
    assert outcome.names_of_flags == {"residue", "duplicate_key"}


def test_nothing_more_is_read_behind_the_end_of_a_qwen_function() -> None:
    text = f"<tool_call><function=now></function><function=run>{parameter('command', 'ls')}</function></tool_call>"

    assert read(text) == ("", "", [("now", "{}", True)], (("residue", 0),))


def test_qwen_call_ends_as_a_glm_call_does() -> None:
    head = "<tool_call><function=run>"
    assert read(head) == ("", "", [("run", "{}", True)], (("closed_at_end", 0),))
    assert read(f"{head}</function>\n") == ("", "", [("run", "{}", True)], (("closed_at_end", 0),))
    assert read(f"{head}</function>", end="length").calls == [("run", "", False)]
    assert read(f"{head}<parameter=command>ls\n", end="length").calls == [("run", '{"command":"ls\\n', False)]
    assert read(f"{head}<parameter=command>ls\r\n</tool_call>").calls == [("run", '{"command":"ls"}', True)]
    assert read(f"{head}<parameter=command").calls == [("run", "{", False)]
    assert read(f"{head}<parameter=command</tool_call>").calls == [("run", "{}", True)]
    assert read(f"{head}<parameter=a<parameter=command>ls</parameter></tool_call>").calls == [
        ("run", '{"command":"ls"}', True)
    ]


def test_unoffered_qwen_call_is_text_to_its_own_end() -> None:
    text = qwen("other", parameter("q", NOW))

    assert read(f"a {text} b") == (f"a {text} b", "", [], (("unoffered", None),))
    assert read(f"a {text} b", unoffered="drop").content == "a  b"
    assert read(f"a {text}", start="reasoning").reasoning.startswith("a <tool_call>\n<function=other>")


def test_qwen_function_that_never_closes_its_tag_is_text() -> None:
    for text in ("<tool_call><function=now", "<tool_call><function=" + "n" * 600, "<tool_call>now<function=now>"):
        assert read(text) == (text, "", [], (("malformed", None),))


# Streaming


def test_value_of_2000_characters_streams_while_it_is_written() -> None:
    value = "".join(chr(97 + number % 26) for number in range(2_000))
    head = "<tool_call>Write<arg_key>content</arg_key><arg_value>"
    parser = ToolCallParser([{"name": "Write", "parameters": {"properties": {"content": {"type": "string"}}}}])
    events = []
    first_value_at = None
    for number, piece in enumerate(pieces_of(f"{head}{value}</arg_value></tool_call>", 3), 1):
        new = parser.feed(piece)
        events += new
        if first_value_at is None and '{"content":"a' in "".join(e.arguments for e in events[1:]):
            first_value_at = number
    events += parser.close()

    deltas = [event for event in events if isinstance(event, ArgumentsDelta)]
    assert [event for event in events if isinstance(event, ToolCallStart)] == [ToolCallStart(0, "call_0", "Write")]
    assert len(deltas) >= 660
    assert first_value_at is not None
    assert first_value_at <= len(head) // 3 + 2
    assert "".join(delta.arguments for delta in deltas) == json.dumps({"content": value}, separators=(",", ":"))


def test_pieces_go_out_as_soon_as_they_are_certain() -> None:
    parser = ToolCallParser(TOOLS)

    def sent(text: str) -> list[Any]:
        return [event.to_dict().get("arguments", event.type) for event in parser.feed(text)]

    assert sent("<tool_call>search") == []
    assert sent("<arg_key>") == ["tool_call.start", "{"]
    assert sent("q</arg_key>") == []
    assert sent("<arg_value>") == ['"q":"']
    assert sent('a"</arg_value') == ['a\\"']
    assert sent("x</") == ["</arg_valuex"]
    assert sent("arg_value>") == ['"']
    assert sent("<arg_key>to</arg_key><arg_value>") == [',"to":']
    assert sent("null") == []
    assert sent("x") == ['"nullx']
    assert sent("</arg_value><arg_key>limit</arg_key><arg_value>1") == ['","limit":']
    assert sent("2</arg_value>") == ["12"]
    assert sent("</tool_call>") == ["}", "tool_call.end"]


def test_at_most_eleven_characters_of_a_value_are_held() -> None:
    value = "x</arg_value </tool_call x</arg_valu</arg_value " * 3
    parser = ToolCallParser(TOOLS)
    parser.feed(OPEN)
    for number, char in enumerate(value, 1):
        parser.feed(char)
        sent = parser.snapshot.choices[0].tool_calls[0].arguments.removeprefix('{"q":"')
        assert sent == value[: len(sent)]
        assert number - len(sent) <= 11


# Limits


def limited(text: str, **caps: int) -> tuple[list[dict[str, Any]], LimitError]:
    """The merged events before the failure, the same for every cutting, and the error."""
    seen = None
    for size in (1, 2, 5, len(text)):
        events, parser = fed(pieces_of(text, size), limits=Limits(**caps))
        failed = events[-1]
        assert isinstance(failed, Failed)
        assert parser.snapshot.choices[0].finish_reason is None
        assert seen in (None, merged(events))
        seen = merged(events)
    assert seen is not None
    assert isinstance(failed.error, LimitError)
    return seen[:-1], failed.error


def test_content_past_its_cap_fails_after_what_fits() -> None:
    events, error = limited("aé中b", max_content_bytes=5)

    assert [event["text"] for event in events] == ["aé"]
    assert (error.code, error.limit, error.maximum, error.seen) == ("content_too_large", "max_content_bytes", 5, 6)


def test_content_of_exactly_its_cap_passes() -> None:
    events, _ = fed(["aé中"], limits=Limits(max_content_bytes=6))

    assert events == [ContentDelta("aé中"), Finish("stop")]


def test_held_whitespace_counts_as_content() -> None:
    events, error = limited(f"a    {NOW}", max_content_bytes=3)

    assert [event["text"] for event in events] == ["a  "]
    assert error.code == "content_too_large"


def test_lone_surrogates_count_as_three_bytes() -> None:
    events, _ = limited("\ud800\ud800", max_content_bytes=5)

    assert [event["text"] for event in events] == ["\ud800"]


def test_reasoning_past_its_cap_fails() -> None:
    for text in ("abcdef", " \n    ", "ab    </think>"):
        parser = ToolCallParser(TOOLS, start="reasoning", limits=Limits(max_reasoning_bytes=5))
        events = [event for char in text for event in parser.feed(char)]
        assert isinstance(events[-1], Failed)
        assert events[-1].error.code == "reasoning_too_large"
        assert parser.snapshot.choices[0].reasoning_content == text[:5]


def test_call_over_the_cap_is_not_sent() -> None:
    events, error = limited(f"{NOW}{NOW}{NOW}", max_tool_calls=2)

    assert [event["type"] for event in events].count("tool_call.start") == 2
    assert events[-1]["type"] == "tool_call.end"
    assert error.code == "too_many_tool_calls"


@pytest.mark.parametrize(
    ("cap", "sent"),
    [(1, "{"), (5, "{"), (6, '{"q":"'), (7, '{"q":"a'), (8, '{"q":"a'), (9, '{"q":"a\\n'), (11, '{"q":"a\\n'),
     (12, '{"q":"a\\n中'), (13, '{"q":"a\\n中"')],
)  # fmt: skip
def test_arguments_past_their_cap_fail_after_whole_pieces(cap: int, sent: str) -> None:
    events, error = limited(f"{OPEN}a\n中</arg_value></tool_call>", max_argument_bytes=cap)

    assert "".join(event.get("arguments", "") for event in events) == sent
    assert error.code == "argument_too_large"


def test_arguments_of_exactly_their_cap_pass() -> None:
    events, _ = fed([f"{OPEN}a\n中</arg_value></tool_call>"], limits=Limits(max_argument_bytes=14))

    assert events[-2:] == [ToolCallEnd(0), Finish("stop")]


def test_held_typed_value_and_key_count() -> None:
    for inner in ("<arg_key>limit</arg_key><arg_value>1234567", f"<arg_key>{'a' * 20}", f"<arg_key>{' ' * 20}"):
        events, error = limited(f"<tool_call>search{inner}", max_argument_bytes=15)
        assert "".join(event.get("arguments", "") for event in events) in ('{"limit":', "{")
        assert error.code == "argument_too_large"


def test_buffered_payload_counts() -> None:
    gemma = f"<|tool_call>call:now{{{' ' * 9}}}<tool_call|>"
    for text in ('<tool_call>{"name":"now"}</tool_call>', gemma, "<|tool_call>" + " " * 9):
        events, error = limited(text, max_argument_bytes=8)
        assert events == []
        assert error.code == "argument_too_large"


def test_endless_whitespace_behind_a_closer_in_a_value_is_bounded() -> None:
    events, error = limited(f"{OPEN}</tool_call>{' ' * 50}", max_argument_bytes=30)

    assert events[-1]["arguments"] == '{"q":"</tool_call>' + " " * 12
    assert error.code == "argument_too_large"


def test_nothing_comes_after_a_failure() -> None:
    parser = ToolCallParser(TOOLS, limits=Limits(max_content_bytes=1))
    assert isinstance(parser.feed("ab")[-1], Failed)

    assert parser.feed("c") == []
    assert parser.close() == []
    assert parser.snapshot.choices[0].content == "a"


# The object


def test_finish_is_the_last_event_with_the_reason_as_given() -> None:
    for reason in ("stop", "length", "whatever"):
        events, parser = fed(["a"], end=reason)
        assert events[-1] == Finish(reason)
        assert parser.snapshot.choices[0].finish_reason == reason
    assert fed(["a"], end=None)[0] == [ContentDelta("a")]


def test_ids_are_the_prefix_and_the_index() -> None:
    events, parser = fed([NOW, NOW], id_prefix="x-")

    assert [event.id for event in events if isinstance(event, ToolCallStart)] == ["x-0", "x-1"]
    assert [(c.id, c.type, c.index) for c in parser.snapshot.choices[0].tool_calls] == [
        ("x-0", "function", 0), ("x-1", "function", 1)
    ]  # fmt: skip


def test_snapshot_shows_what_was_sent_so_far() -> None:
    parser = ToolCallParser(TOOLS, start="reasoning")
    parser.feed(f"a</think>b {OPEN}c")

    choice = parser.snapshot.choices[0]

    assert (choice.reasoning_content, choice.content, choice.finish_reason) == ("a", "b", None)
    assert [(c.name, c.arguments, c.complete) for c in choice.tool_calls] == [("search", '{"q":"c', False)]


@pytest.mark.parametrize(
    "options",
    [
        {"start": "thinking"}, {"start": None}, {"unoffered": "raise"}, {"unoffered": 1}, {"id_prefix": None},
        {"limits": 5}, {"tools": "now"}, {"tools": {"name": "now"}}, {"tools": 5},
    ],
)  # fmt: skip
def test_unknown_options_are_misuse(options: dict[str, Any]) -> None:
    with pytest.raises(MisuseError):
        ToolCallParser(options.pop("tools", TOOLS), **options)


def test_options_are_keyword_only() -> None:
    with pytest.raises(TypeError):
        ToolCallParser(TOOLS, "reasoning")  # type: ignore[misc]


def test_calls_out_of_turn_are_misuse() -> None:
    parser = ToolCallParser(TOOLS)
    for text in (b"a", None, 5):
        with pytest.raises(MisuseError):
            parser.feed(text)  # type: ignore[arg-type]
    with pytest.raises(MisuseError):
        parser.close(5)  # type: ignore[arg-type]
    parser.close()
    with pytest.raises(MisuseError):
        parser.feed("a")
    with pytest.raises(MisuseError):
        parser.close()


def test_parser_refuses_copying_and_pickling() -> None:
    parser = ToolCallParser(TOOLS)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(MisuseError):
            copied(parser)


def test_parser_shows_no_text() -> None:
    parser = ToolCallParser(TOOLS)
    parser.feed(f"secret {OPEN}secret")

    assert "secret" not in repr(parser)
    assert "secret" not in repr(parser.snapshot)


def test_interrupted_feed_ends_the_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    parser = ToolCallParser()
    parser.feed("a")
    with monkeypatch.context() as patched:
        patched.setattr(ToolCallParser, "_run", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            parser.feed("b")

    for call in (lambda: parser.feed("c"), parser.close):
        with pytest.raises(MisuseError, match="interrupted"):
            call()
