"""The envelopes that are read only when whole: JSON, Gemma's and DSML. Each gives its calls or does not fit."""

from __future__ import annotations

from typing import Any

from ._glm_types import ValueReader, escaped, string_end

# The name as it was written, and the arguments.
Written = tuple[str, dict[str, Any]]

_BLANKS = " \t\r\n"
_GEMMA_QUOTE = '<|"|>'
_BARE_KEY_MARKS = frozenset("_.-")
_INVOKE = '<｜DSML｜invoke name="'
_INVOKE_END = "</｜DSML｜invoke>"
_PARAMETER = '<｜DSML｜parameter name="'
_TEXT_HEAD = '" string="true">'
_JSON_HEAD = '" string="false">'
_PARAMETER_END = "</｜DSML｜parameter>"


def json_calls(payload: str, reader: ValueReader) -> list[Written] | None:
    """One call object or a non-empty array of them."""
    value, fits = reader.value(payload.strip())
    if not fits:
        return None
    calls = []
    for item in value if isinstance(value, list) else [value]:
        call = _json_call(item, reader)
        if call is None:
            return None
        calls.append(call)
    return calls or None


def _json_call(item: Any, reader: ValueReader) -> Written | None:
    if isinstance(item, dict) and isinstance(item.get("function"), dict):
        item = item["function"]
    if not isinstance(item, dict):
        return None
    name_member = next((key for key in ("name", "tool", "function") if isinstance(item.get(key), str)), None)
    if name_member is None:
        return None
    member = next((key for key in ("arguments", "args", "parameters") if key in item), None)
    arguments: Any
    if member is None:
        left_out = (name_member, "type", "id", "call")
        arguments = {key: value for key, value in item.items() if key not in left_out}
    else:
        arguments = item[member]
    if isinstance(arguments, str):
        arguments, fits = reader.value(arguments) if arguments.strip() else ({}, True)
        if not fits:
            return None
    if arguments is None:
        arguments = {}
    return (item[name_member].strip(), arguments) if isinstance(arguments, dict) else None


def gemma_calls(payload: str, reader: ValueReader) -> list[Written] | None:
    """`NAME{…}`, the part behind `call:`."""
    brace = payload.find("{")
    if brace < 0:
        return None
    text = _gemma_json(payload[brace:])
    value, fits = reader.value(text) if text is not None else (None, False)
    return [(payload[:brace].strip(), value)] if fits and isinstance(value, dict) else None


def _gemma_json(text: str) -> str | None:
    """The text with its bare keys and its own kind of strings written as JSON; None if a string never closes."""
    parts: list[str] = []
    in_object: list[bool] = []
    key_may_follow = False
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        start = at
        if char == '"':
            at = string_end(text, at + 1)
            if at < 0:
                return None
            parts.append(text[start:at])
            key_may_follow = False
        elif text.startswith(_GEMMA_QUOTE, at):
            start += len(_GEMMA_QUOTE)
            close = text.find(_GEMMA_QUOTE, start)
            if close < 0:
                return None
            parts.append(f'"{escaped(text[start:close])}"')
            at = close + len(_GEMMA_QUOTE)
            key_may_follow = False
        elif key_may_follow and _is_bare(char):
            while at < end and _is_bare(text[at]):
                at += 1
            parts.append(f'"{text[start:at]}"')
            key_may_follow = False
        else:
            at += 1
            parts.append(char)
            if char in "{[":
                in_object.append(char == "{")
            elif char in "}]" and in_object:
                in_object.pop()
            if char not in _BLANKS:
                key_may_follow = char in "{," and bool(in_object) and in_object[-1]
    return "".join(parts)


def _is_bare(char: str) -> bool:
    return char.isalnum() or char in _BARE_KEY_MARKS


def dsml_calls(payload: str, reader: ValueReader) -> list[Written] | None:
    """One or more invokes, with nothing but whitespace between all tags."""
    calls = []
    at = _skip_space(payload, 0)
    while at < len(payload):
        name, at = _attribute(payload, at, _INVOKE)
        if name is None or not payload.startswith('">', at):
            return None
        arguments: dict[str, Any] = {}
        at = _skip_space(payload, at + 2)
        while not payload.startswith(_INVOKE_END, at):
            at = _dsml_parameter(payload, at, arguments, reader)
            if at < 0:
                return None
            at = _skip_space(payload, at)
        calls.append((name.strip(), arguments))
        at = _skip_space(payload, at + len(_INVOKE_END))
    return calls or None


def _dsml_parameter(payload: str, at: int, arguments: dict[str, Any], reader: ValueReader) -> int:
    """The position behind the parameter at `at`, which is added to the arguments; -1 if none fits there."""
    key, at = _attribute(payload, at, _PARAMETER)
    if key is None or key in arguments:
        return -1
    is_text = payload.startswith(_TEXT_HEAD, at)
    if not is_text and not payload.startswith(_JSON_HEAD, at):
        return -1
    at += len(_TEXT_HEAD if is_text else _JSON_HEAD)
    end = payload.find(_PARAMETER_END, at)
    if end < 0:
        return -1
    value, fits = (payload[at:end], True) if is_text else reader.value(payload[at:end])
    if not fits:
        return -1
    arguments[key] = value
    return end + len(_PARAMETER_END)


def _attribute(payload: str, at: int, opening: str) -> tuple[str | None, int]:
    """The quoted text behind `opening` and where its quote is."""
    if not payload.startswith(opening, at):
        return None, at
    start = at + len(opening)
    end = payload.find('"', start)
    return (None, at) if end < 0 else (payload[start:end], end)


def _skip_space(text: str, at: int) -> int:
    while at < len(text) and text[at].isspace():
        at += 1
    return at
