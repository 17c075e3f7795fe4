"""A marker in every field and header never shows in any repr, message, traceback or pickle of what we make."""

from __future__ import annotations

import copy
import json
import logging
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from wire import body, by_size, chunk, content, each_byte, end, event, feed_all, piece, reasoning, tools

MARK = "CANARY do-not-show"
"""With a space, so that it is no word that may be shown as a code or an id."""

BAD = MARK.encode()
BEFORE = body(
    f": {MARK}\n\n".encode(),
    f"{MARK}: {MARK}\n\n".encode(),
    f"event: {MARK}\nid: {MARK}\ndata: {{}}\n\n".encode(),
    {**reasoning(MARK), "id": MARK, "model": MARK, "object": MARK, MARK: MARK},
    {**content(MARK), "id": MARK},
    {**tools(piece(f'{{"{MARK}":"{MARK}', id=MARK, name=MARK)), "id": MARK},
    done=False,
)

FAULTS: dict[str, bytes] = {
    "invalid_utf8": b"data: " + BAD + b"\xff\n\n",
    "invalid_utf8 in a comment": b": " + BAD + b"\xff\n\n",
    "bad_json": b'data: {"' + BAD + b"\n\n",
    "bad_json number": b"data: 1" + BAD + b"\n\n",
    "spliced_frame": b'data: {"id":"' + BAD + b'","cdata: {"id":"' + BAD + b'"}\n\n',
    "event_not_object": b'data: "' + BAD + b'"\n\n',
    "json_nonfinite": b'data: {"' + BAD + b'":NaN}\n\n',
    "json_too_deep": b'data: {"' + BAD + b'":' + b"[" * 99 + b"\n\n",
    "json_number_too_long": b'data: {"' + BAD + b'":' + b"1" * 99 + b"}\n\n",
    "duplicate_key": b'data: {"' + BAD + b'":1,"' + BAD + b'":1}\n\n',
    "lone_surrogate": b'data: {"choices":[{"delta":{"content":"\\ud800' + BAD + b'"}}]}\n\n',
    "unexpected_shape": event({"choices": [{"delta": {"content": [MARK]}}]}),
    "unexpected_shape of a key": event({"choices": {MARK: MARK}}),
    "stable_conflict": event(tools(piece(MARK, id=MARK + "2", name=MARK))),
    "arguments_type": event(tools(piece({MARK: MARK}))),
    "unexpected_choice": event(content(MARK, index=9)),
    "finish_conflict": event(chunk(finish=MARK)) + event(chunk(finish=MARK + "2")),
    "delta_after_finish": event(chunk(finish=MARK)) + event(chunk({"content": MARK})),
    "response_id_changed": event(content(MARK, id=MARK + "2")),
    "legacy_function_call": event(chunk({"function_call": {"name": MARK}})),
    "message_not_delta": event({"choices": [{"message": {"content": MARK}}]}),
    "provider_error": event({"error": {"code": MARK, "message": MARK, "type": MARK}, "request_id": MARK}),
    "provider_error as text": event(MARK, "error"),
    "event_too_large": b"data: " + BAD * 99,
    "too_many_event_lines": (b"data: " + BAD + b"\n") * 40,
    "content_too_large": event(chunk({"content": MARK * 20})),
    "reasoning_too_large": event(chunk({"reasoning_content": MARK * 20})),
    "argument_too_large": event(tools(piece(MARK * 20))),
    "too_many_tool_calls": event(tools(piece(MARK, index=1), piece(MARK, index=2), piece(MARK, index=3))),
    "unterminated_event": b"data: " + BAD,
    "incomplete_stream": b"",
    "finish_other": event({**end(MARK), "id": MARK}) + b"data: [DONE]\n\n",
    "arguments_not_json": event({**end("tool_calls"), "id": MARK}) + b"data: [DONE]\n\n",
}
for _name in ("finish_conflict", "delta_after_finish", "unexpected_choice"):
    FAULTS[_name] = FAULTS[_name].replace(b'"id":"r-1"', b'"id":"' + BAD + b'"')
FAULTS = {name: data.replace(b'"id":"r-1",', b"") for name, data in FAULTS.items()}


def _limits(glmsse: Any) -> Any:
    return glmsse.Limits(
        max_event_bytes=1000,
        max_event_lines=30,
        max_content_bytes=300,
        max_reasoning_bytes=300,
        max_argument_bytes=300,
        max_tool_calls=2,
    )


def _is_ours(frame_file: str) -> bool:
    return "glmsse" in frame_file and "test_canary" not in frame_file


