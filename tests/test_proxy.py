"""The proxy over loopback, with real clients: what they get, what is logged, what is refused."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import openai
import pytest

from glmsse import ChatStream, Deadlines, Limits, SSEFramer
from glmsse.proxy.settings import Settings
from glmsse.scenarios import DONE, FAILING, MEASURED, SCENARIOS, body, finish, text
from loopback import ERROR_BODY, WHOLE, Provider, provider
from proxying import Recorder, Running, port_of, proxy, start_command, stop

PATHS = ("/v1/chat/completions", "/api/paas/v4/chat/completions", "/api/coding/paas/v4/chat/completions")
CUT = ("length", "sensitive", "network_error")
NO_LIMITS = [scenario for scenario in FAILING if scenario.limits == Limits()]
MESSAGES = [{"role": "user", "content": "x"}]


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture(scope="module")
def running(server: Provider) -> Iterator[Running]:
    with proxy(server.base_url) as started:
        yield started


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recording = Recorder()
    yield recording
    recording.close()


def ask(running: Running, model: str, path: str = PATHS[0], **options: Any) -> httpx.Response:
    request = {"model": model, "stream": True, "messages": MESSAGES, **options.pop("more", {})}
    return httpx.post(running.url + path, json=request, timeout=20, trust_env=False, **options)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("scenario", MEASURED, ids=lambda scenario: scenario.name)
def test_accepted_streams_pass_byte_for_byte(running: Running, scenario: Any, path: str) -> None:
    response = ask(running, scenario.name, path)

    assert response.content == scenario.body
    assert response.headers["content-type"] == "text/event-stream;charset=UTF-8"
    record = running.answered()
    assert (record["outcome"], record["code"]) == ("accepted", None)
    assert record["received_bytes"] == record["sent_bytes"] == len(scenario.body)
    assert 0 < record["first_event_seconds"] <= record["first_content_seconds"] <= record["seconds"]


@pytest.mark.parametrize("scenario", FAILING, ids=lambda scenario: scenario.name)
def test_failing_streams_end_with_an_error_and_are_never_accepted(server: Provider, scenario: Any) -> None:
    expected = ChatStream(limits=scenario.limits)
    expected.feed(scenario.body)
    with proxy(server.base_url, limits=scenario.limits) as running:
        received = ask(running, scenario.name).content
        record = running.answered()

    verdict = expected.close()
    assert (record["outcome"], record["code"]) == (verdict.outcome, verdict.code)
    assert not ChatStream().close().accepted
    if scenario.name in CUT:
        assert received == scenario.body
    else:
        assert DONE not in received
        error = json.loads(received.rstrip().rpartition(b"data: ")[2])["error"]
        assert error["code"] == verdict.code


@pytest.mark.parametrize("scenario", FAILING, ids=lambda scenario: scenario.name)
def test_observing_forwards_every_byte_and_reports_the_same(server: Provider, scenario: Any) -> None:
    with proxy(server.base_url, mode="observe", limits=scenario.limits) as running:
        received = ask(running, scenario.name).content
        record = running.answered()

    assert received == scenario.body
    assert record["outcome"] != "accepted"


@pytest.mark.parametrize("model", ["reset", "cut_chunk"])
def test_a_broken_upstream_ends_with_an_error_event(running: Running, model: str) -> None:
    received = ask(running, model).content

    assert b'"code":"unterminated_event"' in received
    assert DONE not in received
    assert running.answered()["broke"] in ("ReadError", "RemoteProtocolError")


@pytest.mark.parametrize("model", ["reset", "cut_chunk"])
def test_observing_gives_a_broken_upstream_no_end_of_its_own(server: Provider, model: str) -> None:
    with proxy(server.base_url, mode="observe") as running, pytest.raises(httpx.RemoteProtocolError):
        ask(running, model)


def test_a_refusal_passes_as_it_is(running: Running) -> None:
    response = ask(running, "rate")

    assert (response.status_code, response.content) == (429, ERROR_BODY)
    assert response.headers["retry-after"] == "3"
    assert running.answered()["category"] == "rate"


def test_html_under_200_is_an_error(running: Running) -> None:
    response = ask(running, "html")

    assert response.status_code == 502
    assert response.json()["error"]["code"] == "content_type"
    running.answered()


def test_what_was_not_asked_for_as_a_stream_passes(running: Running) -> None:
    response = ask(running, "html", more={"stream": False})

    assert (response.status_code, response.text) == (200, "<!doctype html><title>log in</title>")
    assert running.answered()["stream"] is False


def test_an_unreachable_upstream_is_502() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with proxy(f"http://127.0.0.1:{nobody.getsockname()[1]}") as running:
            response = ask(running, "text")

            assert response.status_code == 502
            assert running.answered()["broke"] == "ConnectError"


def test_a_response_ends_at_done_though_the_upstream_stays(running: Running, server: Provider) -> None:
    server.left.clear()

    assert ask(running, "stays_open").content == WHOLE
    assert server.left.wait(10)
    running.answered()


def test_each_event_passes_before_the_next_is_sent(running: Running, server: Provider) -> None:
    request = {"model": "one_by_one", "stream": True, "messages": MESSAGES}
    seen = 0
    server.step.release()
    with httpx.stream("POST", running.url + PATHS[0], json=request, timeout=20, trust_env=False) as response:
        for piece in response.iter_raw():
            blocks = piece.count(b"\n\n")
            seen += blocks
            for _ in range(blocks):
                server.step.release()

    assert seen == WHOLE.count(b"\n\n")
    assert running.answered()["outcome"] == "accepted"
    while server.step.acquire(blocking=False):
        pass


def test_a_client_that_leaves_cancels_the_upstream(running: Running, server: Provider) -> None:
    server.left.clear()
    request = {"model": "stall", "stream": True, "messages": MESSAGES}
    with httpx.stream("POST", running.url + PATHS[0], json=request, timeout=20, trust_env=False) as response:
        next(response.iter_raw())

    assert server.left.wait(10)
    record = running.answered()
    assert (record["code"], record["replay"], record["client_left"]) == ("cancelled", "ambiguous", True)


def test_a_client_that_leaves_before_the_first_byte_cancels_too(running: Running, server: Provider) -> None:
    server.left.clear()
    with pytest.raises(httpx.ReadTimeout):
        httpx.post(running.url + PATHS[0], json={"model": "silence", "stream": True}, timeout=0.3, trust_env=False)

    assert server.left.wait(10)
    assert running.answered()["code"] == "cancelled"


@pytest.mark.parametrize(
    ("model", "code"),
    [("stall", "deadline_idle"), ("comments", "deadline_idle"), ("silence", "deadline_first_byte")],
)
def test_a_deadline_ends_the_stream_with_an_error(server: Provider, model: str, code: str) -> None:
    server.left.clear()
    with proxy(server.base_url, deadlines=Deadlines(first_byte=0.4, idle=0.3, total=10)) as running:
        received = ask(running, model).content

        assert f'"code":"{code}"'.encode() in received.replace(b'": "', b'":"')
        assert server.left.wait(10)
        assert running.answered()["code"] == code


def test_the_verdict_comment_is_before_the_sentinel(server: Provider) -> None:
    with proxy(server.base_url, verdict_comment=True) as running:
        received = ask(running, "text").content

    comment = b": glmsse outcome=accepted code=- replay=pointless\n\n"
    assert received == SCENARIOS["text"].body.removesuffix(DONE) + comment + DONE


# Security


def test_keys_pass_through_and_hop_by_hop_headers_do_not(recorder: Recorder) -> None:
    headers = {
        "Authorization": "Bearer sk-secret",
        "Connection": "x-private, keep-alive",
        "X-Private": "1",
        "Cookie": "a=b",
        "X-Forwarded-For": "10.0.0.1",
        "TE": "trailers",
        "X-Kept": "yes",
        "Accept-Encoding": "gzip",
        "Host": "evil.example",
    }
    with proxy(recorder.url) as running:
        ask(running, "text", headers=headers)
        log = json.dumps(running.answered())

    sent = recorder.headers
    assert (sent["authorization"], sent["x-kept"], sent["accept-encoding"]) == ("Bearer sk-secret", "yes", "identity")
    assert sent["host"] == recorder.url.removeprefix("http://")
    assert not {"x-private", "cookie", "x-forwarded-for", "te"} & set(sent)
    assert "sk-secret" not in log


def test_the_body_goes_upstream_byte_for_byte(recorder: Recorder) -> None:
    sent = b'{"model" : "text",\n "stream":true, "messages":[], "x": 1e2}'
    with proxy(recorder.url) as running:
        httpx.post(running.url + PATHS[0], content=sent, trust_env=False)

    assert recorder.body == sent


def test_a_key_of_the_proxys_own_replaces_the_clients(recorder: Recorder) -> None:
    with proxy(recorder.url, key="sk-own", client_key="sk-door") as running:
        assert ask(running, "text", headers={"Authorization": "Bearer sk-other"}).status_code == 401
        assert ask(running, "text", headers={"Authorization": "Bearer sk-door"}).status_code == 200

    assert recorder.headers["authorization"] == "Bearer sk-own"
    assert "sk-own" not in repr(Settings(upstream=recorder.url, key="sk-own", client_key="sk-door"))


def test_redirects_are_neither_followed_nor_passed_on(recorder: Recorder) -> None:
    recorder.answer = b"HTTP/1.1 302 Found\r\nLocation: http://evil.example/\r\nContent-Length: 0\r\n\r\n"
    with proxy(recorder.url) as running:
        response = ask(running, "text")

    assert response.status_code == 502
    assert "location" not in response.headers


def test_cookies_of_one_answer_are_sent_to_nobody(recorder: Recorder) -> None:
    recorder.answer = recorder.answer.replace(b"\r\n", b"\r\nSet-Cookie: a=b\r\n", 1)
    with proxy(recorder.url) as running:
        assert "set-cookie" not in ask(running, "text").headers
        ask(running, "text")

    assert "cookie" not in recorder.headers


def test_limits_of_a_request(server: Provider) -> None:
    with proxy(server.base_url, max_body_bytes=1000, max_header_bytes=2000, request_seconds=0.3) as running:
        url = running.url + PATHS[0]
        assert httpx.post(url, content=b"x" * 1001, trust_env=False).status_code == 413
        chunks = iter([b"x" * 600, b"x" * 600])
        assert httpx.post(url, content=chunks, trust_env=False).status_code == 413
        assert ask(running, "text", headers={"X-Long": "x" * 2000}).status_code == 431
        assert httpx.post(url, content=b"x", headers={"Content-Encoding": "gzip"}, trust_env=False).status_code == 415
        with socket.create_connection(("127.0.0.1", int(running.url.rpartition(":")[2])), 10) as slow:
            slow.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
            assert b" 408 " in slow.recv(1000)


def test_more_streams_than_allowed_are_refused(server: Provider) -> None:
    with proxy(server.base_url, max_streams=1) as running:
        request = {"model": "stall", "stream": True}
        with httpx.stream("POST", running.url + PATHS[0], json=request, trust_env=False) as response:
            pieces = response.iter_raw()
            next(pieces)
            refused = ask(running, "text")
            assert (refused.status_code, refused.json()["error"]["code"]) == (503, "too_many_streams")
            assert httpx.get(running.url + "/readyz", trust_env=False).status_code == 503
            assert httpx.get(running.url + "/healthz", trust_env=False).status_code == 200
        running.answered()
        running.answered()
        assert ask(running, "text").status_code == 200


def test_a_client_that_does_not_read_is_dropped(recorder: Recorder) -> None:
    events = body(text("x" * 1000) for _ in range(20_000))
    recorder.answer = recorder.answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" + events
    with proxy(recorder.url, send_seconds=0.5) as running, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", int(running.url.rpartition(":")[2])))
        request = b'{"stream":true}'
        client.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n" + request)
        record = running.answered()

    assert (record["slow_client"], record["code"]) == (True, "cancelled")
    assert record["received_bytes"] < len(events)


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="only Linux ends such a connection")
def test_a_client_that_does_not_read_loses_its_connection(recorder: Recorder) -> None:
    recorder.answer = (
        recorder.answer.partition(b"\r\n\r\n")[0] + b"\r\n\r\n" + body(text("x" * 1000) for _ in range(20_000))
    )
    process = start_command(recorder.url, "--send", "0.5")
    try:
        port = port_of(process)
        client = socket.socket()
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        with client:
            client.sendall(
                b'POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 15\r\n\r\n{"stream":true}'
            )
            assert process.stdout is not None
            assert json.loads(process.stdout.readline())["slow_client"] is True
            patience = time.monotonic() + 30
            while (ours := (port, client.getsockname()[1])) in _connections() and time.monotonic() < patience:
                time.sleep(0.1)
            assert ours not in _connections()
    finally:
        stop(process)


def _connections() -> set[tuple[int, int]]:
    """The local and the remote port of each established or closing TCP connection of this machine."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return {(int(row[1].rpartition(":")[2], 16), int(row[2].rpartition(":")[2], 16)) for row in rows}


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_a_mistake_of_ours_costs_one_answer_and_is_seen(
    server: Provider, monkeypatch: pytest.MonkeyPatch, path: str, streams: bool
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("with SECRET text")

    with proxy(server.base_url) as running:
        with monkeypatch.context() as patch:
            patch.setattr("glmsse.proxy.exchange.Exchange._note_beginning", fail)
            request = {
                "model": "text",
                "stream": streams,
                "messages": [{"role": "user", "content": "x"}],
                "max_tokens": 9,
            }
            try:
                status = httpx.post(running.url + path, json=request, timeout=20, trust_env=False).status_code
            except httpx.RemoteProtocolError:  # the head had gone out: the body has no end
                status = 200
        metrics = httpx.get(running.url + "/metrics", trust_env=False).text
        after = httpx.post(running.url + path, json={**request, "stream": True}, timeout=20, trust_env=False)

    assert status == (200 if path == "/v1/chat/completions" else 500)
    assert 'glmsse_proxy_refused_total{reason="internal"} 1.0' in metrics
    assert "glmsse_proxy_open_streams 0.0" in metrics
    assert after.status_code == 200
    assert {"error": "ValueError", "event": "internal_error"}.items() <= next(
        record for record in running.log if record["event"] == "internal_error"
    ).items()
    assert "SECRET" not in json.dumps(running.log)


@pytest.mark.parametrize(
    "settings",
    [
        {"upstream": "ftp://x"},
        {"upstream": "http://user:pass@x"},
        {"upstream": "http://x?y"},
        {"upstream": "http://x", "mode": "watch"},
        {"upstream": "http://x", "mode": "observe", "verdict_comment": True},
        {"upstream": "http://x", "max_streams": 0},
        {"upstream": "http://x", "send_seconds": 0},
        {"upstream": "http://x", "content_markup": "xml"},
        {"upstream": "http://x", "profile": "nobody"},
    ],
)
def test_settings_that_cannot_be_meant(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"takes|observe|profile"):
        Settings(**settings)


# Metrics and the log


def test_metrics_count_streams_tokens_and_bytes(server: Provider) -> None:
    with proxy(server.base_url) as running:
        for model in ("text", "conflict", "network_error"):
            ask(running, model)
            running.answered()
        metrics = httpx.get(running.url + "/metrics", trust_env=False).text

    assert 'glmsse_proxy_streams_total{code="none",outcome="accepted",route="chat"} 1.0' in metrics
    assert 'glmsse_proxy_streams_total{code="stable_conflict",outcome="protocol_error",route="chat"} 1.0' in metrics
    assert 'code="finish_network_error"' in metrics
    assert "glmsse_proxy_open_streams 0.0" in metrics
    assert "glmsse_proxy_first_event_seconds_count 3.0" in metrics
    assert 'glmsse_proxy_tokens_total{kind="completion"} 16.0' in metrics


def test_metrics_count_the_share_of_the_fast_lane(recorder: Recorder) -> None:
    recorder.serve(body([*(text("x") for _ in range(97)), finish("stop", 97)]))
    with proxy(recorder.url) as running:
        ask(running, "x")
        record = running.answered()
        metrics = httpx.get(running.url + "/metrics", trust_env=False).text

    assert 0.9 * record["events"] < record["fast_events"] < record["events"]
    assert f"glmsse_proxy_fast_events_total {record['fast_events']:.1f}" in metrics
    assert 'glmsse_proxy_fast_share_bucket{le="0.9"} 0.0' in metrics
    assert 'glmsse_proxy_fast_share_bucket{le="1.0"} 1.0' in metrics


@pytest.mark.parametrize("model", SCENARIOS)
def test_the_log_holds_no_text(running: Running, model: str) -> None:
    ask(running, model)

    line = json.dumps(running.answered())
    assert not any(word in line for word in ("Ready", "harbour", "19 times", "Hong Kong", "lookup_timezone"))


# Real clients


def test_the_openai_sdk_reads_through_the_proxy(running: Running) -> None:
    with openai.OpenAI(api_key="k", base_url=running.url + "/v1", max_retries=0, timeout=20) as client:
        chunks = list(client.chat.completions.create(model="text", messages=MESSAGES, stream=True))  # type: ignore[call-overload]
        with pytest.raises(openai.APIError):
            list(client.chat.completions.create(model="conflict", messages=MESSAGES, stream=True))  # type: ignore[call-overload]
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="rate", messages=MESSAGES, stream=True)  # type: ignore[call-overload]

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "Ready when you are."
    for _ in range(3):
        running.answered()


