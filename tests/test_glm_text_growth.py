"""The parser's work grows with the text and not faster, counted in function calls: the same on every machine."""

from __future__ import annotations

import sys
from types import FrameType

import pytest

from glm_text_reading import TOOLS, pieces_of
from glmsse.glm_text import ToolCallParser
from glmsse.limits import Limits

UNLIMITED = Limits(max_argument_bytes=None, max_content_bytes=None, max_reasoning_bytes=None, max_tool_calls=None)
VALUE = "<tool_call>search<arg_key>q</arg_key><arg_value>"
TYPED = "<tool_call>search<arg_key>tags</arg_key><arg_value>"

SHAPES = {
    "string value": (VALUE, "a < b\n", ""),
    "closers in a value": (VALUE, "</tool_call> </arg_valu", "x"),
    "whitespace behind a closer": (f"{VALUE}</tool_call>", " ", "x"),
    "typed value": (f"{TYPED}[", '[1,"\\n"],', "1]</arg_value>"),
    "open brackets": (TYPED, "[", "</arg_value>"),
    "arguments": ("<tool_call>search", "<arg_key>q</arg_key><arg_value>a</arg_value>", "</tool_call>"),
    "calls": ("", "<tool_call>now</tool_call> ", ""),
    "unoffered calls": ("", "<tool_call>other</tool_call> ", ""),
    "openers": ("", "<tool_call>", ""),
    "openers behind a name": ("", "<tool_call>now", ""),
    "openers with a long region": ("", "<tool_call>" + "a b" * 100, ""),
    "namespaces": ("", "<a.b:tool_call><aaaaaaaaaaaaaaaaaaaaaaaaaaaaa:", ""),
    "less-than signs": ("", "<", ""),
    "whitespace": ("a", " \n", "a"),
    "lone key closers": ("<tool_call>search<arg_key>q", "</arg_key>", ""),
    "words between arguments": (f"{VALUE}</arg_value>", "word ", ""),
    "a long key": ("<tool_call>search<arg_key>", "k <", ""),
    "JSON payload": ('<tool_call>{"name":"now","a":[', '{"b":"\\n"},', "1]}</tool_call>"),
    "Gemma payload": ("<|tool_call>call:now{a:[", '{b:<|"|>"<|"|>},', "1]}<tool_call|>"),
    "DSML payload": ("<｜DSML｜tool_calls>", '<｜DSML｜invoke name="now"></｜DSML｜invoke>', "</｜DSML｜tool_calls>"),
    "Qwen value": ("<tool_call><function=search><parameter=q>", "a\r\n", "</parameter></tool_call>"),
    "behind a turn token": ("<|user|>", "<|user|> ", ""),
}


def calls_for(text: str, size: int) -> int:
    """Function calls, built-in ones too, that reading the text takes."""
    count = 0

    def counted(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    parser = ToolCallParser(TOOLS, limits=UNLIMITED)
    pieces = pieces_of(text, size)
    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        for piece in pieces:
            parser.feed(piece)
        parser.close()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("fed_whole", [False, True], ids=["three characters", "whole"])
def test_sixteen_times_the_text_takes_about_sixteen_times_the_calls(shape: str, fed_whole: bool) -> None:
    head, unit, tail = SHAPES[shape]
    times = max(4, 700 // len(unit))
    small, large = (head + unit * count + tail for count in (times, 16 * times))

    few, many = (calls_for(text, len(text) if fed_whole else 3) for text in (small, large))

    assert many <= 18 * few


@pytest.mark.parametrize("shape", SHAPES)
def test_text_that_was_read_is_not_kept(shape: str) -> None:
    head, unit, tail = SHAPES[shape]
    parser = ToolCallParser(TOOLS, limits=UNLIMITED)
    for piece in pieces_of(head + unit * (20_000 // len(unit)) + tail, 3):
        parser.feed(piece)
        assert len(parser._buf) <= 1_100
