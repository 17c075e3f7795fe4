"""The release gate: a directory of recordings, and in `gate.json` what each of them must come to.

`run_gate` replays every fixture under many cuttings and in both builds, compares with what is expected, and checks
that every state a release must have seen is covered by a fixture that shows it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from ..errors import CLOSE_CODES
from .drift import drift_between, shape_of
from .recording import BODY_SUFFIX, Recording, UnfitRecording, write_whole
from .replaying import BUILDS, Facts, differing, replay_in
from .schema import Schema, first_misfit
from .sidecar import READING_SCHEMA, Reading
from .states import STATES, states_shown
from .tape import now

MANIFEST = "gate.json"
LAST_RUN = "gate-last.json"
NAME = "glmsse.gate"
VERSION = 1
CANCELLED = ("before_approval", "after_approval")
CLOSES = (*sorted(CLOSE_CODES), "error")

_FIXTURE: Schema = {
    "type": "object",
    "properties": {
        "covers": {"type": "array", "items": {"enum": list(STATES)}},
        "reading": READING_SCHEMA,
        "close": {"enum": [None, *CLOSES]},
        "cancelled": {"enum": [None, *CANCELLED]},
        "after": {"type": ["string", "null"]},
        "expected": {"type": ["object", "null"]},
    },
    "additionalProperties": False,
}

SCHEMA: Schema = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Manifest of a release gate",
    "type": "object",
    "properties": {
        "schema": {"const": NAME},
        "version": {"const": VERSION},
        "states": {"type": "array", "items": {"enum": list(STATES)}},
        "fixtures": {"type": "object", "additionalProperties": _FIXTURE},
        "history": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "at": {"type": "string"},
                    "reason": {"type": "string"},
                    "changed": {"type": "array", "items": {"type": "string"}},
                    "dropped": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["at", "reason", "changed"],
            },
        },
    },
    "required": ["schema", "version", "fixtures"],
    "additionalProperties": False,
}


class UnfitGate(ValueError):
    """The directory has no manifest that can be read; the message says why."""


@dataclass(frozen=True, slots=True)
class Fixture:
    """A recording, and what the gate does with it.

    covers     the states that it is there for
    close      what the reader closes with: one of the close codes, or error for a broken connection
    cancelled  when the application is cancelled, if it is
    after      the fixture of the attempt before, for a request that was sent again
    expected   what must come of it; None until it is known
    """

    covers: tuple[str, ...] = ()
    reading: Reading = field(default_factory=Reading)
    close: str | None = None
    cancelled: str | None = None
    after: str | None = None
    expected: Facts | None = None

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Fixture:
        return cls(
            tuple(fields.get("covers", ())),
            Reading.from_dict(fields.get("reading", {})),
            fields.get("close"),
            fields.get("cancelled"),
            fields.get("after"),
            fields.get("expected"),
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "covers": list(self.covers),
            "reading": self.reading.to_dict(),
            "close": self.close,
            "cancelled": self.cancelled,
            "after": self.after,
            "expected": self.expected,
        }


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a gate expects. `states` are those that must be covered."""

    fixtures: dict[str, Fixture]
    states: tuple[str, ...] = tuple(STATES)
    history: tuple[dict[str, Any], ...] = ()

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> Manifest:
        """UnfitGate if it is not there or does not fit."""
        try:
            document = json.loads((Path(directory) / MANIFEST).read_bytes())
        except OSError as problem:
            raise UnfitGate(f"{MANIFEST}: {problem.strerror or 'it cannot be read'}") from None
        except (ValueError, RecursionError):
            raise UnfitGate(f"{MANIFEST}: it is no JSON") from None
        misfit = first_misfit(document, SCHEMA)
        if misfit is not None:
            raise UnfitGate(f"{MANIFEST}: {misfit}")
        fixtures = {name: Fixture.from_dict(fields) for name, fields in document["fixtures"].items()}
        for name, fixture in fixtures.items():
            if Path(name).is_absolute() or ".." in Path(name).parts:
                raise UnfitGate(f"{MANIFEST}: a fixture is outside of the gate's directory")
            if fixture.after is not None and fixture.after not in fixtures:
                raise UnfitGate(f"{MANIFEST}: a fixture comes after one that is not there")
        return cls(fixtures, tuple(document.get("states", STATES)), tuple(document.get("history", ())))

    def write(self, directory: str | os.PathLike[str]) -> None:
        document = {
            "schema": NAME,
            "version": VERSION,
            "states": list(self.states),
            "fixtures": {name: fixture.to_dict() for name, fixture in sorted(self.fixtures.items())},
            "history": list(self.history),
        }
        write_whole(Path(directory) / MANIFEST, json.dumps(document, indent=1).encode() + b"\n")


