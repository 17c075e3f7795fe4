"""The demo's streams: the numbers of the founding measurement, and one verdict for each way to fail."""

from __future__ import annotations

from typing import Any

import pytest

from wire import by_size, each_byte, feed_all

# name → title, JSON events, reasoning characters, content, call, argument pieces, finish reason, total tokens
MEASURED: dict[str, tuple[str, int, int, str, tuple[str, str] | None, int, str, int]] = {
    "text": ("pay-as-you-go, exact text", 4, 0, "Ready when you are.", None, 0, "stop", 23),
    "thinking": ("pay-as-you-go, thinking", 105, 254, "437", None, 0, "stop", 131),
    "tool": (
        "default tool behaviour",
        2,
        0,
        "",
        ("lookup_timezone", '{"city":"Hong Kong"}'),
        1,
        "tool_calls",
        177,
    ),
    "tool_stream": (
        "tool_stream=true",
        7,
        0,
        "",
        ("lookup_timezone", '{"city":"Hong Kong"}'),
        6,
        "tool_calls",
        177,
    ),
    "coding": ("Coding Plan, exact text", 4, 0, "Ready when you are.", None, 0, "stop", 23),
}

FAILING = {
    "truncated": ("incomplete", "connection_close", "unterminated_event", "ambiguous"),
    "no_finish_reason": ("incomplete", "connection_close", "incomplete_stream", "ambiguous"),
    "no_usage": ("incomplete", "connection_close", "incomplete_stream", "ambiguous"),
    "no_done": ("incomplete", "connection_close", "incomplete_stream", "ambiguous"),
    "provider_error": ("provider_error", "provider", "provider_error", "ambiguous"),
    "conflict": ("protocol_error", "event_decoding", "stable_conflict", "ambiguous"),
    "event_too_large": ("limit_exceeded", "event_decoding", "event_too_large", "ambiguous"),
    "too_many_events": ("limit_exceeded", "event_decoding", "too_many_events", "ambiguous"),
    "argument_too_large": ("limit_exceeded", "event_decoding", "argument_too_large", "ambiguous"),
    "spliced_frame": ("protocol_error", "event_decoding", "spliced_frame", "ambiguous"),
    "length": ("not_accepted", "generation", "finish_length", "pointless"),
    "sensitive": ("not_accepted", "generation", "finish_sensitive", "pointless"),
    "network_error": ("not_accepted", "generation", "finish_network_error", "ambiguous"),
}


def _scenario(glmsse: Any, name: str) -> Any:
    return glmsse.scenarios.SCENARIOS[name]


def _pieces(glmsse: Any, data: bytes) -> dict[str, list[bytes]]:
    return {
        "whole": [data],
        "uneven": list(glmsse.scenarios.uneven_pieces(data)),
        "by 64": by_size(data, 64),
        "each byte": each_byte(data),
    }


def test_table_has_exactly_these_scenarios_in_this_order(glmsse: Any) -> None:
    assert [scenario.name for scenario in glmsse.scenarios.MEASURED] == list(MEASURED)
    assert [scenario.name for scenario in glmsse.scenarios.FAILING] == list(FAILING)
    assert list(glmsse.scenarios.SCENARIOS) == [*MEASURED, *FAILING]


@pytest.mark.parametrize("name", MEASURED)
def test_measured_scenario_has_the_numbers_of_the_table(glmsse: Any, name: str) -> None:
    title, json_events, reasoning, text, call, argument_pieces, reason, tokens = MEASURED[name]
    scenario = _scenario(glmsse, name)
    assert scenario.title == title
    for how, pieces in _pieces(glmsse, scenario.body).items():
        stream = glmsse.ChatStream(limits=scenario.limits)
        events = feed_all(stream, pieces)
        verdict = stream.close()
        choice = stream.snapshot.choices[0]

        assert verdict.accepted, how
        assert verdict.tolerated == ()
        assert stream.events_seen == json_events + 1, how
        assert (len(choice.reasoning_content), choice.content) == (reasoning, text)
        assert (verdict.finish_reason, verdict.usage.total_tokens, verdict.done) == (reason, tokens, True)
        calls = [(item.name, item.arguments) for item in verdict.tool_calls]
        assert calls == ([call] if call else [])
        assert sum(item.type == "tool_call.arguments.delta" for item in events) == argument_pieces


def test_reasoning_arrives_in_103_pieces(glmsse: Any) -> None:
    events = glmsse.ChatStream().feed(_scenario(glmsse, "thinking").body)
    assert sum(item.type == "reasoning.delta" for item in events) == 103


@pytest.mark.parametrize("name", FAILING)
def test_failing_scenario_has_its_verdict_for_every_cutting(glmsse: Any, name: str) -> None:
    scenario = _scenario(glmsse, name)
    verdicts = []
    for pieces in _pieces(glmsse, scenario.body).values():
        stream = glmsse.ChatStream(limits=scenario.limits)
        feed_all(stream, pieces)
        verdicts.append(stream.close())

    first = verdicts[0]
    assert (first.outcome, first.stage, first.code, first.replay) == FAILING[name]
    assert all(verdict == first for verdict in verdicts)


def test_uneven_pieces_are_the_same_bytes(glmsse: Any) -> None:
    data = bytes(range(256)) * 20
    pieces = list(glmsse.scenarios.uneven_pieces(data))
    assert b"".join(pieces) == data
    assert [len(item) for item in pieces[:9]] == [1, 7, 64, 3, 211, 1460, 2, 29, 1]
    assert list(glmsse.scenarios.uneven_pieces(b"")) == []