def _traceback_lines(error: BaseException) -> Iterator[str]:
    """The traceback below the test's own frames, with every local of every frame, as a crash reporter sends it."""
    below = error.__traceback__
    while below is not None and not _is_ours(below.tb_frame.f_code.co_filename):
        below = below.tb_next
    yield from traceback.TracebackException(type(error), error, below, capture_locals=True).format()


def _everything_shown(error: Any) -> Iterator[str]:
    yield from (repr(error), str(error), repr(error.args), f"{error}", repr(vars(error)))
    yield json.dumps(error.to_dict())
    yield repr(error.events)
    yield repr(getattr(error, "__notes__", ()))
    for linked in (error.__cause__, error.__context__):
        assert linked is None
    yield from _traceback_lines(error)
    yield repr(pickle.dumps(error.to_dict()))


def _assert_silent(lines: Iterator[str] | list[str]) -> None:
    for line in lines:
        assert "CANARY" not in line
        assert "do-not-show" not in line


def _raised(action: Callable[[], object]) -> Any:
    try:
        action()
    except Exception as error:
        return error
    pytest.fail("nothing was raised")


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("cut", [None, 7, 1])
def test_chat_shows_no_text_after_a_fault(glmsse: Any, fault: str, cut: int | None) -> None:
    data = BEFORE + FAULTS[fault]
    stream = glmsse.ChatStream(limits=_limits(glmsse))

    events = feed_all(stream, [data] if cut is None else by_size(data, cut))
    verdict = stream.close(ConnectionError(MARK))

    assert verdict.code == fault.split()[0]
    values = [stream, verdict, stream.snapshot, verdict.error, *events, *stream.snapshot.choices]
    _assert_silent([shown for value in values for shown in (repr(value), str(value), f"{value!r:}")])
    _assert_silent([repr(verdict.checks), repr(verdict.missing), repr(verdict.tolerated), str(verdict.code)])
    _assert_silent(_everything_shown(verdict.error))
    _assert_silent(_everything_shown(_raised(verdict.raise_for_verdict)))


@pytest.mark.parametrize(
    "fault", ["invalid_utf8", "invalid_utf8 in a comment", "event_too_large", "too_many_event_lines"]
)
@pytest.mark.parametrize("cut", [None, 7, 1])
def test_framer_shows_no_text_in_what_it_raises(glmsse: Any, fault: str, cut: int | None) -> None:
    data = BEFORE + FAULTS[fault]
    framer = glmsse.SSEFramer(_limits(glmsse))

    def feed() -> None:
        for part in [data] if cut is None else by_size(data, cut):
            framer.feed(part)

    _assert_silent(_everything_shown(_raised(feed)))
    _assert_silent(_everything_shown(_raised(lambda: framer.feed(data))))
    _assert_silent(_everything_shown(_raised(framer.close)))
    _assert_silent([repr(framer), str(framer)])


def test_framer_shows_no_text_of_a_tail(glmsse: Any) -> None:
    framer = glmsse.SSEFramer()
    events = framer.feed(b"event: " + BAD + b"\nid: " + BAD + b"\ndata: " + BAD + b"\n\ndata: " + BAD)
    _assert_silent([repr(events), str(events[0]), repr(framer)])
    _assert_silent(_everything_shown(_raised(framer.close)))


def test_event_that_is_no_json_shows_no_text(glmsse: Any) -> None:
    (sent,) = glmsse.SSEFramer().feed(b"data: {" + BAD + b"\n\n")
    _assert_silent(_everything_shown(_raised(sent.json)))


@pytest.mark.parametrize(
    "wrong", [MARK, [MARK], {MARK: MARK}, memoryview(MARK.encode() * 2)[::2]], ids=lambda value: type(value).__name__
)
def test_misuse_of_feed_shows_no_text(glmsse: Any, wrong: Any) -> None:
    fresh, refused, done = glmsse.ChatStream(), glmsse.ChatStream(), glmsse.ChatStream()
    refused.start(500, {})
    done.feed(b"data: [DONE]\n\n")
    closed = glmsse.ChatStream()
    closed.close()
    for stream in (fresh, refused, done, closed):
        _assert_silent(_everything_shown(_raised(lambda stream=stream: stream.feed(wrong))))  # type: ignore[misc]
    _assert_silent(_everything_shown(_raised(lambda: glmsse.SSEFramer().feed(wrong))))


def test_misuse_of_add_shows_no_text(glmsse: Any) -> None:
    _assert_silent(_everything_shown(_raised(lambda: glmsse.ChatStream().add([MARK]))))
    closed = glmsse.ChatStream()
    closed.close()
    _assert_silent(_everything_shown(_raised(lambda: closed.add({MARK: MARK}))))


