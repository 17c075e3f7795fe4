"""The response before its stream: status, media type, coding; the body of a refused one; headers of every kind."""

from __future__ import annotations

import email.message
import json
from types import MappingProxyType
from typing import Any

import pytest

from wire import HELLO, by_size, codes, each_byte, feed_all

SSE = {"content-type": "text/event-stream"}


def _start(glmsse: Any, status: int, headers: Any, data: bytes = b"", **options: Any) -> Any:
    stream = glmsse.ChatStream(**options)
    stream.start(status, headers)
    stream.feed(data)
    return stream.close()


@pytest.mark.parametrize(
    "value",
    [
        "text/event-stream",
        "text/event-stream;charset=UTF-8",
        "text/event-stream; charset=utf-8",
        "TEXT/Event-Stream",
        " text/event-stream ",
        "text/event-stream ; x=y",
        "text/event-stream;",
        'text/event-stream; a="b;c"',
    ],
)
def test_media_type_is_compared_without_case_and_parameters(glmsse: Any, value: str) -> None:
    assert _start(glmsse, 200, {"Content-Type": value}, HELLO).accepted


@pytest.mark.parametrize(
    "value",
    [
        "application/json",
        "text/html",
        "text/plain",
        "text/event-streams",
        "text/event",
        "event-stream",
        "*/*",
        ";charset=utf-8",
        "text/event-stream, text/html",
        "application/x-ndjson",
    ],
)
def test_other_media_type_is_refused(glmsse: Any, value: str) -> None:
    verdict = _start(glmsse, 200, {"Content-Type": value}, HELLO)
    assert (verdict.outcome, verdict.stage, verdict.code) == ("http_error", "before_sse", "content_type")
    assert (verdict.category, verdict.replay) == ("unknown", "ambiguous")


@pytest.mark.parametrize("headers", [{}, [], {"content-type": ""}, {"x": "y"}, ()])
def test_missing_media_type_is_refused(glmsse: Any, headers: Any) -> None:
    assert _start(glmsse, 200, headers).code == "content_type"


@pytest.mark.parametrize("status", [0, 100, 199, 201, 204, 206, 301, 400, 401, 429, 500, 503, 599, 999])
def test_any_status_but_200_is_refused(glmsse: Any, status: int) -> None:
    verdict = _start(glmsse, status, SSE, HELLO)
    assert (verdict.code, verdict.error.status) == ("http_status", status)


@pytest.mark.parametrize("coding", ["gzip", "br", "deflate", "zstd", "GZIP", "identity, gzip", "x"])
def test_content_coding_that_is_left_on_is_refused(glmsse: Any, coding: str) -> None:
    verdict = _start(glmsse, 200, {**SSE, "content-encoding": coding})
    assert (verdict.outcome, verdict.code) == ("http_error", "content_encoding")


@pytest.mark.parametrize("coding", ["identity", "Identity", " identity ", ""])
def test_identity_is_no_coding(glmsse: Any, coding: str) -> None:
    assert _start(glmsse, 200, {**SSE, "content-encoding": coding}, HELLO).accepted


def test_status_is_judged_before_media_type_before_coding(glmsse: Any) -> None:
    everything = {"content-type": "text/html", "content-encoding": "gzip"}
    assert _start(glmsse, 500, everything).code == "http_status"
    assert _start(glmsse, 200, everything).code == "content_type"
    assert _start(glmsse, 200, {**SSE, "content-encoding": "gzip"}).code == "content_encoding"


def _message(pairs: dict[str, str]) -> email.message.Message:
    """What urllib and http.client give."""
    message = email.message.Message()
    for name, value in pairs.items():
        message[name] = value
    return message


@pytest.mark.parametrize(
    "kind",
    [
        dict,
        lambda pairs: MappingProxyType(pairs),
        lambda pairs: list(pairs.items()),
        lambda pairs: iter(pairs.items()),
        lambda pairs: [list(pair) for pair in pairs.items()],
        lambda pairs: [(k.encode(), v.encode()) for k, v in pairs.items()],
        lambda pairs: {k.upper(): v for k, v in pairs.items()},
        _message,
        lambda pairs: {k.encode(): v.encode() for k, v in pairs.items()},
    ],
    ids=["dict", "proxy", "pairs", "iterator", "lists", "bytes", "upper case", "email message", "dict of bytes"],
)
def test_headers_of_every_kind_are_read(glmsse: Any, kind: Any) -> None:
    assert _start(glmsse, 200, kind(dict(SSE)), HELLO).accepted
    assert _start(glmsse, 429, kind({"retry-after": "7"})).retry_after == 7


@pytest.mark.parametrize(
    "headers",
    [
        None,
        5,
        "content-type: x",
        b"x",
        ["content-type"],
        [("a",)],
        [("a", "b", "c")],
        {"a": 5},
        {5: "a"},
        [("a", None)],
        [5],
    ],
)
def test_headers_of_another_kind_are_misuse(glmsse: Any, headers: Any) -> None:
    stream = glmsse.ChatStream()
    with pytest.raises(glmsse.MisuseError):
        stream.start(200, headers)
    assert stream.start(200, SSE) == []


@pytest.mark.parametrize("status", [None, "200", 200.0, True, b"200", [200]])
def test_status_of_another_kind_is_misuse(glmsse: Any, status: Any) -> None:
    with pytest.raises(glmsse.MisuseError):
        glmsse.ChatStream().start(status, SSE)


