"""The answer gate for JSON workloads, and the schema helpers of both gates."""

from __future__ import annotations

import datetime
import importlib
import json
import sys
from types import ModuleType
from typing import Any

import pytest

from glmsse.scenarios import SCENARIOS, body, delta, finish, text, tool_piece

ANSWER = '{"city": "Hong Kong", "offset": 8}'
SCHEMA = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "offset": {"type": "integer"}, "tags": {"items": {"enum": ["a"]}}},
    "required": ["city", "offset"],
    "additionalProperties": False,
}


def stream_of(glmsse: ModuleType, *pieces: str, reason: str = "stop", **options: Any) -> Any:
    stream = glmsse.ChatStream(**options)
    stream.feed(body([*map(text, pieces), finish(reason, 99)]))
    stream.close()
    return stream


def review(glmsse: ModuleType, content: str, schema: Any = None) -> Any:
    return glmsse.AnswerGate(schema).review(stream_of(glmsse, content))


def test_the_whole_content_is_the_answer(glmsse: ModuleType) -> None:
    answer = glmsse.AnswerGate().review(stream_of(glmsse, ANSWER[:9], ANSWER[9:]))

    assert (answer.value, answer.text, answer.choice) == ({"city": "Hong Kong", "offset": 8}, ANSWER, 0)


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "answer_empty"),
        (" \n", "answer_empty"),
        ("I am sorry, I cannot do that.", "answer_not_json"),
        ("```json\n{}\n```", "answer_not_json"),
        ('{"a": 1} {"a": 2}', "answer_not_json"),
        ('{"a": 1', "answer_not_json"),
        ('{"a": 1, "\\u0061": 2}', "duplicate_key"),
        ("[NaN]", "json_nonfinite"),
        ("[" * 65 + "]" * 65, "json_too_deep"),
        ("1" * 65, "json_number_too_long"),
        ('["\\ud800"]', "lone_surrogate"),
    ],
)
def test_what_is_not_strict_json_is_refused(glmsse: ModuleType, content: str, code: str) -> None:
    refusal = review(glmsse, content)

    assert refusal.code == code
    assert json.loads(refusal.message()["content"])["error"] == refusal.to_dict()


def test_a_refusal_does_not_look_like_a_failed_transport(glmsse: ModuleType) -> None:
    stream = stream_of(glmsse, "I cannot do that.")

    refusal = glmsse.AnswerGate().review(stream)

    assert stream.verdict.accepted
    assert not isinstance(refusal, (Exception, glmsse.Verdict))
    assert refusal.to_dict() == {
        "code": "answer_not_json",
        "message": "the answer is not one JSON text and nothing else",
    }
    assert refusal.code not in importlib.import_module("glmsse.errors").CODES


def test_no_prefix_is_ever_an_answer(glmsse: ModuleType) -> None:
    whole = body([text('{"a": 1}'), text(" "), finish("stop", 99)])
    for length in range(len(whole) - 1):
        stream = glmsse.ChatStream()
        stream.feed(whole[:length])
        stream.close()
        with pytest.raises(glmsse.GlmsseError):
            glmsse.AnswerGate().review(stream)


