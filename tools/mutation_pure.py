"""Mutants of Python modules, each against the tests that run its lines. Used by mutate.py.

Every mutant gets a forked process, so that nothing but the package and the tests has to be imported again.
"""

from __future__ import annotations

import itertools
import json
import os
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vendor
from coverage_gate import SLOW, core_tests
from mutants import Mutant

VECTORS = vendor.ROOT / "vectors"
# Read last, where all others noticed nothing.
PROPERTIES = {"_framer": "framing", "_glm": "glm_text", "glm": "glm_text", "encode": "encode", "": "chat"}
MOST_BYTES = 4 << 30
MOST_SECONDS = 1200


class _Only:
    """Keeps some tests, the quickest first."""

    def __init__(self, seconds: dict[str, float]) -> None:
        self._seconds = seconds

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = sorted((i for i in items if i.nodeid in self._seconds), key=lambda i: self._seconds[i.nodeid])


class _Recorder:
    """Which test runs which line, and how long each takes."""

    def __init__(self, coverage: Any) -> None:
        self._coverage = coverage
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Any:
        self._coverage.switch_context(item.nodeid)
        yield
        self._coverage.switch_context("")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" and report.passed:
            self.seconds[report.nodeid] = report.duration


def _pytest(files: list[str], *more: str, plugin: object = None) -> int:
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:benchmark", "-o", "addopts="]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of hypothesis, which is imported already
    return int(pytest.main([*options, *more, *files], plugins=[plugin] if plugin else []))


def _vectors() -> int:
    """Each vector whole and in single pieces; 1 at the first difference."""
    sys.path.insert(0, str(VECTORS))
    import run

    reader = run.Reader(run.import_package("glmsse", "pure"))
    for vector in run.load(sorted(VECTORS.glob("*.jsonl"))):
        body = run.body_of(vector)
        if vector["layer"] == "glm_text":
            body = body.decode()
        expected = json.dumps(vector["expect"], sort_keys=True)
        for _, pieces in itertools.islice(run.cuttings(body, all_cuts=False), 2):
            if json.dumps(reader.read(vector, pieces), sort_keys=True) != expected:
                return 1
    return 0


def _forked(work: Callable[[], int], seconds: float, said: Path) -> int | None:
    """The exit code of this work in a process of its own; None if it takes too long."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 70
        try:
            os.setsid()
            out = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
            os.dup2(out, 1)
            os.dup2(out, 2)
            code = work()
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                child = 0
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        return None
    finally:
        if child:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)


class PureRun:
    """Runs mutants in a copy of the package; what the tests run is looked up once, and kept in `keep`."""

    def __init__(self, work: Path, keep: Path) -> None:
        self._package = work / "glmsse"
        self._said = work / "said"
        vendor.copy_package(self._package, core=False)
        os.environ.update(GLMSSE_BUILD_EXTENSION="no", GLMSSE_PURE_PYTHON="1", PYTHONPATH=str(work))
        os.environ.update(PYTHONDONTWRITEBYTECODE="1", HYPOTHESIS_STORAGE_DIRECTORY=str(work / "hypothesis"))
        os.chdir(vendor.ROOT)
        sys.path.insert(0, str(work))
        sys.dont_write_bytecode = True
        import hypothesis  # noqa: F401  # so that no child has to

        begun = time.monotonic()
        found = keep / "tests.json"
        if not found.exists():
            code = _forked(lambda: self._record(found), MOST_SECONDS, self._said)
            if code != 0 or _forked(_vectors, MOST_SECONDS, self._said) != 0:
                found.unlink(missing_ok=True)
                raise SystemExit(f"the tests fail without a mutant:\n{self._said.read_text()[-3000:]}")
        baseline = json.loads(found.read_text(encoding="utf-8"))
        self._seconds: dict[str, float] = baseline["seconds"]
        self._tests: dict[str, dict[str, list[str]]] = baseline["tests"]
        print(f"{len(self._seconds)} tests, looked up in {time.monotonic() - begun:.0f} s", flush=True)

    def _record(self, found: Path) -> int:
        from coverage import Coverage

        coverage = Coverage(data_file=None, include=[f"{self._package}/*"], config_file=False)
        recorder = _Recorder(coverage)
        coverage.start()
        code = _pytest(core_tests(), "-k", f"not {' and not '.join(SLOW)}", plugin=recorder)
        coverage.stop()
        data = coverage.get_data()
        tests = {
            str(Path(file).relative_to(self._package)): data.contexts_by_lineno(file) for file in data.measured_files()
        }
        found.write_text(json.dumps({"seconds": recorder.seconds, "tests": tests}), encoding="utf-8")
        return code

    def _tests_of(self, mutant: Mutant) -> dict[str, float]:
        lines = self._tests.get(mutant.file, {})
        names: set[str] = set()
        for line in range(mutant.first_line, mutant.last_line + 1):
            names.update(lines.get(str(line), ()))
        if names == {""}:  # run by the import only: whoever uses the module may notice
            names = {name for some in lines.values() for name in some}
        return {name: self._seconds[name] for name in names if name in self._seconds}

    def result_of(self, mutant: Mutant) -> str:
        path = self._package / mutant.file
        text = path.read_text(encoding="utf-8")
        mutated = mutant.apply(text)
        try:
            compile(mutated, mutant.file, "exec", dont_inherit=True)
        except (SyntaxError, ValueError):
            return "invalid"
        tests = self._tests_of(mutant)
        files = sorted({str(vendor.ROOT / name.partition("::")[0]) for name in tests})
        kind = next(kind for start, kind in PROPERTIES.items() if mutant.file.startswith(start))
        properties = str(vendor.ROOT / "tests" / f"test_{kind}_properties.py")

        def work() -> int:
            resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
            return (
                _vectors()
                or (_pytest(files, "-x", plugin=_Only(tests)) if files else 0)
                or _pytest([properties], "-x", "--hypothesis-seed=0")
            )

        path.write_text(mutated, encoding="utf-8")
        try:
            code = _forked(work, 120 + 3 * sum(tests.values()), self._said)
        finally:
            path.write_text(text, encoding="utf-8")
        return {None: "timeout", 0: "survived"}.get(code, "killed")