@pytest.mark.parametrize(
    "headers",
    [
        MARK,
        [("set-cookie", MARK), ("x",)],
        [("set-cookie", MARK), 5],
        {"set-cookie": MARK, "x": 5},
        [(MARK, MARK, MARK)],
        {"set-cookie": MARK, 5: "x"},
    ],
    ids=repr,
)
def test_misuse_of_start_shows_no_header(glmsse: Any, headers: Any) -> None:
    _assert_silent(_everything_shown(_raised(lambda: glmsse.ChatStream().start(200, headers))))
    _assert_silent(_everything_shown(_raised(lambda: glmsse.ChatStream().start("200", {"set-cookie": MARK}))))
    used = glmsse.ChatStream()
    used.feed(b"x")
    _assert_silent(_everything_shown(_raised(lambda: used.start(200, headers))))


@pytest.mark.parametrize("status", [200, 401, 500])
def test_refused_response_shows_neither_headers_nor_body(glmsse: Any, status: int) -> None:
    headers = {
        "content-type": MARK,
        "set-cookie": MARK,
        "x-request-id": MARK,
        "retry-after": MARK,
        "content-encoding": MARK,
        MARK: MARK,
    }
    sent = json.dumps({"error": {"code": MARK, "message": MARK, "type": MARK}, "request_id": MARK, MARK: MARK}).encode()
    for data in (sent, sent[:-1], BAD, BAD + b"\xff"):
        stream = glmsse.ChatStream()
        events = stream.start(status, headers)
        feed_all(stream, each_byte(data))
        verdict = stream.close()

        _assert_silent([repr(events), repr(stream), repr(verdict), json.dumps(verdict.to_dict())])
        _assert_silent(_everything_shown(verdict.error))
        _assert_silent(_everything_shown(_raised(verdict.raise_for_verdict)))


def test_accepted_stream_shows_no_text(glmsse: Any) -> None:
    stream = glmsse.ChatStream(digest=True)
    events = stream.feed(
        BEFORE
        + event({**tools(piece('"}')), "id": MARK})
        + event({**end("tool_calls"), "id": MARK})
        + b"data: [DONE]\n\n"
    )
    verdict = stream.close()
    assert verdict.accepted
    _assert_silent([repr(events), repr(verdict), repr(verdict.tool_calls), repr(stream.snapshot), repr(stream)])
    _assert_silent([json.dumps(verdict.to_dict())])


def test_unknown_words_of_the_caller_are_not_echoed(glmsse: Any) -> None:
    for options in (
        {"profile": MARK},
        {"allow": [MARK]},
        {"deny": [MARK]},
        {"tools": MARK},
        {"choices": MARK},
        {"limits": MARK},
    ):
        error = _raised(lambda options=options: glmsse.ChatStream(**options))  # type: ignore[misc]
        _assert_silent([str(error), repr(error), repr(error.args)])


def _failed(glmsse: Any, fault: str) -> Any:
    stream = glmsse.ChatStream(limits=_limits(glmsse))
    stream.feed(BEFORE + FAULTS[fault])
    return stream.close(ConnectionError(MARK))


@pytest.mark.parametrize("fault", FAULTS)
def test_errors_that_are_pickled_show_no_text(glmsse: Any, fault: str) -> None:
    error = _failed(glmsse, fault).error
    copies = (error, copy.copy(error), copy.deepcopy(error), error.again())
    for made in copies:
        _assert_silent([repr(made.__reduce_ex__(4)), *_everything_shown(made)])
    framer = glmsse.SSEFramer(_limits(glmsse))
    if fault == "invalid_utf8":
        raised = _raised(lambda: framer.feed(BEFORE + FAULTS[fault]))
        assert raised.events
        _assert_silent([repr(raised.__reduce_ex__(4)), repr(copy.copy(raised).events)])


@pytest.mark.parametrize("fault", FAULTS)
def test_verdict_of_a_fault_tells_no_text_as_json(glmsse: Any, fault: str) -> None:
    """But the finish reason, which is kept verbatim."""
    told = _failed(glmsse, fault).to_dict()
    reason = told.pop("finish_reason")
    assert reason in (None, "tool_calls", MARK)
    _assert_silent([json.dumps(told)])