@pytest.mark.parametrize("scenario", NO_LIMITS, ids=lambda scenario: scenario.name)
def test_the_openai_sdk_never_takes_a_failing_stream_for_complete(running: Running, scenario: Any) -> None:
    with openai.OpenAI(api_key="k", base_url=running.url + "/v1", max_retries=0, timeout=20) as client:
        stream = client.chat.completions.create(model=scenario.name, messages=MESSAGES, stream=True)  # type: ignore[call-overload]
        if scenario.name in CUT:
            assert [chunk.choices[0].finish_reason for chunk in stream][-1] == scenario.name
        else:
            with pytest.raises(openai.APIError):
                list(stream)
    running.answered()


@pytest.fixture
def claude(running: Running) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(api_key="k", base_url=running.url, max_retries=0, timeout=20) as client:
        yield client


def test_the_anthropic_sdk_streams_through_the_proxy(running: Running, claude: anthropic.Anthropic) -> None:
    with claude.messages.stream(model="tool_stream", max_tokens=100, messages=MESSAGES) as stream:  # type: ignore[arg-type]
        message = stream.get_final_message()

    assert (message.stop_reason, message.content[0].type) == ("tool_use", "tool_use")
    assert message.content[0].input == {"city": "Hong Kong"}
    assert running.answered()["outcome"] == "accepted"


