"""An Anthropic Messages request → the chat completion request that means the same."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from .requests import Refusal

_COPIED = ("max_tokens", "temperature", "top_p")
_TOOL_CHOICES = {"auto": "auto", "any": "required", "none": "none"}
_USER_ID_CHARS = range(6, 129)


def chat_request(request: dict[str, Any], model: str | None = None) -> dict[str, Any]:
    """The body to send upstream, always for a stream. Refusal(400) for what has no counterpart, by its place.

    model  asked for instead of the request's
    """
    body: dict[str, Any] = {"model": model or _text(request.get("model"), "model"), "stream": True}
    body["stream_options"] = {"include_usage": True}
    body["messages"] = [*_system(request.get("system")), *_messages(request.get("messages"))]
    body.update({name: request[name] for name in _COPIED if request.get(name) is not None})
    stops = [_text(stop, "stop_sequences") for stop in _list(request.get("stop_sequences") or [], "stop_sequences")]
    if stops:
        body["stop"] = stops
    tools = [_tool(tool, f"tools[{at}]") for at, tool in enumerate(_list(request.get("tools") or [], "tools"))]
    if tools:
        body["tools"] = tools
        if request.get("tool_choice") is not None:
            body["tool_choice"] = _tool_choice(request["tool_choice"])
    body["thinking"] = {"type": "enabled" if _thinks(request.get("thinking")) else "disabled"}
    metadata = request.get("metadata")
    user_id = metadata.get("user_id") if isinstance(metadata, dict) else None
    if isinstance(user_id, str) and len(user_id) in _USER_ID_CHARS:
        body["user_id"] = user_id
    return body


def _system(system: Any) -> list[dict[str, Any]]:
    if not system:
        return []
    return [{"role": "system", "content": _joined_text(system, "system")}]


def _messages(messages: Any) -> list[dict[str, Any]]:
    out: list[dict[str, Any]] = []
    for at, message in enumerate(_list(messages, "messages")):
        place = f"messages[{at}]"
        role = _dict(message, place).get("role")
        if role == "user":
            out += _user(message.get("content"), f"{place}.content")
        elif role == "assistant":
            out.append(_assistant(message.get("content"), f"{place}.content"))
        elif role == "system":
            out.append({"role": "system", "content": _joined_text(message.get("content"), f"{place}.content")})
        else:
            _refuse(f"{place}.role")
    if not out:
        _refuse("messages")
    return out


def _user(content: Any, place: str) -> list[dict[str, Any]]:
    """Tool results come first, as messages of their own; the rest is one user message."""
    if isinstance(content, str):
        return [{"role": "user", "content": content}]
    results: list[dict[str, Any]] = []
    parts: list[dict[str, Any]] = []
    for at, block in enumerate(_list(content, place)):
        where = f"{place}[{at}]"
        kind = _dict(block, where).get("type")
        if kind == "tool_result":
            results.append(_tool_result(block, where))
        elif kind == "text":
            parts.append({"type": "text", "text": _text(block.get("text"), where)})
        elif kind == "image":
            parts.append(_image(block, where))
        else:
            _refuse(where)
    if not parts:
        return results
    if all(part["type"] == "text" for part in parts):
        return [*results, {"role": "user", "content": "\n".join(part["text"] for part in parts)}]
    return [*results, {"role": "user", "content": parts}]


def _tool_result(block: dict[str, Any], place: str) -> dict[str, Any]:
    content = block.get("content")
    text = "" if content is None else _joined_text(content, f"{place}.content")
    if block.get("is_error") is True:
        text = f"Error: {text}"
    return {"role": "tool", "tool_call_id": _text(block.get("tool_use_id"), place), "content": text}


def _image(block: dict[str, Any], place: str) -> dict[str, Any]:
    source = _dict(block.get("source"), place)
    if source.get("type") == "url":
        url = _text(source.get("url"), place)
    elif source.get("type") == "base64":
        url = f"data:{_text(source.get('media_type'), place)};base64,{_text(source.get('data'), place)}"
    else:
        _refuse(place)
    return {"type": "image_url", "image_url": {"url": url}}


def _assistant(content: Any, place: str) -> dict[str, Any]:
    if isinstance(content, str):
        return {"role": "assistant", "content": content}
    texts: list[str] = []
    thoughts: list[str] = []
    calls: list[dict[str, Any]] = []
    for at, block in enumerate(_list(content, place)):
        where = f"{place}[{at}]"
        kind = _dict(block, where).get("type")
        if kind == "text":
            texts.append(_text(block.get("text"), where))
        elif kind == "thinking":
            thoughts.append(_text(block.get("thinking"), where))
        elif kind == "tool_use":
            arguments = json.dumps(_dict(block.get("input"), where), ensure_ascii=False)
            function = {"name": _text(block.get("name"), where), "arguments": arguments}
            calls.append({"id": _text(block.get("id"), where), "type": "function", "function": function})
        elif kind != "redacted_thinking":
            _refuse(where)
    message: dict[str, Any] = {"role": "assistant", "content": "".join(texts)}
    if thoughts:
        message["reasoning_content"] = "".join(thoughts)
    if calls:
        message["tool_calls"] = calls
    return message


def _tool(tool: Any, place: str) -> dict[str, Any]:
    if _dict(tool, place).get("type") not in (None, "custom"):
        _refuse(place)  # a tool that Anthropic's servers would run
    function: dict[str, Any] = {"name": _text(tool.get("name"), place)}
    if tool.get("description") is not None:
        function["description"] = _text(tool["description"], place)
    function["parameters"] = _dict(tool.get("input_schema"), f"{place}.input_schema")
    return {"type": "function", "function": function}


def _tool_choice(choice: Any) -> Any:
    kind = _dict(choice, "tool_choice").get("type")
    if kind == "tool":
        return {"type": "function", "function": {"name": _text(choice.get("name"), "tool_choice")}}
    if kind not in _TOOL_CHOICES:
        _refuse("tool_choice")
    return _TOOL_CHOICES[kind]


def _thinks(thinking: Any) -> bool:
    return thinking is not None and _dict(thinking, "thinking").get("type") in ("enabled", "adaptive")


def _joined_text(content: Any, place: str) -> str:
    if isinstance(content, str):
        return content
    texts = []
    for at, block in enumerate(_list(content, place)):
        where = f"{place}[{at}]"
        if _dict(block, where).get("type") != "text":
            _refuse(where)
        texts.append(_text(block.get("text"), where))
    return "\n".join(texts)


def _dict(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        _refuse(place)
    return value


def _list(value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        _refuse(place)
    return value


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str):
        _refuse(place)
    return value


def _refuse(place: str) -> NoReturn:
    raise Refusal(400, "not_translated", f"{place} has no counterpart in a chat completion request, or a wrong type")
