"""`glmsse probe` against the stand-in provider, and against one that sends everything back."""

from __future__ import annotations

import io
import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from glmsse.__main__ import main
from glmsse.capture import Recording
from glmsse.cli.outcome import Unreadable
from glmsse.cli.secret import Mask, key_from, masked
from glmsse.cli.terminal import States
from glmsse.scenarios import SCENARIOS, body, finish, frame, text

pytest.importorskip("httpx")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from glmsse.server.app import create_app
from glmsse.server.recording import Replay
from glmsse.server.running import stand_in

KEY = "canary.0123456789abcdef"


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with stand_in() as running:
        yield running


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ZAI_API_KEY", KEY)


class Ran:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err
        assert KEY not in out + err

    @property
    def row(self) -> list[str]:
        """The cells of the table's last row."""
        return re.split(" {2,}", [line for line in (self.out or self.err).splitlines() if "  " in line][-1])


@pytest.fixture
def probe(base: str, capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*options: str, base_url: str = base) -> Ran:
        code = main(["probe", "--base-url", base_url, *options])
        written = capsys.readouterr()
        return Ran(code, written.out, written.err)

    return run


class _Echo(BaseHTTPRequestHandler):
    """Sends what it got back, as its server's `style` says; counts requests."""

    protocol_version = "HTTP/1.1"
    server: Any

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.seen.append((self.path, dict(self.headers), json.loads(data)))
        authorization = self.headers["Authorization"]
        key = authorization.removeprefix("Bearer ")
        style = self.server.style
        if style == "drop":
            self.close_connection = True
            return
        if style == "stream":
            whole = body([text(f"your key: {key[:9]}"), text(f"{key[9:]} and {key}"), finish("stop", 23)])
            self._send(200, "text/event-stream", frame(text(key)) + whole)
        elif style == "stream_end":
            self._send(200, "text/event-stream", body([text(key[:5]), finish("stop", 23)]))
        elif style == "redirect":
            self._send(307, "text/plain", b"", Location=f"/elsewhere?{key}")
        else:
            error = {"error": {"code": key, "message": authorization}, "request_id": key}
            self._send(401, "application/json", json.dumps(error).encode(), X_Request_Id=key)

    def _send(self, status: int, media_type: str, data: bytes, **headers: str) -> None:
        self.send_response(status, "Bearer-" + self.headers["Authorization"][7:])
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def echo(style: str) -> Iterator[tuple[str, list[Any]]]:
    server: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    server.style, server.seen = style, []
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", server.seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize(
    ("case", "events", "evidence"),
    [
        ("text", "4", "stop, 23 tokens, [DONE]"),
        ("thinking", "105", "stop, 131 tokens, [DONE]"),
        ("tool", "2", "tool_calls, valid arguments, 177 tokens, [DONE]"),
        ("tool-stream", "7", "tool_calls, valid assembled arguments, 177 tokens, [DONE]"),
    ],
)
@pytest.mark.parametrize("route", ["paas", "coding"])
def test_each_case_prints_its_row(probe: Any, case: str, events: str, evidence: str, route: str) -> None:
    ran = probe("--case", case, "--route", route)

    assert ran.code == 0
    name, count, first, total, *rest = ran.row
    assert (name, count, *rest) == (case, events, evidence, "accepted")
    assert first.endswith(" ms")
    assert total.endswith(" ms")
    assert "[replay" not in ran.err


def test_all_cases_are_asked_one_after_another(probe: Any) -> None:
    ran = probe("--case", "all", "--json")

    readings = [json.loads(line) for line in ran.out.splitlines()]
    assert [reading["case"] for reading in readings] == ["text", "thinking", "tool", "tool-stream"]
    assert [reading["events"] for reading in readings] == [4, 105, 2, 7]
    assert all(reading["accepted"] and reading["sent"] for reading in readings)
    assert all(0 < reading["first_relevant_seconds"] <= reading["total_seconds"] for reading in readings)
    assert len({reading["sent_request_id"] for reading in readings}) == 4


