"""`glmsse convert`."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import pytest

from glmsse import ChatStream
from glmsse.__main__ import main
from glmsse.scenarios import MODEL, RESPONSE_ID, SCENARIOS
from messages_grammar import check

EXIT_CODES = {"accepted": 0, "protocol_error": 3, "limit_exceeded": 4}


class _Output(io.TextIOWrapper):
    def __init__(self) -> None:
        self.bytes = io.BytesIO()
        super().__init__(self.bytes, "utf-8")


def convert(monkeypatch: pytest.MonkeyPatch, body: bytes, *options: str) -> tuple[int, bytes]:
    out = _Output()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body)))
    code = main(["convert", *options])
    return code, out.bytes.getvalue()


@pytest.mark.parametrize("to", ["anthropic", "openai"])
@pytest.mark.parametrize("name", ["text", "thinking", "tool", "length", "provider_error", "conflict", "truncated"])
def test_a_stream_is_converted_with_its_verdict_and_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, to: str
) -> None:
    stream = ChatStream()
    stream.feed(SCENARIOS[name].body)
    verdict = stream.close()
    code, data = convert(monkeypatch, SCENARIOS[name].body, "--to", to)
    assert code == EXIT_CODES.get(verdict.outcome, 1)
    assert capsys.readouterr().err.startswith(f"glmsse: {verdict.outcome} ")
    if to == "anthropic":
        assert (check(data).error is None) == (verdict.accepted or name == "length")
        return
    again = ChatStream()
    again.feed(data)
    assert again.close().accepted == verdict.accepted
    assert again.snapshot.choices[0].content == stream.snapshot.choices[0].content


def test_model_and_id_are_the_streams_own_unless_a_model_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    body = SCENARIOS["text"].body
    head = check(convert(monkeypatch, body, "--to", "anthropic")[1]).head
    assert head is not None
    assert (head["id"], head["model"]) == (f"msg_{RESPONSE_ID}", MODEL)
    head = check(convert(monkeypatch, body, "--to", "anthropic", "--model", "other")[1]).head
    assert head is not None
    assert head["model"] == "other"
    assert b'"model":"other"' in convert(monkeypatch, body, "--to", "openai", "--model", "other")[1]


def test_an_empty_body_becomes_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    code, data = convert(monkeypatch, b"", "--to", "anthropic")
    assert code == 1
    assert check(data).error is not None


def test_options_of_the_stream_apply(monkeypatch: pytest.MonkeyPatch) -> None:
    code, data = convert(monkeypatch, SCENARIOS["no_done"].body, "--to", "anthropic", "--profile", "gateway")
    assert code == 0
    assert check(data).stop_reason == "end_turn"
    code, _ = convert(monkeypatch, SCENARIOS["text"].body, "--to", "openai", "--limit", "max_events=2")
    assert code == 4


@pytest.mark.parametrize("more", [["--choices", "2"], ["--allow", "multi_choice"]])
def test_several_choices_go_to_openai_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], more: list[str]
) -> None:
    code, data = convert(monkeypatch, SCENARIOS["text"].body, "--to", "anthropic", *more)
    assert (code, data) == (2, b"")
    assert "one choice" in capsys.readouterr().err


def test_a_missing_file_and_a_missing_option_are_usage_errors(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["convert", "--to", "openai", str(tmp_path / "none.sse")]) == 2
    assert "none.sse" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        main(["convert", "answer.sse"])
    assert caught.value.code == 2


def test_it_runs_as_a_module_on_a_file(tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    path.write_bytes(SCENARIOS["tool"].body)
    command = [sys.executable, "-m", "glmsse", "convert", str(path), "--to", "anthropic"]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0
    assert check(done.stdout).calls[0][1] == "lookup_timezone"
    assert done.stderr == b"glmsse: accepted (tool_calls, 1 tool calls)\n"
