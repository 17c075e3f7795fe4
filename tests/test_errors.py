"""The error tree: one root, a class for each outcome, sentences that say what to do, values that travel."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from wire import body, content, end, event, piece, read, tools

TREE = {
    "ProtocolError": "protocol_error",
    "LimitError": "limit_exceeded",
    "ProviderError": "provider_error",
    "ResponseError": "http_error",
    "IncompleteStream": "incomplete",
    "RejectedError": "not_accepted",
}

PINNED = [
    "http_status",
    "content_type",
    "content_encoding",
    "invalid_utf8",
    "bad_json",
    "spliced_frame",
    "event_not_object",
    "json_nonfinite",
    "json_too_deep",
    "json_number_too_long",
    "duplicate_key",
    "lone_surrogate",
    "unexpected_shape",
    "stable_conflict",
    "arguments_type",
    "unexpected_choice",
    "finish_conflict",
    "delta_after_finish",
    "response_id_changed",
    "legacy_function_call",
    "message_not_delta",
    "provider_error",
    "event_too_large",
    "too_many_event_lines",
    "too_many_events",
    "stream_too_large",
    "content_too_large",
    "reasoning_too_large",
    "argument_too_large",
    "too_many_tool_calls",
    "too_many_choices",
    "unterminated_event",
    "incomplete_stream",
    "empty_stream",
    "deadline_first_byte",
    "deadline_idle",
    "deadline_total",
    "cancelled",
    "tool_id_missing",
    "tool_name_missing",
    "tool_finish_without_calls",
    "tools_without_tool_finish",
    "arguments_empty",
    "arguments_not_json",
    "arguments_not_object",
]

# Errors from real streams: module-level streams make one of each kind.
MADE = {
    "ProtocolError": b"data: {\n\n",
    "LimitError": event(content("abcd")),
    "ProviderError": event({"error": {"code": "1302"}, "request_id": "req-1"}),
    "IncompleteStream": event(content("ab")),
    "RejectedError": body(tools(piece("{", id="c", name="f")), end("tool_calls")),
}


def _made(glmsse: Any, kind: str) -> Any:
    if kind == "ResponseError":
        return glmsse.ChatStream().start(503, {})[0].error
    return read(glmsse, MADE[kind], limits=glmsse.Limits(max_content_bytes=3))[1].error


@pytest.mark.parametrize("kind", TREE)
def test_each_outcome_has_a_class_under_one_root(glmsse: Any, kind: str) -> None:
    cls = getattr(glmsse, kind)
    assert cls.__bases__ == (glmsse.GlmsseError,)
    error = _made(glmsse, kind)
    assert type(error) is cls
    assert error.outcome == TREE[kind]


def test_misuse_is_a_type_and_a_value_error_too(glmsse: Any) -> None:
    assert issubclass(glmsse.MisuseError, (glmsse.GlmsseError))
    assert issubclass(glmsse.MisuseError, TypeError)
    assert issubclass(glmsse.MisuseError, ValueError)
    assert issubclass(glmsse.GlmsseError, Exception)
    assert not issubclass(glmsse.ProtocolError, ValueError)


def test_every_pinned_code_has_a_sentence(glmsse: Any) -> None:
    assert set(PINNED) <= set(glmsse.errors.CODES)
    for code in PINNED:
        cls, stage, sentence = glmsse.errors.CODES[code]
        assert cls.__name__ in TREE
        assert stage
        assert len(sentence) > 10
        assert not sentence.endswith(".")


def test_codes_beyond_the_pinned_ones_are_known(glmsse: Any) -> None:
    """A new code is a change of the contract."""
    assert set(glmsse.errors.CODES) - set(PINNED) == {"tool_not_offered"}


@pytest.mark.parametrize("kind", TREE)
def test_error_says_code_place_and_sentence(glmsse: Any, kind: str) -> None:
    error = _made(glmsse, kind)
    text = str(error)
    assert text.startswith(error.code)
    assert (f"at byte {error.offset}" in text) is (error.offset is not None)
    assert len(text) > len(error.code) + 10


def test_limit_error_names_limit_value_need_and_how_to_raise_it(glmsse: Any) -> None:
    text = str(_made(glmsse, "LimitError"))
    for part in ("content_too_large", "max_content_bytes is 3", "4", "raise Limits.max_content_bytes"):
        assert part in text


def test_facts_are_attributes(glmsse: Any) -> None:
    limit, provider, response = (_made(glmsse, kind) for kind in ("LimitError", "ProviderError", "ResponseError"))
    assert (limit.limit, limit.maximum, limit.seen) == ("max_content_bytes", 3, 4)
    assert (provider.category, provider.provider_code, provider.request_id) == ("rate", "1302", "req-1")
    assert response.status == 503
    assert _made(glmsse, "IncompleteStream").missing == ("done", "finish_reason", "usage")
    assert (_made(glmsse, "RejectedError").choice, _made(glmsse, "RejectedError").index) == (0, 0)
    assert "503" in str(response)


def test_tail_of_an_unterminated_event_is_a_count(glmsse: Any) -> None:
    error = read(glmsse, b"data: {}\n\ndata: {")[1].error
    assert (error.code, error.tail) == ("unterminated_event", 7)
    assert "7 bytes" in str(error)


@pytest.mark.parametrize("kind", TREE)
def test_errors_compare_by_value(glmsse: Any, kind: str) -> None:
    error, same = _made(glmsse, kind), _made(glmsse, kind)
    assert error is not same
    assert error == same
    assert hash(error) == hash(same)
    other = "ProtocolError" if kind == "ResponseError" else "ResponseError"
    assert error != _made(glmsse, other)
    assert error != "text"


@pytest.mark.parametrize("kind", TREE)
@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_errors_are_copied_with_all_fields(glmsse: Any, kind: str, way: Any) -> None:
    error = _made(glmsse, kind)
    assert way(error) == error
    assert str(way(error)) == str(error)


@pytest.mark.parametrize("kind", TREE)
def test_errors_are_pickled_with_all_fields(kind: str) -> None:
    import glmsse as importable

    error = _made(importable, kind)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(error, protocol))
        assert type(back) is type(error)
        assert back.to_dict() == error.to_dict()
        assert str(back) == str(error)


def test_misuse_is_pickled_with_its_reason() -> None:
    import glmsse as importable

    with pytest.raises(importable.MisuseError) as caught:
        importable.ChatStream("no such profile")
    back = pickle.loads(pickle.dumps(caught.value))
    assert str(back) == str(caught.value) != ""
    assert back == caught.value


@pytest.mark.parametrize("kind", TREE)
def test_to_dict_is_json_types_without_events(glmsse: Any, kind: str) -> None:
    shown = _made(glmsse, kind).to_dict()
    assert list(shown)[:4] == ["code", "parent_code", "stage", "offset"]
    assert "events" not in shown


def test_args_hold_the_code_only(glmsse: Any) -> None:
    for kind in TREE:
        error = _made(glmsse, kind)
        assert error.args == (error.code,)


def test_spliced_frame_is_a_kind_of_bad_json(glmsse: Any) -> None:
    error = read(glmsse, b'data: {"id":"A","cdata: {"id":"B"}\n\n')[1].error
    assert (error.code, error.parent_code) == ("spliced_frame", "bad_json")
    assert read(glmsse, b"data: {\n\n")[1].error.parent_code is None


def test_error_raised_twice_does_not_grow_a_context(glmsse: Any) -> None:
    verdict = read(glmsse, b"data: {\n\n")[1]
    for _ in range(3):
        with pytest.raises(glmsse.ProtocolError) as caught:
            verdict.raise_for_verdict()
        assert caught.value.__context__ is None
        assert caught.value.__cause__ is None
