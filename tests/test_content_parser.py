"""ChatStream with a ToolCallParser: servers that leave raw GLM markup in the content."""

from __future__ import annotations

import itertools
import json
from types import ModuleType
from typing import Any

import pytest

TOOLS = [
    {"type": "function", "function": {"name": "lookup", "parameters": {"properties": {"city": {"type": "string"}}}}}
]
CALL = "<tool_call>lookup<arg_key>city</arg_key><arg_value>Hong Kong</arg_value></tool_call>"
USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def chunk(delta: dict[str, Any], **more: Any) -> bytes:
    return b"data: " + json.dumps({"id": "r", "choices": [{"index": 0, "delta": delta, **more}]}).encode() + b"\n\n"


def body(text: str, reason: str | None = "stop", size: int = 5) -> bytes:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    end = b""
    if reason is not None:
        end = chunk({}, finish_reason=reason)[:-3] + b',"usage":' + json.dumps(USAGE).encode() + b"}\n\n"
    return b"".join(chunk({"content": piece}) for piece in pieces) + end + b"data: [DONE]\n\n"


def read(glmsse: ModuleType, data: bytes, **options: Any) -> tuple[Any, list[Any]]:
    parser = glmsse.ToolCallParser(TOOLS, start=options.pop("start", "content"))
    stream = glmsse.ChatStream(content_parser=parser, **options)
    events = stream.feed(data)
    stream.close()
    return stream, events


def test_markup_in_content_becomes_calls_that_the_verdict_offers(glmsse: ModuleType) -> None:
    stream, events = read(glmsse, body("Let me look. " + CALL))
    verdict = stream.verdict
    assert verdict.accepted
    assert verdict.tolerated == ("stop_with_tools",)
    assert verdict.finish_reason == "tool_calls"
    assert [(call.id, call.name, call.arguments) for call in verdict.tool_calls] == [
        ("call_0", "lookup", '{"city":"Hong Kong"}')
    ]
    assert stream.snapshot.choices[0].content == "Let me look."
    kinds = [kind for kind, _ in itertools.groupby(event.type for event in events)]
    assert (
        kinds
        == [
            "content.delta",
            "tool_call.start",
            "tool_call.arguments.delta",
            "tool_call.end",
            "usage",
            "finish",
            "done",
        ]
        or "usage" in kinds
    )


def test_result_does_not_depend_on_the_pieces(glmsse: ModuleType) -> None:
    results = {
        size: read(glmsse, body("Hm " + CALL + " and " + CALL, size=size))[0].snapshot.to_dict()["choices"]
        for size in (1, 2, 3, 7, 1000)
    }
    assert all(result == results[1] for result in results.values())


def test_deny_keeps_stop_with_calls_refused(glmsse: ModuleType) -> None:
    stream, _ = read(glmsse, body(CALL), deny=["stop_with_tools"])
    assert stream.verdict.code == "tools_without_tool_finish"


def test_plain_content_needs_no_tolerance(glmsse: ModuleType) -> None:
    stream, _ = read(glmsse, body("Just text, a < b."))
    assert (stream.verdict.accepted, stream.verdict.tolerated) == (True, ())
    assert stream.snapshot.choices[0].content == "Just text, a < b."


@pytest.mark.parametrize("cut", [len("<tool_call>lookup<arg_key>"), len(CALL) - 20, len(CALL) - 30])
def test_call_that_is_cut_is_never_offered(glmsse: ModuleType, cut: int) -> None:
    for allow in ((), ("args_empty_as_object",)):
        stream, _ = read(glmsse, body(CALL[:cut]), allow=allow)
        assert not stream.verdict.accepted
        assert stream.verdict.tool_calls == ()
    stream, _ = read(glmsse, body(CALL[:cut], reason="length"))
    assert stream.verdict.code == "finish_length"


def test_held_text_is_not_lost_without_a_finish_reason(glmsse: ModuleType) -> None:
    stream, events = read(glmsse, body("a <tool", reason=None))
    assert stream.snapshot.choices[0].content == "a <tool"
    assert "".join(event.text for event in events if event.type == "content.delta") == "a <tool"
    assert stream.verdict.code == "incomplete_stream"


def test_think_block_in_content_becomes_reasoning(glmsse: ModuleType) -> None:
    stream, _ = read(glmsse, body("<think>so</think>yes"), start="auto")
    choice = stream.snapshot.choices[0]
    assert (choice.reasoning_content, choice.content) == ("so", "yes")


def test_limit_of_the_parser_is_the_streams_fault(glmsse: ModuleType) -> None:
    parser = glmsse.ToolCallParser(TOOLS, limits=glmsse.Limits(max_argument_bytes=8))
    stream = glmsse.ChatStream(content_parser=parser)
    events = stream.feed(body(CALL))
    assert events[-1].type == "failed"
    assert stream.verdict.code == "argument_too_large"


def test_only_a_parser_for_one_choice_is_taken(glmsse: ModuleType) -> None:
    with pytest.raises(glmsse.MisuseError):
        glmsse.ChatStream(content_parser=object())
    with pytest.raises(glmsse.MisuseError):
        glmsse.ChatStream(content_parser=glmsse.ToolCallParser(), choices=2)


def test_tools_command_prints_calls_and_pieces(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    from glmsse.__main__ import main

    raw, tools = tmp_path / "raw.txt", tmp_path / "tools.json"
    raw.write_text("Look: " + CALL)
    tools.write_text(json.dumps(TOOLS))
    assert main(["tools", str(raw), "--tools", str(tools)]) == 0
    assert capsys.readouterr().out == 'content  "Look:"\ncall 0  lookup  {"city":"Hong Kong"}\n'
    assert main(["tools", str(raw), "--tools", str(tools), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tool_calls"][0]["function"]["name"] == "lookup"
    assert main(["tools", str(raw), "--stream", "--json"]) == 0
    assert '"type": "tool_call.start"' in capsys.readouterr().out
    raw.write_text(CALL[:-20])
    assert main(["tools", str(raw)]) == 1
    assert "cut: do not run" in capsys.readouterr().out
    raw.write_bytes(b"\xff")
    assert main(["tools", str(raw)]) == 2
    assert main(["tools", str(raw), "--tools", str(raw)]) == 2
    assert main(["tools", str(tmp_path / "none")]) == 2
