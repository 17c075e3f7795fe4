"""Sources of glm_text.jsonl: raw GLM text and what comes of it, by hand.

Most are the replies of tests/data/glm_text_cases.json, which went wrong for somebody or stand for one rule each; the
limits, the policies for unoffered names and the ways to end are here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

CASES = Path(__file__).resolve().parents[2] / "tests" / "data" / "glm_text_cases.json"
REASONS = {"seed": "one shape that models write", "rule": "one rule of the grammar"}

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "run",
            "parameters": {"properties": {"command": {"type": "string"}, "count": {"type": "integer"}}},
        },
    }
]


def _call(value: str, key: str = "command", name: str = "run") -> str:
    return f"<tool_call>{name}<arg_key>{key}</arg_key><arg_value>{value}</arg_value></tool_call>"


def _own(name: str, reason: str, text: str, *, options: Any = None, limits: Any = None, **claim: Any) -> dict[str, Any]:
    more = {"close": claim.pop("close")} if "close" in claim else {}
    if limits:
        more["limits"] = limits
    usual = {"content": "", "reasoning": "", "calls": [], "flags": [], "code": None}
    return {
        "name": name,
        "layer": "glm_text",
        "reason": reason,
        "options": {"tools": TOOLS, **(options or {})},
        **more,
        "body": text,
        "claim": {**usual, **claim},
    }


def _from_case(case: dict[str, Any], tools: Any) -> dict[str, Any]:
    kind, _, words = case["id"].partition("-")
    slug = re.sub("[^a-z0-9]+", "_", words.lower()).strip("_") or str(len(case["text"]))
    calls = [list(call) for call in case.get("calls", ())]
    whole = all(complete for _, _, complete in calls)
    options = {"tools": _tools_in(case["text"], tools)}
    options |= {key: case[key] for key in ("start", "unoffered") if key in case}
    vector = {
        "name": ("y_" if whole else "n_") + f"{kind}_{slug}",
        "layer": "glm_text",
        "reason": case.get("why") or f"{REASONS[kind]}: {words.replace('_', ' ')}",
        "options": options,
        "body": case["text"],
        "claim": {"content": case.get("content", ""), "reasoning": case.get("reasoning", ""), "calls": calls},
    }
    return {**vector, "close": case["end"]} if "end" in case else vector


def _tools_in(text: str, tools: Any) -> Any:
    """The tools that the text could mean, or one of them: an empty list would mean another thing."""
    if not isinstance(tools, list):
        return tools
    return [tool for tool in tools if _name_of(tool).lower() in text.lower()] or tools[:1]


def _name_of(tool: Any) -> str:
    name = tool.get("function", tool).get("name") if isinstance(tool, dict) else None
    return name if isinstance(name, str) else ""


PIECES = "a piece that is sent is never taken back, however the text is cut"
CUT = "a call that was cut gets no closers and no end: it must not be run"
LIMIT = "what still fits is sent before the fault, in whole characters"
POLICY = "names that were not offered never start a call, unless the caller asks for them"
INJECTED = "inside a value everything but its closer is data"
PARTIAL = "at the end a tail that could have begun a tag is text"


def vectors() -> list[dict[str, Any]]:
    data = json.loads(CASES.read_text("utf-8"))
    made = [_from_case(case, data["tools"][case["tools"]]) for case in data["cases"]]
    ls = ["run", '{"command":"ls"}', True]
    made += [
        _own("y_call", PIECES, _call("ls"), calls=[ls]),
        _own("y_call_between_text", PIECES, "A " + _call("ls") + " B", content="A B", calls=[ls]),
        _own("y_no_call", PIECES, "a < b > c", content="a < b > c"),
        _own(
            "y_value_non_ascii",
            PIECES,
            _call("\u00e9\u2028\U0001f600"),
            calls=[["run", '{"command":"\u00e9\u2028\U0001f600"}', True]],
        ),
        _own(
            "y_value_escapes",
            PIECES,
            _call('a"b\\c\nd\te\x00f'),
            calls=[["run", '{"command":"a\\"b\\\\c\\nd\\te\\u0000f"}', True]],
        ),
        _own("y_typed_value", PIECES, _call(" 42 ", "count"), calls=[["run", '{"count":42}', True]]),
        _own("y_typed_value_that_is_none", PIECES, _call("NaN", "count"), calls=[["run", '{"count":"NaN"}', True]]),
        _own(
            "y_injected_call",
            INJECTED,
            _call("<tool_call>run</tool_call>"),
            calls=[["run", '{"command":"<tool_call>run</tool_call>"}', True]],
            flags=["literal_close"],
        ),
        _own(
            "y_injected_think",
            INJECTED,
            _call("<think>x</think>"),
            calls=[["run", '{"command":"<think>x</think>"}', True]],
        ),
        _own("y_injected_turn_token", INJECTED, _call("a<|user|>b"), calls=[["run", '{"command":"a<|user|>b"}', True]]),
        _own(
            "y_injected_key",
            INJECTED,
            _call("<arg_key>x</arg_key>"),
            calls=[["run", '{"command":"<arg_key>x</arg_key>"}', True]],
        ),
        _own(
            "y_injected_closer_prefix", INJECTED, _call("</arg_valu"), calls=[["run", '{"command":"</arg_valu"}', True]]
        ),
        _own(
            "y_quoted_call_of_another_name",
            POLICY,
            "See " + _call("ls", name="rm"),
            content="See " + _call("ls", name="rm"),
            flags=["unoffered"],
        ),
        _own(
            "y_unoffered_dropped",
            POLICY,
            "See " + _call("ls", name="rm"),
            options={"unoffered": "drop"},
            content="See ",
            flags=["unoffered"],
        ),
        _own(
            "y_unoffered_called",
            POLICY,
            _call("ls", name="rm"),
            options={"unoffered": "call"},
            calls=[["rm", '{"command":"ls"}', True]],
            flags=["unoffered"],
        ),
        _own(
            "y_unoffered_holds_a_call",
            POLICY,
            f"<tool_call>rm<arg_key>a</arg_key><arg_value>{_call('ls')}</arg_value></tool_call>",
            content=f"<tool_call>rm<arg_key>a</arg_key><arg_value>{_call('ls')}</arg_value></tool_call>",
            flags=["malformed", "unoffered"],
        ),
        _own(
            "y_no_tools_given",
            POLICY,
            _call("1", "n", "any"),
            options={"tools": None},
            calls=[["any", '{"n":"1"}', True]],
        ),
        _own("y_no_tools_offered", POLICY, _call("ls"), options={"tools": []}, content=_call("ls")),
        _own("y_id_prefix", PIECES, _call("ls"), options={"id_prefix": "x-"}, calls=[ls]),
        _own("y_reasoning_ends", PIECES, "a</think>b", options={"start": "reasoning"}, content="b", reasoning="a"),
        _own("y_reasoning_auto", PIECES, "\n<think>a</think>b", options={"start": "auto"}, content="b", reasoning="a"),
        _own("y_reasoning_auto_without", PIECES, "\nb", options={"start": "auto"}, content="\nb"),
        _own("y_ends_in_a_bracket", PARTIAL, "a <", content="a <"),
        _own("y_ends_in_a_tag_prefix", PARTIAL, "a <tool_cal", content="a <tool_cal"),
        _own("y_ends_without_reason", PARTIAL, "a", close=None, content="a"),
        _own("y_nothing", PIECES, ""),
        _own(
            "n_cut_in_a_value",
            CUT,
            _call("ls -l")[:-24],
            calls=[["run", '{"command":"ls -l', False]],
            flags=["incomplete"],
        ),
        _own(
            "n_cut_by_length",
            CUT,
            "<tool_call>run<arg_key>command</arg_key><arg_value>rm -rf bu",
            close="length",
            calls=[["run", '{"command":"rm -rf bu', False]],
            flags=["incomplete"],
        ),
        _own(
            "n_cut_in_a_key",
            CUT,
            "<tool_call>run<arg_key>comm",
            close="length",
            calls=[["run", "{", False]],
            flags=["incomplete"],
        ),
        _own(
            "n_cut_between_arguments",
            CUT,
            _call("ls")[:-12],
            close="length",
            calls=[["run", '{"command":"ls"', False]],
            flags=["incomplete"],
        ),
        _own(
            "y_end_closes_the_call",
            "where the model ended, a call that lacks its closer only is whole",
            _call("ls")[:-12],
            calls=[ls],
            flags=["closed_at_end"],
        ),
        *[
            _own(
                f"y_key_without_opener_after_u{ord(space):04x}",
                "white space is what str.isspace says of one character, wherever the text is cut",
                f"<tool_call>run<arg_key>count</arg_key><arg_value>1</arg_value>x{space}command</arg_key>"
                "<arg_value>ls</arg_value></tool_call>",
                calls=[["run", '{"count":1,"command":"ls"}', True]],
                flags=["repaired_key", "residue"],
            )
            for space in "\x1c\x1d\x1e\x1f\x85\u3000"
        ],
        _own("y_limit_content_at", LIMIT, "abcde", limits={"max_content_bytes": 5}, content="abcde"),
        _own(
            "n_limit_content",
            LIMIT,
            "abcdef",
            limits={"max_content_bytes": 5},
            content="abcde",
            code="content_too_large",
        ),
        _own(
            "n_limit_content_character",
            LIMIT,
            "abcd\u00e9",
            limits={"max_content_bytes": 5},
            content="abcd",
            code="content_too_large",
        ),
        _own(
            "y_limit_reasoning_at",
            LIMIT,
            "abcde</think>",
            options={"start": "reasoning"},
            limits={"max_reasoning_bytes": 5},
            reasoning="abcde",
        ),
        _own(
            "n_limit_reasoning",
            LIMIT,
            "abcdef</think>",
            options={"start": "reasoning"},
            limits={"max_reasoning_bytes": 5},
            reasoning="abcde",
            code="reasoning_too_large",
        ),
        _own("y_limit_arguments_at", LIMIT, _call("ls"), limits={"max_argument_bytes": 16}, calls=[ls]),
        _own(
            "n_limit_arguments",
            LIMIT,
            _call("ls"),
            limits={"max_argument_bytes": 15},
            calls=[["run", '{"command":"ls"', False]],
            code="argument_too_large",
        ),
        _own("y_limit_calls_at", LIMIT, _call("ls") * 2, limits={"max_tool_calls": 2}, calls=[ls, ls]),
        _own(
            "n_limit_calls",
            LIMIT,
            _call("ls") * 2,
            limits={"max_tool_calls": 1},
            calls=[ls],
            code="too_many_tool_calls",
        ),
    ]
    for vector in made:
        if vector["claim"].get("flags") == []:
            del vector["claim"]["flags"]
    return [vector for vector in made if not re.search("[\ud800-\udfff]", vector["body"])]
