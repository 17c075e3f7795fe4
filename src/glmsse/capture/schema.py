"""The part of JSON Schema that the documents of this package are written in, so that reading one needs no dependency.

Known: type, enum, const, required, properties, additionalProperties, items, minItems, maxItems, minimum, maximum,
maxLength. An integer is a JSON number without a fraction part as written; a boolean is no number.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Any

Schema = dict[str, Any]

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}


def first_misfit(value: object, schema: Schema, place: str = "") -> str | None:
    """Where the value breaks the schema first, and how, without any of the value; None if it fits."""
    return next(_misfits(value, schema, place), None)


def _misfits(value: Any, schema: Schema, place: str) -> Iterator[str]:
    here = place or "the document"
    if "const" in schema and not _equal(value, schema["const"]):
        yield f"{here} is not {schema['const']!r}"
    if "enum" in schema and not any(_equal(value, word) for word in schema["enum"]):
        yield f"{here} is none of the known values"
    if "type" in schema:
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(_is(value, kind) for kind in kinds):
            yield f"{here} is not of type {' or '.join(kinds)}"
            return
    if isinstance(value, str):
        if len(value) > schema.get("maxLength", len(value)):
            yield f"{here} is too long"
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        if not isfinite(value) or value < schema.get("minimum", value) or value > schema.get("maximum", value):
            yield f"{here} is out of range"
    elif isinstance(value, list):
        yield from _misfits_of_list(value, schema, place)
    elif isinstance(value, dict):
        yield from _misfits_of_object(value, schema, place)


def _misfits_of_list(value: list[Any], schema: Schema, place: str) -> Iterator[str]:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        yield f"{place or 'the document'} has too few or too many items"
    items = schema.get("items", {})
    for at, item in enumerate(value):
        yield from _misfits(item, items, f"{place}[{at}]")


def _misfits_of_object(value: dict[str, Any], schema: Schema, place: str) -> Iterator[str]:
    known = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{_at(place, name)} is missing"
    other = schema.get("additionalProperties", {})
    for name, item in value.items():
        if name in known:
            yield from _misfits(item, known[name], _at(place, name))
        elif other is False:
            yield f"{place or 'the document'} has a field that it must not have"
        elif other is not True:
            yield from _misfits(item, other, f"a field of {place or 'the document'}")


def _at(place: str, name: str) -> str:
    return f"{place}.{name}" if place else name


def _is(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _equal(one: object, other: object) -> bool:
    return one == other and isinstance(one, bool) == isinstance(other, bool)
