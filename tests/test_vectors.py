"""The published vectors: both builds meet them at every cut, and they cover what they claim to cover."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

VECTORS = Path(__file__).resolve().parents[1] / "vectors"
LAYERS = ("framing", "chat", "json", "glm_text")

sys.path.insert(0, str(VECTORS))
import run  # noqa: E402

LOADED = {layer: run.load([VECTORS / f"{layer}.jsonl"]) for layer in LAYERS}
CHAT = LOADED["chat"]

# No bytes of a stream alone lead to these: the reader gives them to `close`.
FROM_CLOSE = {"deadline_first_byte", "deadline_idle", "deadline_total", "cancelled"}


def _script(*args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *args]
    return subprocess.run(command, cwd=VECTORS, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("layer", LAYERS)
def test_every_vector_has_its_outcome_for_every_cutting(glmsse: ModuleType, layer: str) -> None:
    reader = run.Reader(glmsse)
    different = {
        vector["name"]: found for vector in LOADED[layer] if (found := list(reader.differences(vector, all_cuts=False)))
    }
    assert different == {}


@pytest.mark.parametrize("build", ["compiled", "pure"])
def test_runner_reads_all_vectors_by_itself(builds: dict[str, ModuleType], build: str) -> None:
    if build not in builds:
        pytest.skip("the extension is not built")
    done = _script("run.py", "--build", build, "framing.jsonl")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"vectors, 0 different: glmsse ({build})" in done.stdout


def test_vectors_hold_with_the_scanner_of_interpreters_that_have_none_in_c() -> None:
    """PyPy reads JSON by the standard library's Python code, which is looser than the one in C."""
    program = "import sys; sys.modules['_json'] = None; import run; sys.exit(run.main(['--build', 'pure']))"
    done = _script("-c", program)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_runner_exits_with_1_at_a_difference(tmp_path: Path) -> None:
    vector = {**LOADED["framing"][0], "expect": {"events": []}}
    (tmp_path / "wrong.jsonl").write_text(json.dumps(vector))
    done = _script("run.py", str(tmp_path / "wrong.jsonl"))
    assert (done.returncode, done.stderr) == (1, "")
    assert f"DIFFERENT {vector['name']}" in done.stdout


def test_runner_exits_with_1_where_there_is_no_vector(tmp_path: Path) -> None:
    (tmp_path / "none.jsonl").write_text("")
    assert _script("run.py", str(tmp_path / "none.jsonl")).returncode == 1


def test_runner_refuses_another_build_than_the_one_asked_for(tmp_path: Path) -> None:
    package = tmp_path / "stand_in.py"
    package.write_text("IMPLEMENTATION = 'pure'\n")
    program = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(VECTORS)!r}]; import run; "
    done = _script("-c", program + "run.main(['--package', 'stand_in', '--build', 'compiled', 'framing.jsonl'])")
    assert done.returncode == 1
    assert "the compiled build of stand_in was asked for, but it is the pure one" in done.stderr


def test_files_are_what_their_sources_make() -> None:
    done = _script("fill.py", "--check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_files_stay_reviewable() -> None:
    assert sum(path.stat().st_size for path in VECTORS.glob("*.jsonl")) < 1_000_000


@pytest.mark.parametrize("layer", LAYERS)
def test_vectors_keep_to_the_schema(layer: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    validator = jsonschema.Draft202012Validator(json.loads((VECTORS / "schema.json").read_text()))
    for vector in LOADED[layer]:
        assert [error.message for error in validator.iter_errors(vector)] == [], vector["name"]
        assert vector["layer"] == layer
    names = [vector["name"] for vector in LOADED[layer]]
    assert len(set(names)) == len(names)


def _reached(vectors: list[dict[str, Any]]) -> set[str]:
    return {vector["expect"]["verdict"]["code"] for vector in vectors if vector["name"].startswith("n_")}


def test_every_code_has_a_chat_vector_that_must_not_be_accepted(glmsse: ModuleType) -> None:
    assert _reached(CHAT) >= set(glmsse.errors.CODES)
    given = {vector.get("close") for vector in CHAT}
    assert given >= FROM_CLOSE


def test_every_kind_of_finish_reason_has_a_vector() -> None:
    finish = {code for code in _reached(CHAT) if code.startswith("finish_")}
    assert finish >= {
        "finish_length",
        "finish_sensitive",
        "finish_network_error",
        "finish_content_filter",
        "finish_other",
    }


def test_every_code_of_the_framer_has_a_framing_vector() -> None:
    codes = {vector["expect"]["error"]["code"] for vector in LOADED["framing"] if vector["name"].startswith("n_")}
    assert codes == {
        "invalid_utf8",
        "event_too_large",
        "too_many_event_lines",
        "too_many_events",
        "stream_too_large",
        "unterminated_event",
    }


def test_every_tolerance_has_a_vector_with_and_one_without_it(glmsse: ModuleType) -> None:
    by_name = {vector["name"]: vector for vector in CHAT}
    for tolerance in glmsse.TOLERANCES:
        assert by_name[f"y_tolerance_{tolerance}"]["expect"]["verdict"]["tolerated"] == [tolerance]
        # Strictly, the alias is a field that is not read.
        strict = by_name[f"{'y' if tolerance == 'reasoning_alias' else 'n'}_without_{tolerance}"]
        assert "tolerated" not in strict["expect"]["verdict"]
        assert "allow" not in strict


def test_every_limit_has_a_vector_at_its_value_and_one_beyond(glmsse: ModuleType) -> None:
    for field in glmsse.Limits.__dataclass_fields__:
        name = field.removeprefix("max_")
        at, over = (
            next(v for v in CHAT if v["name"] == f"{kind}_cap_{name}_{where}")
            for kind, where in (("y", "at"), ("n", "over"))
        )
        assert at["limits"] == over["limits"]
        assert list(at["limits"]) == [field]
