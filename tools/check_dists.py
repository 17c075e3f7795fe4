"""Checks what tools/build.py made, and tries it on every interpreter here: python tools/check_dists.py dist

Contents and metadata first. Then each wheel, and the suite out of the source distribution, goes into a fresh
environment of each interpreter that it is for; an interpreter that is too old must be refused.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from interpreters import MINIMUM, Interpreter, interpreters

SOURCES = {
    "src/glmsse/_framer.pyx",
    "src/glmsse/_lane.pxi",
    "src/glmsse/_framer.pyi",
    "src/glmsse/py.typed",
    "tests/conftest.py",
}
IN_WHEEL = {
    "glmsse/py.typed",
    "glmsse/_framer.pyi",
    "glmsse/_framer.pyx",
    "glmsse/_lane.pxi",
    "glmsse/_framer_py.py",
    "glmsse/report/templates/style.css",
}


def wrong_contents(path: Path) -> Iterator[str]:
    """What a distribution has too much or too little of."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
        needed, compiled = IN_WHEEL, any(re.search(r"glmsse/_framer\..*(so|pyd)$", name) for name in names)
        if compiled == ("none-any" in path.name):
            yield "an extension in the pure wheel" if compiled else "no extension in a binary wheel"
        strangers = {name for name in names if not name.startswith(("glmsse/", "glmsse-"))}
    else:
        with tarfile.open(path) as archive:
            names = {name.partition("/")[2] for name in archive.getnames()}
        needed, strangers = SOURCES, {name for name in names if name.endswith((".so", ".pyd", ".pyc"))}
    yield from (f"{name} is missing" for name in sorted(needed - names))
    generated = {name for name in names if name.endswith(".c") and not name.startswith("fuzz/")}
    yield from (f"{name} has no place here" for name in sorted(strangers | generated))


def check_contents(distributions: Iterable[Path]) -> None:
    paths = list(distributions)
    wrong = [f"{path.name}: {problem}" for path in paths for problem in wrong_contents(path)]
    if wrong:
        sys.exit("\n".join(wrong))
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, paths)], check=True)
    wheels = [str(path) for path in paths if path.suffix == ".whl"]
    subprocess.run([sys.executable, "-m", "check_wheel_contents", *wheels], check=True)


def _environment(interpreter: Interpreter, directory: Path) -> str:
    """The Python of a fresh environment."""
    subprocess.run([interpreter.path, "-m", "venv", str(directory)], check=True)
    return str(directory / ("Scripts" if os.name == "nt" else "bin") / "python")


def _pip(python: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def refused(interpreter: Interpreter, wheel: Path, work: Path) -> bool:
    """An interpreter that is too old says so, and installs nothing."""
    done = _pip(_environment(interpreter, work), "--no-deps", str(wheel))
    return done.returncode != 0 and "requires a different Python" in done.stderr


def suite_passes(interpreter: Interpreter, wheel: Path, sdist: Path, work: Path, *, quick: bool) -> bool:
    """Installs the wheel beside the tests of the source distribution, and runs them: some without any extra, or all."""
    python = _environment(interpreter, work / "environment")
    wanted = [str(wheel), "pytest>=8.2"] if quick else [f"{wheel}[test]"]
    installed = _pip(python, *wanted)
    if installed.returncode:
        print(installed.stdout, installed.stderr, sep="\n")
        return False
    with tarfile.open(sdist) as archive:
        archive.extractall(work)
    (tree,) = work.glob("glmsse-*")
    shutil.rmtree(tree / "src")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GLMSSE_", "PYTHON"))}
    if "none-any" not in wheel.name:
        environment["GLMSSE_BUILD_EXTENSION"] = "yes"
    # The quick ones need pytest alone, so no option of a plugin.
    options = ["-o", "addopts=", "@tests/quick.txt"] if quick else ["tests"]
    return (
        subprocess.run([python, "-m", "pytest", "-q", *options], cwd=tree, env=environment, check=False).returncode == 0
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="tools/check_dists.py", description=__doc__.split("\n\n")[0])
    parser.add_argument("distributions", type=Path, help="the directory that tools/build.py wrote")
    parser.add_argument("--quick", action="store_true", help="only the tests of framing, chat and verdicts")
    parser.add_argument("--contents", action="store_true", help="check the files and try nothing")
    args = parser.parse_args()
    paths = sorted(path for path in args.distributions.iterdir() if path.name.endswith((".whl", ".tar.gz")))
    check_contents(paths)
    (sdist,) = [path for path in paths if path.suffix != ".whl"]
    failed = 0
    for interpreter in [] if args.contents else interpreters():
        for wheel in [path for path in paths if path.suffix == ".whl" and interpreter.takes(path)]:
            print(f"== {interpreter.name}, {wheel.name}", flush=True)
            with tempfile.TemporaryDirectory() as directory:
                work = Path(directory)
                if interpreter.version < MINIMUM:
                    passed = refused(interpreter, wheel, work)
                    print("refused: too old" if passed else "not refused", flush=True)
                else:
                    passed = suite_passes(interpreter, wheel, sdist, work, quick=args.quick)
            failed += not passed
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