def test_the_anthropic_sdk_gets_whole_messages(running: Running, claude: anthropic.Anthropic) -> None:
    message = claude.messages.create(model="thinking", max_tokens=100, messages=MESSAGES)  # type: ignore[arg-type]

    assert [block.type for block in message.content] == ["thinking", "text"]
    assert message.content[1].text == "437"
    assert message.usage.output_tokens == 107
    running.answered()


@pytest.mark.parametrize("scenario", NO_LIMITS, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("whole", [True, False])
def test_the_anthropic_sdk_never_takes_a_failing_stream_for_complete(
    running: Running, claude: anthropic.Anthropic, scenario: Any, whole: bool
) -> None:
    def ask_claude() -> Any:
        request: dict[str, Any] = {"model": scenario.name, "max_tokens": 100, "messages": MESSAGES}
        if whole:
            return claude.messages.create(**request)
        with claude.messages.stream(**request) as stream:
            return stream.get_final_message()

    stop_reason = {"length": "max_tokens", "sensitive": "refusal"}.get(scenario.name)
    if stop_reason:
        assert ask_claude().stop_reason == stop_reason
    else:
        with pytest.raises(anthropic.APIError):
            ask_claude()
    running.answered()


@pytest.mark.parametrize("model", ["stall", "comments", "silence"])
def test_anthropic_clients_that_wait_get_pings(server: Provider, model: str) -> None:
    deadlines = Deadlines(first_byte=0.6, idle=0.6, total=10)
    with proxy(server.base_url, ping_seconds=0.1, deadlines=deadlines) as running:
        received = ask(running, model, "/v1/messages", more={"max_tokens": 9}).content
        assert running.answered()["code"] in ("deadline_idle", "deadline_first_byte")

    events = [event.event for event in SSEFramer().feed(received)]
    assert 2 <= events.count("ping") <= 7
    assert events[-1] == "error"
    if model == "stall":
        assert events[:3] == ["message_start", "content_block_start", "content_block_delta"]
    else:
        assert set(events[:-1]) == {"ping"}


def test_the_anthropic_sdk_takes_pings_before_the_message(server: Provider) -> None:
    server.go.clear()
    with (
        proxy(server.base_url, ping_seconds=0.05) as running,
        anthropic.Anthropic(api_key="k", base_url=running.url, max_retries=0, timeout=20) as client,
        client.messages.stream(model="late", max_tokens=9, messages=MESSAGES) as stream,  # type: ignore[arg-type]
    ):
        time.sleep(0.3)
        server.go.set()
        assert stream.get_final_text() == "Ready when you are."


@pytest.mark.parametrize("ping_seconds", [None, 30])
def test_there_are_no_pings_without_waiting(server: Provider, ping_seconds: float | None) -> None:
    with proxy(server.base_url, ping_seconds=ping_seconds) as running:
        assert b"ping" not in ask(running, "text", "/v1/messages", more={"max_tokens": 9}).content


def test_tokens_are_not_counted_and_anthropic_clients_are_told(claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.NotFoundError, match="cannot count tokens"):
        claude.messages.count_tokens(model="m", messages=MESSAGES)  # type: ignore[arg-type]


def test_anthropic_errors_keep_their_kind(running: Running, claude: anthropic.Anthropic) -> None:
    with pytest.raises(anthropic.RateLimitError):
        claude.messages.create(model="rate", max_tokens=100, messages=MESSAGES)  # type: ignore[arg-type]
    running.answered()
    with pytest.raises(anthropic.BadRequestError):
        claude.messages.create(model="text", max_tokens=100, messages=[{"role": "user", "content": [{"type": "x"}]}])  # type: ignore[list-item]
    running.answered()


def test_curl_gets_the_same_bytes(running: Running) -> None:
    curl = shutil.which("curl")
    assert curl, "curl is needed: apt-get install curl"
    command = [curl, "-sN", "--noproxy", "*", "--max-time", "20", "-d", '{"model":"tool","stream":true}']

    ran = subprocess.run([*command, running.url + PATHS[0]], capture_output=True, timeout=30)

    assert ran.stdout == SCENARIOS["tool"].body
    running.answered()


# Raw model text

RAW = "<think>Which city?</think>Let me look."
RAW += "<tool_call>look<arg_key>city</arg_key><arg_value>Hong Kong</arg_value></tool_call>"
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


def raw_stream(reason: str = "stop", raw: str = RAW) -> bytes:
    return body([*(text(raw[at : at + 5]) for at in range(0, len(raw), 5)), finish(reason, 40)])


def test_raw_model_text_becomes_reasoning_and_calls(recorder: Recorder) -> None:
    recorder.serve(raw_stream())
    with proxy(recorder.url, content_markup="glm") as running:
        received = ask(running, "x", more={"tools": TOOLS}).content
        assert running.answered()["outcome"] == "accepted"

    stream = ChatStream()
    stream.feed(received)
    verdict = stream.close()
    choice = stream.snapshot.choices[0]
    assert (choice.reasoning_content, choice.content) == ("Which city?", "Let me look.")
    assert [(call.name, call.arguments) for call in verdict.tool_calls] == [("look", '{"city":"Hong Kong"}')]


def test_raw_model_text_that_is_cut_is_not_accepted(recorder: Recorder) -> None:
    recorder.serve(raw_stream()[:-60])
    with proxy(recorder.url, content_markup="glm") as running:
        received = ask(running, "x", more={"tools": TOOLS}).content
        assert running.answered()["outcome"] == "incomplete"

    assert DONE not in received
    assert b'"error"' in received


def whole_answer(raw: str = RAW, reason: str = "stop", **message: Any) -> bytes:
    """As a server that leaves the model's text alone sends it, with line ends between tokens."""
    usage = {"prompt_tokens": 15, "completion_tokens": 25, "total_tokens": 40}
    choice = {"index": 0, "message": {"role": "assistant", "content": raw, **message}, "finish_reason": reason}
    answer = {"id": "a", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    return json.dumps({**answer, "system_fingerprint": "fp"}, indent=1).replace("\n", "\r\n").encode()


def ask_whole(upstream: Recorder, answer: bytes, media_type: str = "application/json", **more: Any) -> Any:
    """The response, and what was logged."""
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {media_type}\r\nContent-Length: {len(answer)}\r\n\r\n"
    upstream.answer = head.encode() + answer
    with proxy(upstream.url, content_markup="glm", **more) as running:
        response = ask(running, "x", more={"tools": TOOLS, "stream": False})
        return response, running.answered()


def test_raw_model_text_in_a_whole_answer_becomes_reasoning_and_calls(recorder: Recorder) -> None:
    response, record = ask_whole(recorder, whole_answer(refusal=None))

    answer = response.json()
    (choice,) = answer.pop("choices")
    (call,) = choice["message"].pop("tool_calls")
    assert call.pop("id").startswith("call_")
    assert call == {"type": "function", "function": {"name": "look", "arguments": '{"city":"Hong Kong"}'}}
    assert choice == {
        "index": 0,
        "message": {
            "role": "assistant", "content": "Let me look.", "refusal": None, "reasoning_content": "Which city?",
        },
        "finish_reason": "tool_calls",
    }  # fmt: skip
    assert (answer["id"], answer["system_fingerprint"], answer["usage"]["total_tokens"]) == ("a", "fp", 40)
    assert (response.status_code, response.headers["content-type"]) == (200, "application/json")
    assert json.loads(recorder.body)["stream"] is False
    assert (record["outcome"], record["stream"], record["completion_tokens"]) == ("accepted", False, 25)
    assert record["received_bytes"] == len(whole_answer(refusal=None))


def test_a_whole_answer_without_markup_keeps_its_text(recorder: Recorder) -> None:
    response, _ = ask_whole(recorder, whole_answer("It is 437."))

    assert response.json()["choices"][0] == json.loads(whole_answer("It is 437."))["choices"][0]


def test_a_whole_answer_that_was_cut_by_the_model_has_no_calls(recorder: Recorder) -> None:
    response, record = ask_whole(recorder, whole_answer(RAW[:-20], "length"))

    choice = response.json()["choices"][0]
    assert choice["finish_reason"] == "length"
    assert choice["message"] == {"role": "assistant", "content": "Let me look.", "reasoning_content": "Which city?"}
    assert record["code"] == "finish_length"


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (whole_answer()[:-9], "bad_json"),
        (b"", "empty_stream"),
        (b"<html>", "bad_json"),
        (b'{"error":{"code":"1301","message":"no"}}', "provider_error"),
        (whole_answer().replace(b'"id"', b'"model"'), "duplicate_key"),
        (whole_answer("x" * 1_100_000), "event_too_large"),
        (whole_answer(reason="network_errors"), "finish_network_errors"),
    ],
)
def test_a_whole_answer_that_cannot_be_used_is_an_error(recorder: Recorder, answer: bytes, code: str) -> None:
    response, record = ask_whole(recorder, answer)

    if code.startswith("finish_"):
        assert response.json()["choices"][0]["finish_reason"] == "network_errors"
        assert "tool_calls" not in response.json()["choices"][0]["message"]
    else:
        assert response.status_code in (400, 502)
        assert response.json()["error"]["code"] == code
    assert record["outcome"] != "accepted"


