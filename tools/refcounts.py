"""Looks for leaks in a debug interpreter: python tools/refcounts.py [--python PYTHON] [--rounds N]

Builds the extension for an interpreter that counts references (Debian: python3.11-dbg) and lets it read the vectors,
faulty ones among them, streams that are abandoned or misused, and some while allocations fail, round after round,
compiled and pure. After the first rounds the totals of references and of allocated blocks must not grow any more. A
missing interpreter is exit 1.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from instrumented import BuildError, Recipe, build, environment
from vendor import ROOT

ROUND = """
import copy, gc, sys
import _testcapi
from array import array
sys.path.insert(0, sys.argv[1])
import run
build, rounds = sys.argv[2], int(sys.argv[3])
package = run.import_package("glmsse", build)
from glmsse.scenarios import SCENARIOS
reader = run.Reader(package)
vectors = [(v, run.body_of(v) if v["layer"] != "glm_text" else run.body_of(v).decode())
           for v in run.load(sorted(run.Path(sys.argv[1]).glob("*.jsonl"))) if len(v.get("body", "")) < 4000]
vectors = vectors[::int(sys.argv[4])]


def starve(body, number):
    '''Reads while the n-th allocation fails.'''
    stream = framer = None
    _testcapi.set_nomemory(number, number + 1)
    try:
        stream, framer = package.ChatStream(), package.SSEFramer()
        for at in range(0, 300, 100):
            stream.feed(body[at : at + 100])
            framer.feed(body[at : at + 100])
    except (MemoryError, package.GlmsseError):
        pass
    finally:
        _testcapi.remove_mem_hooks()


def misuse(body):
    framer = package.SSEFramer()
    for bad in (None, "text", memoryview(body)[::2]):
        try:
            framer.feed(bad)
        except package.MisuseError:
            pass
    try:
        framer.feed(body[: len(body) // 2])  # and abandoned with a tail, or met a fault
    except package.GlmsseError:
        pass
    stream = package.ChatStream(digest=True)
    stream.feed(bytearray(body[: len(body) // 3]))
    stream.snapshot
    for call in (stream.forget, lambda: copy.copy(stream), lambda: stream.add(3), lambda: stream.feed(3)):
        try:
            call()
        except package.MisuseError:
            pass
    return stream.close(KeyboardInterrupt()).code


def one_round():
    for vector, body in vectors:
        for _, pieces in (("whole", [body]), ("single", [body[at : at + 1] for at in range(len(body))])):
            reader.read(vector, pieces)
        if isinstance(body, bytes):
            misuse(body)
    for number in range(0, 200, 3):
        starve(SCENARIOS["tool"].body, number)


# Room is made beforehand: what is counted must not hold the counts.
references, blocks = (array("q", bytes(8 * rounds)) for _ in "12")
for number in range(rounds):
    one_round()
    gc.collect()
    sys._clear_type_cache()
    references[number] = sys.gettotalrefcount()
    blocks[number] = sys.getallocatedblocks()
for number in range(1, rounds):
    more = references[number] - references[number - 1], blocks[number] - blocks[number - 1]
    print(build, "round", number, "references", more[0], "blocks", more[1], flush=True)
print(len(vectors))
"""
WARM = 3  # rounds in which caches fill: of the interpreter, of free lists, of specialised code


def grows(output: str, rounds: int) -> list[str]:
    """The lines of the settled rounds, if every one of them grew: a leak is there each time, noise is not."""
    lines = output.splitlines()[WARM : rounds - 1]
    deltas = [tuple(map(int, line.split()[4::2])) for line in lines]
    grown = any(all(delta[column] > 0 for delta in deltas) for column in (0, 1))
    if not lines:
        return ["no round was counted"]
    return lines if grown else []


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", default="python3.11-dbg", help="a debug build of CPython (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=8, help="of each build, at least 6 (default: %(default)s)")
    parser.add_argument("--every", type=int, default=1, help="take each n-th vector only (default: all)")
    args = parser.parse_args(argv)
    python = shutil.which(args.python)
    asks = "import sys; sys.exit(not hasattr(sys, 'gettotalrefcount'))"
    if python is None or subprocess.run([python, "-c", asks], check=False).returncode:
        print(f"{args.python} is not here, or no debug build (Debian: python3.11-dbg)", file=sys.stderr)
        return 1
    bad = False
    with tempfile.TemporaryDirectory() as directory:
        try:
            folder = build(Path(directory), Recipe(python=python, flags=("-O1", "-fwrapv")))
        except BuildError as problem:
            print(problem, file=sys.stderr)
            return 1
        for kind in ("compiled", "pure"):
            begun = time.monotonic()
            done = subprocess.run(
                [python, "-c", ROUND, str(ROOT / "vectors"), kind, str(args.rounds), str(args.every)],
                env=environment(folder),
                capture_output=True,
                text=True,
                check=False,
            )
            grown = [done.stdout + done.stderr] if done.returncode else grows(done.stdout, args.rounds)
            bad |= bool(grown)
            print(*grown, sep="\n", end="\n" if grown else "")
            count = done.stdout.split()[-1:] or ["no"]
            said = "FAILED" if done.returncode else "GROWS" if grown else "flat"
            print(f"{kind}: {said} over {args.rounds} rounds of {count[0]} vectors, {time.monotonic() - begun:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
