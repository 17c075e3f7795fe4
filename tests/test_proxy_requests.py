"""Anthropic requests as chat completion requests, and the rare turns of the watch and the metrics."""

from __future__ import annotations

from typing import Any

import pytest

from glmsse.proxy.anthropic_request import chat_request
from glmsse.proxy.metrics import Metrics
from glmsse.proxy.requests import Refusal, headers_downstream, headers_upstream
from glmsse.verdict import Verdict


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
    assert (b"authorization", b"Bearer k") in headers_upstream([(b"x-api-key", b"k")], None)


def test_the_upstreams_length_goes_on_with_its_bytes_only() -> None:
    headers = [(b"Content-Length", b"5"), (b"Location", b"http://x"), (b"X-Request-Id", b"r")]

    assert headers_downstream(headers, keep_length=False) == [(b"x-request-id", b"r")]
    assert headers_downstream(headers, keep_length=True) == [(b"content-length", b"5"), (b"x-request-id", b"r")]


def test_a_peers_words_are_no_labels() -> None:
    metrics = Metrics()

    metrics.count_verdict("chat", Verdict("not_accepted", code="finish_whatever_it_likes"))

    assert b"whatever" not in metrics.text()
