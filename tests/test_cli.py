"""The command line: every command, its exit codes and its keys, and nothing that could move a cursor."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from wire import CALL, HELLO, body, content, end, event, piece, reasoning, tools


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


def _environment(glmsse: Any) -> dict[str, str]:
    pure = "1" if glmsse.IMPLEMENTATION == "pure" else "0"
    source = str(Path(glmsse.__file__).parents[1])
    return {**os.environ, "GLMSSE_PURE_PYTHON": pure, "PYTHONPATH": source, "PYTHONIOENCODING": "utf-8"}


def run(glmsse: Any, *arguments: str, stdin: bytes = b"") -> Ran:
    done = subprocess.run(
        [sys.executable, "-m", "glmsse", *arguments],
        input=stdin,
        capture_output=True,
        env=_environment(glmsse),
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


ODD = "\x1b[31mred\x1b]8;;x\x07 \x9b2J\x85 \u202eevil\u2066\u200f\u061c \x00\x7f\r"
ODD_JSON = json.dumps(ODD)  # as escapes: a raw CR would end the line

BODIES = {
    "accepted": (HELLO, 0),
    "call": (CALL, 0),
    "http": (b'{"error":{"code":"1302"}}', 1),
    "incomplete": (HELLO[:-14], 1),
    "not accepted": (body(content("Hi"), end("length")), 1),
    "provider": (body(event({"error": {"code": "1302"}})), 1),
    "protocol": (body(content("Hi"), b"data: {\n\n"), 3),
    "utf8": (b"data: \xff\n\n", 3),
    "empty": (b"", 1),
}


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "answer.sse"
    path.write_bytes(HELLO)
    return path


# Exit codes


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("command", ["text", "events", "check"])
def test_exit_code_is_that_of_the_verdict(glmsse: Any, name: str, command: str) -> None:
    data, code = BODIES[name]
    ran = run(glmsse, command, "-", stdin=data)
    assert ran.code == code
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("command", ["text", "events", "check"])
def test_exit_code_of_a_limit_is_4(glmsse: Any, command: str) -> None:
    ran = run(glmsse, command, "--limit", "max_content_bytes=3", "-", stdin=HELLO)
    assert ran.code == 4


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["no-such-command"],
        ["text", "--no-such-option"],
        ["text", "/no/such/file"],
        ["text", "/"],
        ["events", "/no/such/file"],
        ["check"],
        ["check", "/no/such/file"],
        ["text", "--profile", "openai", "-"],
        ["text", "--allow", "no_such", "-"],
        ["text", "--deny", "no_such", "-"],
        ["text", "--choices", "0", "-"],
        ["text", "--choices", "x", "-"],
        ["text", "--choices", "99", "-"],
        ["text", "--limit", "no_such=5", "-"],
        ["text", "--limit", "max_events", "-"],
        ["text", "--limit", "max_events=", "-"],
        ["text", "--limit", "max_events=0", "-"],
        ["text", "--limit", "max_events=-1", "-"],
        ["text", "--limit", "max_events=1e3", "-"],
        ["text", "--limit", "max_json_depth=none", "-"],
        ["text", "--limit", "max_json_depth=300", "-"],
        ["text", "--limit", "max_events=" + "9" * 5000, "-"],
        ["check", "--limit", "max_events=0", "-"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40] or "nothing",
)
def test_usage_and_unreadable_input_exit_with_2(glmsse: Any, arguments: list[str]) -> None:
    ran = run(glmsse, *arguments, stdin=HELLO)
    assert ran.code == 2
    assert ran.err
    assert "Traceback" not in ran.err


def test_closed_standard_input_exits_with_2(glmsse: Any) -> None:
    command = f"{shlex.quote(sys.executable)} -m glmsse text - <&-"
    done = subprocess.run(["sh", "-c", command], capture_output=True, env=_environment(glmsse), timeout=60, check=False)
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr


def test_reader_that_leaves_is_no_traceback(glmsse: Any, tmp_path: Path) -> None:
    path = tmp_path / "long.sse"
    path.write_bytes(body(*(content("x" * 1000) for _ in range(2000)), end()))
    command = f"{shlex.quote(sys.executable)} -m glmsse events {shlex.quote(str(path))} | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, env=_environment(glmsse), timeout=60, check=False)
    assert b"Traceback" not in done.stderr
    assert b"Exception" not in done.stderr


# text


def test_text_prints_the_answer_and_the_verdict_on_stderr(glmsse: Any, recorded: Path) -> None:
    ran = run(glmsse, "text", str(recorded))
    assert ran.out == "Hello\n"
    assert "accepted" in ran.err


def test_text_reads_standard_input_by_default_and_for_a_dash(glmsse: Any) -> None:
    assert run(glmsse, "text", stdin=HELLO).out == "Hello\n"
    assert run(glmsse, "text", "-", stdin=HELLO).out == "Hello\n"


def test_text_hides_reasoning_unless_asked(glmsse: Any) -> None:
    data = body(reasoning("Hmm. "), content("Hi"), end())
    assert run(glmsse, "text", stdin=data).out == "Hi\n"
    assert run(glmsse, "text", "--reasoning", stdin=data).out == "Hmm. Hi\n"


def test_text_that_ends_in_a_line_feed_gets_no_second_one(glmsse: Any) -> None:
    assert run(glmsse, "text", stdin=body(content("Hi\n"), end())).out == "Hi\n"
    assert run(glmsse, "text", stdin=body(end())).out == ""


def test_text_says_on_stderr_what_failed(glmsse: Any) -> None:
    ran = run(glmsse, "text", stdin=body(content("Hi"), b"data: {\n\n"))
    assert ran.out == "Hi\n"
    for part in ("protocol_error", "event_decoding", "bad_json", "ambiguous"):
        assert part in ran.err


# Escaping


def _assert_harmless(text: str) -> None:
    for letter in text:
        assert letter in "\n\t" or (
            letter >= " " and letter not in "\x7f\u061c\u200e\u200f" and not "\x80" <= letter < "\xa0"
        ), repr(letter)
        assert not "\u202a" <= letter <= "\u202e"
        assert not "\u2066" <= letter <= "\u2069"


def test_text_escapes_control_and_direction_characters(glmsse: Any) -> None:
    data = body(content(ODD), end()).replace(json.dumps(ODD, ensure_ascii=False).encode(), ODD_JSON.encode())
    ran = run(glmsse, "text", stdin=data)
    _assert_harmless(ran.out)
    assert ran.out == ("\\x1b[31mred\\x1b]8;;x\\x07 \\x9b2J\\x85 \\u202eevil\\u2066\\u200f\\u061c \\x00\\x7f\\x0d\n")


def test_escape_sequence_over_two_deltas_is_escaped_too(glmsse: Any) -> None:
    ran = run(glmsse, "text", stdin=body(content("\x1b"), content("[31mred"), end()))
    assert ran.out == "\\x1b[31mred\n"


def test_text_keeps_tabs_line_feeds_and_other_scripts(glmsse: Any) -> None:
    words = "a\tb\nc é 北京 \U0001f600 שלום\u2028\n"
    assert run(glmsse, "text", stdin=body(content(words), end())).out == words


def test_raw_text_is_not_escaped(glmsse: Any) -> None:
    assert run(glmsse, "text", "--raw", stdin=body(content("\x1b[31mred"), end())).out == "\x1b[31mred\n"


@pytest.mark.parametrize(
    "command",
    [["events"], ["events", "--json"], ["check"], ["check", "--json"], ["text"], ["events", "--reasoning"]],
    ids=" ".join,
)
def test_nothing_of_the_stream_reaches_the_terminal_unescaped(glmsse: Any, command: list[str]) -> None:
    call = tools(piece(ODD, id=ODD, name=ODD))
    sent = [
        b'data: {"id":' + ODD_JSON.encode() + b',"model":' + ODD_JSON.encode() + b',"choices":[]}\n\n',
        json.dumps(reasoning(ODD)),
        json.dumps(content(ODD)),
        json.dumps(call),
        json.dumps(end(ODD)),
    ]
    data = body(*(part if isinstance(part, bytes) else event(part) for part in sent))
    ran = run(glmsse, *command, "-", stdin=data)
    _assert_harmless(ran.out)
    _assert_harmless(ran.err)


def test_name_of_a_missing_file_is_escaped(glmsse: Any) -> None:
    for command in ("text", "events", "check"):
        ran = run(glmsse, command, "/no/\x1b[31m\u202e\x9b\nsuch")
        _assert_harmless(ran.err)
        assert ran.code == 2
        assert len(ran.err.splitlines()) <= 2


def test_name_of_a_file_is_escaped_in_the_table(glmsse: Any, tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\n\u202eb.sse"
    path.write_bytes(HELLO)
    ran = run(glmsse, "check", str(path))
    _assert_harmless(ran.out)
    assert ran.code == 0


# events


def test_events_prints_one_event_a_line_and_the_verdict(glmsse: Any, recorded: Path) -> None:
    ran = run(glmsse, "events", str(recorded))
    assert [line.split()[0] for line in ran.out.splitlines()] == ["content.delta", "usage", "finish", "done", "verdict"]
    assert '"Hello"' in ran.out


def test_events_as_json_have_the_keys_of_the_events(glmsse: Any) -> None:
    objects = run(glmsse, "events", "--json", stdin=CALL).objects
    assert [(item["type"], sorted(set(item) - {"type"})) for item in objects[:-1]] == [
        ("tool_call.start", ["choice", "id", "index", "name"]),
        ("tool_call.arguments.delta", ["arguments", "choice", "index"]),
        ("usage", ["cached_tokens", "choice", "completion_tokens", "prompt_tokens", "raw", "total_tokens"]),
        ("tool_call.end", ["choice", "index"]),
        ("finish", ["choice", "reason"]),
        ("done", ["choice"]),
    ]
    verdict = objects[-1]
    assert (verdict["type"], verdict["outcome"], verdict["accepted"]) == ("verdict", "accepted", True)


def test_events_as_json_show_a_fault(glmsse: Any) -> None:
    ran = run(glmsse, "events", "--json", stdin=b"data: {\n\n")
    failed, verdict = ran.objects
    assert (failed["type"], failed["error"]["code"], failed["error"]["offset"]) == ("failed", "bad_json", 0)
    assert (verdict["code"], ran.code) == ("bad_json", 3)


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_events_hide_reasoning_unless_asked(glmsse: Any, form: list[str]) -> None:
    data = body(reasoning("deep thoughts"), content("Hi"), end())
    hidden = run(glmsse, "events", *form, stdin=data)
    assert "deep thoughts" not in hidden.out
    assert "reasoning.delta" in hidden.out
    assert "13" in hidden.out
    assert "deep thoughts" in run(glmsse, "events", *form, "--reasoning", stdin=data).out


def test_options_of_a_stream_are_passed_on(glmsse: Any) -> None:
    no_usage = body(content("Hi"), end(usage=None))
    assert run(glmsse, "text", stdin=no_usage).code == 1
    assert run(glmsse, "text", "--allow", "usage_optional", stdin=no_usage).code == 0
    assert run(glmsse, "text", "--profile", "hosted", stdin=no_usage).code == 0
    assert run(glmsse, "text", "--profile", "hosted", "--deny", "usage_optional", stdin=no_usage).code == 1
    two = body(content("a"), content("b", index=1), end(), end(index=1))
    assert run(glmsse, "text", "--choices", "2", stdin=two).code == 0
    assert run(glmsse, "text", "--limit", "max_event_bytes=none", "--limit", "max_events=3", stdin=HELLO).code == 0


# check


def test_check_prints_a_row_a_file_and_a_summary(glmsse: Any, tmp_path: Path) -> None:
    paths = []
    for number, (data, _) in enumerate(BODIES.values()):
        path = tmp_path / f"{number}.sse"
        path.write_bytes(data)
        paths.append(str(path))
    ran = run(glmsse, "check", *paths)
    for path in paths:
        assert path in ran.out
    assert f"{len(paths)} checked: " in ran.out
    assert "2 accepted" in ran.out
    assert ran.code == 3


def test_check_exits_with_2_if_any_file_is_unreadable(glmsse: Any, recorded: Path) -> None:
    ran = run(glmsse, "check", str(recorded), "/no/such", str(recorded))
    assert ran.code == 2
    assert "2 accepted" in ran.out
    assert "1 unreadable" in ran.out


def test_check_as_json_is_one_object_a_file_with_the_keys_of_the_verdict(glmsse: Any, recorded: Path) -> None:
    ran = run(glmsse, "check", "--json", str(recorded), str(recorded))
    assert len(ran.objects) == 2
    assert {
        "file",
        "events",
        "outcome",
        "accepted",
        "stage",
        "code",
        "missing",
        "tolerated",
        "finish_reason",
        "usage",
        "replay",
        "checks",
    } <= set(ran.objects[0])
    assert ran.objects[0]["file"] == str(recorded)
    assert ran.objects[0]["events"] == 3


@pytest.mark.parametrize("command", ["check", "text"])
def test_packed_bodies_are_unpacked(glmsse: Any, tmp_path: Path, command: str) -> None:
    packed = gzip.compress(HELLO)
    path = tmp_path / "answer.sse.gz"
    path.write_bytes(packed + bytes(70_000))
    assert run(glmsse, command, str(path)).code == 0
    for broken, hint in ((packed[:-9], "cut"), (HELLO, "damaged"), (packed + HELLO, "damaged")):
        path.write_bytes(broken)
        ran = run(glmsse, command, str(path))
        assert ran.code == 2
        assert f"answer.sse.gz: the packed body is {hint}" in ran.err


# demo, info, help


def test_demo_shows_both_tables_and_exits_with_0(glmsse: Any) -> None:
    ran = run(glmsse, "demo")
    assert ran.code == 0
    for part in (
        "pay-as-you-go, exact text",
        "254 characters of reasoning",
        "177 tokens",
        "accepted",
        "spliced_frame",
        glmsse.IMPLEMENTATION,
    ):
        assert part in ran.out
    _assert_harmless(ran.out)


def test_demo_as_json_has_one_object_a_stream(glmsse: Any) -> None:
    objects = run(glmsse, "demo", "--json").objects
    assert len(objects) == 18
    assert [item["outcome"] for item in objects[:5]] == ["accepted"] * 5
    assert [item["events"] for item in objects[:5]] == [4, 105, 2, 7, 4]
    assert not any(item["accepted"] for item in objects[5:])


def test_info_says_which_build_is_active_and_why(glmsse: Any) -> None:
    ran = run(glmsse, "info")
    assert ran.code == 0
    assert glmsse.IMPLEMENTATION in ran.out
    assert glmsse.__version__ in ran.out
    shown = run(glmsse, "info", "--json").objects[0]
    assert shown["implementation"] == glmsse.IMPLEMENTATION
    assert shown["reason"]
    assert shown["limits"]["max_events"] == 1000000
    assert shown["profiles"]["router"] == ["reasoning_alias", "args_empty_as_object"]
    assert set(shown["tolerances"]) == set(glmsse.TOLERANCES)


def test_version_is_printed(glmsse: Any) -> None:
    ran = run(glmsse, "--version")
    assert (ran.code, ran.out.strip()) == (0, f"glmsse {glmsse.__version__}")


@pytest.mark.parametrize(
    "command", [[], ["demo"], ["events"], ["text"], ["check"], ["info"], ["convert"]], ids=" ".join
)
def test_help_is_one_sentence_an_option(glmsse: Any, command: list[str]) -> None:
    ran = run(glmsse, *command, "--help")
    assert ran.code == 0
    assert "usage: glmsse" in ran.out


def test_options_with_a_default_say_it(glmsse: Any) -> None:
    shown = re.sub(r"\s+", " ", run(glmsse, "events", "--help").out)
    for option, default in (
        ("--profile", "zai"),
        ("--choices", "1"),
        ("--reasoning", "hidden"),
        ("--json", "readable lines"),
    ):
        assert re.search(rf"{option}\b.*?\(default: {default}", shown), option


def test_examples_in_the_help_run(glmsse: Any, tmp_path: Path) -> None:
    shown = run(glmsse, "--help").out
    examples = [line.strip() for line in shown.partition("examples:")[2].splitlines() if line.strip()]
    assert len(examples) >= 4
    (tmp_path / "recordings").mkdir()
    for path in (tmp_path / "answer.sse", tmp_path / "recordings" / "a.sse"):
        path.write_bytes(HELLO)
    for example in examples:
        command = example.replace("curl -sN …", "cat answer.sse").replace(
            "glmsse", f"{shlex.quote(sys.executable)} -m glmsse", 1
        )
        done = subprocess.run(
            ["sh", "-c", command], cwd=tmp_path, capture_output=True, env=_environment(glmsse), timeout=60, check=False
        )
        assert done.returncode == 0, (example, done.stderr)


def test_console_script_is_the_same_program() -> None:
    script = Path(sys.executable).with_name("glmsse")
    if not script.exists():
        pytest.skip("the package is not installed beside this interpreter")
    assert (
        subprocess.run([str(script), "text"], input=HELLO, capture_output=True, timeout=60, check=True).stdout
        == b"Hello\n"
    )


def test_output_that_cannot_be_encoded_is_escaped(glmsse: Any) -> None:
    environment = {**_environment(glmsse), "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "glmsse", "text"],
        input=body(content("é北"), end()),
        capture_output=True,
        env=environment,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"\\xe9\\u5317\n")
