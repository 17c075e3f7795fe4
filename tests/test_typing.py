"""Public signatures say what they take and give: no bare `Any`, but for JSON that only the application knows."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from typing import Any

import glmsse
import glmsse.encode

# A JSON object is dict[str, Any], as json.loads gives it: callers could do nothing with dict[str, object].
JSON = ("dict[str, Any]", "Mapping[str, Any]", "Iterable[dict[str, Any]]", "Sequence[Mapping[str, Any]]")

# The value of a JSON answer or event, in all its types.
VALUES = ("Answer.value", "Answer.__init__() value", "ServerSentEvent.json() -> Any")


def _public() -> Iterator[tuple[str, Any]]:
    for module in (glmsse, glmsse.encode):
        for name in module.__all__:
            yield name, getattr(module, name)


def _annotations(name: str, value: Any) -> Iterator[str]:
    """Each annotation of a function, or of a class's fields and public methods, with its place."""
    if inspect.isclass(value):
        if dataclasses.is_dataclass(value):
            yield from (f"{name}.{field.name}: {field.type}" for field in dataclasses.fields(value))
        for member, function in inspect.getmembers(value, inspect.isroutine):
            if member == "__init__" or not member.startswith("_"):
                yield from _annotations(f"{name}.{member}()", function)
        for member, found in inspect.getmembers(value, lambda item: isinstance(item, property)):
            yield from _annotations(f"{name}.{member}", found.fget)
    elif inspect.isroutine(value):
        for parameter, annotation in getattr(value, "__annotations__", {}).items():
            arrow = " -> " if parameter == "return" else f" {parameter}: "
            yield f"{name}{arrow}{annotation}"


def test_no_public_signature_says_any() -> None:
    found = [place for name, value in _public() for place in _annotations(name, value)]
    assert len(found) > 150
    left = []
    for place in found:
        bare = place
        for json_type in JSON:
            bare = bare.replace(json_type, "")
        if re.search(r"\bAny\b", bare) and not place.startswith(VALUES):
            left.append(place)
    assert not left, "\n".join(left)


def test_every_public_function_and_method_says_what_it_returns() -> None:
    for name, value in _public():
        for place, function in [(name, value), *inspect.getmembers(value, inspect.isfunction)]:
            if inspect.isfunction(function) and (place == name or not place.startswith("_")):
                assert "return" in function.__annotations__, f"{name} {place}"
