"""The release gate: it passes what is as expected, and nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from conftest import BUILDS
from glmsse.__main__ import main as main_of
from glmsse.capture import Reading, Recording, Sidecar
from glmsse.capture.drift import drift_between, shape_of
from glmsse.capture.gate import (
    LAST_RUN,
    MANIFEST,
    SCHEMA,
    Fixture,
    GateResult,
    Manifest,
    UnfitGate,
    update_gate,
)
from glmsse.capture.gate import run_gate as run_gate_of
from glmsse.capture.replaying import cuttings, differing, replay, replay_in
from glmsse.capture.starter import write_starter
from glmsse.capture.states import STATES
from glmsse.limits import DEFAULT_LIMITS
from glmsse.scenarios import SCENARIOS, body, finish, text

run_gate = partial(run_gate_of, builds=tuple(BUILDS))
"""By the builds that are installed here."""


def main(args: list[str]) -> int:
    return main_of([*args, "--builds", ",".join(BUILDS)])


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A starter set that nobody changes."""
    directory = tmp_path_factory.mktemp("starter")
    write_starter(directory)
    return directory


@pytest.fixture
def gate(starter: Path, tmp_path: Path) -> Path:
    """A starter set of one's own."""
    for path in starter.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    return tmp_path


def change(directory: Path, what: Callable[[dict[str, Any]], object]) -> None:
    path = directory / MANIFEST
    document = json.loads(path.read_bytes())
    what(document)
    path.write_text(json.dumps(document))


def problems(directory: Path) -> dict[str, tuple[str, ...]]:
    return {item.name: item.problems for item in run_gate(directory).fixtures if item.problems}


def problems_of(result: GateResult, name: str) -> tuple[str, ...]:
    return next(item.problems for item in result.fixtures if item.name == name)


def test_the_starter_set_passes_and_covers_every_state(starter: Path) -> None:
    result = run_gate(starter)

    assert result.passed
    assert set(result.states) == set(STATES)
    assert result.missing == ()
    assert result.builds == tuple(BUILDS)
    assert len(result.fixtures) == 16
    assert all(checked.cuttings == 7 * len(BUILDS) for checked in result.fixtures)


def test_a_manifest_fits_its_schema(starter: Path) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(json.loads((starter / MANIFEST).read_bytes()), SCHEMA)


def test_a_starter_set_is_not_written_over_a_gate(starter: Path) -> None:
    with pytest.raises(UnfitGate, match="has a gate or recordings already"):
        write_starter(starter)


def test_the_body_is_cut_in_every_way() -> None:
    data = SCENARIOS["tool"].body
    recording = Recording(data, Sidecar(chunks=((0.1, 10), (0.2, len(data) - 10))))

    cut = dict(cuttings(recording, 0))

    assert list(cut) == ["whole", "single bytes", "as recorded", "random 1", "random 2", "random 3", "random 4"]
    assert all(b"".join(pieces) == data for pieces in cut.values())
    assert len(cut["single bytes"]) == len(data)
    assert [len(piece) for piece in cut["as recorded"]] == [10, len(data) - 10]
    assert cut["random 1"] != list(dict(cuttings(recording, 1))["random 1"])


def test_an_unexpected_verdict_fails(gate: Path) -> None:
    path = gate / "text.sse"
    Recording(SCENARIOS["no_done"].body).write(path)

    assert problems(gate)["text.sse"][0] == "expected outcome accepted, got incomplete"


def test_another_text_with_the_same_verdict_fails(gate: Path) -> None:
    path = gate / "text.sse"
    recording = Recording.load(path)
    replace(recording, body=recording.body.replace(b"harbour", b"hArbour")).write(path)

    assert problems(gate) == {"text.sse": ("not as expected: answer_sha256",)}


@pytest.mark.parametrize("first", [0, 1])
def test_states_that_nothing_covers_fail(gate: Path, first: int) -> None:
    forgotten = tuple(STATES)[first::2]

    def forget(document: dict[str, Any]) -> None:
        for fixture in document["fixtures"].values():
            fixture["covers"] = [state for state in fixture["covers"] if state not in forgotten]

    change(gate, forget)
    result = run_gate(gate)

    assert result.missing == forgotten
    assert not result.passed


def test_a_claim_without_evidence_fails_and_covers_nothing(gate: Path) -> None:
    """Each state is claimed by a fixture that is not in it, and by no other."""
    shows = {
        "length.sse": {"finish_length"},
        "thinking.sse": {"normal_text", "thinking", "finish_stop"},
    }

    def claim(document: dict[str, Any]) -> None:
        for fixture in document["fixtures"].values():
            fixture["covers"] = []
        for name, shown in shows.items():
            document["fixtures"][name]["covers"] = [state for state in STATES if state not in shown]

    change(gate, claim)
    result = run_gate(gate)

    for name, shown in shows.items():
        wrong = tuple(f"it does not show the state {state}" for state in STATES if state not in shown)
        assert problems_of(result, name) == wrong
    assert result.missing == tuple(STATES)


