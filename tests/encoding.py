"""Reads a stream and writes it again, for the tests of the encoders."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from conftest import RECORDINGS
from glmsse.scenarios import SCENARIOS, Scenario, uneven_pieces


def read(glmsse: ModuleType, body: bytes, **options: Any) -> tuple[list[Any], Any, Any]:
    """The events, the verdict and the snapshot of a body."""
    stream = glmsse.ChatStream(**options)
    events = [event for piece in uneven_pieces(body) for event in stream.feed(piece)]
    return events, stream.close(), stream.snapshot


def encoder_for(glmsse: ModuleType, to: str, **options: Any) -> Any:
    if to == "anthropic":
        return glmsse.encode.AnthropicEncoder("glm-5.2", message_id="msg_1", **options)
    return glmsse.encode.OpenAIEncoder("glm-5.2", id="resp_1", **options)


def encode(encoder: Any, events: Iterable[Any], verdict: Any, *, one_by_one: bool = False) -> bytes:
    if one_by_one:
        return b"".join([*(encoder.encode([event]) for event in events), encoder.finish(verdict)])
    return bytes(encoder.encode(events) + encoder.finish(verdict))


def merged(events: Iterable[Any]) -> list[Any]:
    """Events as plain values, neighbouring pieces of one kind joined. Usage, which is written last wherever it came,
    is left to the snapshots, and the fault of a failed stream to the verdicts."""
    result: list[Any] = []
    for event in events:
        fields = event.to_dict()
        if fields["type"] in ("usage", "failed"):
            continue
        name = "arguments" if "arguments" in fields else "text"
        if result and name in fields and all(result[-1].get(key) == fields[key] for key in fields.keys() - {name}):
            result[-1][name] += fields[name]
        else:
            result.append(fields)
    return result


def limits_of(glmsse: ModuleType, scenario: Scenario) -> Any:
    return glmsse.Limits(**dataclasses.asdict(scenario.limits))


def recordings(*, protocol: str = "openai-chat") -> list[Any]:
    """The recordings of one protocol, as pytest parameters (path, facts, profile); none if they are not there."""
    if not RECORDINGS.is_dir():
        return []
    manifest = json.loads((RECORDINGS / "manifest.json").read_text())["recordings"]
    found = []
    for recording in manifest:
        facts = recording.get("facts", {})
        if facts.get("protocol") == protocol and recording["file"].endswith(".sse"):
            profile = {"z.ai": "zai"}.get(recording["provider"], "gateway")
            path: Path = RECORDINGS / recording["file"]
            found.append(pytest.param(path, facts, profile, id=path.stem))
    return found


each_scenario = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=list(SCENARIOS))
each_recording = pytest.mark.parametrize(("path", "facts", "profile"), recordings())