@dataclass(frozen=True, slots=True)
class Checked:
    """What came of one fixture. `problems` is empty if it passed; `unreadable` if there was nothing to judge."""

    name: str
    covers: tuple[str, ...]
    facts: Facts | None
    cuttings: int
    problems: tuple[str, ...]
    drift: tuple[str, ...] = ()
    unreadable: bool = False

    @property
    def outcome(self) -> str:
        return "unreadable" if self.facts is None else self.facts["verdict"]["outcome"]


@dataclass(frozen=True, slots=True)
class GateResult:
    """What came of a gate: `builds` are those that took part, `missing` the states that nothing covers."""

    builds: tuple[str, ...]
    fixtures: tuple[Checked, ...]
    states: dict[str, tuple[str, ...]]
    """Every required state, with the fixtures that cover and show it."""
    problems: tuple[str, ...] = ()
    """What is wrong with the gate as a whole."""

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(state for state, names in self.states.items() if not names)

    @property
    def passed(self) -> bool:
        return not self.missing and not self.problems and not any(checked.problems for checked in self.fixtures)

    def to_dict(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "builds": list(self.builds),
            "problems": list(self.problems),
            "states": {state: list(names) for state, names in self.states.items()},
            "missing": list(self.missing),
            "fixtures": [
                {
                    "fixture": checked.name,
                    "passed": not checked.problems,
                    "outcome": checked.outcome,
                    "code": None if checked.facts is None else checked.facts["verdict"]["code"],
                    "covers": list(checked.covers),
                    "cuttings": checked.cuttings,
                    "problems": list(checked.problems),
                    "drift": list(checked.drift),
                }
                for checked in self.fixtures
            ],
        }


class Updated(NamedTuple):
    """The fixtures that an update changed or took in, and those that it dropped."""

    changed: list[str]
    dropped: list[str]


def run_gate(
    directory: str | os.PathLike[str], *, seed: int = 0, store: bool = True, builds: Sequence[str] = BUILDS
) -> GateResult:
    """Replay and judge everything; UnfitGate if the manifest cannot be read.

    seed    of the random cuttings
    store   keep the shape of the recordings in LAST_RUN, which the next run compares with
    builds  that must take part
    """
    root = Path(directory)
    manifest = Manifest.load(root)
    by_build = _replayed(root, manifest, seed, builds)
    replies = list(by_build.values())
    recordings = {name: _recording(root / name) for name in manifest.fixtures}
    facts = {name: replies[0][name].get("facts") for name in manifest.fixtures}
    shown = {name: _shown(name, manifest, facts, recordings) for name in manifest.fixtures}
    shapes = {
        name: shape_of(recording, manifest.fixtures[name].reading)
        for name, recording in recordings.items()
        if recording is not None and facts[name] is not None
    }
    drift = _drift(root, shapes, store=store)
    fixtures = tuple(
        _judge(name, manifest.fixtures[name], [by_name[name] for by_name in replies], shown[name], drift.get(name, ()))
        for name in sorted(manifest.fixtures)
    )
    covering = {name: set(fixture.covers) & set(shown[name]) for name, fixture in sorted(manifest.fixtures.items())}
    states = {state: tuple(name for name, covered in covering.items() if state in covered) for state in manifest.states}
    unlisted = [name for name in _bodies(root) if name not in manifest.fixtures]
    problems = [f"{name}: it is not in {MANIFEST}; --update adds it" for name in unlisted]
    if not manifest.fixtures:
        problems.append("there are no fixtures")
    problems += [
        f"the {build} build is not installed here; --builds {next(iter(by_build))} runs without it"
        for build in builds
        if build not in by_build
    ]
    return GateResult(tuple(by_build), fixtures, states, tuple(problems))


def update_gate(
    directory: str | os.PathLike[str], reason: str, *, seed: int = 0, builds: Sequence[str] = BUILDS
) -> Updated:
    """Expect from now on what comes today of the first of the builds, take in recordings that are not listed, and drop
    fixtures whose body is gone.

    A manifest that is not there is made. `reason` goes into its history.
    """
    if not reason.strip():
        raise UnfitGate("new expectations need a reason")
    root = Path(directory)
    manifest = Manifest.load(root) if (root / MANIFEST).exists() else Manifest({})
    dropped = sorted(name for name in manifest.fixtures if not (root / name).exists())
    kept = {name: fixture for name, fixture in manifest.fixtures.items() if name not in dropped}
    for name, fixture in kept.items():
        if fixture.after in dropped:
            raise UnfitGate(f"{fixture.after}: its body is gone, but {name} comes after it")
    new = {name: _unlisted(root / name) for name in _bodies(root) if name not in kept}
    manifest = replace(manifest, fixtures=kept | new)
    (answers,) = _replayed(root, manifest, seed, builds[:1]).values()
    facts = {name: answers[name].get("facts") for name in manifest.fixtures}
    recordings = {name: _recording(root / name) for name in manifest.fixtures}
    fixtures = {}
    for name, fixture in manifest.fixtures.items():
        if facts[name] is None:
            raise UnfitGate(f"{name}: {answers[name]['problem']}")
        covers = fixture.covers
        if name in new:
            covers = tuple(_shown(name, manifest, facts, recordings))
        fixtures[name] = replace(fixture, expected=facts[name], covers=covers)
    changed = sorted(name for name in fixtures if fixtures[name] != manifest.fixtures[name] or name in new)
    if changed or dropped:
        entry = {"at": now(), "reason": reason.strip(), "changed": changed, "dropped": dropped}
        replace(manifest, fixtures=fixtures, history=(*manifest.history, entry)).write(root)
    return Updated(changed, dropped)