def test_states_that_are_not_wanted_may_be_missing(gate: Path) -> None:
    def want_less(document: dict[str, Any]) -> None:
        document["states"] = ["normal_text"]
        document["fixtures"] = {"text.sse": document["fixtures"]["text.sse"]}

    change(gate, want_less)
    for path in gate.glob("*.sse"):
        if path.name != "text.sse":
            path.unlink()

    assert run_gate(gate).passed


def test_a_recording_that_is_not_listed_fails(gate: Path) -> None:
    (gate / "new.sse").write_bytes(SCENARIOS["tool"].body)

    result = run_gate(gate)

    assert result.problems == ("new.sse: it is not in gate.json; --update adds it",)
    assert not result.passed


def test_an_update_takes_in_new_recordings_with_what_they_show(gate: Path) -> None:
    (gate / "new.sse").write_bytes(SCENARIOS["tool_stream"].body)
    before = json.loads((gate / MANIFEST).read_bytes())

    assert update_gate(gate, "a provider's new model") == (["new.sse"], [])

    after = json.loads((gate / MANIFEST).read_bytes())
    assert after["fixtures"]["new.sse"]["covers"] == [
        "tool_call_without_content",
        "finish_tool_calls",
        "repeated_stable_fields",
        "fragmented_arguments",
    ]
    assert after["history"][:-1] == before["history"]
    assert (after["history"][-1]["reason"], after["history"][-1]["changed"]) == ("a provider's new model", ["new.sse"])
    assert run_gate(gate).passed


def test_an_update_without_changes_writes_no_history(gate: Path) -> None:
    before = (gate / MANIFEST).read_bytes()

    assert update_gate(gate, "for nothing") == ([], [])
    assert (gate / MANIFEST).read_bytes() == before


