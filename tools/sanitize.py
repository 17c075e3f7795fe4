"""Runs the core with an extension that checks itself: python tools/sanitize.py ubsan|asan|bounds|memcheck [arguments]

ubsan     undefined behaviour, by the compiler: the core's unit tests
asan      undefined behaviour and every access outside of a buffer, by the compiler: the same tests
bounds    Cython's checks of indexes and of None, and the C library's of buffers: the same tests
memcheck  a release build under valgrind: a tenth of the vectors

The arguments go to pytest in place of the list of tests (with memcheck to vectors/run.py: its files).
Builds into a directory of its own. A report of any kind, a failing test or a missing tool is exit 1.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from instrumented import BuildError, Recipe, build, environment
from vendor import ROOT

REPORT = "report"  # what the sanitizers write goes to files of this name: a test could keep it from being seen
UNDEFINED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
CHECKED = (
    ("boundscheck", "True"),
    ("wraparound", "False"),
    ("initializedcheck", "True"),
    ("nonecheck", "True"),
)
# The pure twin has no extension to check, and one test does without C by design.
TESTS = ("-q", "-p", "no:cacheprovider", "-k", "not pure and not none_in_c", "@tests/core.txt")
PYTEST = (sys.executable, "-m", "pytest", "-o", "addopts=--strict-markers --strict-config --benchmark-disable")


@dataclass(frozen=True)
class Check:
    recipe: Recipe
    command: Callable[[list[str], Path], list[str]]
    environment: Callable[[str], dict[str, str]] = lambda reports: {}


def tests(arguments: list[str], folder: Path) -> list[str]:
    return [*PYTEST, *(arguments or TESTS)]


def under_valgrind(arguments: list[str], folder: Path) -> list[str]:
    valgrind = ["valgrind", "--quiet", "--error-exitcode=99", f"--suppressions={ROOT / 'tools' / 'libpython.supp'}"]
    files = arguments or [str(some_vectors(folder))]
    return [*valgrind, sys.executable, str(ROOT / "vectors" / "run.py"), "--build", "compiled", *files]


def some_vectors(folder: Path) -> Path:
    """Each tenth vector that is short, of all layers: valgrind takes fifty times as long."""
    lines = [line for path in sorted((ROOT / "vectors").glob("*.jsonl")) for line in path.read_text().splitlines()]
    sample = folder / "sample.jsonl"
    sample.write_text("\n".join([line for line in lines if len(line) < 2000][::10]) + "\n")
    return sample


def undefined(reports: str) -> dict[str, str]:
    return {"UBSAN_OPTIONS": f"print_stacktrace=1:log_path={reports}"}


def addresses(reports: str) -> dict[str, str]:
    """Its run-time must be there before the interpreter is. Leaks are looked for by tools/refcounts.py."""
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    options = f"detect_leaks=0:allocator_may_return_null=1:log_path={reports}"
    return {
        **undefined(reports),
        "LD_PRELOAD": " ".join(libraries),
        "ASAN_OPTIONS": options,
        "PYTHONMALLOC": "malloc",
    }


CHECKS = {
    "ubsan": Check(Recipe(flags=("-O1", *UNDEFINED)), tests, undefined),
    "asan": Check(Recipe(flags=("-O1", "-fno-omit-frame-pointer", "-fsanitize=address", *UNDEFINED)), tests, addresses),
    "bounds": Check(
        Recipe(flags=("-O2", "-D_FORTIFY_SOURCE=3", "-fstack-protector-strong", "-ftrapv"), directives=CHECKED), tests
    ),
    "memcheck": Check(Recipe(), under_valgrind, lambda reports: {"PYTHONMALLOC": "malloc"}),
}


def check(name: str, arguments: list[str], recipe: Recipe | None = None) -> int:
    """Builds, runs and looks for reports."""
    chosen = CHECKS[name]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        folder = build(Path(directory), recipe or chosen.recipe)
        built = time.monotonic()
        variables = environment(folder, chosen.environment(str(folder / REPORT)))
        done = subprocess.run(chosen.command(arguments, folder), cwd=ROOT, env=variables, check=False)
        reports = [path.read_text(errors="replace") for path in sorted(folder.glob(f"{REPORT}*"))]
    for report in reports:
        print(report)
    bad = bool(done.returncode or reports)
    print(
        f"{name}: {'FAILED' if bad else 'nothing reported'}, built in {built - begun:.0f} s, "
        f"ran in {time.monotonic() - built:.0f} s"
    )
    return 1 if bad else 0


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, usage=argparse.SUPPRESS
    )
    parser.add_argument("check", choices=sorted(CHECKS))
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="of pytest, or of vectors/run.py")
    args = parser.parse_args(argv)
    for tool in (os.environ.get("CC", "gcc").split()[0], *(["valgrind"] if args.check == "memcheck" else [])):
        if shutil.which(tool) is None:
            print(f"{tool} is not installed", file=sys.stderr)
            return 1
    try:
        return check(args.check, args.arguments)
    except BuildError as problem:
        print(problem, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