def test_the_request_is_small_and_named(probe: Any) -> None:
    with echo("error") as (url, seen):
        probe("--case", "thinking", "--route", "coding", "--model", "glm-x", base_url=url + "/")

    [(path, headers, request)] = seen
    assert path == "/api/coding/paas/v4/chat/completions"
    headers = {name.lower(): value for name, value in headers.items()}
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["accept-encoding"] == "identity"
    assert (request["model"], request["stream"], request["max_tokens"]) == ("glm-x", True, 1024)
    assert request["thinking"] == {"type": "enabled"}
    assert 6 <= len(request["request_id"]) <= 64


@pytest.mark.parametrize(
    ("model", "code", "outcome", "says"),
    [
        ("no_done", 1, "incomplete", "[replay: ambiguous]"),
        ("reset", 1, "incomplete", "the connection ended with ReadError"),
        ("spliced-frame", 3, "protocol_error", "not sent again [replay: ambiguous]"),
        ("length", 1, "not_accepted", "[replay: pointless]"),
        ("html", 1, "http_error", "content_type"),
        ("gzip", 1, "http_error", "content_encoding"),
        ("error_1113", 1, "http_error", "the provider says: balance, code 1113"),
        ("429", 1, "http_error", "[replay: safe]"),
    ],
)
def test_the_exit_code_is_the_verdicts_and_replay_is_shown(
    probe: Any, model: str, code: int, outcome: str, says: str
) -> None:
    ran = probe("--model", model)

    assert ran.code == code
    assert ran.row[-1] == outcome
    assert says in ran.err


def test_a_limit_has_its_exit_code(probe: Any) -> None:
    with echo_of(b"data: " + b"x" * (9 * 1024 * 1024)) as url:
        assert probe(base_url=url).code == 4


@contextmanager
def echo_of(data: bytes) -> Iterator[str]:
    """A server that answers one connection with these bytes as its body."""

    def serve() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: %d\r\n\r\n" % len(data)
            try:
                connection.sendall(head + data)
            except OSError:
                return  # the client has seen enough

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(20)
        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        thread.join(20)


