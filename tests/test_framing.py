"""Layer 1, rule by rule: every expected value is written out."""

from __future__ import annotations

import array
import copy
import ctypes
import inspect
import itertools
import json
import logging
import mmap
import pickle
import re
import sys
import time
import traceback
import tracemalloc
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from framing_model import NO_CAPS, facts, fed, framed

CASES = json.loads(Path(__file__).with_name("data").joinpath("eventsource_cases.json").read_text())["cases"]


def events_of(glmsse: ModuleType, *pieces: bytes, **options: Any) -> list[tuple[str, str, str, int | None]]:
    framer = glmsse.SSEFramer(**options)
    return [(e.event, e.data, e.id, e.retry) for piece in pieces for e in framer.feed(piece)]


def data_of(glmsse: ModuleType, *pieces: bytes) -> list[str]:
    return [data for _, data, _, _ in events_of(glmsse, *pieces)]


def fault_of(glmsse: ModuleType, framer: Any, *pieces: bytes) -> Any:
    def read() -> None:
        for piece in pieces:
            framer.feed(piece)
        framer.close()

    with pytest.raises(glmsse.GlmsseError) as caught:
        read()
    return caught.value


# Cases kept as data.


def case_bytes(text: str) -> bytes:
    return re.sub(r"<(.)\*(\d+)>", lambda mark: mark[1] * int(mark[2]), text).encode("latin-1")


@pytest.mark.parametrize("case", CASES, ids=[case["what"] for case in CASES])
def test_stream_of_the_case_file_makes_its_events(glmsse: ModuleType, case: dict[str, Any]) -> None:
    stream = case_bytes(case["input"])
    cuts = [[stream], [stream[at : at + 1] for at in range(len(stream))]]
    cuts += [[stream[:at], stream[at:]] for at in range(1, min(len(stream), 300))]
    for pieces in cuts:
        got = events_of(glmsse, *pieces, errors="replace")
        assert [[event, data, id] for event, data, id, _ in got] == case["events"]
        if "retry" in case:
            assert got[-1][3] == case["retry"]


# Line ends.


@pytest.mark.parametrize("line_end", [b"\n", b"\r", b"\r\n"])
def test_each_line_end_ends_lines_and_blocks(glmsse: ModuleType, line_end: bytes) -> None:
    stream = b"data: a%bdata: b%b%bdata: c%b%b" % ((line_end,) * 5)
    assert data_of(glmsse, stream) == ["a\nb", "c"]


