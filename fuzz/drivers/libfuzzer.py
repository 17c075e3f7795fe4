"""libFuzzer in a process of its own for each part of a run, by our module or by that of atheris."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from .. import corpora
from ..builds import ROOT
from ..targets import target
from . import Part
from .build import built

EXECUTED = re.compile(r"^stat::number_of_executed_units:\s*(\d+)$", re.MULTILINE)
HANGS_AFTER = 30
MOST_RUNS = 2**31 - 1  # what its option takes


class LibFuzzer:
    """Keeps the corpus that libFuzzer finds in a folder, from which the next part goes on."""

    def __init__(self, engine: str, name: str, seed: int, work: Path, found: Path) -> None:
        chosen = target(name)
        work.mkdir(parents=True, exist_ok=True)
        found.mkdir(parents=True, exist_ok=True)
        corpora.spread(corpora.read(chosen.CORPUS), work / "corpus")
        dictionary = work / "tokens"
        dictionary.write_text("".join(f"{_quoted(token)}\n" for token in chosen.TOKENS), "ascii")
        self._command = [sys.executable, "-m", "fuzz.drivers.child", engine, name, str(work / "corpus")]
        self._command += [f"-max_len={chosen.MOST_BYTES}", f"-dict={dictionary}", f"-timeout={HANGS_AFTER}"]
        self._command += [f"-artifact_prefix={found}/", "-print_final_stats=1", "-verbosity=1"]
        self._environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "0"}
        if engine == "libfuzzer":
            self._environment["PYTHONPATH"] = f"{built()}{os.pathsep}{ROOT}"
        self._seed = seed
        self._found = found

    def run(self, executions: int, seconds: float) -> Part:
        before = set(self._found.iterdir())
        command = [*self._command, f"-runs={min(executions, MOST_RUNS)}", f"-max_total_time={max(1, round(seconds))}"]
        command.append(f"-seed={self._seed % 2**31 + 1}")
        self._seed += 1
        ran = subprocess.run(command, cwd=ROOT, env=self._environment, stderr=subprocess.PIPE, check=False)
        log = ran.stderr.decode("utf-8", "replace")
        counted = EXECUTED.search(log)
        new = sorted(set(self._found.iterdir()) - before)
        if new or ran.returncode != 0 or counted is None:
            print(log[-4000:], file=sys.stderr)
            if not new:
                raise SystemExit(f"libFuzzer ended with {ran.returncode} and no finding")
        return Part(int(counted[1]) if counted else 0, new[0] if new else None)


def _quoted(token: bytes) -> str:
    """A token as libFuzzer's dictionary spells it."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in token) + '"'
