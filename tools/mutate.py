"""Mutation testing of the core: `python tools/mutate.py [--sample N | --all] [FILE …]`.

Changes one operator, number, word or statement at a time and looks whether a test notices. Python modules run in the
pure build, each mutant against the tests that run its lines, in forked processes; `.pyx` and `.pxi` files are compiled
again for each mutant and read the vectors, then the tests of the compiled build. Works on a copy, touches no file here.

The score is killed / (killed + survived); a mutant that is no valid program does not count. Survivors that change
nothing anybody can see are in survivors.toml with the reason, and are shown apart. Needs Python 3.11, pytest, coverage
and hypothesis; for the extension also Cython and gcc. Exit 1 for a survivor without a reason.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import tomllib

import vendor
from mutants import Mutant, mutants_of
from mutation_compiled import CompiledRun
from mutation_pure import PureRun

SURVIVORS = Path(__file__).with_name("survivors.toml")
CYTHON = (".pyx", ".pxi")


def explained() -> dict[tuple[str, str, str], str]:
    """(file, line, mutated line) → why no test can notice it."""
    entries = tomllib.loads(SURVIVORS.read_text(encoding="utf-8"))["survivor"]
    return {(entry["file"], entry["line"], entry["mutant"]): entry["why"] for entry in entries}


def chosen(files: list[str], sample: int | None, seed: int) -> list[Mutant]:
    """The mutants to run, drawn from all of these files together."""
    known = {str(name): vendor.SOURCE / name for name in vendor.package_files() if name.suffix in (".py", *CYTHON)}
    unknown = set(files).difference(known)
    if unknown:
        raise SystemExit(f"not in the core: {', '.join(sorted(unknown))}")
    wanted = files or [name for name in known if name.endswith(".py")]
    mutants = [mutant for name in sorted(wanted) for mutant in mutants_of(known[name], name)]
    print(f"{len(mutants)} mutants of {len(wanted)} files", flush=True)
    if sample is None or sample >= len(mutants):
        return mutants
    return sorted(random.Random(seed).sample(mutants, sample), key=lambda mutant: (mutant.file, mutant.start))


def results_in(log: Path) -> dict[tuple[str, int, int, str], str]:
    """What an earlier run found, so that a long one can go on where it stopped."""
    if not log.exists():
        return {}
    lines = [json.loads(line) for line in log.read_text(encoding="utf-8").splitlines()]
    return {(one["file"], one["start"], one["stop"], one["new"]): one["result"] for one in lines}


def run(mutants: list[Mutant], work: Path, keep: Path) -> Iterator[tuple[Mutant, str]]:
    """Each mutant with killed, timeout, survived or invalid."""
    log = keep / "results.jsonl"
    results = results_in(log)
    runs: dict[bool, PureRun | CompiledRun] = {}
    for mutant in mutants:
        key = (mutant.file, mutant.start, mutant.stop, mutant.new)
        if key not in results:
            compiled = mutant.file.endswith(CYTHON)
            if compiled not in runs:
                folder = work / ("compiled" if compiled else "pure")
                folder.mkdir()
                runs[compiled] = (CompiledRun if compiled else PureRun)(folder, keep)
            results[key] = runs[compiled].result_of(mutant)
            with log.open("a", encoding="utf-8") as out:
                names = ("file", "start", "stop", "new", "result")
                print(json.dumps(dict(zip(names, (*key, results[key]), strict=True))), file=out)
        yield mutant, results[key]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="files of the core, as _lane.pxi (default: all Python modules)")
    parser.add_argument("--sample", type=int, default=100, metavar="N", help="so many of the mutants (default: 100)")
    parser.add_argument("--seed", type=int, default=1, help="which ones (default: 1)")
    parser.add_argument("--all", action="store_true", help="all mutants; hours")
    parser.add_argument("--keep", type=Path, help="keep what was found here, and go on from it; for unchanged files")
    parser.add_argument("--least", type=float, default=0, metavar="PERCENT", help="least score (default: 0)")
    args = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # and the process at work with us
    begun = time.monotonic()
    mutants = chosen(args.files, None if args.all else args.sample, args.seed)
    reasons = explained()
    counts: dict[str, Counter[str]] = {}
    unexplained = []
    with tempfile.TemporaryDirectory(prefix="mutate-") as name:
        work = Path(name).resolve()
        keep = args.keep.resolve() if args.keep else work
        keep.mkdir(parents=True, exist_ok=True)
        for mutant, result in run(mutants, work, keep):
            why = reasons.get((mutant.file, mutant.old_line, mutant.new_line))
            if result == "survived" and why is not None:
                result = "explained"
            elif result == "survived":
                unexplained.append(mutant)
                print(f"SURVIVED {mutant}", flush=True)
            counts.setdefault(mutant.file, Counter())[result] += 1
    total: Counter[str] = Counter()
    for file, count in sorted(counts.items()):
        print(f"{file:24} {', '.join(f'{number} {result}' for result, number in sorted(count.items()))}")
        total += count
    killed = total["killed"] + total["timeout"]
    judged = killed + total["survived"] + total["explained"]
    score = 100 * killed / judged if judged else 100.0
    print(f"{killed} of {judged} killed ({total['timeout']} by time), score {score:.1f} %, {total['invalid']} invalid")
    print(f"{total['explained']} survivors explained, {total['survived']} not; {time.monotonic() - begun:.0f} s")
    return 1 if unexplained or score < args.least else 0


if __name__ == "__main__":
    if not hasattr(os, "fork"):
        sys.exit("this needs fork")
    sys.exit(main())
