"""Mutants of the extension, each compiled without optimisation, against vectors and tests. Used by mutate.py."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import vendor
from instrumented import BuildError, Recipe, build, environment
from mutants import Mutant

TESTS = {
    "_framer.pyx": "framing limits fast_lane chat forget memory framing_properties",
    "_lane.pxi": "fast_lane chat tolerances stream_cases limits forget chat_properties",
    "_plain_json.pxi": "plain_json strict_json verdict chat fast_lane",
}
"""What reads a file most closely; the vectors come first."""
SLOW = ("pure", "linear", "most_twice", "any_length")
RECIPE = Recipe(flags=("-O0", "-w"))
MOST_SECONDS = 1800


class CompiledRun:
    """Runs mutants of `.pyx` and `.pxi` files in a copy of the package."""

    def __init__(self, work: Path, keep: Path) -> None:
        self._folder = work
        self._environment = environment(work, {"HYPOTHESIS_STORAGE_DIRECTORY": str(work / "hypothesis")})
        self._seconds: dict[str, float] = {}
        """How long the tests of a file may take."""

    def _check(self, file: str) -> None:
        """The tests must pass without a mutant."""
        build(self._folder, RECIPE)
        begun = time.monotonic()
        if self._judge(file, MOST_SECONDS) != "survived":
            raise SystemExit(f"the tests of {file} fail without a mutant, or take too long")
        self._seconds[file] = 60 + 3 * (time.monotonic() - begun)
        print(f"the tests of {file} take {time.monotonic() - begun:.0f} s", flush=True)

    def _call(self, seconds: float, *command: str | Path) -> int | None:
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            cwd=vendor.ROOT,
            env=self._environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _judge(self, file: str, seconds: float) -> str:
        options = ["-x", "-q", "-k", f"not {' and not '.join(SLOW)}", "-p", "no:cacheprovider", "-o", "addopts="]
        tests = [vendor.ROOT / "tests" / f"test_{name}.py" for name in TESTS[file].split()]
        for command in (
            [vendor.ROOT / "vectors" / "run.py", "--build", "compiled"],
            ["-m", "pytest", "-p", "no:benchmark", "--hypothesis-seed=0", *options, *tests],
        ):
            code = self._call(seconds, *command)
            if code != 0:
                return "timeout" if code is None else "killed"
        return "survived"

    def result_of(self, mutant: Mutant) -> str:
        if mutant.file not in self._seconds:
            self._check(mutant.file)
        try:
            build(self._folder, replace(RECIPE, edits=((mutant.file, mutant.apply),)))
        except BuildError:
            return "invalid"
        return self._judge(mutant.file, self._seconds[mutant.file])