def test_event_is_complete_at_the_second_cr_and_the_lf_behind_it_is_swallowed(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer()
    assert framer.feed(b"data: a\r") == []
    assert [e.data for e in framer.feed(b"\r")] == ["a"]
    assert framer.feed(b"\n") == []
    assert framer.feed(b"\n") == []
    (event,) = framer.feed(b"data: b\n\n")
    assert event.offset == 11


def test_lf_cr_and_lf_are_two_line_ends(glmsse: ModuleType) -> None:
    assert data_of(glmsse, b"data: a\n\rdata: b\n\n\n") == ["a", "b"]


@pytest.mark.parametrize("other", [b"\x0b", b"\x0c", b"\x1c", b"\x1e", b"\xc2\x85", b"\xe2\x80\xa8", b"\xe2\x80\xa9"])
def test_no_other_character_ends_a_line(glmsse: ModuleType, other: bytes) -> None:
    assert data_of(glmsse, b"data: a%bdata: b\n\n" % other) == [f"a{other.decode()}data: b"]


# The byte order mark.


def test_byte_order_mark_is_dropped_at_the_start_however_it_is_cut(glmsse: ModuleType) -> None:
    stream = b"\xef\xbb\xbfdata: a\n\n"
    for at in range(len(stream)):
        framer = glmsse.SSEFramer()
        (event,) = framer.feed(stream[:at]) + framer.feed(stream[at:])
        assert (event.data, event.offset, framer.bytes_seen) == ("a", 3, 12)


def test_half_a_byte_order_mark_is_held_and_counts_as_tail(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer()
    assert framer.feed(b"\xef") == []
    assert framer.tail == 1
    framer.feed(b"\xbb")
    assert framer.tail == 2
    fault = fault_of(glmsse, framer)
    assert (fault.code, fault.offset, fault.tail) == ("unterminated_event", 2, 2)


def test_bytes_that_were_held_and_are_no_mark_belong_to_the_line(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(errors="replace")
    framer.feed(b"\xef")
    framer.feed(b"\xbbx")
    assert framer.tail == 3
    assert glmsse.SSEFramer(errors="replace").feed(b"\xef\xbbdata: a\n\n") == []


def test_dropped_mark_counts_for_the_stream_but_not_for_the_event(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_event_bytes=5, max_stream_bytes=10))
    assert [e.data for e in framer.feed(b"\xef\xbb\xbfdata:\n\n")] == [""]
    assert framer.bytes_seen == 10
    fault = fault_of(glmsse, framer, b"x")
    assert (fault.code, fault.offset) == ("stream_too_large", 10)


def test_held_bytes_that_are_no_mark_trip_the_cap_at_their_own_offset(glmsse: ModuleType) -> None:
    fault = fault_of(glmsse, glmsse.SSEFramer(glmsse.Limits(max_event_bytes=1)), b"\xef\xbb", b"x")
    assert (fault.code, fault.offset) == ("event_too_large", 1)


# Fields.


def test_fields_are_event_data_id_and_retry(glmsse: ModuleType) -> None:
    stream = b"event: delta\ndata: a\nid: 7\nretry: 3000\n\ndata: b\n\n"
    assert events_of(glmsse, stream) == [("delta", "a", "7", 3000), ("message", "b", "7", 3000)]


@pytest.mark.parametrize(
    "line", [b"Data: a", b"data : a", b" data: a", b"data\x00: a", b"datas: a", b"da", b"dat\xe2\x84\xaa"]
)
def test_other_names_are_ignored(glmsse: ModuleType, line: bytes) -> None:
    assert data_of(glmsse, line + b"\n\n") == []


@pytest.mark.parametrize(
    ("line", "data"),
    [
        (b"data", ""),
        (b"data:", ""),
        (b"data: ", ""),
        (b"data:  ", " "),
        (b"data:a", "a"),
        (b"data: a ", "a "),
        (b"data::", ":"),
    ],
)
def test_one_space_behind_the_colon_is_dropped(glmsse: ModuleType, line: bytes, data: str) -> None:
    assert data_of(glmsse, line + b"\n\n") == [data]


def test_event_without_data_is_forgotten(glmsse: ModuleType) -> None:
    assert events_of(glmsse, b"event: x\n\ndata: a\n\n") == [("message", "a", "", None)]


def test_last_event_line_of_a_block_counts_and_an_empty_name_is_message(glmsse: ModuleType) -> None:
    assert events_of(glmsse, b"event: x\nevent: y\ndata: a\n\n") == [("y", "a", "", None)]
    assert events_of(glmsse, b"event: x\nevent:\ndata: a\n\n") == [("message", "a", "", None)]


@pytest.mark.parametrize(
    ("value", "retry"),
    [
        (b"0", 0),
        (b"007", 7),
        (b"12345678901234567", 12345678901234567),
        (b"123456789012345678", None),
        (b"", None),
        (b" 1", None),
        (b"1 ", None),
        (b"+1", None),
        (b"1_0", None),
        (b"1.0", None),
        ("١".encode(), None),
        ("²".encode(), None),
    ],
)
def test_retry_takes_1_to_17_ascii_digits(glmsse: ModuleType, value: bytes, retry: int | None) -> None:
    assert events_of(glmsse, b"retry: %b\ndata: a\n\n" % value) == [("message", "a", "", retry)]


def test_id_with_nul_is_ignored_and_an_empty_one_resets(glmsse: ModuleType) -> None:
    stream = b"id: 1\nid: 2\x00\ndata: a\n\nid\ndata: b\n\n"
    assert events_of(glmsse, stream) == [("message", "a", "1", None), ("message", "b", "", None)]


def test_offset_is_the_first_byte_of_the_block_comments_included(glmsse: ModuleType) -> None:
    stream = b"\n\r\n: ping\ndata: a\n\nevent: x\r\ndata: b\r\n\r\ndata: c\n\n"
    for pieces in ([stream], [bytes([byte]) for byte in stream]):
        framer = glmsse.SSEFramer()
        events = [event for piece in pieces for event in framer.feed(piece)]
        assert [(e.data, e.offset) for e in events] == [("a", 3), ("b", 19), ("c", 40)]


# UTF-8.


@pytest.mark.parametrize(
    ("line", "start"),
    [
        (b"data: a\xff", 7),
        (b": \xc3", 2),
        (b"x\x80: y", 1),
        (b"id: \xed\xa0\x80", 4),
        (b"event: \xc0\xaf", 7),
        (b"data: \xe2\x82\xac\xe2\x82", 9),
        (b"data: \xf4\x90\x80\x80", 6),
        (b"data: \xf0\x9f\x98\x80\xf0\x9f\x98x", 10),
        (b"12345678\xe2\x28\xa1", 8),
    ],
)
def test_invalid_utf8_in_any_line_is_a_fault_at_its_first_byte(glmsse: ModuleType, line: bytes, start: int) -> None:
    stream = b"data: ok\n\n" + line + b"\n\n"
    for at in range(len(stream)):
        framer = glmsse.SSEFramer()
        fault = fault_of(glmsse, framer, stream[:at], stream[at:])
        assert (fault.code, fault.offset) == ("invalid_utf8", 10 + start)


def test_utf8_is_judged_at_the_line_end_so_an_earlier_cap_decides(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_event_bytes=4))
    assert fault_of(glmsse, framer, b": \xffabc\n\n").code == "event_too_large"
    framer = glmsse.SSEFramer(glmsse.Limits(max_stream_bytes=4))
    assert fault_of(glmsse, framer, b": \xffa\n\n").code == "stream_too_large"


def test_first_invalid_sequence_is_where_python_says(glmsse: ModuleType) -> None:
    """All sequences of up to 4 bytes out of the ones where the rules of UTF-8 change."""
    edges = [0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE]
    edges += [0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]
    framer = glmsse.SSEFramer()
    for size in (1, 2, 3):
        for chosen in itertools.product(edges, repeat=size):
            value = bytes(chosen)
            expected: int | None = None
            try:
                value.decode()
            except UnicodeDecodeError as error:
                expected = error.start + 2
            framer.reset()
            try:
                framer.feed(b"::" + value + b"\n")
                got = None
            except glmsse.ProtocolError as error:
                got = error.offset
            assert got == expected, value


def test_replace_mode_decodes_each_value_as_browsers_do(glmsse: ModuleType) -> None:
    stream = b"event: \xff\nid: \xc3\ndata: a\xe2\x82\ndata: \x82\xf0\x9f\n\n"
    assert events_of(glmsse, stream, errors="replace") == [("\ufffd", "a\ufffd\n\ufffd\ufffd", "\ufffd", None)]


# Limits.


def test_cap_on_bytes_counts_all_lines_without_line_ends(glmsse: ModuleType) -> None:
    limits = glmsse.Limits(max_event_bytes=10)
    assert len(glmsse.SSEFramer(limits).feed(b": xx\r\ndata:x\r\n\r\n")) == 1
    fault = fault_of(glmsse, glmsse.SSEFramer(limits), b": xx\r\ndata:xy\r\n\r\n")
    assert facts(fault) == ("event_too_large", 12, "max_event_bytes", 10, 11, None)


@pytest.mark.parametrize("line", [b": a", b"nonsense", b"data: a", b"event: a", b"id: a", b"retry: 1"])
def test_caps_hold_for_every_kind_of_line_that_never_ends(glmsse: ModuleType, line: bytes) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_event_bytes=100))
    fault = fault_of(glmsse, framer, line, *[b"1" * 7] * 20)
    assert (fault.code, fault.offset, fault.seen) == ("event_too_large", 100, 101)


