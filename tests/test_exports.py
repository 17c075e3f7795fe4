"""What is public, and what the public values promise: immutable, compared by value, silent about text."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from typing import Any, get_args

import pytest

from wire import CALL, HELLO, body, content, end, event, piece, read, reasoning, tools

DESIGNED = [
    "SSEFramer",
    "ServerSentEvent",
    "ChatStream",
    "Completion",
    "Choice",
    "ToolCall",
    "Verdict",
    "ToolCallParser",
    "ReasoningDelta",
    "ContentDelta",
    "ToolCallStart",
    "ArgumentsDelta",
    "ToolCallEnd",
    "Finish",
    "Usage",
    "Done",
    "Failed",
    "ChatEvent",
    "Limits",
    "PROFILES",
    "TOLERANCES",
    "IMPLEMENTATION",
    "__version__",
    "iter_sse",
    "aiter_sse",
    "iter_events",
    "aiter_events",
    "collect",
    "acollect",
    "GlmsseError",
    "ProtocolError",
    "LimitError",
    "ProviderError",
    "ResponseError",
    "IncompleteStream",
    "RejectedError",
    "MisuseError",
]

TYPES = {
    "ReasoningDelta": "reasoning.delta",
    "ContentDelta": "content.delta",
    "ToolCallStart": "tool_call.start",
    "ArgumentsDelta": "tool_call.arguments.delta",
    "ToolCallEnd": "tool_call.end",
    "Finish": "finish",
    "Usage": "usage",
    "Done": "done",
    "Failed": "failed",
}


def test_all_designed_names_are_exported(glmsse: Any) -> None:
    assert set(DESIGNED) <= set(glmsse.__all__)


def test_all_lists_exactly_what_is_public(glmsse: Any) -> None:
    public = {name for name, value in vars(glmsse).items() if not name.startswith("_") and not inspect.ismodule(value)}
    assert public | {"__version__"} == set(glmsse.__all__)
    assert len(glmsse.__all__) == len(set(glmsse.__all__))


def test_star_import_gives_every_name(glmsse: Any) -> None:
    for name in glmsse.__all__:
        assert getattr(glmsse, name) is not None


def test_every_public_thing_has_a_docstring(glmsse: Any) -> None:
    for name in glmsse.__all__:
        value = getattr(glmsse, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            assert inspect.getdoc(value), name


def test_builds_are_the_two_that_were_asked_for(glmsse: Any) -> None:
    assert glmsse.IMPLEMENTATION in ("compiled", "pure")
    assert glmsse.__version__.count(".") >= 1


def test_event_classes_have_their_dotted_types(glmsse: Any) -> None:
    assert {name: getattr(glmsse, name).type for name in TYPES} == TYPES
    assert {cls.__name__ for cls in get_args(glmsse.ChatEvent)} == set(TYPES)


def _events(glmsse: Any) -> list[Any]:
    """One event of each type."""
    whole = body(
        reasoning("SECRET"), content("SECRET"), tools(piece('"SECRET"', id="SECRET", name="SECRET")), end("tool_calls")
    )
    events = read(glmsse, whole)[0] + read(glmsse, b"data: {\n\n")[0]
    by_type = {happened.type: happened for happened in events}
    assert set(by_type) == set(TYPES.values())
    return list(by_type.values())


def test_events_are_immutable_and_slotted(glmsse: Any) -> None:
    for happened in _events(glmsse):
        with pytest.raises(AttributeError):
            happened.choice = 5
        with pytest.raises((AttributeError, TypeError)):
            happened.anything = 5
        assert not hasattr(happened, "__dict__")


def test_events_compare_by_value_and_are_hashable(glmsse: Any) -> None:
    first, second = _events(glmsse), _events(glmsse)
    assert first == second
    assert list(map(hash, first)) == list(map(hash, second))
    assert len({*first, *second}) == len(TYPES)
    assert glmsse.ContentDelta("a") != glmsse.ReasoningDelta("a")
    assert glmsse.ContentDelta("a") != glmsse.ContentDelta("a", 1)


def test_reprs_of_events_show_sizes_and_no_text(glmsse: Any) -> None:
    for happened in _events(glmsse):
        assert "SECRET" not in repr(happened)
        assert "SECRET" not in str(happened)
        assert "SECRET" not in f"{happened}"
        assert repr(happened).startswith(type(happened).__name__)
    assert "6" in repr(glmsse.ContentDelta("SECRET"))


def test_events_match_by_position(glmsse: Any) -> None:
    match glmsse.ChatStream().feed(event(content("Hi")))[0]:
        case glmsse.ContentDelta(text, choice):
            assert (text, choice) == ("Hi", 0)
        case _:
            pytest.fail("no match")


def test_every_event_has_type_choice_and_to_dict(glmsse: Any) -> None:
    for happened in _events(glmsse):
        shown = happened.to_dict()
        assert next(iter(shown)) == "type"
        assert shown["type"] == happened.type
        assert shown["choice"] == happened.choice == 0
        assert set(shown) - {"type"} == set(happened.__match_args__)


def test_snapshot_and_verdict_are_immutable(glmsse: Any) -> None:
    _, verdict, stream = read(glmsse, CALL)
    snapshot = stream.snapshot
    for value in (snapshot, snapshot.choices[0], verdict.tool_calls[0], verdict, stream.usage):
        field = dataclasses.fields(value)[0].name
        with pytest.raises(AttributeError):
            setattr(value, field, None)
        assert not hasattr(value, "__dict__")
    assert isinstance(snapshot.choices, tuple)
    assert isinstance(verdict.tool_calls, tuple)


def test_snapshot_is_what_it_was_when_it_was_taken(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    stream.feed(event(content("a")))
    before = stream.snapshot
    stream.feed(event(content("b")))
    assert (before.choices[0].content, stream.snapshot.choices[0].content) == ("a", "ab")


def test_changing_the_dict_of_a_usage_event_does_not_change_what_others_see(glmsse: Any) -> None:
    events, verdict, stream = read(glmsse, HELLO)
    usage = next(happened for happened in events if happened.type == "usage")
    usage.raw["total_tokens"] = 999
    usage.to_dict()["raw"]["total_tokens"] = 999
    assert verdict.usage.total_tokens == 15
    assert stream.usage.total_tokens == 15


def test_snapshot_is_the_body_that_a_request_without_stream_would_have_given(glmsse: Any) -> None:
    chunks = [
        {**reasoning("Hm"), "created": 5, "model": "glm-5.2"},
        content("Hi"),
        tools(piece("{}", id="c1", name="f", type="function")),
        end("tool_calls"),
    ]
    stream = read(glmsse, body(*chunks))[2]
    assert stream.snapshot.to_dict() == {
        "id": "r-1",
        "object": "chat.completion",
        "created": 5,
        "model": "glm-5.2",
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": "Hi",
                    "reasoning_content": "Hm",
                    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
                },
                "finish_reason": "tool_calls",
            }
        ],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    }


def test_reprs_of_snapshot_verdict_and_stream_show_no_text(glmsse: Any) -> None:
    data = body(
        {**reasoning("SECRET"), "id": "SECRET", "model": "SECRET"},
        {**content("SECRET"), "id": "SECRET"},
        {**tools(piece('{"a":"SECRET"}', id="SECRET", name="SECRET")), "id": "SECRET"},
        {**end("tool_calls"), "id": "SECRET"},
    )
    _, verdict, stream = read(glmsse, data)
    assert verdict.accepted
    snapshot = stream.snapshot
    for value in (snapshot, *snapshot.choices, *snapshot.choices[0].tool_calls, *verdict.tool_calls, verdict, stream):
        assert "SECRET" not in repr(value)
        assert "SECRET" not in str(value)


def test_parser_objects_are_not_pickled_or_copied(glmsse: Any) -> None:
    framer = glmsse.SSEFramer()
    for made in (glmsse.ChatStream(), framer, glmsse.ToolCallParser()):
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError):
                way(made)


def test_events_snapshot_and_verdict_are_pickled() -> None:
    import glmsse as importable

    events, verdict, stream = read(importable, CALL)
    for value in (events, verdict, stream.snapshot, read(importable, b"data: {\n\n")[1]):
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value


def test_tables_are_plain_data(glmsse: Any) -> None:
    for name, what in glmsse.TOLERANCES.items():
        assert name.replace("_", "").isalnum()
        assert what
    for tolerances in glmsse.PROFILES.values():
        assert set(tolerances) <= set(glmsse.TOLERANCES)
