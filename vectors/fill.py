"""Writes the vector files from their sources: `python vectors/fill.py [--check] [--update]`.

A source holds the bytes and, written by hand, what must come of them; this script reads the bytes, compares, and adds
the verbose rest. It refuses to write where the hand-written claim does not hold, and to change an outcome that is in a
file already unless `--update` is given: then the difference is to be reviewed. `--check` only says whether the files
are as the sources and the package have them.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from base64 import b64encode
from collections import Counter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]

import run  # noqa: E402
from sources import chat, framing, glm_text, json_text  # noqa: E402

import framing_model  # noqa: E402

SOURCES = {"framing": framing, "chat": chat, "json": json_text, "glm_text": glm_text}
COMPACT = (",", ":")
NAME = re.compile(r"[yni]_[a-z0-9_]+", re.ASCII)


class ClaimError(Exception):
    """What was claimed by hand is not what the package makes of it."""


def filled(source: dict[str, Any], reader: run.Reader) -> dict[str, Any]:
    """The vector of a source; ClaimError where the claim in it does not hold."""
    vector = {key: value for key, value in source.items() if key not in ("body", "claim")}
    body = source["body"]
    try:
        vector["body"] = body if isinstance(body, str) else body.decode("utf-8")
        vector["body"].encode("utf-8")
    except UnicodeDecodeError:
        vector["body_base64"] = b64encode(body).decode("ascii")
    raw: Any = run.body_of(vector)
    vector["expect"] = reader.read(vector, [raw.decode("utf-8") if vector["layer"] == "glm_text" else raw])
    shown = CLAIMABLE[vector["layer"]](vector["expect"])
    wrong = {key: (claimed, shown.get(key)) for key, claimed in source["claim"].items() if shown.get(key) != claimed}
    if vector["name"].startswith("y_") != shown["accepted"] and not vector["name"].startswith("i_"):
        wrong["accepted"] = (vector["name"][:2], shown["accepted"])
    if vector["layer"] == "framing":
        wrong |= _against_model(vector, raw)
    if wrong or not NAME.fullmatch(vector["name"]):
        raise ClaimError(f"{vector['name']}: claimed and found differ: {wrong}")
    return vector


def _against_model(vector: dict[str, Any], raw: bytes) -> dict[str, Any]:
    """What the model of the rules in the tests, which shares no code with the package, sees otherwise."""
    limits = {**framing_model.NO_CAPS, **vector.get("limits", {})}
    outcome = framing_model.framed(raw, {k: v or 2**63 for k, v in limits.items()}, vector.get("errors", "strict"))
    usual = {"event": "message", "id": "", "retry": None}
    events = [
        tuple({**usual, **event}[key] for key in ("event", "data", "id", "retry", "offset"))
        for event in vector["expect"]["events"]
    ]
    error = vector["expect"].get("error")
    facts = error and tuple(error.get(key) for key in ("code", "offset", "limit", "maximum", "seen", "tail"))
    return {} if (events, facts) == (outcome.events, outcome.error) else {"model": (outcome.events, outcome.error)}


def _framing_shown(expect: dict[str, Any]) -> dict[str, Any]:
    events, error = expect["events"], expect.get("error", {})
    return {
        "accepted": not error,
        "data": [event["data"] for event in events],
        "names": [event.get("event", "message") for event in events],
        "ids": [event.get("id", "") for event in events],
        "retries": [event.get("retry") for event in events],
        **{key: error.get(key) for key in ("code", "offset", "tail")},
    }


def _chat_shown(expect: dict[str, Any]) -> dict[str, Any]:
    verdict, first = expect["verdict"], expect["choices"][0]
    error = verdict.get("error", {})
    usage = verdict.get("usage")
    return {
        "accepted": verdict["outcome"] == "accepted",
        **{key: verdict.get(key) for key in (*run.VERDICT_MEMBERS, *run.REPORT_MEMBERS)},
        "tolerated": verdict.get("tolerated", []),
        "missing": verdict.get("missing", []),
        "done": verdict.get("done", False),
        **{key: error.get(key) for key in ("offset", "parent_code", "limit", "choice", "index")},
        "content": first.get("content", ""),
        "reasoning": first.get("reasoning_content", ""),
        "calls": [(call["id"], call["name"], call["arguments"]) for call in verdict.get("tool_calls", ())],
        "usage": usage and [usage.get(key) for key in run.USAGE_MEMBERS],
        "types": [event["type"] for event in expect["events"]],
        "choices": [
            [choice["index"], choice.get("content", ""), choice.get("finish_reason")] for choice in expect["choices"]
        ],
        "received": [
            (call.get("id"), call.get("name"), call["arguments"], call.get("complete", False))
            for call in first.get("tool_calls", ())
        ],
    }


def _json_shown(expect: dict[str, Any]) -> dict[str, Any]:
    if "as_arguments" in expect:
        raise SystemExit(f"event and arguments disagree: {expect}")
    return {"accepted": "code" not in expect, "code": expect.get("code")}


def _glm_shown(expect: dict[str, Any]) -> dict[str, Any]:
    events = expect["events"]

    def text(kind: str, member: str = "text", index: int | None = None) -> str:
        return "".join(e[member] for e in events if e["type"] == kind and index in (None, e.get("index")))

    ended = {event["index"] for event in events if event["type"] == "tool_call.end"}
    calls = [
        [event["name"], text("tool_call.arguments.delta", "arguments", event["index"]), event["index"] in ended]
        for event in events
        if event["type"] == "tool_call.start"
    ]
    failed = [event["code"] for event in events if event["type"] == "failed"]
    return {
        "accepted": not failed and all(complete for _, _, complete in calls),
        "content": text("content.delta"),
        "reasoning": text("reasoning.delta"),
        "calls": calls,
        "flags": sorted({flag for flag, _ in expect["flags"]}),
        "code": failed[0] if failed else None,
    }


CLAIMABLE = {"framing": _framing_shown, "chat": _chat_shown, "json": _json_shown, "glm_text": _glm_shown}


def filled_all(layer: str, reader: run.Reader) -> list[dict[str, Any]]:
    made, refused = [], []
    for source in SOURCES[layer].vectors():
        try:
            made.append(filled(source, reader))
        except ClaimError as error:
            refused.append(str(error))
    names = Counter(vector["name"] for vector in made)
    refused += [f"{name}: the name comes twice" for name, count in names.items() if count > 1]
    if refused:
        raise SystemExit("\n".join(refused))
    return made


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file would change")
    parser.add_argument("--update", action="store_true", help="let outcomes change that are in the files already")
    args = parser.parse_args(argv)
    reader = run.Reader(run.import_package("glmsse", None))
    stale = False
    for layer in SOURCES:
        path = HERE / f"{layer}.jsonl"
        made = filled_all(layer, reader)
        known = {vector["name"]: vector["expect"] for vector in run.load([path])} if path.exists() else {}
        changed = [vector["name"] for vector in made if known.get(vector["name"], vector["expect"]) != vector["expect"]]
        if changed and not args.update:
            raise SystemExit(f"{layer}: --update is needed to change the outcome of {', '.join(changed)}")
        text = "".join(f"{json.dumps(vector, separators=COMPACT)}\n" for vector in made)
        if not path.exists() or path.read_text("ascii") != text:
            stale = True
            print(f"{path.name} {'is out of date' if args.check else 'written'}: {len(made)} vectors")
            if not args.check:
                path.write_text(text, "ascii")
    return 1 if stale and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
