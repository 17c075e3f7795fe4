"""The states of an answer that a release must have seen, and what shows that a fixture is in one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import CLOSE_CODES

Evidence = Callable[[dict[str, Any], dict[str, Any]], bool]
"""Takes the facts of a replay, and of the fixture: `retries`, and `before`, the facts of the attempt before."""


def _verdict(**wanted: object) -> Evidence:
    return lambda facts, _: all(facts["verdict"][name] == value for name, value in wanted.items())


def _accepted_calls(facts: dict[str, Any], at_least: int = 1) -> bool:
    return facts["verdict"]["accepted"] and len(facts["verdict"]["tool_calls"]) >= at_least


def _retried(facts: dict[str, Any], fixture: dict[str, Any]) -> bool:
    before = fixture["before"]
    return fixture["retries"] > 0 and before is not None and before["verdict"]["replay"] == "ambiguous"


STATES: dict[str, tuple[str, Evidence]] = {
    "normal_text": (
        "an accepted answer in text, without calls",
        lambda facts, _: facts["verdict"]["accepted"] and facts["content_chars"] > 0 and not _accepted_calls(facts),
    ),
    "thinking": ("reasoning before the answer", lambda facts, _: facts["reasoning_chars"] > 0),
    "tool_call_without_content": (
        "an accepted call, and no text beside it",
        lambda facts, _: _accepted_calls(facts) and facts["content_chars"] == 0,
    ),
    "several_tool_calls": ("two or more accepted calls", lambda facts, _: _accepted_calls(facts, at_least=2)),
    "finish_stop": ("the finish reason stop", _verdict(accepted=True, finish_reason="stop")),
    "finish_tool_calls": ("the finish reason tool_calls", _verdict(accepted=True, finish_reason="tool_calls")),
    "finish_length": ("the finish reason length", _verdict(finish_reason="length")),
    "provider_error": (
        "an error that the provider reports, in the stream or before it",
        lambda facts, _: facts["verdict"]["outcome"] in ("provider_error", "http_error"),
    ),
    "client_timeout": (
        "the reader's deadline passed",
        lambda facts, _: str(facts["verdict"]["code"]).startswith("deadline_"),
    ),
    "abrupt_close": (
        "the body ended early",
        lambda facts, _: (
            facts["verdict"]["stage"] == "connection_close" and facts["verdict"]["code"] not in CLOSE_CODES
        ),
    ),
    "repeated_stable_fields": (
        "a call that repeats its id, type or name, and is accepted",
        lambda facts, _: facts["repeated_fields"] and _accepted_calls(facts),
    ),
    "fragmented_arguments": (
        "an accepted call whose arguments came in pieces",
        lambda facts, _: facts["most_argument_pieces"] > 1 and _accepted_calls(facts),
    ),
    "oversized_event": ("an event over its limit", _verdict(code="event_too_large")),
    "too_many_events": ("more events than the limit", _verdict(code="too_many_events")),
    "argument_over_limit": ("arguments over their limit", _verdict(code="argument_too_large")),
    "cancelled_before_approval": (
        "cancelled before a person approved: no call may run",
        lambda facts, _: facts["permits"] is not None and set(facts["permits"]) == {"unapproved"},
    ),
    "cancelled_after_approval": (
        "cancelled after the approval: it is of no use later or for another answer",
        lambda facts, _: facts["permits"] is not None and set(facts["permits"]) == {"changed", "expired"},
    ),
    "retry_after_unknown_completion": (
        "a request sent again (`retries`) after an attempt (`after`) that may have been completed and billed",
        _retried,
    ),
}
"""Every state by its id, in words, and its evidence."""


def states_shown(facts: dict[str, Any], fixture: dict[str, Any]) -> list[str]:
    """The states that a fixture gives evidence of."""
    return [state for state, (_, shows) in STATES.items() if shows(facts, fixture)]