@pytest.mark.parametrize("fault", FAULTS)
def test_no_level_of_logging_shows_text(glmsse: Any, fault: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        verdict = _failed(glmsse, fault)
        assert caplog.records == []  # the package logs nothing by itself
        log = logging.getLogger("application")
        try:
            verdict.raise_for_verdict()
        except glmsse.GlmsseError as error:
            log.exception("%s %r", error, error, extra={"error": error, "verdict": verdict})
        log.error("%s %r %s", verdict, verdict.error, verdict.error)
    assert len(caplog.records) == 2
    _assert_silent([caplog.text, *(repr(vars(record)) for record in caplog.records)])


@pytest.mark.parametrize("fault", FAULTS)
def test_events_of_a_fault_compare_and_hash_without_showing_text(glmsse: Any, fault: str) -> None:
    stream = glmsse.ChatStream(limits=_limits(glmsse))
    events = stream.feed(BEFORE + FAULTS[fault])
    with pytest.raises(AssertionError) as caught:
        assert events == [], events
    # pytest's own introspection goes by repr.
    _assert_silent([str(caught.value), *map(repr, events)])
    assert all(isinstance(hash(one), int) for one in events)


def _raw_text(glmsse: Any, text: str, **options: Any) -> Any:
    parser = glmsse.ToolCallParser(None, limits=_limits(glmsse), **options)
    return parser, parser.feed(text)


def test_raw_text_shows_none_of_it(glmsse: Any) -> None:
    sent = f"{MARK}<tool_call>f<arg_key>{MARK}</arg_key><arg_value>{MARK}</arg_value></tool_call>{MARK}"
    parser, events = _raw_text(glmsse, sent)
    events += parser.close()
    _assert_silent([repr(parser), repr(events), repr(parser.snapshot), repr(parser.flags)])
    _assert_silent(_everything_shown(_raised(lambda: parser.feed(MARK))))
    _assert_silent(_everything_shown(_raised(lambda: glmsse.ToolCallParser().feed([MARK]))))


def test_raw_text_past_a_cap_shows_none_of_it(glmsse: Any) -> None:
    _, events = _raw_text(glmsse, MARK * 99)
    assert events[-1].error.code == "content_too_large"
    _assert_silent([repr(events), *_everything_shown(events[-1].error)])


def test_encoders_show_no_text_in_what_they_raise(glmsse: Any) -> None:
    write, comment, write_json = (getattr(glmsse.encode.sse, f"write_{name}") for name in ("event", "comment", "json"))
    half = f"{MARK}\ud800"
    for wrong in (
        lambda: write(MARK, event=f"{MARK}\n"),
        lambda: write(MARK, id=f"{MARK}\r"),
        lambda: write(MARK, id=[MARK]),
        lambda: write(MARK, event=MARK, retry=-1),
        lambda: write([MARK]),
        lambda: write(half),
        lambda: comment(half),
        lambda: comment([MARK]),
        lambda: write_json({MARK: half}, event=MARK),
    ):
        _assert_silent(_everything_shown(_raised(wrong)))


def _command(tmp_path: Path, fault: str, *arguments: str) -> tuple[str, str]:
    """What a command prints, on stdout and stderr, for a body with this fault."""
    path = tmp_path / "body.sse"
    path.write_bytes(BEFORE + FAULTS[fault])
    command = [sys.executable, "-m", "glmsse", *arguments, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize(
    "fault", ["bad_json", "provider_error", "invalid_utf8", "unterminated_event", "finish_conflict"]
)
def test_commands_that_judge_print_no_text(tmp_path: Path, fault: str) -> None:
    said = [*_command(tmp_path, fault, "check"), *_command(tmp_path, fault, "check", "--json")]
    if fault == "finish_conflict":  # the one word that is kept verbatim, on one line and escaped
        said = [line.replace(MARK, "") for line in said]
    _assert_silent(said)


@pytest.mark.parametrize("command", [["text"], ["events"], ["events", "--json"], ["convert", "--to", "anthropic"]])
def test_commands_that_print_the_answer_print_none_of_it_on_stderr(tmp_path: Path, command: list[str]) -> None:
    for fault in ("bad_json", "provider_error", "stable_conflict"):
        _assert_silent([_command(tmp_path, fault, *command)[1]])


def test_proxy_tells_no_text_in_its_log_and_its_metrics() -> None:
    """Marks in the request, its headers, the stream and its error."""
    httpx = pytest.importorskip("httpx")
    proxying = pytest.importorskip("proxying")
    upstream = proxying.Recorder()
    try:
        with proxying.proxy(upstream.url) as running:
            for fault in ("bad_json", "provider_error", "invalid_utf8", "unterminated_event", "finish_other"):
                upstream.serve(BEFORE + FAULTS[fault])
                request = {"model": MARK, "stream": True, "messages": [{"role": "user", "content": MARK}]}
                headers = {"authorization": f"Bearer {MARK}", "x-request-id": MARK, "cookie": MARK}
                for path in ("/v1/chat/completions", f"/v1/{MARK}"):
                    httpx.post(running.url + path, json=request, headers=headers, timeout=20, trust_env=False)
                running.answered()
            metrics = httpx.get(running.url + "/metrics", timeout=20, trust_env=False).text
    finally:
        upstream.close()
    assert len(running.log) >= 5
    assert 'outcome="provider_error"' in metrics
    _assert_silent([json.dumps(running.log), repr(running.log), metrics])