def test_html_in_place_of_a_whole_answer_passes(recorder: Recorder) -> None:
    response, _ = ask_whole(recorder, b"<html>", media_type="text/html")

    assert (response.status_code, response.text) == (200, "<html>")


def test_the_openai_sdk_reads_calls_out_of_a_whole_answer(recorder: Recorder) -> None:
    recorder.answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n" + whole_answer()
    with (
        proxy(recorder.url, content_markup="glm") as running,
        openai.OpenAI(api_key="k", base_url=running.url + "/v1", max_retries=0, timeout=20) as client,
    ):
        answer = client.chat.completions.create(model="m", messages=MESSAGES, tools=TOOLS)  # type: ignore[call-overload]

    (call,) = answer.choices[0].message.tool_calls
    assert (call.function.name, call.function.arguments) == ("look", '{"city":"Hong Kong"}')


@pytest.mark.parametrize("whole", [True, False])
def test_raw_model_text_for_anthropic_clients(recorder: Recorder, whole: bool) -> None:
    recorder.serve(raw_stream())
    with (
        proxy(recorder.url, content_markup="glm", model="glm-5.2") as running,
        anthropic.Anthropic(api_key="k", base_url=running.url, max_retries=0, timeout=20) as client,
    ):
        request: dict[str, Any] = {"model": "claude", "max_tokens": 9, "messages": MESSAGES}
        request["tools"] = [{"name": "look", "input_schema": {"type": "object"}}]
        if whole:
            message = client.messages.create(**request)
        else:
            with client.messages.stream(**request) as stream:
                message = stream.get_final_message()

    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert message.content[2].input == {"city": "Hong Kong"}
    assert json.loads(recorder.body)["model"] == "glm-5.2"