def test_an_update_drops_fixtures_whose_body_is_gone(gate: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (gate / "length.sse").unlink()
    assert problems(gate) == {"length.sse": ("its body is gone; --update drops it",)}

    assert main(["gate", str(gate), "--update", "--reason", "one of our own"]) == 1

    assert "glmsse: dropped: length.sse" in capsys.readouterr().err
    manifest = Manifest.load(gate)
    assert "length.sse" not in manifest.fixtures
    assert (manifest.history[-1]["changed"], manifest.history[-1]["dropped"]) == ([], ["length.sse"])
    assert run_gate(gate).missing == ("finish_length",)


def test_a_fixture_that_another_comes_after_is_not_dropped_alone(gate: Path) -> None:
    (gate / "unknown_completion.sse").unlink()

    with pytest.raises(UnfitGate, match=r"unknown_completion.sse: its body is gone, but retried.sse comes after it"):
        update_gate(gate, "fewer")

    (gate / "retried.sse").unlink()
    assert update_gate(gate, "fewer").dropped == ["retried.sse", "unknown_completion.sse"]


def test_a_build_that_is_not_there_fails_unless_it_is_not_asked_for(
    starter: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("glmsse.capture.gate.replay_in", lambda _, tasks: replay_in("pure", tasks))

    assert main_of(["gate", str(starter)]) == 1
    assert "FAILED the compiled build is not installed here; --builds pure runs without it" in capsys.readouterr().out
    assert main_of(["gate", str(starter), "--builds", "pure"]) == 0
    assert "16 fixtures in the pure build" in capsys.readouterr().out


@pytest.mark.parametrize("builds", ["", "slow", "pure,", "pure pure"])
def test_builds_that_nobody_knows_are_refused(starter: Path, builds: str) -> None:
    with pytest.raises(SystemExit) as refused:
        main_of(["gate", str(starter), "--builds", builds])
    assert refused.value.code == 2


def test_a_reading_with_limits_and_a_close_is_used(tmp_path: Path) -> None:
    (tmp_path / "a.sse").write_bytes(body([text("The harbour")], done=False))
    reading = Reading(limits={"max_event_bytes": 100})
    Manifest({"a.sse": Fixture(reading=reading)}, states=("oversized_event",)).write(tmp_path)
    update_gate(tmp_path, "first")

    assert Manifest.load(tmp_path).fixtures["a.sse"].expected["verdict"]["code"] == "event_too_large"  # type: ignore[index]


@pytest.mark.parametrize(
    ("what", "problem"),
    [
        (lambda document: document.update(version=2), "version is not 1"),
        (lambda document: document.update(states=["asleep"]), r"states\[0\] is none of the known values"),
        (lambda document: document["fixtures"]["text.sse"].update(mood=1), "has a field that it must not have"),
        (lambda document: document["fixtures"]["text.sse"].update(after="gone.sse"), "comes after one that is not"),
        (lambda document: document["fixtures"].update({"../x.sse": {}}), "outside of the gate's directory"),
        (lambda document: document.pop("fixtures"), "fixtures is missing"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(
    gate: Path, capsys: pytest.CaptureFixture[str], what: Any, problem: str
) -> None:
    change(gate, what)

    with pytest.raises(UnfitGate, match=problem):
        Manifest.load(gate)
    assert main(["gate", str(gate)]) == 2
    assert "gate.json: " in capsys.readouterr().err


@pytest.mark.parametrize("text", ["", "[]", "{", "[" * 100_000])
def test_a_manifest_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST).write_text(text)

    with pytest.raises(UnfitGate):
        Manifest.load(tmp_path)


def test_a_recording_that_cannot_be_read_is_a_row_and_exit_code_2(
    gate: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (gate / "text.sse").unlink()
    (gate / "tool.json").write_text("{}")

    assert main(["gate", str(gate), "--json"]) == 2

    found = {item["fixture"]: item for item in json.loads(capsys.readouterr().out)["fixtures"]}
    assert found["text.sse"]["problems"] == ["its body is gone; --update drops it"]
    assert found["tool.sse"]["problems"] == ["tool.json: it is no sidecar of a recording"]
    assert found["text.sse"]["outcome"] == "unreadable"


@pytest.mark.parametrize(("name", "code"), [("conflict", 3), ("event_too_large", 4), ("no_usage", 1)])
def test_exit_codes_are_those_of_check(gate: Path, name: str, code: int) -> None:
    scenario = SCENARIOS[name]
    Recording(scenario.body).write(gate / "text.sse")
    if name == "event_too_large":
        change(
            gate, lambda document: document["fixtures"]["text.sse"]["reading"]["limits"].update(max_event_bytes=2048)
        )

    assert main(["gate", str(gate)]) == code


def test_the_command_starts_updates_and_reports(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = tmp_path / "gate"
    assert main(["gate", str(directory), "--init", "--junit", str(tmp_path / "junit.xml")]) == 0
    out = capsys.readouterr().out
    assert "18 of 18 states are covered" in out
    assert "passed: 16 fixtures" in out
    assert main(["gate", str(directory), "--update"]) == 2
    assert main(["gate", str(directory), "--reason", "x"]) == 2
    assert main(["gate", str(directory), "--update", "--reason", " "]) == 2
    (directory / "new.sse").write_bytes(SCENARIOS["text"].body)
    assert main(["gate", str(directory)]) == 1
    assert "FAILED new.sse: it is not in gate.json" in capsys.readouterr().out
    assert main(["gate", str(directory), "--update", "--reason", "one more"]) == 0
    assert main(["gate", str(tmp_path / "gone")]) == 2
    assert main(["gate", str(directory), "--junit", str(tmp_path / "gone" / "junit.xml")]) == 2


def test_junit_xml_has_a_case_a_fixture_and_a_state(gate: Path, tmp_path: Path) -> None:
    Recording(SCENARIOS["no_done"].body).write(gate / "text.sse")
    (gate / "tool.sse").unlink()
    report = tmp_path / "report.xml"

    main(["gate", str(gate), "--junit", str(report)])

    suite = ElementTree.fromstring(report.read_bytes())[0]
    cases = {case.get("name"): case for case in suite}
    assert len(cases) == 16 + 18 + 1
    assert (suite.get("tests"), suite.get("errors")) == ("35", "1")
    failure = cases["fixture text.sse"].find("failure")
    assert failure is not None
    assert failure.get("message") == "expected outcome accepted, got incomplete"
    assert cases["fixture tool.sse"].find("error") is not None
    assert cases["state normal_text"].find("failure") is not None
    assert cases["state thinking"].find("failure") is None


def test_drift_against_the_last_run_is_reported_and_does_not_fail(gate: Path) -> None:
    assert run_gate(gate).passed
    assert (gate / LAST_RUN).exists()
    recording = Recording.load(gate / "text.sse")
    changed = recording.body.replace(b'"created":1796117400,"object"', b'"system_fingerprint":"fp","object"')
    Recording(changed, replace(recording.sidecar, chunks=(), first_event_seconds=9.0)).write(gate / "text.sse")

    drift = {item.name: item.drift for item in run_gate(gate).fixtures if item.drift}

    assert drift["text.sse"] == (
        "new fields: system_fingerprint",
        "fields gone: created",
        "first event seconds: 0.04 → 9.0",
        "total seconds: 0.16 → None",
        "longest pause seconds: 0.04 → None",
    )
    assert not any(item.drift for item in run_gate(gate).fixtures)


def test_drift_sees_order_reasons_and_sizes() -> None:
    one = shape_of(Recording(b'data: {"a":1,"b":2}\n\n'))
    two = shape_of(
        Recording(b'data: {"b":2,"a":1}\n\n' + body([finish("length", 23), finish("made up", None)]) + b": x\n" * 99)
    )

    found = drift_between(one, two)

    assert "the order of fields has changed" in found
    assert "new finish reasons: length, other" in found
    assert any(line.startswith("bytes: 21 → ") for line in found)


def test_drift_shows_no_text() -> None:
    shape = shape_of(Recording(b'data: {"Dear John":{"Top Secret":1},"ok":"SECRET"}\n\n'))

    assert shape["fields"] == ["*.*", "ok"]


def test_a_body_is_framed_under_the_limits_of_its_reading() -> None:
    """Also what stands before the fault counts."""
    long = body([text("x" * DEFAULT_LIMITS.max_event_bytes)])  # type: ignore[operator]
    twice = SCENARIOS["tool_stream"].body
    allowed = Reading(limits={"max_event_bytes": None})

    def repeats(data: bytes, reading: Reading) -> Any:
        return replay(Recording(data), {"reading": reading.to_dict()})["facts"]["repeated_fields"]

    assert repeats(twice, Reading())
    assert repeats(twice + long, Reading())
    assert repeats(long + twice, allowed)
    assert not repeats(long + twice, Reading())
    assert shape_of(Recording(long + twice, Sidecar(reading=allowed)))["events"] > 1
    assert shape_of(Recording(long + twice))["events"] == 0


def test_a_reading_that_is_not_known_is_a_problem_of_its_fixture(gate: Path) -> None:
    change(gate, lambda document: document["fixtures"]["text.sse"]["reading"].update(limits={"max_later": 1}))

    assert problems(gate) == {"text.sse": ("limits takes names of Limits only",)}


def test_cuttings_that_disagree_are_named() -> None:
    assert differing({"a": {"b": 1}, "c": 2}, {"a": {"b": 2}, "c": 2}) == ["a.b"]
    assert differing({"a": 1}, {}) == ["a"]


def test_nothing_may_run_after_a_cancellation() -> None:
    recording = Recording(SCENARIOS["tool"].body)

    for cancelled, told in (("before_approval", ["unapproved"]), ("after_approval", ["changed", "expired"])):
        facts = replay(recording, {"reading": {}, "cancelled": cancelled})["facts"]
        assert facts["permits"] == told
    assert replay(recording, {"reading": {}})["facts"]["permits"] is None
    broken = Recording(SCENARIOS["no_done"].body)
    assert replay(broken, {"reading": {}, "cancelled": "before_approval"})["facts"]["permits"] == ["not_accepted"]


def _pytest(directory: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "glmsse.capture.pytest_plugin", "-p", "no:cacheprovider"]
    command += ["--gate-builds", ",".join(BUILDS)]
    return subprocess.run(
        [*command, "--rootdir", str(directory), "-q", "-rA", str(directory)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_pytest_plugin_has_a_test_a_fixture_and_a_state(gate: Path) -> None:
    passed = _pytest(gate)
    assert passed.returncode == 0, passed.stdout
    assert "35 passed" in passed.stdout

    Recording(SCENARIOS["no_done"].body).write(gate / "text.sse")
    failed = _pytest(gate)
    assert failed.returncode == 1
    assert "2 failed, 33 passed" in failed.stdout
    assert "expected outcome accepted, got incomplete" in failed.stdout
    assert "Traceback" not in failed.stdout

    (gate / MANIFEST).write_text("{}")
    assert "gate.json: schema is missing" in _pytest(gate).stdout


def test_a_gate_that_cannot_be_run_is_run_once(gate: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    calls = tmp_path_factory.mktemp("calls") / "calls"
    (gate / "conftest.py").write_text(
        f"""
from glmsse.capture import pytest_plugin

def run_gate(*_, **__):
    with open({str(calls)!r}, "a") as file:
        file.write("x")
    raise OSError("no processes")

pytest_plugin.run_gate = run_gate
"""
    )

    failed = _pytest(gate)

    assert "35 failed" in failed.stdout
    assert calls.read_text() == "x"


def test_a_terminal_gets_a_drawn_table(
    starter: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)

    assert main(["gate", str(starter)]) == 0
    assert "┃" in capsys.readouterr().out

    monkeypatch.setitem(sys.modules, "rich.console", None)
    assert main(["gate", str(starter)]) == 0
    assert "┃" not in capsys.readouterr().out
