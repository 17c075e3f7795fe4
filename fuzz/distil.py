"""Keeps of many inputs the few that run through everything: python -m fuzz.distil TARGET FILE-OR-FOLDER …

The corpus and the inputs named are run through the pure build; one that adds a step from line to line in the target's
sources is kept, short ones first, and the corpus is replaced by these. `--keep` keeps the corpus and adds to it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from . import corpora
from .builds import SOURCE, Builds, load_builds
from .targets import NAMES, Check, target

Step = tuple[str, int, int]


def steps_of(inputs: Iterable[bytes], check: Check) -> set[Step]:
    """The steps from line to line of our modules that a check makes over these inputs."""
    steps: set[Step] = set()
    folder = str(SOURCE)

    def enter(frame: FrameType, event: str, argument: object) -> Any:
        file = frame.f_code.co_filename
        if not file.startswith(folder):
            return None
        last = frame.f_lineno

        def within(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal last
            steps.add((file, last, frame.f_lineno))
            last = frame.f_lineno
            return within

        return within

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        for data in inputs:
            check(data)
    finally:
        sys.settrace(before)
    return steps


def distilled(inputs: Iterable[bytes], check: Check, kept: Iterable[bytes] = ()) -> list[bytes]:
    """What is kept already, and the inputs that add a step."""
    chosen = list(kept)
    seen = steps_of(chosen, check)
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        new = steps_of([data], check) - seen
        if new:
            chosen.append(data)
            seen |= new
    return chosen


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.distil", description=__doc__.split("\n\n")[0])
    parser.add_argument("target", choices=NAMES)
    parser.add_argument("paths", type=Path, nargs="*", metavar="FILE-OR-FOLDER")
    parser.add_argument("--keep", action="store_true", help="keep every input of the corpus")
    args = parser.parse_args(arguments)
    chosen = target(args.target)
    pure = load_builds().pure
    check = chosen.checker(Builds(pure, pure))
    corpus = corpora.read(chosen.CORPUS)
    fresh = [data[: chosen.MOST_BYTES] for data in corpora.gathered(args.paths)]
    kept = distilled(fresh if args.keep else [*corpus, *fresh], check, corpus if args.keep else ())
    corpora.write(chosen.CORPUS, kept)
    print(f"{chosen.CORPUS}: {len(kept)} of {len(set(corpus) | set(fresh))} inputs kept")
    return 0


if __name__ == "__main__":
    sys.exit(main())