def test_cap_on_lines_trips_at_the_first_byte_of_the_line_too_many(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_event_lines=2))
    assert len(framer.feed(b":\ndata: a\n\n")) == 1
    fault = fault_of(glmsse, framer, b":\n:\n:\n\n")
    assert facts(fault) == ("too_many_event_lines", 15, "max_event_lines", 2, 3, None)


def test_cap_on_events_counts_blank_lines_and_trips_before_the_block_is_dispatched(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_events=3))
    assert len(framer.feed(b"\n: x\n\ndata: a\n\n")) == 1
    fault = fault_of(glmsse, framer, b"data: b\n\n")
    assert facts(fault) == ("too_many_events", 23, "max_events", 3, 4, None)
    assert fault.events == []
    assert framer.events_seen == 1


def test_cap_on_the_stream_is_judged_after_everything_before_it(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_stream_bytes=9))
    fault = fault_of(glmsse, framer, b"data: a\n\n\xff\n")
    assert facts(fault) == ("stream_too_large", 9, "max_stream_bytes", 9, 10, None)
    assert [e.data for e in fault.events] == ["a"]
    framer = glmsse.SSEFramer(glmsse.Limits(max_stream_bytes=9))
    framer.feed(b"data: a\n\n")
    assert framer.close() == []


def test_of_two_event_caps_at_one_byte_the_size_decides(glmsse: ModuleType) -> None:
    limits = glmsse.Limits(max_event_bytes=1, max_event_lines=1)
    assert fault_of(glmsse, glmsse.SSEFramer(limits), b":\n:\n").code == "event_too_large"


