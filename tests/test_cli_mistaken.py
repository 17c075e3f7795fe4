"""Inputs that are no chat stream, and streams to try the command line with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from test_cli import run
from wire import HELLO

MISTAKEN = {
    "error body": (b'{"error":{"code":"1302","message":"SECRET"}}', "a JSON error body"),
    "whole completion": (b'{"id":"SECRET","object":"chat.completion","choices":[]}', "a whole chat completion"),
    "other JSON": (b'\n[{"SECRET":1}]', "JSON, not an event stream"),
    "page": (b"\xef\xbb\xbf<!doctype html><title>SECRET</title>", "HTML or XML"),
    "headers": (b"HTTP/1.1 200 OK\r\n\r\ndata: [DONE]\n\n", "a response with its headers"),
    "gzip": (b"\x1f\x8b\x08SECRET", "gzip"),
    "anthropic": (
        b'event: message_start\ndata: {"type":"message_start","SECRET":1}\n\n',
        "an Anthropic Messages stream",
    ),
    "responses": (b'event: response.created\ndata: {"type":"response.created"}\n\n', "an OpenAI Responses stream"),
}


@pytest.mark.parametrize("name", MISTAKEN)
@pytest.mark.parametrize("command", [["text"], ["events"], ["convert", "--to", "openai"]], ids=lambda words: words[0])
def test_input_that_is_no_chat_stream_is_named_without_its_text(glmsse: Any, command: list[str], name: str) -> None:
    data, words = MISTAKEN[name]
    ran = run(glmsse, *command, stdin=data)
    assert f"glmsse: the input looks like {words}" in ran.err
    assert "SECRET" not in ran.err
    assert ran.code == 1


@pytest.mark.parametrize("data", [HELLO, HELLO[:-14], b"", b"data: {}\n\n", b": hello\n\n"])
def test_chat_streams_and_unknown_inputs_get_no_such_hint(glmsse: Any, data: bytes) -> None:
    assert "looks like" not in run(glmsse, "text", stdin=data).err


def test_demo_writes_every_scenario_as_a_file(glmsse: Any, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "samples"
    ran = run(glmsse, "demo", "--write", str(folder))
    assert (ran.code, ran.err) == (0, "")
    written = {path.stem: path.read_bytes() for path in folder.glob("*.sse")}
    assert written == {name: scenario.body for name, scenario in glmsse.scenarios.SCENARIOS.items()}
    assert run(glmsse, "text", str(folder / "text.sse")).out == "Ready when you are.\n"


def test_demo_overwrites_no_file(glmsse: Any, tmp_path: Path) -> None:
    (tmp_path / "tool.sse").write_bytes(b"mine")
    ran = run(glmsse, "demo", "--write", str(tmp_path))
    assert ran.code == 2
    assert ran.err == f"glmsse: {tmp_path / 'tool.sse'}: File exists\n"
    assert (tmp_path / "tool.sse").read_bytes() == b"mine"


@pytest.mark.parametrize("option", ["--allow", "--deny"])
def test_wrong_tolerance_gets_the_list_of_names(glmsse: Any, option: str) -> None:
    ran = run(glmsse, "text", option, "nope", stdin=HELLO)
    assert ran.code == 2
    assert all(name in ran.err for name in glmsse.TOLERANCES)
    with pytest.raises(glmsse.MisuseError, match="usage_optional"):
        glmsse.ChatStream(allow=["nope"])
