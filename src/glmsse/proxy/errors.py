"""How a client is told that there is no answer, in its own protocol and in our words."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from ..encode import AnthropicEncoder, OpenAIEncoder
from ..framing import SSEFramer
from ..verdict import Verdict
from .requests import Refusal

_STATUS_OF_TYPE = {
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "rate_limit_error": 429,
    "overloaded_error": 529,
    "invalid_request_error": 400,
}


def openai_event(verdict: Verdict) -> bytes:
    """The error event that ends a chat completion stream."""
    return OpenAIEncoder("glmsse", id="glmsse").finish(verdict)


def anthropic_event(verdict: Verdict) -> bytes:
    """The error event that ends a Messages stream."""
    return AnthropicEncoder("glmsse", message_id="msg_glmsse").finish(verdict)


def error_object(event: bytes) -> dict[str, Any]:
    """The object of an error event, which is the body of an error response too."""
    value: dict[str, Any] = SSEFramer().feed(event)[0].json()
    return value


def status_for(verdict: Verdict, status: int | None) -> int:
    """The status of an error response: the upstream's own where it refused, else by what is wrong."""
    if status is not None and status >= 400:
        return status
    if verdict.code is not None and verdict.code.startswith("deadline_"):
        return 504
    if verdict.outcome == "provider_error":
        return _STATUS_OF_TYPE.get(error_object(anthropic_event(verdict))["error"]["type"], 502)
    return 502


def openai_refusal(refusal: Refusal) -> bytes:
    error = {"message": refusal.sentence, "type": refusal.kind, "param": None, "code": refusal.code}
    return json.dumps({"error": error}).encode()


def anthropic_refusal(refusal: Refusal) -> bytes:
    error = {"type": refusal.kind, "message": refusal.sentence}
    return json.dumps({"type": "error", "error": error}).encode()


RefusalBody = Callable[[Refusal], bytes]
