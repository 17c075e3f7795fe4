"""A strict reader of Anthropic Messages streams (wire-contract §12): any deviation is an AssertionError."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

USAGE_KEYS = {"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens"}
STOP_REASONS = {"end_turn", "tool_use", "max_tokens", "model_context_window_exceeded", "refusal"}
ERROR_TYPES = {
    "authentication_error",
    "permission_error",
    "billing_error",
    "invalid_request_error",
    "rate_limit_error",
    "overloaded_error",
    "api_error",
}
BLOCK_STARTS = {
    "text": {"type": "text", "text": ""},
    "thinking": {"type": "thinking", "thinking": "", "signature": ""},
}


@dataclass
class Block:
    type: str
    text: str = ""
    id: str | None = None
    name: str | None = None
    pieces: list[str] = field(default_factory=list)
    signatures: list[str] = field(default_factory=list)
    closed: bool = False


@dataclass
class Message:
    head: dict[str, Any] | None = None
    blocks: list[Block] = field(default_factory=list)
    stop_reason: str | None = None
    usage: dict[str, int] | None = None
    error: dict[str, str] | None = None
    pings: int = 0
    stopped: bool = False

    def joined(self, type_: str) -> str:
        return "".join(block.text for block in self.blocks if block.type == type_)

    @property
    def calls(self) -> list[tuple[str | None, str | None, str]]:
        return [(block.id, block.name, block.text) for block in self.blocks if block.type == "tool_use"]

    @property
    def kinds(self) -> list[str]:
        return [block.type for block in self.blocks]


def payloads(data: bytes) -> list[dict[str, Any]]:
    """The objects of a stream whose blocks are exactly an `event:` line and a `data:` line."""
    assert b"\r" not in data
    found = []
    for block in data.split(b"\n\n")[:-1]:
        name, content = block.split(b"\n")
        assert name.startswith(b"event: ")
        assert content.startswith(b"data: {")
        payload = json.loads(content[6:])
        assert payload["type"] == name[7:].decode()
        found.append(payload)
    assert data == b"" or data.endswith(b"\n\n")
    return found


def check(data: bytes, *, whole: bool = True) -> Message:
    """The message of a stream; unless `whole` is False, it must have come to its end."""
    message = Message()
    for payload in payloads(data):
        assert not message.stopped, "an event after message_stop"
        assert message.error is None, "an event after error"
        getattr(_Reader, payload.pop("type"))(message, payload)
    if whole:
        assert message.stopped or message.error is not None, "no end"
    return message


class _Reader:
    @staticmethod
    def ping(message: Message, fields: dict[str, Any]) -> None:
        assert fields == {}
        message.pings += 1

    @staticmethod
    def error(message: Message, fields: dict[str, Any]) -> None:
        assert fields.keys() == {"error"}
        assert fields["error"].keys() == {"type", "message"}
        assert fields["error"]["type"] in ERROR_TYPES
        message.error = fields["error"]

    @staticmethod
    def message_start(message: Message, fields: dict[str, Any]) -> None:
        assert message.head is None, "a second message_start"
        assert fields.keys() == {"message"}
        head = fields["message"]
        assert head["usage"].keys() == USAGE_KEYS
        assert {key: head[key] for key in head.keys() - {"id", "model", "usage"}} == {
            "type": "message",
            "role": "assistant",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }
        assert isinstance(head["id"], str)
        assert isinstance(head["model"], str)
        message.head = head

    @staticmethod
    def content_block_start(message: Message, fields: dict[str, Any]) -> None:
        assert message.head is not None, "a block before message_start"
        assert message.stop_reason is None, "a block after message_delta"
        assert fields.keys() == {"index", "content_block"}
        assert all(block.closed for block in message.blocks), "two open blocks"
        assert fields["index"] == len(message.blocks)
        start = fields["content_block"]
        if start["type"] != "tool_use":
            assert start == BLOCK_STARTS[start["type"]]
            message.blocks.append(Block(start["type"]))
            return
        assert start.keys() == {"type", "id", "name", "input"}
        assert start["input"] == {}
        assert start["id"]
        assert start["name"]
        message.blocks.append(Block("tool_use", id=start["id"], name=start["name"]))

    @staticmethod
    def content_block_delta(message: Message, fields: dict[str, Any]) -> None:
        assert fields.keys() == {"index", "delta"}
        block = _open_block(message, fields)
        kind, text = _delta_of(block.type, fields["delta"])
        assert not block.signatures, "a delta after the signature"
        if kind == "signature":
            block.signatures.append(text)
            return
        if kind == "partial_json":
            assert (text == "") == (not block.pieces), "the first partial_json, and it alone, is empty"
        else:
            assert text, "an empty delta"
        block.pieces.append(text)
        block.text += text

    @staticmethod
    def content_block_stop(message: Message, fields: dict[str, Any]) -> None:
        assert fields.keys() == {"index"}
        block = _open_block(message, fields)
        assert block.pieces, "a block without deltas"
        block.closed = True

    @staticmethod
    def message_delta(message: Message, fields: dict[str, Any]) -> None:
        assert message.head is not None
        assert message.stop_reason is None, "a second message_delta"
        assert all(block.closed for block in message.blocks), "message_delta while a block is open"
        assert fields.keys() == {"delta", "usage"}
        assert fields["delta"].keys() == {"stop_reason", "stop_sequence"}
        assert fields["delta"]["stop_sequence"] is None
        assert fields["delta"]["stop_reason"] in STOP_REASONS
        assert fields["usage"].keys() == USAGE_KEYS
        assert all(type(count) is int and count >= 0 for count in fields["usage"].values())
        message.stop_reason = fields["delta"]["stop_reason"]
        message.usage = fields["usage"]
        assert (message.stop_reason == "tool_use") == ("tool_use" in message.kinds) or message.stop_reason not in (
            "tool_use",
            "end_turn",
        )

    @staticmethod
    def message_stop(message: Message, fields: dict[str, Any]) -> None:
        assert fields == {}
        assert message.stop_reason is not None, "message_stop without message_delta"
        message.stopped = True


def _open_block(message: Message, fields: dict[str, Any]) -> Block:
    assert fields["index"] == len(message.blocks) - 1
    block = message.blocks[-1]
    assert not block.closed
    return block


def _delta_of(block_type: str, delta: dict[str, Any]) -> tuple[str, str]:
    allowed = {
        "text": {"text_delta": "text"},
        "thinking": {"thinking_delta": "thinking", "signature_delta": "signature"},
        "tool_use": {"input_json_delta": "partial_json"},
    }[block_type]
    key = allowed[delta["type"]]
    assert delta.keys() == {"type", key}
    assert isinstance(delta[key], str)
    return key, delta[key]
