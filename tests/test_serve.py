"""`glmsse serve`: every answer has its verdict with every client; wrong requests are refused as the provider does."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import glmsse
from glmsse.__main__ import main
from glmsse.capture import Recording, Sidecar, Terminal, UnfitRecording
from glmsse.cli import extras
from glmsse.provider import CATEGORY_OF_CODE
from glmsse.scenarios import SCENARIOS

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from clients import ASYNC, HEADERS, SYNC, aiohttp, body_for, httpx
from glmsse.server.answers import ANSWERS, FAULTY, GOOD, RAW_CALL
from glmsse.server.app import create_app
from glmsse.server.recording import Replay
from glmsse.server.running import stand_in

CLIENTS = [*SYNC, *ASYNC]
ROUTE = "/api/paas/v4/chat/completions"

# outcome, code, finish reason, replay
SCENARIO_VERDICTS = {
    "text": ("accepted", None, "stop", "pointless"),
    "thinking": ("accepted", None, "stop", "pointless"),
    "tool": ("accepted", None, "tool_calls", "pointless"),
    "tool_stream": ("accepted", None, "tool_calls", "pointless"),
    "coding": ("accepted", None, "stop", "pointless"),
    "truncated": ("incomplete", "unterminated_event", None, "ambiguous"),
    "no_finish_reason": ("incomplete", "incomplete_stream", None, "ambiguous"),
    "no_usage": ("incomplete", "incomplete_stream", "stop", "ambiguous"),
    "no_done": ("incomplete", "incomplete_stream", "stop", "ambiguous"),
    "provider_error": ("provider_error", "provider_error", None, "ambiguous"),
    "conflict": ("protocol_error", "stable_conflict", None, "ambiguous"),
    "event_too_large": ("limit_exceeded", "event_too_large", None, "ambiguous"),
    "too_many_events": ("limit_exceeded", "too_many_events", None, "ambiguous"),
    "argument_too_large": ("limit_exceeded", "argument_too_large", None, "ambiguous"),
    "spliced_frame": ("protocol_error", "spliced_frame", None, "ambiguous"),
    "length": ("not_accepted", "finish_length", "length", "pointless"),
    "sensitive": ("not_accepted", "finish_sensitive", "sensitive", "pointless"),
    "network_error": ("not_accepted", "finish_network_error", "network_error", "ambiguous"),
    "parallel": ("accepted", None, "tool_calls", "pointless"),
    "choices": ("accepted", None, "stop", "pointless"),
    "long": ("accepted", None, "stop", "pointless"),
    "raw_glm": ("accepted", None, "stop", "pointless"),
    "comments_first": ("accepted", None, "stop", "pointless"),
    "crlf": ("accepted", None, "stop", "pointless"),
    "one_byte": ("accepted", None, "stop", "pointless"),
    "split_characters": ("accepted", None, "stop", "pointless"),
    "stays_open": ("accepted", None, "stop", "pointless"),
    "reset": ("incomplete", "unterminated_event", None, "ambiguous"),
    "cut": ("incomplete", "unterminated_event", None, "ambiguous"),
    "empty": ("incomplete", "empty_stream", None, "ambiguous"),
    "error_event": ("provider_error", "provider_error", None, "ambiguous"),
    "gzip": ("http_error", "content_encoding", None, "ambiguous"),
    "html": ("http_error", "content_type", None, "ambiguous"),
    "html_502": ("http_error", "http_status", None, "ambiguous"),
    "json_under_200": ("http_error", "content_type", None, "ambiguous"),
    "401": ("http_error", "http_status", None, "pointless"),
    "429": ("http_error", "http_status", None, "safe"),
}

# The same of answers that never end: with deadlines, and for clients whose read only their own timeout breaks off.
HELD_VERDICTS = {
    "silence": ("deadline_first_byte", "empty_stream"),
    "stall": ("deadline_idle", "incomplete_stream"),
    "comments_only": ("deadline_idle", "deadline_idle"),
}

# status, category, replay
REFUSALS = {
    **dict.fromkeys(("1000", "1001", "1002", "1003", "1004"), (401, "auth", "pointless")),
    **dict.fromkeys(("1100", "1110", "1111", "1112", "1121"), (429, "account", "pointless")),
    "1113": (429, "balance", "pointless"),
    **dict.fromkeys(("1220", "1309", "1311", "1313"), (429, "entitlement", "pointless")),
    **dict.fromkeys(
        ("1304", "1308", "1310", "1316", "1317", "1318", "1319", "1320", "1321"), (429, "quota", "pointless")
    ),
    **dict.fromkeys(("1302", "1303"), (429, "rate", "safe")),
    **dict.fromkeys(("1305", "1312"), (429, "overload", "safe")),
    **dict.fromkeys(("1210", "1211", "1212", "1213", "1214", "1215", "1221", "1222"), (400, "request", "pointless")),
    "1261": (400, "context", "pointless"),
    **dict.fromkeys(("1300", "1301"), (400, "content", "pointless")),
    **dict.fromkeys(("500", "1120", "1200", "1230", "1234"), (500, "server", "ambiguous")),
    "1231": (400, "duplicate", "ambiguous"),
}


@pytest.fixture(scope="module")
def base() -> Iterator[str]:
    with stand_in() as running:
        yield running


def read(base: str, client: str, scenario: str, query: str = "", timeout: float = 20, **options: Any) -> Any:
    """The stream, after one client has read one answer; options go to collect."""
    known = SCENARIOS.get(scenario)
    stream = glmsse.ChatStream(limits=known.limits if known else None, choices=2 if scenario == "choices" else 1)
    url = f"{base}{ROUTE}{query}"
    if client in SYNC:
        SYNC[client](url, scenario, stream, lambda source: glmsse.collect(source, stream, **options), timeout)
    else:

        async def consume(source: Any) -> None:
            await glmsse.acollect(source, stream, **options)

        asyncio.run(asyncio.wait_for(ASYNC[client](url, scenario, stream, consume, timeout), 20))
    return stream


def post(base: str, body: Any, headers: dict[str, str] = HEADERS, query: str = "") -> Any:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return httpx.post(f"{base}{ROUTE}{query}", content=content, headers=headers, timeout=20, trust_env=False)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("scenario", SCENARIO_VERDICTS)
def test_every_answer_has_its_verdict_with_every_client(base: str, client: str, scenario: str) -> None:
    verdict = read(base, client, scenario).close()

    assert (verdict.outcome, verdict.code, verdict.finish_reason, verdict.replay) == SCENARIO_VERDICTS[scenario]


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("scenario", HELD_VERDICTS)
def test_an_answer_that_never_ends_runs_out(base: str, client: str, scenario: str) -> None:
    deadlines = glmsse.Deadlines(first_byte=0.3, idle=0.3, total=10)

    verdict = read(base, client, scenario, timeout=1 if client in SYNC else 20, deadlines=deadlines).close()

    assert verdict.outcome == "incomplete"
    assert verdict.code == HELD_VERDICTS[scenario][client in SYNC]
    assert verdict.replay == "ambiguous"


@pytest.mark.parametrize("client", ["async-httpx", "aiohttp"])
def test_a_slow_first_byte_is_accepted_or_runs_out(base: str, client: str) -> None:
    late = read(base, client, "slow_first_byte", "?wait=5", deadlines=glmsse.Deadlines(first_byte=0.2)).close()
    patient = read(base, client, "slow_first_byte", "?wait=0.2", deadlines=glmsse.Deadlines(first_byte=10)).close()

    assert late.code == "deadline_first_byte"
    assert patient.accepted


@pytest.mark.parametrize("client", ["httpx", "aiohttp", "requests", "urllib"])
@pytest.mark.parametrize("code", REFUSALS)
def test_every_business_code_is_refused_by_its_class(base: str, client: str, code: str) -> None:
    status, category, replay = REFUSALS[code]

    verdict = read(base, client, f"error_{code}").close()

    assert (verdict.code, verdict.error.to_dict()["status"]) == ("http_status", status)
    assert (verdict.category, verdict.provider_code, verdict.replay) == (category, code, replay)
    assert verdict.request_id == "req-stand-in"


def test_the_tables_here_leave_out_no_answer() -> None:
    tables = {*SCENARIO_VERDICTS, *HELD_VERDICTS, *(f"error_{code}" for code in REFUSALS), "slow_first_byte"}
    assert set(ANSWERS) == tables
    assert set(REFUSALS) == set(CATEGORY_OF_CODE)
    assert len(ANSWERS) == len(SCENARIOS) + len(GOOD) + len(FAULTY)


def test_what_the_answers_say(base: str) -> None:
    parallel = read(base, "httpx", "parallel")
    assert [call.arguments for call in parallel.close().tool_calls] == [
        '{"city": "Hong Kong"}',
        '{"city": "Reykjavík"}',
    ]
    assert [choice.content for choice in read(base, "httpx", "choices").snapshot.choices] == [
        "Answer number 0",
        "Answer number 1",
    ]
    assert read(base, "httpx", "long", "?events=7").snapshot.choices[0].content == "word " * 7
    assert read(base, "httpx", "raw_glm").snapshot.choices[0].content == RAW_CALL
    assert (
        read(base, "httpx", "split_characters").snapshot.choices[0].content.endswith("下午三点。Ça va, naïve café 🙂")
    )
    assert read(base, "httpx", "429").close().retry_after == 3
    assert read(base, "httpx", "json_under_200").close().category == "server"


def test_a_raw_call_in_content_is_for_the_raw_text_parser(base: str) -> None:
    parser = glmsse.ToolCallParser()
    parser.feed(read(base, "httpx", "raw_glm").snapshot.choices[0].content)
    parser.close()

    assert [call.name for call in parser.snapshot.choices[0].tool_calls] == ["lookup_timezone"]


@pytest.mark.parametrize(
    ("model", "more", "query", "scenario"),
    [
        ("glmsse-tool", {}, "", "tool"),
        ("tool-stream", {}, "", "tool_stream"),
        ("glm-5.2", {}, "", "text"),
        ("glm-5.2", {"thinking": {"type": "enabled"}}, "", "thinking"),
        ("glm-5.2", {"tools": [{"type": "function"}]}, "", "tool"),
        ("glm-5.2", {"tools": [{"type": "function"}], "tool_stream": True}, "", "tool_stream"),
        ("glm-5.2", {}, "?scenario=no_done", "no_done"),
        ("anything", {}, "?scenario=glmsse-text", None),
    ],
)
def test_model_query_and_options_choose_the_answer(
    base: str, model: str, more: dict[str, Any], query: str, scenario: str | None
) -> None:
    response = post(base, {**body_for(model), **more}, query=query)

    if scenario is None:
        assert (response.status_code, response.json()["error"]["code"]) == (400, "1211")
    else:
        assert response.content == SCENARIOS[scenario].body
        assert response.headers["content-type"] == "text/event-stream;charset=UTF-8"


GOOD_REQUEST = body_for("text")


@pytest.mark.parametrize(
    ("headers", "body", "query", "status", "code"),
    [
        ({}, GOOD_REQUEST, "", 401, "1001"),
        ({"Authorization": "Basic abc"}, GOOD_REQUEST, "", 401, "1002"),
        ({"Authorization": "Bearer"}, GOOD_REQUEST, "", 401, "1002"),
        (HEADERS, b"no JSON", "", 400, "1210"),
        (HEADERS, b"\xff", "", 400, "1210"),
        (HEADERS, b"[" * 100_000, "", 400, "1210"),
        (HEADERS, [], "", 400, "1210"),
        (HEADERS, {**GOOD_REQUEST, "model": None}, "", 400, "1213"),
        (HEADERS, {**GOOD_REQUEST, "model": "gpt-9"}, "", 400, "1211"),
        (HEADERS, {**GOOD_REQUEST, "model": "glmsse-nothing"}, "", 400, "1211"),
        (HEADERS, {"model": "text", "stream": True}, "", 400, "1213"),
        (HEADERS, {**GOOD_REQUEST, "messages": []}, "", 400, "1214"),
        (HEADERS, {**GOOD_REQUEST, "messages": "hello"}, "", 400, "1214"),
        (HEADERS, {**GOOD_REQUEST, "messages": [{"content": "hello"}]}, "", 400, "1214"),
        (HEADERS, {**GOOD_REQUEST, "stream": "yes"}, "", 400, "1214"),
        (HEADERS, {**GOOD_REQUEST, "n": 0}, "", 400, "1214"),
        (HEADERS, {**GOOD_REQUEST, "n": True}, "", 400, "1214"),
        (HEADERS, {**GOOD_REQUEST, "n": "9" * 5000}, "", 400, "1214"),
        (HEADERS, GOOD_REQUEST, "?events=100001", 400, "1214"),
        (HEADERS, GOOD_REQUEST, "?pace=-1", 400, "1214"),
        (HEADERS, GOOD_REQUEST, "?pace=nan", 400, "1214"),
        (HEADERS, GOOD_REQUEST, "?wait=soon", 400, "1214"),
    ],
)
def test_a_wrong_request_is_refused_as_the_provider_does(
    base: str, headers: dict[str, str], body: Any, query: str, status: int, code: str
) -> None:
    response = post(base, body, headers, query)

    assert (response.status_code, response.headers["content-type"]) == (status, "application/json")
    assert response.json()["error"]["code"] == code
    assert glmsse.check_response(status, response.headers, response.content).provider_code == code


def test_without_stream_the_answer_is_one_json_body(base: str) -> None:
    response = post(base, {"model": "choices", "n": 3, "messages": [{"role": "user", "content": "hello"}]})

    assert response.headers["content-type"] == "application/json"
    assert [choice["message"]["content"] for choice in response.json()["choices"]] == [
        "Answer number 0",
        "Answer number 1",
        "Answer number 2",
    ]
    assert glmsse.check_response(200, response.headers, response.content).code == "content_type"


def test_a_wrong_path_a_wrong_method_and_a_huge_request_meet_the_gateway(base: str) -> None:
    wrong_path = httpx.post(base + "/v1/chat/completions", timeout=20, trust_env=False)
    assert (wrong_path.status_code, wrong_path.json()["error"]) == (404, "Not Found")
    assert httpx.get(base + ROUTE, timeout=20, trust_env=False).status_code == 405
    assert post(base, b" " * (4 * 1024 * 1024 + 1)).status_code == 413


def test_the_coding_route_answers_too(base: str) -> None:
    url = f"{base}/api/coding/paas/v4/chat/completions"
    response = httpx.post(url, json=body_for("coding"), headers=HEADERS, timeout=20, trust_env=False)
    assert response.content == SCENARIOS["coding"].body


def test_nothing_sent_by_a_client_comes_back(base: str) -> None:
    headers = {"Authorization": "Bearer canary-key"}
    for body in (body_for("canary-model"), {**GOOD_REQUEST, "messages": "canary"}, GOOD_REQUEST):
        response = post(base, body, headers)
        assert b"canary" not in response.content
        assert "canary" not in str(response.headers)


def test_the_faults_that_break_a_connection_need_our_server() -> None:
    app = create_app()
    transport = httpx.ASGITransport(app)

    async def ask() -> None:
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            await client.post(ROUTE, json=body_for("reset"), headers=HEADERS)

    with pytest.raises(RuntimeError, match="glmsse serve"):
        asyncio.run(ask())


def test_a_recording_is_sent_with_its_times(tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    body = SCENARIOS["text"].body
    path.write_bytes(body)
    _recording(body, ((0.1, 100), (0.5, len(body) - 100))).write(path)
    with stand_in(create_app(Replay.load(str(path)))) as base:
        arrivals = []
        start = time.monotonic()
        with httpx.stream("POST", base + ROUTE, json=body_for("glm-5.2"), headers=HEADERS, trust_env=False) as response:
            for piece in response.iter_raw():
                arrivals.append((time.monotonic() - start, len(piece)))

    assert [size for _, size in arrivals] == [100, len(body) - 100]
    assert arrivals[0][0] >= 0.1
    assert arrivals[1][0] >= 0.5


def test_a_recording_without_times_is_sent_at_once_or_at_a_pace(tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    path.write_bytes(SCENARIOS["text"].body)

    assert Replay.load(str(path)).pieces == ((0.0, SCENARIOS["text"].body),)
    paced = Replay.load(str(path), pace=0.25)
    assert [pause for pause, _ in paced.pieces] == [0.25] * 5
    assert b"".join(piece for _, piece in paced.pieces) == SCENARIOS["text"].body


def _recording(body: bytes, chunks: tuple[tuple[float, int], ...], **known: Any) -> Recording:
    return Recording(body, Sidecar(chunks=chunks, **known))


def test_a_recorded_refusal_is_sent_with_its_head(tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    head = {"content-type": "application/json", "retry-after": "3", "content-length": "9"}
    _recording(b'{"error":{"code":"1302"}}', (), status=429, headers=head).write(path)

    with stand_in(create_app(Replay.load(str(path)))) as base:
        response = post(base, body_for("glm-5.2"))

    assert (response.status_code, response.headers["retry-after"]) == (429, "3")
    assert response.headers["content-type"] == "application/json"
    assert response.content == b'{"error":{"code":"1302"}}'


def test_a_recorded_break_breaks_the_connection_again(tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    _recording(b"data: {", (), terminal=Terminal(end="error")).write(path)

    with stand_in(create_app(Replay.load(str(path)))) as base, pytest.raises(httpx.RemoteProtocolError):
        post(base, body_for("glm-5.2"))


@pytest.mark.parametrize(
    "sidecar", ["{}", "[", '{"schema":"glmsse.recording","version":9}', '{"schema":"glmsse.recording","version":1}']
)
def test_a_sidecar_that_does_not_fit_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sidecar: str
) -> None:
    path = tmp_path / "answer.sse"
    path.write_bytes(b"abcd")
    (tmp_path / "answer.json").write_text(sidecar)

    assert main(["serve", "--port", "0", "--replay", str(path)]) == 2
    assert "answer.json: " in capsys.readouterr().err


def test_a_pause_that_is_too_long_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    _recording(b"abcd", ((700.0, 4),)).write(path)

    with pytest.raises(UnfitRecording, match="too long"):
        Replay.load(str(path))


def test_the_command_prints_its_address_answers_and_ends_on_interrupt(tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    path.write_bytes(SCENARIOS["tool"].body)
    command = [sys.executable, "-m", "glmsse", "serve", "--port", "0", "--replay", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            base = process.stdout.readline().split()[-1]
            assert base.startswith("http://127.0.0.1:")
            # The socket listens before its address is printed, so one request will do.
            response = post(base, body_for("glm-5.2"))
            assert response.content == SCENARIOS["tool"].body
            process.send_signal(signal.SIGINT)
            assert process.wait(20) == 0
            assert process.stderr is not None
            assert process.stderr.read() == ""
        finally:
            process.kill()


def test_list_prints_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--list"]) == 0
    assert capsys.readouterr().out.split() == list(ANSWERS)


def test_unusable_options_are_usage_errors(capsys: pytest.CaptureFixture[str], tmp_path: Path, base: str) -> None:
    port = base.rpartition(":")[2]
    assert main(["serve", "--port", port]) == 2
    assert main(["serve", "--port", "0", "--replay", str(tmp_path / "none.sse")]) == 2
    assert "none.sse" in capsys.readouterr().err
    for option in (["--pace", "61"], ["--pace", "soon"], ["--port", "70000"], ["--port", "-1"]):
        with pytest.raises(SystemExit) as caught:
            main(["serve", *option])
        assert caught.value.code == 2


def test_without_the_extra_the_verb_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)

    assert main(["serve", "--port", "0"]) == 2
    assert capsys.readouterr().err == 'glmsse: glmsse serve needs uvicorn: python -m pip install "glmsse[server]"\n'
    assert extras.missing_from("server") == ["uvicorn"]


def allow_open_files(count: int) -> None:
    """Raise this process's limit, which its children take over."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= hard < count:
        pytest.skip(f"only {hard} open files are allowed")
    if 0 <= soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, hard))


