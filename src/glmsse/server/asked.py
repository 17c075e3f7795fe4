"""A request to the stand-in provider, checked as the provider checks it. No I/O."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .answers import ANSWERS, Wanted, error_body, status_of

PREFIX = "glmsse-"
MOST_CHOICES = 8
MOST_EVENTS = 100_000
MOST_SECONDS = 60.0


class WrongRequest(Exception):
    """A request that the provider refuses; its business code, and a message that holds nothing of the request."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(code, message)
        self.status = status_of(code)
        self.body = error_body(code, message)


@dataclass(frozen=True)
class Asked:
    """A request that gets an answer."""

    scenario: str
    stream: bool
    wanted: Wanted
    pace: float | None = None
    """Seconds between two writes, if the query says so."""
    wait: float | None = None
    """Seconds before the first byte, if the query says so."""


def read_request(authorization: str | None, data: bytes, query: Mapping[str, str]) -> Asked:
    """What was asked; WrongRequest as the provider would refuse it. The key comes first, any key will do."""
    _check_key(authorization)
    request = _object_in(data)
    model = request.get("model")
    if not isinstance(model, str) or not model:
        raise WrongRequest("1213", "the parameter model is missing")
    messages = request.get("messages")
    if messages is None:
        raise WrongRequest("1213", "the parameter messages is missing")
    if not isinstance(messages, list) or not messages or not all(map(_is_message, messages)):
        raise WrongRequest("1214", "the parameter messages is invalid")
    stream = request.get("stream", False)
    if not isinstance(stream, bool):
        raise WrongRequest("1214", "the parameter stream is invalid")
    return Asked(
        scenario=_scenario(model, request, query),
        stream=stream,
        wanted=Wanted(
            choices=_count(request.get("n"), "n", Wanted.choices, MOST_CHOICES),
            events=_count(query.get("events"), "events", Wanted.events, MOST_EVENTS),
        ),
        pace=_seconds(query, "pace"),
        wait=_seconds(query, "wait"),
    )


def _check_key(authorization: str | None) -> None:
    if not authorization:
        raise WrongRequest("1001", "no Authorization header")
    kind, _, key = authorization.partition(" ")
    if kind.lower() != "bearer" or not key.strip():
        raise WrongRequest("1002", "the Authorization header is no bearer token")


def _object_in(data: bytes) -> dict[str, Any]:
    try:
        request = json.loads(data)
    except (ValueError, RecursionError):
        request = None
    if not isinstance(request, dict):
        raise WrongRequest("1210", "the body is no JSON object")
    return request


def _is_message(message: object) -> bool:
    return isinstance(message, dict) and isinstance(message.get("role"), str)


def _scenario(model: str, request: dict[str, Any], query: Mapping[str, str]) -> str:
    """By query, else by the model's name; a real model's name gets what the request's options ask for."""
    asked = query.get("scenario")
    name = (model.removeprefix(PREFIX) if asked is None else asked).replace("-", "_")
    if name in ANSWERS:
        return name
    if asked is not None or not model.startswith("glm-"):
        raise WrongRequest("1211", "no such model or scenario")
    if request.get("tools"):
        return "tool_stream" if request.get("tool_stream") is True else "tool"
    thinking = request.get("thinking")
    return "thinking" if isinstance(thinking, dict) and thinking.get("type") == "enabled" else "text"


def _count(value: object, name: str, default: int, most: int) -> int:
    if value is None:
        return default
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9:
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise WrongRequest("1214", f"the parameter {name} is invalid")
    return value


def _seconds(query: Mapping[str, str], name: str) -> float | None:
    value = query.get(name)
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= MOST_SECONDS:
        raise WrongRequest("1214", f"the parameter {name} is invalid")
    return seconds
