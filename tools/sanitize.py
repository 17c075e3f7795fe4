"""Runs the core with an extension that checks itself: python tools/sanitize.py ubsan|asan|bounds|memcheck [arguments]

ubsan     undefined behaviour, by the compiler: the core's unit tests
asan      undefined behaviour and every access outside of a buffer, by the compiler: the same tests
bounds    Cython's checks of indexes, None and overflow, and the C library's of buffers: the same tests
memcheck  the release build under valgrind, which needs no other build: the vectors, and every fault of the framer

The arguments go to pytest in place of the list of tests (or, with memcheck, to vectors/run.py in place of its files).
Builds into a directory of its own. A report of any kind, a failing test or a missing tool is exit 1.
"""

from __future__ import annotations

import argparse
import os
import re
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

REPORT = re.compile(rb"runtime error: |ERROR: AddressSanitizer|buffer overflow detected|Fatal Python error")
UNDEFINED = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
CHECKED = (
    ("boundscheck", "True"),
    ("wraparound", "False"),
    ("initializedcheck", "True"),
    ("nonecheck", "True"),
    ("overflowcheck", "True"),
)
# The pure twin has no extension to check, and one test does without C by design.
TESTS = ("-q", "-p", "no:cacheprovider", "-k", "not pure and not none_in_c", "@tests/core.txt")
PYTEST = (sys.executable, "-m", "pytest", "-o", "addopts=--strict-markers --strict-config --benchmark-disable")


@dataclass(frozen=True)
class Check:
    recipe: Recipe
    command: Callable[[list[str], Path], list[str]]
    environment: Callable[[], dict[str, str]] = dict


def tests(arguments: list[str], folder: Path) -> list[str]:
    return [*PYTEST, *(arguments or TESTS)]


def under_valgrind(arguments: list[str], folder: Path) -> list[str]:
    valgrind = ["valgrind", "--quiet", "--error-exitcode=99", "--child-silent-after-fork=yes"]
    suppressions = f"--suppressions={ROOT / 'tools' / 'libpython.supp'}"
    files = arguments or [str(ROOT / "vectors" / "framing.jsonl"), str(ROOT / "vectors" / "chat.jsonl")]
    return [*valgrind, suppressions, sys.executable, str(ROOT / "vectors" / "run.py"), "--build", "compiled", *files]


def preloaded() -> dict[str, str]:
    """The run-time of the address sanitizer must be there before the interpreter is."""
    libraries = [
        subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    options = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "PYTHONMALLOC": "malloc"}
    return {"LD_PRELOAD": " ".join(libraries), **options}


CHECKS = {
    "ubsan": Check(Recipe(flags=("-O1", *UNDEFINED)), tests, lambda: {"UBSAN_OPTIONS": "print_stacktrace=1"}),
    "asan": Check(Recipe(flags=("-O1", "-fno-omit-frame-pointer", "-fsanitize=address", *UNDEFINED)), tests, preloaded),
    "bounds": Check(
        Recipe(flags=("-O2", "-D_FORTIFY_SOURCE=3", "-fstack-protector-strong", "-ftrapv"), directives=CHECKED), tests
    ),
    "memcheck": Check(Recipe(), under_valgrind, lambda: {"PYTHONMALLOC": "malloc"}),
}


def check(name: str, arguments: list[str], recipe: Recipe | None = None) -> int:
    """Builds, runs and looks for reports; what the run printed is printed."""
    chosen = CHECKS[name]
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        folder = build(Path(directory), recipe or chosen.recipe)
        built = time.monotonic()
        log = folder / "output"
        with log.open("wb") as output:
            done = subprocess.run(
                chosen.command(arguments, folder),
                cwd=ROOT,
                env=environment(folder, chosen.environment()),
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
            )
        said = log.read_bytes()
    sys.stdout.write(said.decode(errors="replace"))
    bad = bool(done.returncode) or REPORT.search(said) is not None
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
