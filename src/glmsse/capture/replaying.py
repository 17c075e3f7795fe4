"""Replays recordings under many cuttings, in one build: what came of each, and where two cuttings disagree.

As a program it reads tasks as JSON from standard input and writes the answers to standard output, so that each build
runs in a process of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from ..errors import MisuseError
from ..events import ArgumentsDelta, ContentDelta, ReasoningDelta
from ..framing import IMPLEMENTATION
from ..tools import Refusal, ToolGate, ToolRule
from ..verdict import Verdict
from .recording import Recording, UnfitRecording, framed, stream_for
from .sidecar import Reading, Terminal

RANDOM_CUTTINGS = 4
MOST_SINGLE_BYTES = 4 * 1024 * 1024
"""Longer bodies are not cut into single bytes, but into ones of this many parts."""

BUILDS = ("compiled", "pure")
_PROGRAM = f"{__package__}.replaying"
_LONG_AGO = 10.0**9

Facts = dict[str, Any]


class ReplayFailed(Exception):
    """A process of the gate's own ended before its time."""


def cuttings(recording: Recording, seed: int) -> Iterator[tuple[str, Sequence[bytes]]]:
    """The body cut in every way that a gate tries, by name; always in the same places for the same seed."""
    body = recording.body
    yield "whole", [body]
    step = max(1, len(body) // MOST_SINGLE_BYTES)
    yield "single bytes", [body[at : at + step] for at in range(0, len(body), step)]
    if recording.timed:
        yield "as recorded", list(recording.pieces())
    for number in range(RANDOM_CUTTINGS):
        random = Random(f"{seed} {number} {len(body)}")
        most = (3, 40, 700, 20_000)[number % 4]
        places = [0]
        while places[-1] < len(body):
            places.append(min(len(body), places[-1] + random.randint(1, most)))
        yield f"random {number + 1}", [body[one:two] for one, two in pairwise(places)]


def replay(recording: Recording, task: Facts) -> Facts:
    """`facts` of the whole body, `cuttings` by name, and `disagreements` of any other cutting."""
    task = task | {"repeated_fields": _repeated_fields(recording.body, Reading.from_dict(task["reading"]))}
    facts: Facts = {}
    names, disagreements = [], []
    for name, pieces in cuttings(recording, task.get("seed", 0)):
        found = _facts(recording, task, pieces)
        facts = facts or found
        names.append(name)
        if found != facts:
            disagreements.append(f"{name}: {', '.join(differing(facts, found))}")
    return {"facts": facts, "cuttings": names, "disagreements": disagreements}


def differing(one: object, other: object, place: str = "") -> list[str]:
    """The fields in which two documents differ, by their dotted names."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = sorted(one.keys() | other.keys())
        return [
            found
            for name in names
            for found in differing(one.get(name), other.get(name), f"{place}.{name}" if place else name)
        ]
    return [] if one == other else [place]


def _facts(recording: Recording, task: Facts, pieces: Sequence[bytes]) -> Facts:
    stream = stream_for(Reading.from_dict(task["reading"]))
    sidecar = recording.sidecar
    events = [] if sidecar.status is None else stream.start(sidecar.status, sidecar.headers)
    for piece in pieces:
        events += stream.feed(piece)
    verdict = stream.close(Terminal(task.get("close")).ending())
    events += stream.closing_events
    snapshot = stream.snapshot.to_dict()
    return {
        "verdict": verdict.to_dict(),
        "events": stream.events_seen,
        "bytes": stream.bytes_seen,
        "content_chars": sum(len(event.text) for event in events if isinstance(event, ContentDelta)),
        "reasoning_chars": sum(len(event.text) for event in events if isinstance(event, ReasoningDelta)),
        "most_argument_pieces": _most_pieces(events),
        "repeated_fields": task["repeated_fields"],
        "answer_sha256": sha256(json.dumps(snapshot, sort_keys=True).encode()).hexdigest(),
        "permits": _rehearsed(verdict, task.get("cancelled")),
    }


def _most_pieces(events: Sequence[object]) -> int:
    """Argument pieces of the call that has most of them."""
    counts: dict[tuple[int, int], int] = {}
    for event in events:
        if isinstance(event, ArgumentsDelta):
            key = (event.choice, event.index)
            counts[key] = counts.get(key, 0) + 1
    return max(counts.values(), default=0)


def _repeated_fields(body: bytes, reading: Reading) -> bool:
    """Whether a call repeats its id, type or name in a later piece."""
    seen: set[tuple[object, ...]] = set()
    for event in framed(body, reading):
        for place, name, value in _stable_fields(event.data):
            if (*place, name, value) in seen:
                return True
            seen.add((*place, name, value))
    return False


def _stable_fields(data: str) -> Iterator[tuple[tuple[object, ...], str, str]]:
    try:
        chunk = json.loads(data)
        for choice in chunk["choices"]:
            for call in choice["delta"]["tool_calls"]:
                place = (choice.get("index"), call.get("index"))
                fields = {**call, "name": (call.get("function") or {}).get("name")}
                for name in ("id", "type", "name"):
                    value = fields.get(name)
                    if isinstance(value, str) and value:
                        yield place, name, value
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return


def _rehearsed(verdict: Verdict, cancelled: str | None) -> list[str] | None:
    """What ToolGate says to each call when the application is cancelled before or after its approval: it must not
    run. After the approval the time to run it passes, and the approval is shown for the answer to a second request."""
    if cancelled is None:
        return None
    if not verdict.accepted:
        return ["not_accepted"]
    moment = 0.0
    gate = ToolGate(
        [ToolRule(name) for name in sorted({call.name or "" for call in verdict.tool_calls})], clock=lambda: moment
    )
    first = gate.review(verdict, stream_id="first")
    second = gate.review(verdict, stream_id="second")
    told = []
    for call, again in zip(first, second, strict=True):
        if isinstance(call, Refusal) or isinstance(again, Refusal):
            told.append("refused")
        elif cancelled == "before_approval":
            told.append(_code(gate.permit(call)))
        else:
            approval = call.approve(by="gate")
            told.append(_code(gate.permit(again, approval)))
            moment = _LONG_AGO
            told.append(_code(gate.permit(call, approval)))
            moment = 0.0
    return told


def _code(permitted: object) -> str:
    return permitted.code if isinstance(permitted, Refusal) else "permitted"


def replay_file(task: Facts) -> Facts:
    """The answer to one task; `problem` in words where the recording cannot be read."""
    try:
        return replay(Recording.load(task["path"]), task)
    except FileNotFoundError:
        return {"problem": "its body is gone; --update drops it"}
    except OSError as problem:
        return {"problem": problem.strerror or "it cannot be read"}
    except (UnfitRecording, MisuseError) as problem:
        return {"problem": str(problem)}


def replay_in(build: str, tasks: Sequence[Facts]) -> tuple[str, list[Facts]]:
    """The answers of a process that has this build, and the build that it really had."""
    environment = dict(os.environ, GLMSSE_PURE_PYTHON="1" if build == "pure" else "0")
    source = str(Path(__file__).resolve().parents[_PROGRAM.count(".")])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (source, environment.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-m", _PROGRAM],
        input=json.dumps(tasks).encode(),
        stdout=subprocess.PIPE,
        env=environment,
        check=False,
    )
    if done.returncode:
        raise ReplayFailed(f"the {build} build did not finish its replays")
    document = json.loads(done.stdout)
    return document["build"], document["answers"]


def main() -> None:
    tasks = json.load(sys.stdin)
    json.dump({"build": IMPLEMENTATION, "answers": [replay_file(task) for task in tasks]}, sys.stdout)


if __name__ == "__main__":
    main()
