"""Fuzzes one target, after all inputs of its corpus: python -m fuzz.run framer --seconds 60.

What was executed goes into the ledger every few minutes, so that a run may be cut off. An input over which readings
differ ends the run with exit 1 and is kept as a file, which `--input` reads again.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from datetime import datetime, timezone
from pathlib import Path

from . import corpora, ledger
from .builds import ROOT, load_builds, source_hash
from .drivers import Driver
from .drivers.libfuzzer import LibFuzzer
from .drivers.loop import Loop
from .targets import NAMES, target

WORK = ROOT / "build" / "fuzz"
PART_SECONDS = 240
DRIVERS = ("loop", "libfuzzer", "atheris")
FOREVER = 2**62


def main(arguments: list[str] | None = None) -> int:
    args = _parser().parse_args(arguments)
    if args.ledger:
        print(ledger.table(args.ledger_file))
        return 0
    if args.target is None:
        _parser().error("which target?")
    check = target(args.target).checker(load_builds())
    if args.input:
        for data in corpora.gathered(args.input):
            check(data)
        return 0
    inputs = corpora.read(target(args.target).CORPUS)
    for data in inputs:
        check(data)
    print(f"{args.target}: {len(inputs)} inputs of the corpus are clean", flush=True)
    return _fuzz(args)


def _fuzz(args: argparse.Namespace) -> int:
    """Runs part after part until the executions or the seconds asked for are reached."""
    name, work = args.target, args.work / args.target
    executions = args.executions or FOREVER
    seconds = args.seconds or (60.0 if args.executions is None else float("inf"))
    driver = _driver(args.driver, name, args.seed, work)
    hash, commit = source_hash(target(name).SOURCES), ledger.commit()
    run = f"{datetime.now(timezone.utc):%Y-%m-%dT%H:%M:%SZ} {name}"
    done, spent = 0, 0.0
    while done < executions and spent < seconds:
        start = time.monotonic()
        part = driver.run(executions - done, min(PART_SECONDS, seconds - spent))
        took = time.monotonic() - start
        done, spent = done + part.executions, spent + took
        result = part.found.name if part.found else ledger.CLEAN
        ledger.append(
            args.ledger_file,
            ledger.Entry(run, name, args.driver, part.executions, round(took, 1), args.seed, commit, hash, result),
        )
        print(f"{name}: {done:,} executions in {spent:,.0f} s, {done / spent:,.0f} a second", flush=True)
        if part.found:
            print(f"found: {part.found}", file=sys.stderr)
            return 1
    return 0


def _driver(kind: str, name: str, seed: int, work: Path) -> Driver:
    if kind == "loop":
        chosen = target(name)
        return Loop(chosen, chosen.checker(load_builds()), seed, work / "found")
    return LibFuzzer(kind, name, seed, work / kind, work / "found")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fuzz.run", description=__doc__.split("\n\n")[0])
    parser.add_argument("target", nargs="?", choices=NAMES, help="what to fuzz")
    parser.add_argument("--executions", type=int, metavar="N", help="stop after so many")
    parser.add_argument("--seconds", type=float, metavar="N", help="stop after so long (default 60, or --executions)")
    parser.add_argument("--driver", choices=DRIVERS, default="loop", help="what makes the inputs (default loop)")
    parser.add_argument(
        "--seed", type=int, default=secrets.randbits(31), metavar="N", help="of the driver (default: a new one)"
    )
    parser.add_argument("--input", type=Path, nargs="+", metavar="FILE", help="only check these inputs")
    parser.add_argument("--work", type=Path, default=WORK, metavar="DIR", help="for what is found (default build/fuzz)")
    parser.add_argument("--ledger", action="store_true", help="print the executions so far and stop")
    parser.add_argument(
        "--ledger-file", type=Path, default=ledger.LEDGER, metavar="FILE", help="instead of fuzz/ledger.jsonl"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
