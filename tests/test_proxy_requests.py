"""Anthropic requests as chat completion requests, and the rare turns of the watch and the metrics."""

from __future__ import annotations

import json
from typing import Any

import pytest

from glmsse import Limits
from glmsse.proxy.anthropic_request import chat_request
from glmsse.proxy.errors import openai_event
from glmsse.proxy.markup import MarkupTap, WholeMarkupTap
from glmsse.proxy.messages import MessagesPassage
from glmsse.proxy.metrics import Metrics
from glmsse.proxy.requests import KEY_HEADERS, Refusal, check_head, headers_downstream, headers_upstream
from glmsse.proxy.settings import Settings
from glmsse.verdict import Verdict

UPSTREAM = "http://upstream/v1"
DONE = b"data: [DONE]\n\n"


def translated(**request: Any) -> dict[str, Any]:
    return chat_request({"model": "glm-5.2", "messages": [{"role": "user", "content": "x"}], **request})


def test_a_whole_conversation() -> None:
    schema = {"type": "object"}
    body = translated(
        max_tokens=100,
        temperature=0.5,
        stop_sequences=["END"],
        system=[{"type": "text", "text": "Be"}, {"type": "text", "text": "brief."}],
        thinking={"type": "enabled", "budget_tokens": 1024},
        tools=[{"name": "look", "description": "Looks.", "input_schema": schema}],
        tool_choice={"type": "any"},
        metadata={"user_id": "user-17"},
        messages=[
            {"role": "user", "content": "Where?"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "Look.", "signature": ""},
                    {"type": "text", "text": "One moment."},
                    {"type": "tool_use", "id": "call_1", "name": "look", "input": {"city": "Köln"}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "So?"},
                    {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "here"}]},
                ],
            },
        ],
    )

    assert body == {
        "model": "glm-5.2",
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 100,
        "temperature": 0.5,
        "stop": ["END"],
        "thinking": {"type": "enabled"},
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.", "parameters": schema}}],
        "tool_choice": "required",
        "user_id": "user-17",
        "messages": [
            {"role": "system", "content": "Be\nbrief."},
            {"role": "user", "content": "Where?"},
            {
                "role": "assistant",
                "content": "One moment.",
                "reasoning_content": "Look.",
                "tool_calls": [
                    {
                        "id": "call_1",
                        "type": "function",
                        "function": {"name": "look", "arguments": '{"city": "Köln"}'},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "call_1", "content": "here"},
            {"role": "user", "content": "So?"},
        ],
    }


def test_without_thinking_it_is_turned_off() -> None:
    assert translated()["thinking"] == {"type": "disabled"}


def test_a_failed_tool_says_so() -> None:
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "no", "is_error": True}

    assert translated(messages=[{"role": "user", "content": [result]}])["messages"][0]["content"] == "Error: no"


def test_images_become_parts() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
    content = [{"type": "text", "text": "See"}, {"type": "image", "source": source}]

    assert translated(messages=[{"role": "user", "content": content}])["messages"][0]["content"] == [
        {"type": "text", "text": "See"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]


def test_one_tool_can_be_chosen() -> None:
    body = translated(tools=[{"name": "a", "input_schema": {}}], tool_choice={"type": "tool", "name": "a"})

    assert body["tool_choice"] == {"type": "function", "function": {"name": "a"}}


@pytest.mark.parametrize(
    ("request_", "place"),
    [
        ({"model": 1}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": "x"}, "messages"),
        ({"messages": [{"role": "robot"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": [{"type": "document"}]}]}, "messages[0].content[0]"),
        ({"messages": [{"role": "assistant", "content": [{"type": "tool_use"}]}]}, "messages[0].content[0]"),
        ({"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, "tools[0]"),
        ({"tools": [{"name": "a", "input_schema": {}}], "tool_choice": {"type": "x"}}, "tool_choice"),
        ({"system": [{"type": "image"}]}, "system[0]"),
    ],
)
def test_what_has_no_counterpart_is_refused_by_its_place(request_: dict[str, Any], place: str) -> None:
    with pytest.raises(Refusal) as refused:
        translated(**request_)

    assert refused.value.status == 400
    assert refused.value.sentence.startswith(f"{place} ")


def test_anthropic_keys_become_bearer_tokens() -> None:
    assert (b"authorization", b"Bearer k") in headers_upstream([(b"x-api-key", b"k")], Settings(upstream=UPSTREAM))


@pytest.mark.parametrize("header", [(b"authorization", b"bearer door"), (b"x-api-key", b"door"), (b"api-key", b"door")])
def test_the_key_of_the_proxy_opens_it_and_goes_no_further(header: tuple[bytes, bytes]) -> None:
    settings = Settings(upstream=UPSTREAM, client_key="door")

    check_head([header], settings)

    assert not any(b"door" in value for _, value in headers_upstream([header], settings))


def test_no_key_of_a_client_goes_on_beside_the_proxys_own() -> None:
    headers = headers_upstream([(b"api-key", b"k")], Settings(upstream=UPSTREAM, key="own"))

    assert [value for name, value in headers if name in KEY_HEADERS] == [b"Bearer own"]


def whole_message(*pieces: bytes, **settings: Any) -> dict[str, Any]:
    passage = MessagesPassage(Settings(upstream=UPSTREAM, **settings), model="m", whole=True, tools=None)
    passage.start(200, [(b"content-type", b"text/event-stream")])
    body = b"".join(passage.feed(piece) for piece in pieces) + passage.finish()
    return dict(json.loads(body)) if body else {}


@pytest.mark.parametrize("markup", ["none", "glm"])
def test_a_messages_stream_has_its_verdict_before_its_last_event(markup: str) -> None:
    settings = Settings(upstream=UPSTREAM, verdict_comment=True, content_markup=markup)
    passage = MessagesPassage(settings, model="m", whole=False, tools=None)
    passage.start(200, [(b"content-type", b"text/event-stream")])

    written = passage.feed(chunk({"content": "Hi"}) + chunk({}, "stop") + DONE) + passage.finish()

    last, comment = written.split(b"\n\n")[-2:-4:-1]
    assert last.startswith(b"event: message_stop\n")
    assert comment == b": glmsse outcome=accepted code=- replay=pointless"


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_a_stream_written_anew_has_its_verdict_before_the_sentinel(reason: str) -> None:
    settings = Settings(upstream=UPSTREAM, verdict_comment=True, content_markup="glm")
    tap = MarkupTap(settings, openai_event, tools=None)
    tap.start(200, [(b"content-type", b"text/event-stream")])

    written = tap.feed(chunk({"content": "Hi"}) + chunk({}, reason) + DONE) + tap.finish()

    comment = f": glmsse outcome={tap.verdict.outcome} code={tap.verdict.code or '-'} replay={tap.verdict.replay}"
    assert written.endswith(b"\n\n" + comment.encode() + b"\n\n" + DONE)


@pytest.mark.parametrize("stops", ["x", [1], {"a": 1}])
def test_stop_sequences_of_a_wrong_type_are_refused(stops: Any) -> None:
    with pytest.raises(Refusal) as caught:
        translated(stop_sequences=stops)

    assert (caught.value.status, caught.value.code) == (400, "not_translated")


def chunk(delta: dict[str, Any], reason: str | None = None) -> bytes:
    body = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
    if reason is not None:
        body["usage"] = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def test_a_call_that_is_cut_by_its_length_is_not_in_the_whole_message() -> None:
    call = {"index": 0, "id": "t", "type": "function", "function": {"name": "look", "arguments": '{"a":'}}

    message = whole_message(chunk({"content": "So"}), chunk({"tool_calls": [call]}), chunk({}, "length"), DONE)

    assert message["stop_reason"] == "max_tokens"
    assert [block["type"] for block in message["content"]] == ["text"]


def test_a_whole_message_takes_events_as_large_as_the_limit_lets_in() -> None:
    text = "x" * (2 * 1024 * 1024)

    message = whole_message(
        chunk({"content": text}), chunk({}, "stop"), DONE, limits=Limits(max_event_bytes=4 * 1024 * 1024)
    )

    assert message["content"] == [{"type": "text", "text": text}]


@pytest.mark.parametrize("markup", ["none", "glm"])
def test_an_unterminated_last_event_that_a_profile_reads_is_written_anew(markup: str) -> None:
    message = whole_message(
        chunk({"content": "Do not "}),
        chunk({"content": "pay."}, "stop").rstrip(),
        profile="gateway",
        content_markup=markup,
    )

    assert message["content"] == [{"type": "text", "text": "Do not pay."}]


def test_half_a_pair_in_a_field_that_nobody_reads_passes_a_whole_completion() -> None:
    tap = WholeMarkupTap(Settings(upstream=UPSTREAM, content_markup="glm"), openai_event, tools=None)
    tap.start(200, [(b"content-type", b"application/json")])
    answer = {
        "id": "c",
        "model": "m",
        "system_fingerprint": "\ud800",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
    tap.feed(json.dumps(answer).encode())

    assert json.loads(tap.finish()) == answer


def test_the_upstreams_length_goes_on_with_its_bytes_only() -> None:
    headers = [(b"Content-Length", b"5"), (b"Location", b"http://x"), (b"X-Request-Id", b"r")]

    assert headers_downstream(headers, keep_length=False) == [(b"x-request-id", b"r")]
    assert headers_downstream(headers, keep_length=True) == [(b"content-length", b"5"), (b"x-request-id", b"r")]


def test_a_peers_words_are_no_labels() -> None:
    metrics = Metrics()

    metrics.count_verdict("chat", Verdict("not_accepted", code="finish_whatever_it_likes"))

    assert b"whatever" not in metrics.text()