@pytest.mark.parametrize(
    "stream",
    [
        b"data:a\n\n:b\n\ndata:c\ndata\n\n",
        b"\xef\xbb\xbf:\r\n\r\ndata:x\r\r\n",
        b"\xef\xbb:\n\n\n\n",
        b"id:\r\rretry:1\revent:x\n",
    ],
)
def test_caps_are_the_same_under_every_one_and_two_cuts(glmsse: ModuleType, stream: bytes) -> None:
    for name in NO_CAPS:
        for most in (1, 2, 3, 5, 8, 13):
            limits = {**NO_CAPS, name: most}
            expected = framed(stream, limits)
            for first, second in itertools.combinations_with_replacement(range(len(stream) + 1), 2):
                pieces = [stream[:first], stream[first:second], stream[second:]]
                assert fed(glmsse, pieces, limits) == expected, (limits, pieces)


def test_unlimited_is_none(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(**NO_CAPS))
    assert len(framer.feed(b"data: a\n" * 10_000 + b"\n")) == 1


def test_limits_beyond_any_machine_are_taken(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_event_bytes=2**200, max_stream_bytes=2**63, max_events=2**64))
    assert len(framer.feed(b"data: a\n\n")) == 1


# Faults, close and reset.


def test_fault_has_the_events_before_it_and_is_raised_again_without_them(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer()
    fault = fault_of(glmsse, framer, b"data: a\n\n", b"data: b\n\ndata: c\n\n:\xff\ndata: d\n\n")
    assert [e.data for e in fault.events] == ["b", "c"]
    for call in (
        lambda: framer.feed(b"data: e\n\n"),
        lambda: framer.feed(b""),
        framer.close,
        lambda: framer.feed(None),
    ):
        with pytest.raises(glmsse.ProtocolError) as caught:
            call()
        assert caught.value == fault
        assert caught.value is not fault
        assert caught.value.events == []
    assert (framer.tail, framer.events_seen, framer.bytes_seen) == (0, 3, 39)


def test_reset_starts_over(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_events=1))
    fault_of(glmsse, framer, b"\xef\xbb\xbfid: 1\nretry: 5\ndata: a\n\ndata: b\n\n")
    framer.reset()
    assert (framer.bytes_seen, framer.events_seen, framer.tail) == (0, 0, 0)
    (event,) = framer.feed(b"\xef\xbb\xbfdata: c\n\n")
    assert (event.data, event.id, event.retry, event.offset) == ("c", "", None, 3)