# The command


def test_the_command_serves_and_drains(server: Provider) -> None:
    process = start_command(server.base_url)
    try:
        url = f"http://127.0.0.1:{port_of(process)}"
        request = {"model": "one_by_one", "stream": True}
        server.step.release()
        with httpx.stream("POST", url + PATHS[0], json=request, timeout=20, trust_env=False) as response:
            pieces = response.iter_raw()
            received = next(pieces)
            process.terminate()
            time.sleep(0.3)
            for _ in range(WHOLE.count(b"\n\n")):
                server.step.release()
            received += b"".join(pieces)
        assert received == WHOLE
        assert process.wait(20) in (0, -15)
        assert json.loads(process.stdout.read())["outcome"] == "accepted"  # type: ignore[union-attr]
    finally:
        stop(process)
        while server.step.acquire(blocking=False):
            pass


def test_workers_share_the_port_and_the_metrics(server: Provider) -> None:
    process = start_command(server.base_url, "--workers", "2")
    try:
        url = f"http://127.0.0.1:{port_of(process)}"
        for _ in range(8):
            assert httpx.post(url + PATHS[0], json={"model": "text", "stream": True}, timeout=20).content == WHOLE
        metrics = httpx.get(url + "/metrics", timeout=20, trust_env=False).text
        assert 'glmsse_proxy_streams_total{code="none",outcome="accepted",route="chat"} 8.0' in metrics
        assert "glmsse_proxy_open_streams 0.0" in metrics
    finally:
        stop(process)


def test_without_the_extra_the_command_says_what_to_install() -> None:
    code = "import sys; sys.modules['starlette'] = None; from glmsse.__main__ import main; sys.exit(main(sys.argv[1:]))"

    ran = subprocess.run(
        [sys.executable, "-c", code, "proxy", "--upstream", "http://127.0.0.1:9"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip

    assert ran.returncode == 2
    assert 'pip install "glmsse[proxy]"' in ran.stderr


def test_a_key_variable_that_is_not_set_is_a_usage_error() -> None:
    command = [sys.executable, "-m", "glmsse", "proxy", "--upstream", "http://127.0.0.1:9", "--key-env", "NO_SUCH_KEY"]

    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert (ran.returncode, ran.stderr) == (2, "glmsse: --key-env: the variable is not set to a key\n")
