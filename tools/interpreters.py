"""The Pythons of this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

MINIMUM = (3, 10)  # requires-python


@dataclass(frozen=True)
class Interpreter:
    path: str
    implementation: str
    version: tuple[int, ...]
    tag: str

    @property
    def name(self) -> str:
        return f"{self.implementation} {'.'.join(map(str, self.version))}"

    def takes(self, wheel: Path) -> bool:
        return self.tag in wheel.name or "py3-none-any" in wheel.name


_ASK = """
import json, sys, sysconfig
major_minor = "%d%d" % sys.version_info[:2]
threads = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
tag = {"cpython": "-cp%s-cp%s%s-" % (major_minor, major_minor, threads)}.get(sys.implementation.name, "-none-")
print(json.dumps([sys.implementation.name, list(sys.version_info[:3]), tag]))
"""


def interpreters() -> list[Interpreter]:
    """Every Python 3 on this machine, one per implementation and minor version: of pyenv, then on the path."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    candidates = [str(path) for path in sorted(pyenv.glob("3*/bin/python3"))]
    names = [f"python3.{minor}" for minor in range(8, 16)] + ["python3.14t", "pypy3", "python3"]
    candidates += [path for path in map(shutil.which, names) if path]
    found: dict[tuple[str, tuple[int, ...], str], Interpreter] = {}
    for path in candidates:
        done = subprocess.run([path, "-c", _ASK], capture_output=True, check=False)
        if done.returncode == 0:
            implementation, version, tag = json.loads(done.stdout)
            key = (implementation, tuple(version[:2]), tag)
            found.setdefault(key, Interpreter(path, implementation, tuple(version), tag))
    return sorted(
        (one for one in found.values() if one.version >= (3, 8)), key=lambda one: (one.implementation, one.version)
    )
