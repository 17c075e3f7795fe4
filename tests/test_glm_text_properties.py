"""Generated replies: no cutting shows, pieces are never taken back, and a well-formed call says what was put in."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from glm_text_reading import TOOLS, fed, read_one_way
from glmsse.events import ArgumentsDelta, ToolCallStart
from glmsse.glm_text import ToolCallParser
from glmsse.limits import Limits

FRAGMENTS = [
    "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<think>", "</think>",
    "<|user|>", "<|observation|>", "<x:tool_call>", "</x:tool_call>", "<function=", "<function=now>",
    "<function=search>", "<parameter=", "<parameter=to>", "</parameter>", "</function>", "<|tool_call>", "call:",
    "now{", '<|"|>', "}<tool_call|>", "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>", '<｜DSML｜invoke name="now">',
    "</｜DSML｜invoke>", '{"name":"now"}', '{"name":"other"}', "search", "now", "run", "other", "q", "limit", "to",
    "tags", "[1", "null", "nul", "5", " ", "\n", "\r\n", "\r", "<", "</", ">", "{", "}", '"', "\\", "é", "\ud800",
    "word", "x" * 260,
]  # fmt: skip
HEADS = [
    "",
    "<tool_call>",
    "<tool_call>search<arg_key>q</arg_key><arg_value>",
    "<tool_call><function=search><parameter=to>",
]

noise = st.builds(
    lambda head, parts: head + "".join(parts),
    st.sampled_from(HEADS),
    st.lists(st.sampled_from(FRAGMENTS) | st.sampled_from(FRAGMENTS).map(lambda text: text[:-1]), max_size=14),
)
options = st.fixed_dictionaries(
    {
        "start": st.sampled_from(["content", "reasoning", "auto"]),
        "unoffered": st.sampled_from(["text", "call", "drop"]),
        "end": st.sampled_from(["stop", "length", None]),
        "tools": st.sampled_from([TOOLS, TOOLS, None, []]),
    }
)
caps = st.builds(
    Limits,
    max_content_bytes=st.integers(1, 60),
    max_reasoning_bytes=st.integers(1, 60),
    max_argument_bytes=st.integers(1, 40),
    max_tool_calls=st.integers(1, 2),
)


@st.composite
def cut(draw: st.DrawFn, text: str) -> list[str]:
    """The text in pieces, some of them empty."""
    places = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    return [text[start:end] for start, end in zip([0, *places], [*places, len(text)], strict=True)]


@given(data=st.data(), text=noise, options=options)
def test_any_cutting_gives_the_same_events_flags_and_snapshot(
    data: st.DataObject, text: str, options: dict[str, Any]
) -> None:
    whole = read_one_way([text], **options)

    assert read_one_way(data.draw(cut(text)), **options) == whole
    assert read_one_way(list(text), **options) == whole


@given(data=st.data(), text=noise, options=options, limits=caps)
def test_any_cutting_gives_the_same_failure(
    data: st.DataObject, text: str, options: dict[str, Any], limits: Limits
) -> None:
    whole = read_one_way([text], limits=limits, **options)

    assert read_one_way(data.draw(cut(text)), limits=limits, **options) == whole
    assert read_one_way(list(text), limits=limits, **options) == whole


@given(text=noise, options=options)
def test_what_was_sent_is_a_prefix_of_the_outcome_at_every_character(text: str, options: dict[str, Any]) -> None:
    _, parser = fed([text], **options)
    final = parser.snapshot.choices[0]
    end = options.pop("end")
    tools = options.pop("tools")
    parser = ToolCallParser(tools, **options)
    for char in text:
        parser.feed(char)
        choice = parser.snapshot.choices[0]
        assert final.content.startswith(choice.content)
        assert final.reasoning_content.startswith(choice.reasoning_content)
        for call, whole in zip(choice.tool_calls, final.tool_calls, strict=False):
            assert (call.id, call.name) == (whole.id, whole.name)
            assert whole.arguments.startswith(call.arguments)
    parser.close(end)
    assert parser.snapshot.choices[0] == final


@given(text=noise, options=options)
def test_whole_calls_are_json_objects_and_others_are_flagged(text: str, options: dict[str, Any]) -> None:
    _, parser = fed([text], **options)

    for call in parser.snapshot.choices[0].tool_calls:
        call.arguments.encode()
        if call.complete:
            assert isinstance(json.loads(call.arguments), dict)
        else:
            assert ("incomplete", call.index) in parser.flags


@given(text=noise)
def test_no_text_is_lost_without_a_call(text: str) -> None:
    _, parser = fed([text])

    choice = parser.snapshot.choices[0]
    if not choice.tool_calls and not any(tag in text for tag in ("</think>", "<|user|>", "<|observation|>")):
        assert choice.content == text


# Calls with known arguments

TYPES = {
    type(None): "null", bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"
}  # fmt: skip
plain_text = st.text(st.characters(exclude_categories=()), max_size=40).filter(lambda text: "</arg_value>" not in text)
keys = st.text(st.characters(exclude_characters="<"), max_size=10).map(str.strip)
short_text = st.text(st.characters(exclude_characters="<"), max_size=8)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False, allow_infinity=False)
    | short_text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(short_text, inner, max_size=3),
    max_leaves=6,
)


@given(data=st.data(), pairs=st.dictionaries(keys, plain_text | json_values, max_size=5), newlines=st.booleans())
def test_arguments_come_out_as_they_were_put_in(data: st.DataObject, pairs: dict[str, Any], newlines: bool) -> None:
    end = "\n" if newlines else ""
    properties: dict[str, Any] = {}
    text = f"<tool_call>t{end}"
    for key, value in pairs.items():
        written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=data.draw(st.booleans()))
        properties[key] = {"type": TYPES[type(value)]}
        text += f"<arg_key>{key}</arg_key>{end}<arg_value>{written}</arg_value>{end}"
    text += "</tool_call>"
    tools = [{"name": "t", "parameters": {"properties": properties}}]

    events, parser = fed(data.draw(cut(text)), tools=tools)

    [call] = parser.snapshot.choices[0].tool_calls
    assert call.complete
    joined = "".join(event.arguments for event in events if isinstance(event, ArgumentsDelta))
    assert joined == call.arguments
    assert json.dumps(json.loads(joined)) == json.dumps(json.loads(json.dumps(pairs)))
    assert not [flag for flag, _ in parser.flags if flag != "literal_close"]


@given(value=st.text(st.characters(exclude_characters="<"), min_size=1, max_size=300), size=st.integers(1, 9))
def test_string_values_go_out_as_they_come(value: str, size: int) -> None:
    parser = ToolCallParser(TOOLS)
    events = parser.feed("<tool_call>search<arg_key>q</arg_key><arg_value>")
    assert isinstance(events[0], ToolCallStart)
    for at in range(0, len(value), size):
        piece = value[at : at + size]
        [delta] = parser.feed(piece)
        assert isinstance(delta, ArgumentsDelta)
        assert json.loads(f'"{delta.arguments}"') == json.loads(json.dumps(piece))