def _replayed(root: Path, manifest: Manifest, seed: int, builds: Sequence[str]) -> dict[str, dict[str, Facts]]:
    """Of each of the builds the answers by name; what there is in place of one that is not there."""
    names = list(manifest.fixtures)
    tasks = [
        {
            "path": str(root / name),
            "reading": fixture.reading.to_dict(),
            "close": fixture.close,
            "cancelled": fixture.cancelled,
            "seed": seed,
        }
        for name, fixture in manifest.fixtures.items()
    ]
    by_build: dict[str, dict[str, Facts]] = {}
    for wanted in builds:
        if wanted not in by_build:
            build, answers = replay_in(wanted, tasks)
            by_build.setdefault(build, dict(zip(names, answers, strict=True)))
    return by_build


def _judge(name: str, fixture: Fixture, answers: list[Facts], shown: list[str], drift: tuple[str, ...]) -> Checked:
    first = answers[0]
    if "problem" in first:
        return Checked(name, fixture.covers, None, 0, (first["problem"],), unreadable=True)
    problems = [problem for answer in answers for problem in answer.get("disagreements", (answer.get("problem"),))]
    problems += [
        f"the builds disagree: {', '.join(differing(first['facts'], other.get('facts')))}"
        for other in answers[1:]
        if other.get("facts") != first["facts"]
    ]
    if fixture.expected is None:
        problems.append("nothing is expected of it yet; --update writes what comes today")
    else:
        problems += _unexpected(fixture.expected, first["facts"])
    problems += [f"it does not show the state {state}" for state in fixture.covers if state not in shown]
    cuttings = sum(len(answer.get("cuttings", ())) for answer in answers)
    return Checked(name, fixture.covers, first["facts"], cuttings, tuple(problems), drift)


def _unexpected(expected: Facts, facts: Facts) -> Iterator[str]:
    places = differing(expected, facts)
    if not places:
        return
    wanted, found = expected.get("verdict", {}), facts["verdict"]
    for name in ("outcome", "code"):
        if f"verdict.{name}" in places:
            yield f"expected {name} {wanted.get(name)}, got {found[name]}"
    others = [place for place in places if place not in ("verdict.outcome", "verdict.code")]
    if others:
        yield f"not as expected: {', '.join(others)}"


def _shown(
    name: str, manifest: Manifest, facts: Mapping[str, Facts | None], recordings: Mapping[str, Recording | None]
) -> list[str]:
    own, recording = facts[name], recordings[name]
    if own is None or recording is None:
        return []
    after = manifest.fixtures[name].after
    before = None if after is None else facts[after]
    return states_shown(own, {"retries": recording.sidecar.retries, "before": before})


def _recording(path: Path) -> Recording | None:
    try:
        return Recording.load(path)
    except (OSError, UnfitRecording):
        return None  # the replay says why


def _unlisted(path: Path) -> Fixture:
    """What the sidecar of a new recording says of how it is to be read."""
    recording = _recording(path)
    if recording is None:
        return Fixture()
    terminal = recording.sidecar.terminal
    return Fixture(reading=recording.sidecar.reading, close=None if terminal.ending() is None else terminal.end)


def _bodies(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob(f"*{BODY_SUFFIX}"))


def _drift(root: Path, shapes: dict[str, dict[str, Any]], *, store: bool) -> dict[str, tuple[str, ...]]:
    path = root / LAST_RUN
    last = {}
    if path.is_file():
        try:
            last = json.loads(path.read_bytes())["shapes"]
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            last = {}
    if store and shapes != last:
        with suppress(OSError):  # a gate that cannot be written to is judged all the same
            write_whole(path, json.dumps({"shapes": shapes}, indent=1).encode() + b"\n")
    return {
        name: tuple(drift_between(last[name], shape)) if isinstance(last.get(name), dict) else ()
        for name, shape in shapes.items()
    }