def test_a_stream_without_a_verdict_is_misuse(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    stream.feed(body([text(ANSWER)], done=False))

    with pytest.raises(glmsse.MisuseError, match="no verdict yet"):
        glmsse.AnswerGate().review(stream)


@pytest.mark.parametrize(("name", "error"), [("length", "RejectedError"), ("no_done", "IncompleteStream")])
def test_an_answer_that_is_not_accepted_raises_its_own_error(glmsse: ModuleType, name: str, error: str) -> None:
    stream = glmsse.ChatStream()
    stream.feed(SCENARIOS[name].body)
    stream.close()

    with pytest.raises(getattr(glmsse, error)):
        glmsse.AnswerGate().review(stream)


def test_tool_calls_are_no_answer(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    stream.feed(body([text(ANSWER), tool_piece("{}", call_id="a", name="b"), finish("tool_calls", 99)]))
    stream.close()

    assert glmsse.AnswerGate().review(stream).code == "answer_is_tool_calls"


def test_each_choice_has_its_own_answer(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream(choices=2)
    stream.feed(
        body(
            [
                delta({"content": "1"}),
                delta({"content": "2"}, choice=1),
                finish("stop", None),
                finish("stop", 99, choice=1),
            ]
        )
    )
    stream.close()
    gate = glmsse.AnswerGate()

    assert [gate.review(stream, choice=choice).value for choice in (0, 1)] == [1, 2]
    with pytest.raises(glmsse.MisuseError, match="no such choice"):
        gate.review(stream, choice=2)


def test_a_stream_that_kept_no_text_is_misuse(glmsse: ModuleType) -> None:
    with pytest.raises(glmsse.MisuseError, match="collect=True"):
        glmsse.AnswerGate().review(stream_of(glmsse, ANSWER, collect=False))


@pytest.mark.parametrize("value", [None, ANSWER, {}])
def test_anything_but_a_stream_is_misuse(glmsse: ModuleType, value: object) -> None:
    with pytest.raises(glmsse.MisuseError, match="review takes a ChatStream"):
        glmsse.AnswerGate().review(value)


def test_a_schema_that_changes_the_value_changes_nothing(glmsse: ModuleType) -> None:
    answer = review(glmsse, ANSWER, lambda value: value.clear())

    assert answer.value == {"city": "Hong Kong", "offset": 8}


def test_no_repr_shows_text(glmsse: ModuleType) -> None:
    assert "Hong" not in repr(review(glmsse, ANSWER))
    assert repr(review(glmsse, "Hong")) == "AnswerRefusal('answer_not_json', choice=0)"


def test_a_dict_is_no_schema(glmsse: ModuleType) -> None:
    with pytest.raises(glmsse.MisuseError, match="wrap a dict in json_schema"):
        glmsse.AnswerGate(SCHEMA)


# JSON Schema


def test_json_schema_lets_fitting_values_pass(glmsse: ModuleType) -> None:
    assert review(glmsse, ANSWER, glmsse.json_schema(SCHEMA)).text == ANSWER


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ('{"city": "CANARY", "offset": "CANARY"}', "$.offset: type integer"),
        ('{"city": "CANARY"}', "$: required offset"),
        ('{"city": "x", "offset": 1, "CANARY": 1}', "$: additionalProperties"),
        ('{"city": "x", "offset": 1, "tags": ["a", "CANARY"]}', "$.tags.1: enum"),
        ('["CANARY"]', "$: type object"),
    ],
)
def test_json_schema_says_where_and_never_what(glmsse: ModuleType, content: str, hint: str) -> None:
    refusal = review(glmsse, content, glmsse.json_schema(SCHEMA))

    assert (refusal.code, refusal.hint) == ("schema", hint)


def test_a_key_that_is_not_harmless_is_not_shown(glmsse: ModuleType) -> None:
    refusal = review(glmsse, '{"a\\nb": "x"}', glmsse.json_schema({"additionalProperties": {"type": "integer"}}))

    assert refusal.hint == "$.?: type integer"


def test_json_schema_fetches_nothing(glmsse: ModuleType) -> None:
    refusal = review(glmsse, ANSWER, glmsse.json_schema({"$ref": "http://127.0.0.1:9/schema.json"}))

    assert refusal.code == "schema"
    assert refusal.cause == "_WrappedReferencingError"


def test_a_broken_json_schema_is_misuse(glmsse: ModuleType) -> None:
    with pytest.raises(glmsse.MisuseError, match="valid JSON Schema"):
        glmsse.json_schema({"type": "no such type"})


def test_json_schema_serves_the_tool_gate(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    stream.feed(SCENARIOS["tool"].body)
    rule = glmsse.ToolRule("lookup_timezone", schema=glmsse.json_schema({"required": ["zone"]}))

    (refusal,) = glmsse.ToolGate([rule]).review(stream.close(), stream_id="1")

    assert (refusal.code, refusal.hint) == ("schema", "$: required zone")


# pydantic


def test_pydantic_models_and_types_are_schemas(glmsse: ModuleType) -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("City", city=(str, ...), offset=(int, ...))

    assert review(glmsse, ANSWER, glmsse.pydantic_schema(model)).text == ANSWER
    assert review(glmsse, "[1, 2]", glmsse.pydantic_schema(list[int])).value == [1, 2]
    assert review(glmsse, '"2026-12-01"', glmsse.pydantic_schema(datetime.date)).value == "2026-12-01"


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ('{"city": "CANARY", "offset": "8"}', "$.offset: int_type"),
        ('{"city": "CANARY"}', "$.offset: missing"),
        ('["CANARY"]', "$: model_type"),
    ],
)
def test_pydantic_says_where_and_never_what(glmsse: ModuleType, content: str, hint: str) -> None:
    pydantic = pytest.importorskip("pydantic")
    model = pydantic.create_model("City", city=(str, ...), offset=(int, ...))

    assert review(glmsse, content, glmsse.pydantic_schema(model)).hint == hint


def test_pydantic_converts_only_if_asked(glmsse: ModuleType) -> None:
    pytest.importorskip("pydantic")

    assert review(glmsse, '"5"', glmsse.pydantic_schema(int)).hint == "$: int_type"
    assert review(glmsse, '"5"', glmsse.pydantic_schema(int, strict=False)).value == "5"


@pytest.mark.parametrize(("helper", "module"), [("json_schema", "jsonschema"), ("pydantic_schema", "pydantic")])
def test_a_missing_package_says_what_to_install(
    glmsse: ModuleType, monkeypatch: pytest.MonkeyPatch, helper: str, module: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)

    with pytest.raises(ImportError, match=f"pip install {module}") as caught:
        getattr(glmsse, helper)({})
    assert caught.value.name == module