def test_reset_forgets_a_pending_block(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer()
    framer.feed(b"event: x\ndata: a\ndata: b")
    framer.reset()
    assert [(e.event, e.data) for e in framer.feed(b"data: c\n\n")] == [("message", "c")]


def test_clean_close_is_final(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer()
    framer.feed(b"data: a\n\n")
    assert framer.close() == []
    assert framer.close() == []
    with pytest.raises(glmsse.MisuseError, match="after close"):
        framer.feed(b"")
    framer.reset()
    assert len(framer.feed(b"data: a\n\n")) == 1


@pytest.mark.parametrize(
    "stream", [b"", b"\n", b": c\n", b"event: x\n", b"id: 1\r", b"data: a\n\n: c\nunknown\n", b"\xef\xbb\xbf"]
)
def test_close_is_clean_without_an_unfinished_line_and_without_data(glmsse: ModuleType, stream: bytes) -> None:
    framer = glmsse.SSEFramer()
    framer.feed(stream)
    assert framer.tail == 0
    assert framer.close() == []


@pytest.mark.parametrize(
    ("stream", "tail"),
    [
        (b"x", 1),
        (b"data\n", 4),
        (b"data: a", 7),
        (b": c\r\ndata: a\r\n", 10),
        (b"event: x\nd", 9),
        (b"data: a\n\n:", 1),
    ],
)
def test_close_with_a_pending_event_is_unterminated(glmsse: ModuleType, stream: bytes, tail: int) -> None:
    framer = glmsse.SSEFramer()
    framer.feed(stream)
    assert framer.tail == tail
    for _ in range(2):
        with pytest.raises(glmsse.IncompleteStream) as caught:
            framer.close()
        assert (caught.value.code, caught.value.offset, caught.value.tail) == ("unterminated_event", len(stream), tail)
    with pytest.raises(glmsse.IncompleteStream):
        framer.feed(b"\n\n")


@pytest.mark.parametrize(
    ("stream", "event"),
    [
        (b"data: a", ("message", "a", "", None, 0)),
        (b"data: a\n", ("message", "a", "", None, 0)),
        (b"data", ("message", "", "", None, 0)),
        (b"\n: c\nevent: x\ndata: a\ndata: b", ("x", "a\nb", "", None, 1)),
        (b"data: a\nid: 7", ("message", "a", "7", None, 0)),
        (b"data: a\nevent: y", ("y", "a", "", None, 0)),
        (b"data: a\nretry: 8", ("message", "a", "", 8, 0)),
        (b"data: a\ndat", ("message", "a", "", None, 0)),
        (b"data: \xc3", None),
        (b"event: x", None),
        (b"data: a\n\n", None),
        (b"\xef\xbb", None),
        (b"", None),
    ],
)
def test_tail_event_is_what_two_line_ends_would_make_of_the_tail(
    glmsse: ModuleType, stream: bytes, event: tuple[Any, ...] | None
) -> None:
    for at in range(len(stream) + 1):
        framer = glmsse.SSEFramer()
        framer.feed(stream[:at])
        framer.feed(stream[at:])
        seen = (framer.tail, framer.bytes_seen, framer.events_seen)
        for _ in range(2):
            got = framer._tail_event()
            assert (got and (got.event, got.data, got.id, got.retry, got.offset)) == event
        assert (framer.tail, framer.bytes_seen, framer.events_seen) == seen
        if b"\xc3" not in stream and b"\xef" not in stream and event is not None:
            assert framer.feed(b"\n\n") == [got]


def test_tail_event_is_there_after_close_too_but_not_after_another_fault(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer()
    fault_of(glmsse, framer, b"data: a")
    assert framer._tail_event().data == "a"
    framer = glmsse.SSEFramer()
    fault_of(glmsse, framer, b"data: a\n\xff\n")
    assert framer._tail_event() is None


def test_tail_event_needs_a_blank_line_within_max_events(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_events=1))
    framer.feed(b"\ndata: a")
    assert framer._tail_event() is None


def test_tail_event_replaces_invalid_bytes_where_feed_does(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(errors="replace")
    framer.feed(b"data: \xc3")
    assert framer._tail_event().data == "\ufffd"


# What feed takes.


def test_feed_takes_any_contiguous_buffer(glmsse: ModuleType) -> None:
    stream = b"data: abcdefgh\n\n"
    mapped = mmap.mmap(-1, len(stream))
    mapped.write(stream)
    words = array.array("I", stream)
    buffers: list[Any] = [
        stream,
        bytearray(stream),
        memoryview(stream),
        memoryview(b"xx" + stream + b"xx")[2:-2],
        words,
        memoryview(words),
        memoryview(stream).cast("B", (4, 4)),
        (ctypes.c_int32 * 4).from_buffer_copy(stream),
        type("Bytes", (bytes,), {})(stream),
        mapped,
    ]
    for data in buffers:
        framer = glmsse.SSEFramer()
        assert [e.data for e in framer.feed(data)] == ["abcdefgh"]
        assert framer.bytes_seen == len(stream)


@pytest.mark.parametrize("data", [b"", bytearray(), memoryview(b""), (ctypes.c_int * 0)()])
def test_empty_feed_is_nothing(glmsse: ModuleType, data: Any) -> None:
    assert glmsse.SSEFramer().feed(data) == []


def test_feed_refuses_what_is_no_contiguous_buffer_and_goes_on(glmsse: ModuleType) -> None:
    released = memoryview(b"data: x\n\n")
    released.release()
    framer = glmsse.SSEFramer()
    framer.feed(b"data: ")
    for data in ("data: x\n\n", None, 7, [100], memoryview(b"data: x\n\n")[::2], memoryview(b"abc")[::-1], released):
        with pytest.raises(glmsse.MisuseError) as caught:
            framer.feed(data)
        kind = type(data).__name__
        assert str(caught.value) == f"feed takes a C-contiguous bytes-like object, which this {kind} is not"
        assert caught.value.__context__ is None
    assert framer.bytes_seen == 6
    assert [e.data for e in framer.feed(b"a\n\n")] == ["a"]


def test_large_feed_is_the_same_as_small_ones(glmsse: ModuleType) -> None:
    block = b"data: " + b"x" * 3000 + b"\n\n" + b": c\r\n\r\n" + b"data: y\ndata: \xe2\x82\xac\n\n"
    stream = block * 100
    expected = [text for _ in range(100) for text in ("x" * 3000, "y\n€")]
    for data in (stream, bytearray(stream)):
        assert data_of(glmsse, data) == expected
    assert data_of(glmsse, *[stream[at : at + 1460] for at in range(0, len(stream), 1460)]) == expected


def test_large_feed_counts_all_its_bytes_at_a_fault(glmsse: ModuleType) -> None:
    for kind in (bytes, bytearray):
        framer = glmsse.SSEFramer()
        fault = fault_of(glmsse, framer, kind(b":\xff\n" + b"\n" * 200_000))
        assert (fault.offset, framer.bytes_seen) == (1, 200_003)
        with pytest.raises(glmsse.ProtocolError):
            framer.feed(b"more")
        assert framer.bytes_seen == 200_003


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes cannot export buffers before Python 3.12")
def test_feed_within_feed_is_refused(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer()
    refused: list[str] = []

    class Hostile:
        def __buffer__(self, flags: int) -> memoryview:
            for call in (lambda: framer.feed(b"data: b\n\n"), framer.close, framer.reset):
                with pytest.raises(glmsse.MisuseError) as caught:
                    call()
                refused.append(str(caught.value))
            return memoryview(b"data: a\n\n")

    assert [e.data for e in framer.feed(Hostile())] == ["a"]
    assert refused == [
        f"{verb} was called while the framer was at work: one stream, one thread" for verb in ("feed", "close", "reset")
    ]


@pytest.mark.skipif(sys.version_info < (3, 12), reason="classes cannot export buffers before Python 3.12")
def test_framer_that_was_interrupted_has_to_be_reset(glmsse: ModuleType) -> None:
    class Interrupting:
        def __buffer__(self, flags: int) -> memoryview:
            raise KeyboardInterrupt

    framer = glmsse.SSEFramer()
    with pytest.raises(KeyboardInterrupt):
        framer.feed(Interrupting())
    for call in (lambda: framer.feed(b""), framer.close):
        with pytest.raises(glmsse.MisuseError, match="interrupted"):
            call()
    framer.reset()
    assert len(framer.feed(b"data: a\n\n")) == 1


# The framer as an object.


@pytest.mark.parametrize("errors", ["ignore", "", None, 1, b"strict", ["strict"]])
def test_errors_takes_strict_or_replace(glmsse: ModuleType, errors: Any) -> None:
    with pytest.raises(glmsse.MisuseError) as caught:
        glmsse.SSEFramer(errors=errors)
    assert str(caught.value) == "errors takes 'strict' or 'replace'"


@pytest.mark.parametrize("limits", [1, {}, "x", object()])
def test_limits_takes_limits(glmsse: ModuleType, limits: Any) -> None:
    with pytest.raises(glmsse.MisuseError, match="limits takes a Limits or None"):
        glmsse.SSEFramer(limits)


def test_framer_is_neither_pickled_nor_copied(glmsse: ModuleType) -> None:
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(glmsse.MisuseError) as caught:
            attempt(glmsse.SSEFramer())
        assert str(caught.value) == "SSEFramer serves one stream: it cannot be pickled or copied"
        assert isinstance(caught.value, TypeError)


def test_second_init_changes_nothing(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_events=1))
    framer.feed(b"data: a\ndata: ")
    framer.__init__()
    framer.__init__(7, nonsense=True)
    assert [e.data for e in framer.feed(b"b\n\n")] == ["a\nb"]
    assert fault_of(glmsse, framer, b"\n").code == "too_many_events"


def test_both_builds_show_the_same_names_and_signatures(glmsse: ModuleType) -> None:
    assert public(glmsse.SSEFramer) == ["busy", "bytes_seen", "close", "events_seen", "feed", "reset", "tail"]
    assert public(glmsse.ServerSentEvent) == ["data", "event", "id", "json", "offset", "retry", "to_dict"]
    assert parameters(glmsse.SSEFramer) == [("limits", None), ("errors", "strict")]
    assert parameters(glmsse.SSEFramer.feed) == [("self", inspect.Parameter.empty), ("data", inspect.Parameter.empty)]
    fields = [("event", "message"), ("data", ""), ("id", ""), ("retry", None), ("offset", 0)]
    assert parameters(glmsse.ServerSentEvent) == fields


def public(cls: type) -> list[str]:
    return [name for name in dir(cls) if not name.startswith("_")]


def parameters(callable: Any) -> list[tuple[str, Any]]:
    return [(name, one.default) for name, one in inspect.signature(callable).parameters.items()]


def test_classes_cannot_be_subclassed(glmsse: ModuleType) -> None:
    for cls in (glmsse.SSEFramer, glmsse.ServerSentEvent):
        with pytest.raises(TypeError):
            type("Sub", (cls,), {})


# Events as objects.


def test_event_has_defaults_and_keywords(glmsse: ModuleType) -> None:
    event = glmsse.ServerSentEvent()
    assert (event.event, event.data, event.id, event.retry, event.offset) == ("message", "", "", None, 0)
    event = glmsse.ServerSentEvent("x", "a", id="7", retry=5, offset=9)
    assert event.to_dict() == {"event": "x", "data": "a", "id": "7", "retry": 5, "offset": 9}


@pytest.mark.parametrize(
    "fields",
    [
        {"event": None},
        {"data": b"a"},
        {"id": 1},
        {"retry": "1"},
        {"retry": True},
        {"retry": 1.0},
        {"offset": -1},
        {"offset": 2**63},
        {"offset": None},
        {"offset": True},
    ],
)
def test_event_takes_the_types_it_shows(glmsse: ModuleType, fields: dict[str, Any]) -> None:
    with pytest.raises(glmsse.MisuseError, match="ServerSentEvent takes"):
        glmsse.ServerSentEvent(**fields)


def test_events_compare_and_hash_by_value_without_the_offset(glmsse: ModuleType) -> None:
    event = glmsse.ServerSentEvent("x", "a", "7", 5, offset=9)
    assert event == glmsse.ServerSentEvent("x", "a", "7", 5)
    assert hash(event) == hash(glmsse.ServerSentEvent("x", "a", "7", 5))
    for other in (("y", "a", "7", 5), ("x", "b", "7", 5), ("x", "a", "8", 5), ("x", "a", "7", None)):
        assert event != glmsse.ServerSentEvent(*other)
    assert event != ("x", "a", "7", 5)


@pytest.mark.parametrize("name", ["event", "data", "id", "retry", "offset", "other"])
def test_events_cannot_be_changed(glmsse: ModuleType, name: str) -> None:
    event = glmsse.ServerSentEvent(data="a")
    with pytest.raises(AttributeError):
        setattr(event, name, "b")
    with pytest.raises(AttributeError):
        delattr(event, name)
    event.__init__("y", "b")
    assert event == glmsse.ServerSentEvent(data="a")


def test_event_is_copied_and_matched(glmsse: ModuleType) -> None:
    event = glmsse.ServerSentEvent("x", "a", "7", 5, 9)
    for twin in (copy.copy(event), copy.deepcopy(event)):
        assert twin.to_dict() == event.to_dict()
    match event:
        case glmsse.ServerSentEvent(event="x", data=data):
            assert data == "a"
        case _:
            pytest.fail("no match")


def test_event_is_pickled(glmsse: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in (("glmsse", glmsse), ("glmsse.framing", glmsse.framing)):
        monkeypatch.setitem(sys.modules, name, module)
    event = glmsse.ServerSentEvent("x", "a", "7", 5, 9)
    assert pickle.loads(pickle.dumps(event)).to_dict() == event.to_dict()


def test_event_shows_sizes_only(glmsse: ModuleType) -> None:
    event = glmsse.ServerSentEvent("secret", "secret!", "secret!!", 31337, 9)
    shown = "ServerSentEvent(event=<6 chars>, data=<7 chars>, id=<8 chars>, retry=<int>, offset=9)"
    assert repr(event) == str(event) == shown
    assert repr(glmsse.ServerSentEvent()).endswith("retry=None, offset=0)")


def test_json_reads_data_or_names_the_block(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer()
    good, bad, deep = framer.feed(b'data: {"a":\ndata: [1]}\n\ndata: {\n\ndata: ' + b"[" * 200_000 + b"\n\n")
    assert good.json() == {"a": [1]}
    for event, offset in ((bad, 24), (deep, 33)):
        with pytest.raises(glmsse.ProtocolError) as caught:
            event.json()
        assert caught.value.offset == offset
        assert caught.value.__context__ is None


# Secrets, memory, time.

CANARY = "c4n4ry"


@pytest.mark.parametrize(
    "stream",
    [
        b"data: c4n4ry\n\ndata: c4n4ry\xff\n\n",
        b"event: c4n4ry\nid: c4n4ry\n: c4n4ry\ndata: c4n4ry\nc4n4ry: \xffc4n4ry\n\n",
        b"data: c4n4ry\n" * 5000,
        b"data: c4n4ry",
        b"c4n4ry" * 200_000,
    ],
)
def test_no_input_is_in_a_fault_its_traceback_or_a_repr(glmsse: ModuleType, stream: bytes) -> None:
    logger = logging.getLogger("glmsse-canary")
    for pieces in ([stream], [bytearray(stream)], [stream[:20], stream[20:]]):
        framer = glmsse.SSEFramer()
        fault = fault_of(glmsse, framer, *pieces)
        again = fault_of(glmsse, framer, stream)
        for error in (fault, again):
            assert_no_canary(error)
            record = logger.makeRecord("x", logging.ERROR, __file__, 1, "%s %r", (error, error), None)
            assert CANARY not in record.getMessage()
        assert CANARY not in repr(framer) + repr(fault.events)


def test_no_input_is_in_a_misuse_or_in_bad_json(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer()
    (event,) = framer.feed(b"data: {c4n4ry\n\n")
    framer.feed(b"data: c4n4ry")
    with pytest.raises(glmsse.GlmsseError) as caught:
        framer.feed("c4n4ry")
    assert_no_canary(caught.value)
    with pytest.raises(glmsse.GlmsseError) as caught:
        event.json()
    assert_no_canary(caught.value)
    framer.reset()
    framer.close()
    with pytest.raises(glmsse.GlmsseError) as caught:
        framer.feed(b"c4n4ry")
    assert_no_canary(caught.value)


def assert_no_canary(error: BaseException) -> None:
    assert error.__cause__ is None
    assert error.__context__ is None
    shown = [str(error), repr(error), repr(error.args), repr(vars(error)), repr(getattr(error, "__notes__", ""))]
    shown.append(repr(error.__reduce__()))
    for frame in traceback.TracebackException.from_exception(error, capture_locals=True).stack:
        if frame.filename != __file__:
            shown.append(repr(frame.locals))
    assert CANARY not in "".join(shown)


@pytest.mark.parametrize("piece", [b"data: ", b": ", b"data:x\n", b"data:\n", b"id:xx\n", b":\n"])
def test_pending_block_takes_at_most_twice_its_bytes(glmsse: ModuleType, piece: bytes) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(**NO_CAPS))
    repeats = 400_000 // len(piece)
    pieces = [piece] * repeats if piece.endswith(b"\n") else [piece, *[b"x" * 100] * 4000]
    size = sum(map(len, pieces))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        for one in pieces:
            framer.feed(one)
        held = tracemalloc.get_traced_memory()[0] - before
        assert held <= 2 * size
        framer.feed(b"\n\ndata: ")
        assert tracemalloc.get_traced_memory()[0] - before <= 8192
    finally:
        tracemalloc.stop()


def test_idle_framer_takes_a_few_hundred_bytes(glmsse: ModuleType) -> None:
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        framers = [glmsse.SSEFramer() for _ in range(1000)]
        for framer in framers:
            framer.feed(b"data: a\ndata: b")
            framer.feed(b"\n\n")
        assert (tracemalloc.get_traced_memory()[0] - before) / len(framers) <= 600
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("piece", "feeds"),
    [
        (b"x", 20_000),
        (b"\n", 20_000),
        (b"\r", 20_000),
        (b"x" * 64, 10_000),
        (b":c\n\n" * 500, 100),
        (b"data:x\n" * 500, 100),
        (b"data:x\r" * 500, 100),
        (b"\n" * 2000, 100),
        (b"\r" * 2000, 100),
        (b"\r\n\n\r" * 500, 100),
    ],
)
def test_time_is_linear(glmsse: ModuleType, piece: bytes, feeds: int) -> None:
    def seconds(count: int) -> float:
        framer = glmsse.SSEFramer(glmsse.Limits(**NO_CAPS))
        start = time.process_time()
        for _ in range(count):
            framer.feed(piece)
        return time.process_time() - start

    # Quadratic work would take 16 times as long; the slack is for a busy machine.
    ratios = (
        min(seconds(feeds * 4) for _ in range(3)) / max(min(seconds(feeds) for _ in range(3)), 1e-4) for _ in range(3)
    )
    assert any(ratio < 8 for ratio in ratios)


# The choice of the build.


def test_build_says_why_it_is_active(glmsse: ModuleType) -> None:
    reasons = {
        "compiled": "the extension is there",
        "pure": "GLMSSE_PURE_PYTHON is set|the extension cannot be imported .*",
    }
    assert re.fullmatch(reasons[glmsse.IMPLEMENTATION], glmsse.framing.IMPLEMENTATION_REASON)
    assert glmsse.framing.IMPLEMENTATION == glmsse.IMPLEMENTATION
