"""Recordings: what a recorder keeps, what the files hold, and what is refused when they are read."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import jsonschema
import pytest

from glmsse import ChatStream, MisuseError, acollect, iter_events
from glmsse.capture import SCHEMA, Reading, Recorder, Recording, Sidecar, Terminal, UnfitRecording, record
from glmsse.capture.recording import stream_for, written_whole
from glmsse.capture.sidecar import ENDS
from glmsse.errors import CLOSE_CODES
from glmsse.scenarios import SCENARIOS, uneven_pieces

BODY = SCENARIOS["text"].body
HEAD = {"Content-Type": "text/event-stream", "Set-Cookie": "session=1", "X-Request-Id": "req-1", "Server": "x"}


def _recorded(body: bytes = BODY, **options: Any) -> Recording:
    recorder = Recorder(**options)
    stream = ChatStream()
    recorder.start(200, HEAD)
    for number, piece in enumerate(uneven_pieces(body), 1):
        recorder.piece(piece, number / 8)
        stream.feed(piece)
    recording = recorder.finish(stream.close())
    assert recording is not None
    return recording


def _written(tmp_path: Path, **changed: Any) -> Path:
    """A recording on disk, fields of its sidecar changed; a field of None is left out."""
    path = tmp_path / "answer.sse"
    _recorded().write(path)
    beside = path.with_suffix(".json")
    document = json.loads(beside.read_bytes()) | changed
    beside.write_text(json.dumps({name: value for name, value in document.items() if value is not None}))
    return path


def test_a_recording_comes_back_as_it_was_written(tmp_path: Path) -> None:
    recording = _recorded(model="glm-5.2", request_template="v7", retries=1, recorded_at="2026-12-01T09:30:00Z")

    recording.write(tmp_path / "answer.sse")

    assert Recording.load(tmp_path / "answer.sse") == recording
    assert (tmp_path / "answer.sse").read_bytes() == BODY
    assert sorted(os.listdir(tmp_path)) == ["answer.json", "answer.sse"]


def test_the_sidecar_says_what_happened() -> None:
    sidecar = _recorded().sidecar

    assert sidecar.bytes == len(BODY)
    assert sidecar.status == 200
    assert sidecar.chunks[:3] == ((0.125, 1), (0.25, 7), (0.375, 64))
    assert sidecar.first_event_seconds == 0.625
    assert sidecar.first_content_seconds == 0.625
    assert sidecar.terminal == Terminal(end="done", finish_reason="stop")
    assert sidecar.usage == {"prompt_tokens": 15, "completion_tokens": 8, "total_tokens": 23, "cached_tokens": 2}
    assert sidecar.verdict is not None
    assert sidecar.verdict["outcome"] == "accepted"


def test_only_headers_without_secrets_are_kept() -> None:
    assert _recorded().sidecar.headers == {"content-type": "text/event-stream", "x-request-id": "req-1"}


def test_of_a_route_only_the_path_is_kept() -> None:
    assert _recorded(route="https://user:pw@host/v1/chat/completions?key=1#k").sidecar.route == "/v1/chat/completions"


def test_a_secret_is_overwritten_wherever_it_stands() -> None:
    recorder = Recorder(secrets=["SECRETKEY"], model="SECRETKEY", route="/v1/SECRETKEY/chat")
    recorder.start(200, {"x-request-id": "a SECRETKEY"})
    recorder.piece(b"data: SECRE", 0.1)
    recorder.piece(b"TKEY\n\n", 0.2)

    recording = recorder.finish(ChatStream().close())

    assert recording is not None
    assert recorder.found_secret
    assert recording.body == b"data: *********\n\n"
    assert "SECRETKEY" not in json.dumps(recording.sidecar.to_dict())
    assert list(recording.timed_pieces()) == [(0.1, b"data: *****"), (0.2, b"****\n\n")]


def test_a_body_over_the_limit_is_no_recording() -> None:
    recorder = Recorder(max_bytes=10)
    recorder.piece(b"12345", 0.1)
    recorder.piece(b"678901", 0.2)
    recorder.piece(b"1", 0.3)

    assert recorder.overflowed
    assert recorder.finish(ChatStream().close()) is None


def test_a_recorder_that_got_nothing_is_empty() -> None:
    recorder = Recorder()

    assert recorder.is_empty
    recorder.piece(b"", 1.0)
    assert recorder.is_empty
    recorder.start(401, {})
    assert not recorder.is_empty


def test_a_clock_that_steps_back_does_not_make_times_run_backwards() -> None:
    recorder = Recorder()
    recorder.piece(b"a", 2.0)
    recorder.piece(b"b", 1.0)

    recording = recorder.finish(ChatStream().close())

    assert recording is not None
    assert recording.sidecar.chunks == ((2.0, 1), (2.0, 1))


@pytest.mark.parametrize("reason", ["stop", "x" * 257, "Grüße\n" * 99, "\ud800", "sk-secret"])
@pytest.mark.parametrize("seconds", [-1.0, 0.5, 1e9, float("nan"), float("inf")])
def test_what_a_recorder_makes_can_be_read_back(tmp_path: Path, reason: str, seconds: float) -> None:
    data = BODY.replace(b'"finish_reason":"stop"', b'"finish_reason":' + json.dumps(reason).encode())
    stream = ChatStream()
    stream.feed(data)
    recorder = Recorder(secrets=["sk-secret"], model=reason, route=reason, request_template=reason)
    recorder.start(200, {"x-request-id": reason} if reason.isascii() else HEAD)
    recorder.piece(data, seconds)

    recording = recorder.finish(stream.close(), error_class=reason)

    assert recording is not None
    assert Sidecar.from_dict(recording.sidecar.to_dict()) == recording.sidecar
    assert "sk-secret" not in json.dumps(recording.sidecar.to_dict())
    recording.write(tmp_path / "answer.sse")
    assert Recording.load(tmp_path / "answer.sse").body == recording.body


@pytest.mark.parametrize("end", [None, *ENDS])
def test_an_ending_is_what_closes_a_stream_the_same_way(end: str | None) -> None:
    ending = Terminal(end).ending()
    stream = ChatStream()
    stream.feed(SCENARIOS["truncated"].body)

    verdict = stream.close(ending)

    if end in CLOSE_CODES:
        assert ending == verdict.code == end
    else:
        assert isinstance(ending, ConnectionError) == (end == "error")
        assert ending is None or end == "error"


@pytest.mark.parametrize(
    ("name", "close", "end"),
    [
        ("text", None, "done"),
        ("truncated", None, "end"),
        ("truncated", ConnectionError(), "error"),
        ("truncated", "deadline_idle", "deadline_idle"),
        ("truncated", "cancelled", "cancelled"),
        ("provider_error", None, "fault"),
        ("conflict", None, "fault"),
        ("no_done", None, "end"),
        ("length", None, "done"),
    ],
)
def test_the_terminal_reason_is_read_off_the_verdict(name: str, close: Any, end: str) -> None:
    stream = ChatStream()
    stream.feed(SCENARIOS[name].body)

    terminal = Terminal.of(stream.close(close), type(close).__name__ if isinstance(close, Exception) else None)

    assert terminal.end == end


def test_a_refused_response_ends_refused() -> None:
    stream = ChatStream()
    stream.start(503, {})

    assert Terminal.of(stream.close()).end == "refused"


def test_a_body_without_sidecar_is_one_untimed_piece(tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    path.write_bytes(BODY)

    recording = Recording.load(path)

    assert not recording.timed
    assert list(recording.timed_pieces()) == [(0.0, BODY)]
    assert recording.sidecar == Sidecar()


def test_a_packed_recording_is_read_and_written_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "answer.sse.gz"
    _recorded().write(path)

    assert gzip.decompress(path.read_bytes()) == BODY
    assert sorted(found.name for found in tmp_path.iterdir()) == ["answer.json", path.name]
    assert Recording.load(path) == _recorded()

    monkeypatch.setattr("glmsse.capture.recording.MOST_UNPACKED_BYTES", 9)
    with pytest.raises(UnfitRecording, match="unpacks to more than 9 bytes"):
        Recording.load(path)
    path.write_bytes(BODY)
    with pytest.raises(UnfitRecording, match="the packed body is damaged"):
        Recording.load(path)


def test_a_body_called_json_has_no_sidecar_and_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "error.json"
    path.write_bytes(b'{"error":{}}')

    assert Recording.load(path).body == b'{"error":{}}'
    with pytest.raises(UnfitRecording, match="is not called"):
        Recording(b"{}").write(path)


def test_pieces_are_the_recorded_ones(tmp_path: Path) -> None:
    assert list(_recorded().pieces()) == list(uneven_pieces(BODY))


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"schema": "other"}, "answer.json: it is no sidecar of a recording"),
        ({"version": 2}, "answer.json: it has version 2, and this glmsse reads version 1 only"),
        ({"version": True}, "answer.json: version is not 1"),
        ({"sha256": "0" * 64}, "answer.json: it belongs to another body"),
        ({"bytes": None}, "answer.json: bytes is missing"),
        ({"status": "200"}, "answer.json: status is not of type integer or null"),
        ({"chunks": [[0.1, 5]]}, "answer.json: chunks does not add up to the body's bytes"),
        ({"chunks": [[0.2, 5], [0.1, 5]]}, "answer.json: chunks has times that run backwards or too far"),
        ({"chunks": [[0.1, 0]]}, "answer.json: chunks has a size that is no positive integer"),
        ({"chunks": [[0.1, 1.5]]}, "answer.json: chunks has a size that is no positive integer"),
        ({"chunks": [[0.1]]}, r"answer.json: chunks\[0\] has too few or too many items"),
        ({"terminal": {"end": "asleep"}}, "answer.json: terminal.end is none of the known values"),
        ({"headers": {"SECRET": 1}}, "answer.json: a field of headers is not of type string"),
        ({"retries": -1}, "answer.json: retries is out of range"),
        ({"model": "m" * 300}, "answer.json: model is too long"),
    ],
)
def test_a_sidecar_that_does_not_fit_is_refused_without_its_text(
    tmp_path: Path, changed: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UnfitRecording, match=f"^{problem}$"):
        Recording.load(_written(tmp_path, **changed))


@pytest.mark.parametrize(
    "text", ["", "[]", "{", "[" * 100_000, '{"schema":"glmsse.recording","version":NaN}', "\ud800"]
)
def test_a_sidecar_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    path = _written(tmp_path)
    path.with_suffix(".json").write_bytes(text.encode(errors="surrogatepass"))

    with pytest.raises(UnfitRecording):
        Recording.load(path)


def test_unknown_fields_are_ignored(tmp_path: Path) -> None:
    assert Recording.load(_written(tmp_path, mood="good")) == _recorded()


def test_a_failed_write_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "answer.sse"
    path.write_bytes(b"before")

    def fail(*_: object) -> None:
        raise OSError(28, "no space")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        _recorded().write(path)

    assert os.listdir(tmp_path) == ["answer.sse"]
    assert path.read_bytes() == b"before"


@pytest.mark.parametrize("fails", [False, True])
def test_a_file_is_closed_before_it_is_renamed_or_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    closed: list[bool] = []
    files: list[BinaryIO] = []

    def noting(does: Callable[..., None]) -> Callable[..., None]:
        def noted(*args: Any) -> None:
            closed.append(files[0].closed)
            does(*args)

        return noted

    monkeypatch.setattr(os, "replace", noting(os.replace))
    monkeypatch.setattr(os, "unlink", noting(os.unlink))

    with suppress(OSError), written_whole(tmp_path / "x") as file:
        files.append(file)
        file.write(b"whole")
        if fails:
            raise OSError(28, "no space")

    assert closed == [True]
    assert os.listdir(tmp_path) == ([] if fails else ["x"])


def test_a_stream_reads_as_the_recording_was_read() -> None:
    stream = stream_for(Reading("gateway", deny=("done_optional",), limits={"max_events": 4}))

    stream.feed(SCENARIOS["too_many_events"].body)

    assert stream.close().code == "too_many_events"


@pytest.mark.parametrize("reading", [Reading("none"), Reading(allow=("none",)), Reading(limits={"max_none": 1})])
def test_a_reading_that_is_not_known_is_refused(reading: Reading) -> None:
    with pytest.raises(MisuseError):
        stream_for(reading)


def test_a_recording_shows_no_text() -> None:
    assert "Ready" not in repr(_recorded())


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


def test_every_field_of_the_sidecar_is_in_the_schema() -> None:
    assert set(SCHEMA["properties"]) == set(Sidecar().to_dict())


def test_a_sidecar_survives_its_document() -> None:
    sidecar = replace(
        _recorded().sidecar,
        reading=Reading("gateway", ("name_concat",), choices=2, tools=("t",), limits={"max_events": None}),
    )

    assert Sidecar.from_dict(json.loads(json.dumps(sidecar.to_dict()))) == sidecar


def test_a_tape_writes_what_an_adapter_read(tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    with record(path, model="glm-5.2", clock=iter(range(99)).__next__) as tape:
        tape.start(200, HEAD)
        for _ in iter_events(tape.tee(uneven_pieces(BODY)), tape.stream):
            pass

    recording = Recording.load(path)
    assert recording == tape.recording
    assert recording.body == BODY
    assert recording.sidecar.chunks[:2] == ((1, 1), (2, 7))
    assert recording.sidecar.terminal == Terminal("done", "stop")


def test_the_times_of_a_tape_begin_where_its_block_does(tmp_path: Path) -> None:
    now = 100.0

    @contextmanager
    def slow_response() -> Iterator[Iterator[bytes]]:
        nonlocal now
        now += 4.0  # until the head came
        yield uneven_pieces(BODY)

    with record(tmp_path / "answer.sse", clock=lambda: now) as tape, slow_response() as pieces:
        list(iter_events(tape.tee(pieces), tape.stream))

    assert Recording.load(tmp_path / "answer.sse").sidecar.first_event_seconds == 4.0


def test_an_async_tape_does_the_same(tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"

    async def pieces() -> AsyncIterator[bytes]:
        for piece in uneven_pieces(BODY):
            yield piece

    async def read() -> None:
        with record(path) as tape:
            tape.start(200, HEAD)
            await acollect(tape.atee(pieces()), tape.stream)

    asyncio.run(read())
    assert Recording.load(path).body == BODY


def test_a_tape_that_is_left_early_says_so(tmp_path: Path) -> None:
    path = tmp_path / "answer.sse"
    with record(path) as tape:
        next(iter(tape.tee([BODY[:300], BODY[300:]])))

    recording = Recording.load(path)
    assert recording.body == BODY[:300]
    assert recording.sidecar.terminal.end == "cancelled"


def test_a_tape_is_written_when_the_connection_breaks_and_when_the_block_fails(tmp_path: Path) -> None:
    def breaking() -> Iterator[bytes]:
        yield BODY[:300]
        raise ConnectionResetError

    with record(tmp_path / "broken.sse") as tape:
        for _ in iter_events(tape.tee(breaking()), tape.stream):
            pass

    def fail() -> None:
        with record(tmp_path / "failed.sse") as tape:
            for _ in iter_events(tape.tee([BODY]), tape.stream):
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()

    assert Recording.load(tmp_path / "broken.sse").sidecar.terminal == Terminal(
        "error", None, "unterminated_event", "ConnectionResetError"
    )
    assert Recording.load(tmp_path / "failed.sse").body == BODY


def test_a_tape_that_got_nothing_leaves_no_file(tmp_path: Path) -> None:
    with record(tmp_path / "answer.sse"):
        pass

    assert list(tmp_path.iterdir()) == []