STREAMS = 1000
EVENTS = 20


def test_a_thousand_streams_at_once_all_have_their_verdict() -> None:
    """No stream goes on before all have begun, so that all are open together."""
    allow_open_files(STREAMS + 500)
    command = [sys.executable, "-m", "glmsse", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().split()[-1] + f"{ROUTE}?events={EVENTS}"
            verdicts, most_open = asyncio.run(asyncio.wait_for(_read_all(url), 55))
        finally:
            process.kill()

    assert most_open == STREAMS
    assert len(verdicts) == STREAMS
    assert all(verdict.accepted and verdict.usage.total_tokens == 15 + EVENTS for verdict in verdicts)


async def _read_all(url: str) -> tuple[list[Any], int]:
    begun = 0
    all_begun = asyncio.Event()

    async def read_one(session: Any) -> Any:
        nonlocal begun
        stream = glmsse.ChatStream(collect=False)
        async with session.post(url, headers=HEADERS, json=body_for("long")) as response:
            stream.start(response.status, response.headers)
            first = True
            async for _ in glmsse.aiter_events(response.content.iter_any(), stream, glmsse.Deadlines(total=50)):
                if first:
                    first = False
                    begun += 1
                    if begun == STREAMS:
                        all_begun.set()
                    await all_begun.wait()
        return stream.close()

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        verdicts = await asyncio.gather(*(read_one(session) for _ in range(STREAMS)))
    return list(verdicts), begun