def test_status_of_an_enum_is_an_int(glmsse: Any) -> None:
    from http import HTTPStatus

    assert glmsse.ChatStream().start(HTTPStatus.OK, SSE) == []
    assert _start(glmsse, HTTPStatus.BAD_REQUEST, {}).error.status == 400


def test_repeated_media_types_must_all_be_right(glmsse: Any) -> None:
    twice = [("Content-Type", "text/event-stream"), ("content-type", "text/html")]
    assert _start(glmsse, 200, twice).code == "content_type"
    assert _start(glmsse, 200, [twice[0], twice[0]], HELLO).accepted


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0),
        ("7", 7),
        (" 30 ", 30),
        ("120", 120),
        ("007", 7),
        ("-1", None),
        ("1.5", None),
        ("", None),
        ("soon", None),
        ("\u0667", None),
        ("Wed, 21 Oct 2026 07:28:00 GMT", None),
        ("9" * 400, None),
        ("1e3", None),
        ("+5", None),
    ],
)
def test_retry_after_is_the_number_of_seconds_or_none(glmsse: Any, value: str, seconds: int | None) -> None:
    assert _start(glmsse, 429, {"Retry-After": value}).retry_after == seconds


def test_retry_after_shows_on_any_verdict_with_a_start(glmsse: Any) -> None:
    assert _start(glmsse, 200, {**SSE, "retry-after": "5"}, HELLO).retry_after == 5


# The body of a refused response


@pytest.mark.parametrize(
    ("sent", "category", "code", "request_id"),
    [
        ({"error": {"code": "1001", "message": "x"}}, "auth", "1001", None),
        ({"code": 1214, "message": "x"}, "request", "1214", None),
        ({"timestamp": 1, "status": 404, "error": "Not Found", "path": "/"}, "server", None, None),
        (
            {"error": {"message": "x", "type": "overloaded_error", "param": None, "code": None}},
            "server",
            "overloaded_error",
            None,
        ),
        ({"object": "error", "message": "x", "type": "BadRequestError", "code": 400}, "server", "400", None),
        ({"error": {"code": 402, "message": "x", "metadata": {}}}, "server", "402", None),
        (
            {"type": "error", "error": {"type": "rate_limit_error", "message": "x"}, "request_id": "req_1"},
            "server",
            "rate_limit_error",
            "req_1",
        ),
        ({"error": {"code": "1302"}, "request_id": "req-2"}, "rate", "1302", "req-2"),
        ([], "server", None, None),
        (5, "server", None, None),
        (None, "server", None, None),
    ],
)
def test_error_bodies_of_every_known_shape_are_read(
    glmsse: Any, sent: Any, category: str, code: str | None, request_id: str | None
) -> None:
    data = json.dumps(sent).encode()
    for pieces in ([data], each_byte(data), by_size(data, 7)):
        stream = glmsse.ChatStream()
        assert codes(stream.start(500, {"content-type": "application/json"})) == ["http_status"]
        assert feed_all(stream, pieces) == []
        verdict = stream.close()
        assert (verdict.category, verdict.provider_code, verdict.request_id) == (category, code, request_id)


def test_body_is_read_of_a_200_with_json_too(glmsse: Any) -> None:
    verdict = _start(glmsse, 200, {"content-type": "application/json"}, b'{"error":{"code":"1113","message":"x"}}')
    assert (verdict.code, verdict.category, verdict.replay) == ("content_type", "balance", "pointless")


def test_request_id_of_the_header_is_used_where_the_body_has_none(glmsse: Any) -> None:
    headers = {"X-Request-Id": "req-h"}
    assert _start(glmsse, 500, headers).request_id == "req-h"
    assert _start(glmsse, 500, headers, b'{"request_id":"req-b"}').request_id == "req-b"
    assert _start(glmsse, 500, {"x-request-id": "a b"}).request_id is None


def test_first_64_kib_of_the_body_are_read(glmsse: Any) -> None:
    head, tail = b'{"error":{"code":"1302"},"x":"', b'"}'
    fits = head + b"x" * (65536 - len(head) - len(tail)) + tail
    assert len(fits) == 65536
    assert _start(glmsse, 500, {}, fits).category == "rate"
    assert _start(glmsse, 500, {}, fits[: len(head)] + b"x" + fits[len(head) :]).category == "server"
    for pieces in ([fits + b" junk"], [fits, b" junk"], by_size(fits + b" junk" * 9999, 1000)):
        stream = glmsse.ChatStream()
        stream.start(500, {})
        feed_all(stream, pieces)
        assert stream.close().category == "rate"


@pytest.mark.parametrize(
    "data",
    [b"[" * 60000, b'{"a":' * 10000, b"1" * 60000, b'{"code":' + b"9" * 5000 + b"}", b'{"code":NaN}', b"\xff" * 9],
)
def test_odd_bodies_never_raise(glmsse: Any, data: bytes) -> None:
    verdict = _start(glmsse, 500, {}, data)
    assert (verdict.category, verdict.provider_code) == ("server", None)


def test_close_with_an_error_leaves_a_refusal_as_it_is(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    stream.start(500, {})
    assert stream.close("deadline_total").code == "http_status"
