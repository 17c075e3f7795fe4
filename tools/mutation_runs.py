"""Runs the tests against one mutant after the other. Used by mutate.py."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import vendor
from mutants import Mutant

TESTS = vendor.ROOT / "tests"
# Not of the core, about how it is installed, or long: the last come in where all others noticed nothing.
LEFT_OUT = (
    *("benchmark", "capture", "cli", "clients", "docs", "exports", "framing_choice", "gate", "glm_text_growth"),
    *("memory", "probe", "proxy", "readme", "recordings", "redact", "sdks", "serve", "threat_model", "tmp", "typing"),
)
LONG_KINDS = ("_properties", "_exhaustive")
LONG = {"_framer": "framing_properties", "_glm": "glm_text_properties", "glm": "glm_text_properties"}
LONG |= {"encode": "encode_properties", "": "chat_properties"}
# Tests are looked for by what a file of the extension does; the vectors come before them.
COMPILED_TESTS = {
    "_framer.pyx": "framing framing_properties limits fast_lane chat truncation forget memory",
    "_lane.pxi": "fast_lane chat tolerances stream_cases limits chat_properties memory",
    "_plain_json.pxi": "plain_json strict_json verdict chat fast_lane",
}
MOST_BYTES = 4 << 30
MOST_SECONDS = 600


def core_tests() -> list[Path]:
    """The test files that hold the core."""
    files = sorted(TESTS.glob("test_*.py"))
    names = {path: path.stem.removeprefix("test_") for path in files}
    return [path for path in files if not names[path].startswith(LEFT_OUT) and not names[path].endswith(LONG_KINDS)]


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
        if report.when == "call" and report.passed:  # the tracer's own memory makes some fail
            self.seconds[report.nodeid] = report.duration


def _pytest(files: list[Path], *more: str, plugin: object = None) -> int:
    options = ["-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:benchmark", "-o", "addopts="]
    options += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # of hypothesis, which is imported already
    return int(pytest.main([*options, *more, *map(str, files)], plugins=[plugin] if plugin else []))


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
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


class PureRun:
    """Mutants of Python modules, by the tests that run their lines."""

    def __init__(self, work: Path) -> None:
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
        found = work / "baseline.json"
        _forked(lambda: self._record(found), 3 * MOST_SECONDS, self._said)
        if not found.exists():
            raise SystemExit(f"the tests fail without a mutant:\n{self._said.read_text()[-3000:]}")
        baseline = json.loads(found.read_text())
        self._seconds: dict[str, float] = baseline["seconds"]
        self._tests: dict[str, dict[str, list[str]]] = baseline["tests"]
        print(f"{len(self._seconds)} tests in {time.monotonic() - begun:.0f} s", flush=True)
        slow = sorted(self._seconds, key=self._seconds.__getitem__)[-12:]
        print("\n".join(f"{self._seconds[n]:6.1f} {n}" for n in slow), flush=True)

    def _record(self, found: Path) -> int:
        from coverage import Coverage

        coverage = Coverage(data_file=None, include=[f"{self._package}/*"], config_file=False)
        recorder = _Recorder(coverage)
        coverage.start()
        code = _pytest(core_tests(), plugin=recorder)
        coverage.stop()
        data = coverage.get_data()
        tests = {
            str(Path(file).relative_to(self._package)): data.contexts_by_lineno(file) for file in data.measured_files()
        }
        found.write_text(json.dumps({"seconds": recorder.seconds, "tests": tests}))
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
        long = next(name for start, name in LONG.items() if mutant.file.startswith(start))
        files = sorted({vendor.ROOT / name.partition("::")[0] for name in tests})
        if not files:
            return "survived"

        def work() -> int:
            resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
            code = _pytest(files, "-x", plugin=_Only(tests))
            return code or _pytest([TESTS / f"test_{long}.py"], "-x", "--hypothesis-seed=0")

        path.write_text(mutated, encoding="utf-8")
        try:
            code = _forked(work, 120 + 10 * sum(tests.values()), self._said)
        finally:
            path.write_text(text, encoding="utf-8")
        return {None: "timeout", 0: "survived"}.get(code, "killed")


class CompiledRun:
    """Mutants of the extension, each compiled without optimisation."""

    def __init__(self, work: Path) -> None:
        self._package = work / "glmsse"
        vendor.copy_package(self._package, core=False)
        own = {name: value for name, value in os.environ.items() if not name.startswith(("GLMSSE_", "PYTHON"))}
        self._environment = {**own, "PYTHONPATH": str(work), "GLMSSE_BUILD_EXTENSION": "yes"}
        self._environment["HYPOTHESIS_STORAGE_DIRECTORY"] = str(work / "hypothesis")
        if not self._build():
            raise SystemExit("the extension cannot be compiled")
        for name in COMPILED_TESTS:
            if self._judge(name) != "survived":
                raise SystemExit(f"the tests of {name} fail without any mutant")

    def _call(self, *command: str | Path, seconds: float = MOST_SECONDS) -> int | None:
        process = subprocess.Popen(
            [str(part) for part in command],
            cwd=vendor.ROOT,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return None

    def _build(self) -> bool:
        source, made = self._package / "_framer.pyx", self._package.parent / "_framer.c"
        target = self._package / f"_framer{sysconfig.get_config_var('EXT_SUFFIX')}"
        compiler = shutil.which("gcc") or "cc"
        flags = ["-O0", "-w", "-shared", "-fPIC", f"-I{sysconfig.get_path('include')}"]
        if self._call(sys.executable, "-m", "cython", "-3", "-X", "freethreading_compatible=True", source, "-o", made):
            return False
        return self._call(compiler, *flags, made, "-o", target) == 0

    def _judge(self, file: str) -> str:
        tests = [TESTS / f"test_{name}.py" for name in COMPILED_TESTS[file].split()]
        options = ["-q", "-k", "not pure", "-p", "no:cacheprovider", "-o", "addopts="]
        runs = (
            (sys.executable, vendor.ROOT / "vectors" / "run.py", "--build", "compiled"),
            (sys.executable, "-m", "pytest", *options, *tests),
        )
        for command in runs:
            code = self._call(*command)
            if code != 0:
                return "timeout" if code is None else "killed"
        return "survived"

    def result_of(self, mutant: Mutant) -> str:
        path = self._package / mutant.file
        text = path.read_text(encoding="utf-8")
        path.write_text(mutant.apply(text), encoding="utf-8")
        try:
            return self._judge(mutant.file) if self._build() else "invalid"
        finally:
            path.write_text(text, encoding="utf-8")
