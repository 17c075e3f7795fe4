"""One pytest test for each fixture and each state of a gate: `pytest -p glmsse.capture.pytest_plugin DIR`.

A `gate.json` anywhere below what pytest collects is taken. `--gate-builds pure` runs without the extension.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .gate import MANIFEST, GateResult, Manifest, UnfitGate, run_gate
from .replaying import BUILDS


class GateFile(pytest.File):
    """A manifest. The gate runs once, when its first test does."""

    _result: GateResult | Exception | None = None

    def collect(self) -> Iterator[pytest.Item]:
        try:
            manifest = Manifest.load(self.path.parent)
        except UnfitGate as problem:
            raise self.CollectError(str(problem)) from None
        for name in sorted(manifest.fixtures):
            yield GateItem.from_parent(self, name=f"fixture {name}")
        for state in manifest.states:
            yield GateItem.from_parent(self, name=f"state {state}")
        yield GateItem.from_parent(self, name="gate")

    def problems(self, name: str) -> tuple[str, ...]:
        """What is wrong with one test."""
        if self._result is None:
            try:
                builds = str(self.config.getoption("gate_builds")).split(",")
                self._result = run_gate(self.path.parent, store=False, builds=builds)
            except Exception as problem:  # which every test shows
                self._result = problem
        if isinstance(self._result, Exception):
            raise self._result
        kind, _, what = name.partition(" ")
        if kind == "fixture":
            return next(checked.problems for checked in self._result.fixtures if checked.name == what)
        if kind == "state":
            return () if self._result.states[what] else ("no fixture covers it",)
        return self._result.problems


class GateItem(pytest.Item):
    """A fixture, a state, or the gate as a whole."""

    parent: GateFile

    def runtest(self) -> None:
        problems = self.parent.problems(self.name)
        if problems:
            raise _Failed("\n".join(problems))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, _Failed):
            return str(excinfo.value)
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name


class _Failed(Exception):
    pass


def pytest_addoption(parser: pytest.Parser) -> None:
    """The builds that must take part."""
    words = f"builds that must take part in gates (default: {','.join(BUILDS)})"
    parser.addoption("--gate-builds", default=",".join(BUILDS), metavar="LIST", help=words)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> GateFile | None:
    """Takes manifests."""
    return GateFile.from_parent(parent, path=file_path) if file_path.name == MANIFEST else None
