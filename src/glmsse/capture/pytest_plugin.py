"""One pytest test for each fixture and each state of a gate: `pytest -p glmsse.capture.pytest_plugin DIR`.

A `gate.json` anywhere below what pytest collects is taken.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from .gate import MANIFEST, GateResult, Manifest, UnfitGate, run_gate


class GateFile(pytest.File):
    """A manifest. The gate runs once, when its first test does."""

    _result: GateResult | None = None

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
            self._result = run_gate(self.path.parent, store=False)
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


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> GateFile | None:
    """Takes manifests."""
    return GateFile.from_parent(parent, path=file_path) if file_path.name == MANIFEST else None
