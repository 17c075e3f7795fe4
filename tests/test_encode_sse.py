"""The one writer of server-sent events: what it writes is read back, and nothing else (reliability T23)."""

from __future__ import annotations

from types import ModuleType

import pytest

from glmsse import MisuseError
from glmsse.encode import write_comment, write_event


def read(glmsse: ModuleType, data: bytes) -> list[tuple[str, str]]:
    framer = glmsse.SSEFramer()
    events = framer.feed(data)
    assert framer.tail == 0
    return [(event.event, event.data) for event in events]


def test_an_event_is_one_data_line_and_a_blank_line() -> None:
    assert write_event('{"a":1}') == b'data: {"a":1}\n\n'


def test_name_id_and_retry_come_before_the_data() -> None:
    written = write_event("x", event="ping", id="7", retry=250)
    assert written == b"event: ping\nid: 7\nretry: 250\ndata: x\n\n"


def test_data_is_split_at_every_kind_of_line_end(glmsse: ModuleType) -> None:
    written = write_event("a\nb\rc\r\nd\n\re")
    assert written == b"data: a\ndata: b\ndata: c\ndata: d\ndata: \ndata: e\n\n"
    assert read(glmsse, written) == [("message", "a\nb\nc\nd\n\ne")]


@pytest.mark.parametrize(
    "data", ["x\n\ndata: y", "x\r\rdata: y", "x\r\n\r\nevent: error", "x\rid: 1", "\revent: error"]
)
def test_data_cannot_begin_an_event_of_its_own(glmsse: ModuleType, data: str) -> None:
    events = read(glmsse, write_event(data, event="safe"))
    assert events == [("safe", data.replace("\r\n", "\n").replace("\r", "\n"))]


@pytest.mark.parametrize(
    "data", ["", " ", "  x", "\n", "x\n", ":", "\ufeffx", "\x00", "\x0b\x0c\x1c\x85\u2028\u2029", "😀"]
)
def test_odd_data_is_read_back_as_it_was(glmsse: ModuleType, data: str) -> None:
    assert read(glmsse, write_event(data)) == [("message", data)]


@pytest.mark.parametrize("option", ["event", "id"])
@pytest.mark.parametrize("breaker", ["\r", "\n", "\r\n", "\0"])
def test_a_line_break_or_nul_in_a_name_or_id_is_refused(option: str, breaker: str) -> None:
    with pytest.raises(MisuseError, match="takes no CR, LF or NUL") as caught:
        write_event("x", **{option: f"secret{breaker}data: y"})
    assert "secret" not in str(caught.value)


def test_an_empty_name_is_refused_for_it_would_be_read_as_message() -> None:
    with pytest.raises(MisuseError, match="not empty"):
        write_event("x", event="")


def test_ids_are_read_back_and_an_empty_one_clears(glmsse: ModuleType) -> None:
    written = write_event("a", id=" 1") + write_event("b") + write_event("c", id="")
    events = glmsse.SSEFramer().feed(written)
    assert [event.id for event in events] == [" 1", " 1", ""]


def test_retry_is_read_back(glmsse: ModuleType) -> None:
    events = glmsse.SSEFramer().feed(write_event("a", retry=0) + write_event("b", retry=10**17 - 1))
    assert [event.retry for event in events] == [0, 10**17 - 1]


@pytest.mark.parametrize("retry", [-1, 10**17, True, 1.0, "5"])
def test_a_retry_that_no_reader_takes_is_refused(retry: object) -> None:
    with pytest.raises(MisuseError, match="retry"):
        write_event("a", retry=retry)  # type: ignore[arg-type]


@pytest.mark.parametrize("options", [{"data": b"x"}, {"data": "x", "event": b"x"}, {"data": "x", "id": 7}])
def test_another_type_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(MisuseError, match="takes a str"):
        write_event(**options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "options", [{"data": "\ud83d"}, {"data": "x", "event": "\udc00"}, {"data": "x", "id": "\udc00"}]
)
def test_half_a_surrogate_pair_is_refused_without_holding_the_text(options: dict[str, str]) -> None:
    with pytest.raises(MisuseError, match="surrogate") as caught:
        write_event(**options)
    assert caught.value.__context__ is None


def test_a_comment_is_a_block_of_its_own_and_no_event(glmsse: ModuleType) -> None:
    assert write_comment("keep-alive") == b": keep-alive\n\n"
    assert write_comment("a\rdata: x\n\ndata: y") == b": a\n: data: x\n: \n: data: y\n\n"
    assert read(glmsse, write_comment("a\r\rdata: x") + write_event("z") + write_comment()) == [("message", "z")]