@pytest.mark.parametrize(
    ("model", "option", "code"),
    [
        ("silence", "--first-byte", "deadline_first_byte"),
        ("stall", "--idle", "deadline_idle"),
        ("comments_only", "--idle", "deadline_idle"),
        ("stall", "--total", "deadline_total"),
    ],
)
def test_deadlines_end_an_answer_that_does_not(probe: Any, model: str, option: str, code: str) -> None:
    ran = probe("--model", model, option, "0.4", "--json")

    assert ran.code == 1
    assert json.loads(ran.out)["code"] == code
    assert "not sent again [replay: ambiguous]" in ran.err


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--first-byte", "0.3"), "deadline_first_byte"),
        (("--total", "0.3"), "deadline_total"),
        (("--first-byte", "none", "--idle", "0.3", "--total", "none"), "deadline_idle"),
    ],
)
def test_deadlines_hold_for_the_head_too(probe: Any, options: tuple[str, ...], code: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        ran = probe(*options, "--json", base_url=f"http://127.0.0.1:{silent.getsockname()[1]}")

    assert json.loads(ran.out)["code"] == code
    assert "not sent again [replay: ambiguous]" in ran.err


def test_a_refused_connection_is_safe_and_ends_the_round(probe: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    ran = probe("--case", "all", base_url=f"http://127.0.0.1:{port}")

    assert ran.code == 1
    assert "nothing was sent [replay: safe]" in ran.err
    assert "ConnectError" in ran.err
    assert "not asked after that: thinking, tool, tool-stream" in ran.err


def test_a_dropped_request_is_ambiguous_and_not_sent_again(probe: Any) -> None:
    with echo("drop") as (url, seen):
        ran = probe(base_url=url)

    assert ran.code == 1
    assert len(seen) == 1
    assert "RemoteProtocolError" in ran.err
    assert "not sent again [replay: ambiguous]" in ran.err


@pytest.mark.parametrize("style", ["error", "redirect", "stream", "stream_end"])
@pytest.mark.parametrize("form", [(), ("--json",), ("--stream", "--reasoning")])
def test_the_key_that_comes_back_is_neither_shown_nor_kept(
    probe: Any, tmp_path: Path, style: str, form: tuple[str, ...]
) -> None:
    path = tmp_path / "answer.sse"
    with echo(style) as (url, seen):
        ran = probe(*form, "--record", str(path), base_url=url)  # Ran looks for the key in the output

    assert len(seen) == 1  # a redirect is not followed
    kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert KEY.encode() not in kept
    if style in ("error", "stream"):
        assert b"*" * len(KEY) in kept
        assert "overwritten in the recording" in ran.err
    if style == "stream" and "--stream" in form:
        assert ran.out == f"{'*' * len(KEY)}your key: {'*' * len(KEY)} and {'*' * len(KEY)}\n"
    if style == "stream_end" and "--stream" in form:
        assert ran.out == KEY[:5] + "\n"


def test_a_recording_has_the_exact_bytes_and_can_be_replayed(probe: Any, tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    assert probe("--case", "tool", "--record", str(path)).code == 0
    assert path.read_bytes() == SCENARIOS["tool"].body

    assert Recording.load(path).timed
    with stand_in(create_app(Replay.load(str(path)))) as replaying:
        again = tmp_path / "again.sse"
        assert probe("--case", "tool", "--record", str(again), base_url=replaying).row[1] == "2"
    assert again.read_bytes() == SCENARIOS["tool"].body


def test_all_cases_have_recordings_of_their_own(probe: Any, tmp_path: Path) -> None:
    probe("--case", "all", "--record", str(tmp_path / "answer.sse"))

    for case in ("text", "thinking", "tool", "tool-stream"):
        assert (tmp_path / f"answer-{case}.sse").read_bytes() == SCENARIOS[case.replace("-", "_")].body
        assert (tmp_path / f"answer-{case}.json").exists()


def test_the_sidecar_says_what_was_asked_and_what_came(probe: Any, tmp_path: Path) -> None:
    probe("--case", "tool", "--record", str(tmp_path / "answer.sse"))

    sidecar = Recording.load(tmp_path / "answer.sse").sidecar

    assert (sidecar.model, sidecar.route, sidecar.status) == ("glm-5.2", "/api/paas/v4/chat/completions", 200)
    assert sidecar.request_template == "glmsse probe tool 1"
    assert sidecar.terminal.end == "done"
    assert sidecar.reading.tools == ("lookup_timezone",)
    assert sidecar.verdict is not None
    assert sidecar.verdict["outcome"] == "accepted"


def test_a_recording_is_not_called_as_its_sidecar(probe: Any, tmp_path: Path) -> None:
    ran = probe("--record", str(tmp_path / "answer.json"))

    assert ran.code == 2
    assert "does not end in .json" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_broken_answer_is_recorded_as_far_as_it_came(probe: Any, tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    probe("--model", "cut", "--record", str(path))
    assert path.read_bytes() == SCENARIOS["text"].body[:-60]


def test_a_coded_body_is_not_recorded(probe: Any, tmp_path: Path) -> None:
    ran = probe("--model", "gzip", "--record", str(tmp_path / "answer.sse"))

    assert "not recorded" in ran.err
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_never_replaced_and_an_empty_one_not_left(probe: Any, tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    path.write_bytes(b"paid for")
    with echo("stream") as (url, seen):
        ran = probe("--record", str(path), base_url=url)
        assert (ran.code, seen) == (2, [])
        assert "nothing was sent" in ran.err
        (tmp_path / "other.json").write_bytes(b"{}")
        assert probe("--record", str(tmp_path / "other.sse"), base_url=url).code == 2
        assert seen == []
    assert path.read_bytes() == b"paid for"
    assert not (tmp_path / "other.sse").exists()

    probe("--model", "empty", "--record", str(tmp_path / "empty.sse"))
    assert not (tmp_path / "empty.sse").exists()
    assert not (tmp_path / "empty.json").exists()


def test_stream_prints_the_answer_and_hides_reasoning(probe: Any) -> None:
    hidden = probe("--stream", "--case", "thinking")
    assert hidden.out == "437\n"
    assert "terminal evidence" in hidden.err
    assert "\x1b" not in hidden.err  # states are for a terminal
    shown = probe("--stream", "--reasoning", "--case", "thinking")
    assert shown.out.startswith("The user wants 19 times 23.")
    assert shown.out.endswith("437\n")


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_what_the_model_is_doing(
    base: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    err = _Terminal()
    monkeypatch.setattr(sys, "stderr", err)
    assert main(["probe", "--base-url", base, "--stream", "--case", "thinking"]) == 0
    assert re.findall(r"\[(\w+)\]", err.getvalue())[:3] == ["waiting", "reasoning", "answering"]

    err.truncate(0)
    assert main(["probe", "--base-url", base, "--stream", "--case", "tool"]) == 0
    assert re.findall(r"\[(\w+)\]", err.getvalue())[:2] == ["waiting", "calling"]


def test_on_one_terminal_no_state_overwrites_the_answer(base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    both = _Terminal()
    monkeypatch.setattr(sys, "stdout", both)
    monkeypatch.setattr(sys, "stderr", both)
    assert main(["probe", "--base-url", base, "--stream"]) == 0
    assert "\x1b[KReady when you are.\n" in both.getvalue()


def test_a_state_is_written_once_and_cleared() -> None:
    out = _Terminal()
    states = States(out)
    states.clear()
    states.show("waiting")
    states.show("waiting")
    states.clear()
    assert out.getvalue() == "\r\x1b[K[waiting]\r\x1b[K"


@pytest.mark.parametrize("value", [None, "", "   ", "short", "with blank inside", "ключ-не-ascii", "line\nbreak-1234"])
def test_without_a_usable_key_nothing_is_sent(probe: Any, monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    if value is None:
        monkeypatch.delenv("ZAI_API_KEY")
    else:
        monkeypatch.setenv("ZAI_API_KEY", value)
    with echo("error") as (url, seen):
        ran = probe(base_url=url)

    assert (ran.code, seen) == (2, [])
    assert "ZAI_API_KEY" in ran.err
    assert not value or not value.strip() or value not in ran.err


def test_the_key_is_read_without_surrounding_white_space() -> None:
    assert key_from({"ZAI_API_KEY": f" {KEY}\n"}) == KEY
    with pytest.raises(Unreadable):
        key_from({})


@pytest.mark.parametrize(
    "url",
    [
        "http://api.z.ai",
        "http://10.0.0.1:8080",
        "ftp://127.0.0.1",
        "https://",
        "api.z.ai",
        "https://user:secret@api.z.ai",
        "https://api.z.ai?x=1",
        "https://api.z.ai#x",
        "http://127.0.0.1:99999",
        "http://[::1",
        "http://127.0.0.1/a b",
        "https://xn--/",
    ],
)
def test_an_unsafe_or_unusable_address_is_refused(probe: Any, url: str) -> None:
    ran = probe(base_url=url)

    assert ran.code == 2
    assert "--base-url" in ran.err
    assert "secret" not in ran.err


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "soon", "1e9"])
def test_seconds_are_positive(seconds: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["probe", "--idle", seconds])
    assert caught.value.code == 2


def test_without_the_extra_the_verb_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "httpx", None)

    assert main(["probe"]) == 2
    assert capsys.readouterr().err == 'glmsse: glmsse probe needs httpx: python -m pip install "glmsse[http]"\n'


def test_an_interrupt_says_that_the_request_may_be_billed() -> None:
    command = [sys.executable, "-m", "glmsse", "probe", "--model", "long", "--stream", "--base-url"]
    with (
        stand_in(create_app(pace=0.05)) as slow,
        subprocess.Popen(
            [*command, slow],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell lets what it runs in the background ignore the interrupt, and that is inherited.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as process,
    ):
        try:
            assert process.stdout is not None
            assert process.stdout.read(4) == "word"
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=20)
        finally:
            process.kill()

    assert process.returncode == 130
    assert "may have been answered and billed [replay: ambiguous]" in err
    assert KEY not in out + err


def test_the_mask_finds_the_key_however_it_is_cut() -> None:
    secret = "abcabd"
    whole = b"abcabcabd-abcab"
    for first in range(len(whole) + 1):
        for second in range(first, len(whole) + 1):
            mask = Mask(secret)
            pieces = (whole[:first], whole[first:second], whole[second:])
            got = b"".join(map(mask.feed, pieces)) + mask.close()
            assert got == b"abc******-abcab"
            assert mask.found == 1
    assert masked("abcabd abcab", secret) == "****** abcab"
