"""What an application says about a value: schemas and policies, and how their answers are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from .errors import MisuseError
from .provider import safe_word

Schema = Callable[[Any], object]
"""Takes the parsed value. It refuses by raising, or by returning False or a hint for the model; all else passes."""

_LONGEST_HINT = 300


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a check refused: a hint in the application's own words, and the class of what was raised."""

    hint: str | None = None
    cause: str | None = None


def objection_of_schema(schema: Schema | None, value: Any) -> Objection | None:
    """None if the value passes. Whatever a schema raises is a refusal; its text is not kept, as it may hold input."""
    if schema is None:
        return None
    try:
        answer = schema(value)
    except Exception as error:  # validators have exceptions of their own, and all of them refuse
        return Objection(cause=type(error).__name__)
    if isinstance(answer, str):
        return Objection(answer[:_LONGEST_HINT])
    return Objection() if answer is False else None


def objection_of_policy(policy: Callable[[Any], object], request: object) -> Objection | None:
    """None if the policy returns True. Anything else refuses, so that one which forgets to answer lets nothing pass."""
    try:
        answer = policy(request)
    except (
        Exception
    ) as error:  # a policy that fails must not let the call pass, nor end the program on the model's word
        return Objection(cause=type(error).__name__)
    if answer is True:
        return None
    return Objection(answer[:_LONGEST_HINT]) if isinstance(answer, str) else Objection()


def check_schema_argument(schema: object) -> None:
    if schema is not None and not callable(schema):
        raise MisuseError(f"schema takes a callable or None, not {type(schema).__name__}; wrap a dict in json_schema")


def json_schema(schema: dict[str, Any] | bool) -> Schema:
    """A schema callable for JSON Schema; needs the package jsonschema. References are never fetched.

    The hint names the place and the keyword that failed, never the value.
    """
    jsonschema = _needed("jsonschema")
    registry = _needed("referencing", "jsonschema").Registry()
    kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    broken = False
    try:
        kind.check_schema(schema)
    except jsonschema.SchemaError:
        broken = True
    if broken:
        raise MisuseError("json_schema takes a valid JSON Schema")
    validator = kind(schema, registry=registry)

    def check(value: Any) -> object:
        error = jsonschema.exceptions.best_match(validator.iter_errors(value))
        if error is None:
            return True
        hint = f"{_place(error.absolute_path)}: {error.validator}"
        if error.validator == "required" and isinstance(error.instance, dict):
            hint += " " + ", ".join(name for name in error.validator_value if name not in error.instance)
        elif error.validator == "type":
            hint += f" {error.validator_value}"
        return hint

    return check


def pydantic_schema(model: object, *, strict: bool = True) -> Schema:
    """A schema callable for a pydantic model or any type that pydantic knows; needs the package pydantic.

    strict  False lets pydantic convert ("5" passes for 5), though what a tool receives is not converted
    """
    pydantic = _needed("pydantic")
    adapter = pydantic.TypeAdapter(model)

    def check(value: Any) -> object:
        # As JSON again, where strict still takes a date from a string; from our own reading, never the model's text.
        try:
            adapter.validate_json(json.dumps(value), strict=strict)
        except pydantic.ValidationError as error:
            problem = error.errors(include_url=False, include_context=False, include_input=False)[0]
            return f"{_place(problem['loc'])}: {problem['type']}"
        return True

    return check


def _place(path: Any) -> str:
    """A path into the value, of which only harmless words are shown: a key can be the model's own."""
    return "$" + "".join(f".{safe_word(step) or '?'}" for step in path)


def _needed(name: str, package: str | None = None) -> Any:
    """An optional package; ImportError says what to install."""
    package = package or name
    try:
        return import_module(name)
    except ImportError:
        pass
    raise ImportError(f"this schema needs the package {package}: pip install {package}", name=name)
