"""A stream that is cut, at any byte, is never accepted before its terminal evidence, and offers no call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from wire import USAGE, body, chunk, content, end, event, piece, reasoning, tools

BODIES: dict[str, bytes] = {
    "text": body(content("Hello"), content(" wörld"), end()),
    "thinking": body(reasoning("Hm"), content("Hi"), end()),
    "tool": body(tools(piece('{"city":"Rome"}', id="c1", name="weather", type="function")), end("tool_calls")),
    "fragments": body(
        tools(piece("", id="c1", name="f", type="function")),
        *(tools(piece(letter)) for letter in ('{"a', '":', "1}")),
        end("tool_calls"),
    ),
    "two calls": body(
        tools(piece("{}", id="c1", name="f"), finish="tool_calls"),
        tools(piece('{"b":2}', index=1, id="c2", name="g"), finish="tool_calls"),
        end("tool_calls"),
    ),
    "usage first": body(content("Hi", usage=USAGE), chunk({}, finish="stop")),
    "usage last": body(content("Hi"), chunk({}, finish="stop"), {"choices": [], "usage": USAGE}),
    "crlf": body(tools(piece("{}", id="c1", name="f")), end("tool_calls")).replace(b"\n", b"\r\n"),
    "cr": body(tools(piece("{}", id="c1", name="f")), end("tool_calls")).replace(b"\n", b"\r"),
}


def _cuts(data: bytes) -> Iterator[int]:
    """Every byte of a short body; of a long one the first and last events, and every 97th byte between."""
    if len(data) <= 2500:
        yield from range(len(data))
        return
    yield from range(300)
    yield from range(300, len(data) - 700, 97)
    yield from range(len(data) - 700, len(data))


def _end_of_evidence(data: bytes) -> int:
    """The first length at which `[DONE]` was dispatched: its blank line has begun, and a CR ends it at once."""
    return len(data) - (1 if data.endswith(b"\r\n\r\n") else 0)


def _verdict(glmsse: Any, data: bytes, error: Any = None, **options: Any) -> Any:
    stream = glmsse.ChatStream(**options)
    stream.feed(data)
    return stream.close(error)


@pytest.mark.parametrize("name", BODIES)
def test_cut_stream_is_never_accepted_and_offers_no_call(glmsse: Any, name: str) -> None:
    data = BODIES[name]
    enough = _end_of_evidence(data)
    for length in range(len(data) + 1):
        for error in (None, ConnectionError()):
            verdict = _verdict(glmsse, data[:length], error)
            assert verdict.accepted is (length >= enough), length
            if not verdict.accepted:
                assert verdict.tool_calls == ()
                assert (verdict.outcome, verdict.stage) == ("incomplete", "connection_close"), length
                assert verdict.replay == "ambiguous"
    assert _verdict(glmsse, data).accepted


@pytest.mark.parametrize("name", BODIES)
def test_with_the_gateway_profile_all_other_evidence_is_still_needed(glmsse: Any, name: str) -> None:
    data = BODIES[name]
    for length in range(len(data)):
        verdict = _verdict(glmsse, data[:length], profile="gateway")
        if verdict.accepted:
            assert verdict.finish_reason in ("stop", "tool_calls"), length
            assert "finish_reason" not in verdict.missing
        else:
            assert verdict.tool_calls == ()
        broken = _verdict(glmsse, data[:length], ConnectionError(), profile="gateway")
        assert broken.accepted is (length >= _end_of_evidence(data)), length


@pytest.mark.parametrize("name", ["tool", "fragments", "crlf"])
def test_calls_are_offered_whole_or_not_at_all(glmsse: Any, name: str) -> None:
    data = BODIES[name]
    (whole,) = _verdict(glmsse, data).tool_calls
    for length in range(len(data)):
        for call in _verdict(glmsse, data[:length], profile="gateway").tool_calls:
            assert call.arguments == whole.arguments, length


def test_scenarios_of_the_demo_are_never_accepted_when_cut(glmsse: Any) -> None:
    for scenario in glmsse.scenarios.MEASURED:
        assert _verdict(glmsse, scenario.body, limits=scenario.limits).accepted
        for length in _cuts(scenario.body):
            verdict = _verdict(glmsse, scenario.body[:length], limits=scenario.limits)
            assert not verdict.accepted, (scenario.name, length)
            assert verdict.tool_calls == ()


def test_failing_scenarios_are_never_accepted_at_any_length(glmsse: Any) -> None:
    for scenario in glmsse.scenarios.FAILING:
        for length in {*_cuts(scenario.body), len(scenario.body)}:
            verdict = _verdict(glmsse, scenario.body[:length], limits=scenario.limits)
            assert not verdict.accepted, (scenario.name, length)
            assert verdict.tool_calls == ()


def test_no_event_offers_a_call_before_the_verdict(glmsse: Any) -> None:
    """Arguments come in pieces of a type of their own; only the verdict has ToolCall objects with text to run."""
    stream = glmsse.ChatStream()
    events = stream.feed(event(tools(piece("{}", id="c1", name="f"))) + event(end("tool_calls")))
    assert stream.verdict is None
    assert not any(isinstance(happened, glmsse.ToolCall) for happened in events)
