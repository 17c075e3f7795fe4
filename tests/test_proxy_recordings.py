"""`glmsse proxy --record`: what is written, and what is not."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from glmsse.__main__ import main
from glmsse.capture import Recording
from glmsse.capture.recording import stream_for
from glmsse.proxy.recordings import Recordings
from glmsse.proxy.settings import Settings
from glmsse.scenarios import SCENARIOS, text
from glmsse.scenarios import body as body_of
from glmsse.verdict import Verdict
from loopback import Provider, provider
from proxying import Recorder, proxy

MESSAGES = [{"role": "user", "content": "x"}]
KEY = "sk-this-is-a-secret-key"


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


def _ask(url: str, model: str, path: str = "/v1/chat/completions", **more: Any) -> httpx.Response:
    request = {"model": model, "stream": True, "messages": MESSAGES, "max_tokens": 9, **more}
    headers = {"authorization": f"Bearer {KEY}", "cookie": "session=SECRET"}
    return httpx.post(url + path, json=request, headers=headers, timeout=20, trust_env=False)


def _recordings(directory: Path) -> list[Recording]:
    return [Recording.load(path) for path in sorted(directory.glob("*.sse"))]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
def test_an_answer_is_recorded_as_the_upstream_sent_it(server: Provider, tmp_path: Path, path: str) -> None:
    with proxy(server.base_url, record=str(tmp_path)) as running:
        _ask(running.url, "tool_stream", path)

    (recording,) = _recordings(tmp_path)
    assert recording.body == SCENARIOS["tool_stream"].body
    assert recording.timed
    assert recording.sidecar.model == "tool_stream"
    assert (recording.sidecar.status, recording.sidecar.terminal.end) == (200, "done")
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".json", ".sse"]


def test_the_recorded_verdict_comes_out_again(server: Provider, tmp_path: Path) -> None:
    with proxy(server.base_url, record=str(tmp_path)) as running:
        for name in ("conflict", "provider_error", "truncated", "length"):
            _ask(running.url, name)

    codes = set()
    for recording in _recordings(tmp_path):
        stream = stream_for(recording.sidecar.reading)
        stream.feed(recording.body)
        assert recording.sidecar.verdict is not None
        assert recording.sidecar.verdict["code"] == stream.close().code
        codes.add(recording.sidecar.verdict["code"])
    assert codes == {"stable_conflict", "provider_error", "unterminated_event", "finish_length"}


def test_keys_and_cookies_are_in_no_recording(tmp_path: Path) -> None:
    upstream = Recorder()
    upstream.serve(body_of([text(f"your key is {KEY}")]))
    try:
        with proxy(upstream.url, record=str(tmp_path)) as running:
            _ask(running.url, KEY)
    finally:
        upstream.close()

    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert KEY.encode() not in kept
    assert b"SECRET" not in kept
    assert b"*" * len(KEY) in kept


def test_no_more_are_written_than_may_be(server: Provider, tmp_path: Path) -> None:
    with proxy(server.base_url, record=str(tmp_path), max_recordings=2) as running:
        for _ in range(4):
            _ask(running.url, "text")
            time.sleep(0.05)  # the writer works beside

    assert len(_recordings(tmp_path)) == 2
    assert [record for record in running.log if record["event"] == "recordings_full"] == [
        {"event": "recordings_full", "recordings": 2}
    ]


def test_a_folder_that_was_emptied_is_filled_again(
    server: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("glmsse.proxy.recordings.LOOK_AGAIN_SECONDS", 0)
    with proxy(server.base_url, record=str(tmp_path), max_recordings=1) as running:
        for _ in range(2):
            _ask(running.url, "text")
        _until(lambda: any(record["event"] == "recordings_full" for record in running.log))
        for path in tmp_path.iterdir():
            path.unlink()
        _ask(running.url, "text")

    assert len(_recordings(tmp_path)) == 1


def test_what_comes_after_the_end_is_told(tmp_path: Path) -> None:
    log: list[dict[str, Any]] = []
    recordings = Recordings(Settings(upstream="http://x", record=str(tmp_path)), log.append)
    recorder = recordings.recorder([], {}, 1)
    assert recorder is not None
    recorder.start(200, {})
    recorder.piece(b"data: {}\n\n", 0.1)
    recordings.close()

    recordings.keep(recorder, Verdict("not_accepted"), None)

    assert log == [{"event": "recording_failed", "error": "closed"}]


def _until(there: Callable[[], bool]) -> None:
    patience = time.monotonic() + 20
    while not there():
        assert time.monotonic() < patience
        time.sleep(0.02)


def test_an_answer_over_the_limit_is_not_recorded(server: Provider, tmp_path: Path) -> None:
    with proxy(server.base_url, record=str(tmp_path), max_record_bytes=100) as running:
        _ask(running.url, "text")

    assert list(tmp_path.iterdir()) == []


def test_a_whole_completion_is_not_recorded(tmp_path: Path) -> None:
    upstream = Recorder()
    upstream.answer = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{}"
    try:
        with proxy(upstream.url, record=str(tmp_path)) as running:
            assert _ask(running.url, "text", stream=False).content == b"{}"
    finally:
        upstream.close()

    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_stops_no_answer(server: Provider, tmp_path: Path) -> None:
    with proxy(server.base_url, record=str(tmp_path / "gone")) as running:
        assert _ask(running.url, "text").content == SCENARIOS["text"].body

    assert {"event": "recording_failed", "error": "FileNotFoundError"} in running.log


def test_the_command_refuses_a_directory_that_is_not_there(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["proxy", "--upstream", "http://127.0.0.1:1", "--record", str(tmp_path / "gone")]) == 2
    assert "--record takes a directory" in capsys.readouterr().err


def test_names_come_in_the_order_of_time_and_from_no_request(server: Provider, tmp_path: Path) -> None:
    with proxy(server.base_url, record=str(tmp_path)) as running:
        _ask(running.url, "../../text")

    for path in tmp_path.glob("*.json"):
        assert len(path.stem) == len("20261201T093000Z-0123456789abcdef")
        json.loads(path.read_bytes())
