"""Sources of chat.jsonl: streamed chat completions and, by hand, what must be made of them.

The streams of tests/data/stream_cases.json went wrong for somebody; the others stand for one rule each: every code that
bytes can reach, every tolerance with and without, every cap at its value and beyond.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from wire import USAGE

from . import chat_calls, chat_faults, chat_text, chat_tolerances

CASES = Path(__file__).resolve().parents[2] / "tests" / "data" / "stream_cases.json"


def _from_case(case: dict[str, Any]) -> list[dict[str, Any]]:
    sent = case["body"]
    data = sent["text"].encode() if "text" in sent else sent["latin1"].encode("latin-1")
    settings: dict[str, Any] = {key: case[key] for key in ("limits",) if key in case}
    if case.get("close", "").startswith("error"):
        settings["close"] = "error"
    if "http" in case:
        keys = {"content-type": "content_type", "content-encoding": "content_encoding"}
        headers = {name: case["http"][key] for name, key in keys.items() if case["http"].get(key) is not None}
        settings["start"] = {"status": case["http"].get("status", 200), "headers": headers}
    slug = f"case_{case['id'].lower()}_{case['name'].partition('/')[2].replace('-', '_')}"
    made = []
    for wanted, suffix, policy in ((case["strict"], "", None), (case.get("tolerant"), "_tolerated", "policy")):
        if wanted is None:
            continue
        kind = "y_" if wanted["verdict"] == "accepted" else "n_"
        allow = {"allow": wanted[policy]} if policy else {}
        vector = {"name": kind + slug + suffix, "layer": "chat", "reason": case["why"], **allow, **settings}
        made.append({**vector, "body": data, "claim": _case_claim(wanted)})
    return made


def _case_claim(wanted: dict[str, Any]) -> dict[str, Any]:
    usage = wanted.get("usage")
    calls = [(call["id"], call["name"], call.get("arguments", "")) for call in wanted.get("tool_calls", ())]
    claim = {
        "outcome": wanted["verdict"],
        "stage": wanted.get("stage"),
        "content": wanted.get("content", ""),
        "reasoning": wanted.get("reasoning", ""),
        "calls": calls,
        "finish_reason": wanted.get("finish_reason"),
        "usage": usage and [usage.get(key) for key in (*USAGE, "cached_tokens")],
        "done": wanted.get("done", False),
        "tolerated": sorted(wanted.get("policy", ())),
    }
    code = wanted.get("error")
    return claim if code == "bad_json" else {**claim, "code": code}


def vectors() -> list[dict[str, Any]]:
    cases = [vector for case in json.loads(CASES.read_text("utf-8")) for vector in _from_case(case)]
    own = (module.vectors() for module in (chat_text, chat_calls, chat_faults, chat_tolerances))
    return [*cases, *(vector for vectors in own for vector in vectors)]
