"""Coverage of the core by its own tests: python tools/coverage_gate.py pure|compiled [pytest's arguments]

pure      every line and every branch of the Python modules of the core, in the pure build
compiled  every line of the extension's source, compiled to report its lines; Cython tells no branches

Builds into a directory of its own. The tests are those of tests/core.txt without the slow ones, which read the same
lines again. Less than everything, or a failing test, is exit 1. Needs coverage, Cython and a C compiler.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from instrumented import BuildError, Recipe, build, environment
from vendor import ROOT, package_files

SLOW = ("linear", "most_twice", "test_memory", "memory_of", "any_length", "when_cut", "every_cutting", "none_in_c")
# What only type checkers and readers see, what subclasses replace, and the one line of CPython 3.10 alone.
PURE_LEFT_OUT = ("if TYPE_CHECKING:", r"class \w+\(Protocol\):", "raise NotImplementedError", "_timer = _Timer$")
# What runs while the extension is imported and its source is not known yet, or ends a `finally`, which Cython does not
# report; and what only failing memory reaches: tests/test_allocation_failures.py does, in processes of its own.
COMPILED_LEFT_OUT = (
    *(r"^ *cdef ", r"^def ", r"^ {4}(type|__match_args__) = ", r'^ {4}"""', "PyBuffer_Release"),
    *(
        "raise MemoryError",
        "except BaseException:",
        r"^ {12}self\._state = BROKEN",
        r"^ {12}self\._value = NULL",
        r"^ +raise$",
    ),
)
ALWAYS_TRUE = "if not TYPE_CHECKING:"


@dataclass(frozen=True)
class Gate:
    suffixes: tuple[str, ...]
    other_build: str
    recipe: Recipe
    settings: str
    left_out: tuple[str, ...]


GATES = {
    "pure": Gate(
        (".py",),
        "compiled",
        Recipe(flags=("-O1",)),
        "branch = True\nparallel = True\npatch = subprocess",
        PURE_LEFT_OUT,
    ),
    "compiled": Gate(
        (".pyx", ".pxi"),
        "pure",
        Recipe(flags=("-O0", "-DCYTHON_TRACE=1", "-DCYTHON_TRACE_NOGIL=1"), directives=(("linetrace", "True"),)),
        "plugins = Cython.Coverage",
        COMPILED_LEFT_OUT,
    ),
}


def core_tests() -> list[str]:
    """The files of tests/core.txt."""
    names = (ROOT / "tests" / "core.txt").read_text(encoding="utf-8").split()
    return [str(ROOT / name) for name in names]


def check(name: str, arguments: list[str]) -> int:
    gate = GATES[name]
    files = [f"glmsse/{file}" for file in package_files() if file.suffix in gate.suffixes]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        folder = build(Path(directory).resolve(), gate.recipe)
        settings = folder / "coverage.ini"
        lines = (
            "[run]",
            gate.settings,
            f"data_file = {folder}/data",
            "include =",
            *(f"    {folder / f}" for f in files),
        )
        left_out = (
            "[report]",
            f"partial_branches = {ALWAYS_TRUE}",
            "exclude_lines =",
            *(f"    {p}" for p in gate.left_out),
        )
        settings.write_text("\n".join((*lines, *left_out, "")), encoding="utf-8")
        coverage = [sys.executable, "-m", "coverage"]
        rc = f"--rcfile={settings}"
        selected = f"not {gate.other_build} and not {' and not '.join(SLOW)}"
        pytest = ["-m", "pytest", "-q", f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml"), "-o", "addopts="]
        chosen = arguments or ["-k", selected, *core_tests()]
        # From the folder, where the traced lines of the extension find their source.
        at_folder = {"cwd": folder, "env": environment(folder), "check": False}
        tests = subprocess.run(
            [*coverage, "run", rc, *pytest, "-p", "no:cacheprovider", "-p", "no:benchmark", *chosen], **at_folder
        )
        if list(folder.glob("data.*")):  # of subprocesses too, which do not find the source of the extension
            subprocess.run([*coverage, "combine", rc, "--quiet"], **at_folder)
        report = subprocess.run(
            [*coverage, "report", rc, "--show-missing", "--skip-covered", "--fail-under=100"], **at_folder
        )
    bad = tests.returncode or report.returncode
    print(f"{name}: {'FAILED' if bad else 'all covered'}, {time.monotonic() - begun:.0f} s")
    return 1 if bad else 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    parser.add_argument("gate", choices=sorted(GATES))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of pytest, in place of the list of tests")
    args = parser.parse_args(argv)
    try:
        return check(args.gate, args.arguments)
    except BuildError as problem:
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
