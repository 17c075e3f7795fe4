"""`glmsse gate`: what a release must have seen, replayed and judged."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from ..capture.gate import MANIFEST, Checked, GateResult, UnfitGate, run_gate, update_gate
from ..capture.junit import junit_xml
from ..capture.recording import write_whole
from ..capture.replaying import BUILDS, ReplayFailed
from ..capture.starter import write_starter
from ..capture.states import STATES
from .outcome import ACCEPTED, EXIT_CODES, NOT_ACCEPTED, UNREADABLE, Unreadable
from .terminal import safe, show_table

EPILOG = f"""\
DIR holds recordings and {MANIFEST}: what each must come to, how it is read, and which states it stands for. Every
recording is replayed whole, in single bytes, as it was recorded and at random places, by both builds. A state that no
fixture shows fails the gate, and so does a build that is not installed. --update drops fixtures whose body is gone.
--init writes a complete starter set; put your own recordings in its place, see docs/gate.md. Exit codes are those of
check: 0 passed, 1 failed, 2 unreadable, 3 and 4 for a fixture that became a protocol error or went over a limit.
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "gate",
        help="replay a directory of recordings against what is expected of them",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", metavar="DIR", help=f"recordings and their {MANIFEST}")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--init", action="store_true", help="write a starter set into DIR, and run it")
    what.add_argument("--update", action="store_true", help="expect from now on what comes today; needs --reason")
    parser.add_argument("--reason", metavar="TEXT", help=f"why expectations change; kept in {MANIFEST}")
    parser.add_argument("--json", action="store_true", help="print one JSON object (default: tables)")
    parser.add_argument("--junit", metavar="FILE", help="write JUnit XML too (default: none)")
    builds = ",".join(BUILDS)
    parser.add_argument(
        "--builds",
        type=_builds,
        default=BUILDS,
        metavar="LIST",
        help=f"that must take part, such as pure where no extension is installed (default: {builds})",
    )
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random cuttings (default: 0)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if args.update != (args.reason is not None):
        raise Unreadable("--update and --reason TEXT go together")
    try:
        if args.init:
            written = write_starter(args.directory)
            print(f"glmsse: {len(written)} fixtures written", file=sys.stderr)
        elif args.update:
            updated = update_gate(args.directory, args.reason, seed=args.seed, builds=args.builds)
            for what, names in (("new expectations", updated.changed), ("dropped", updated.dropped)):
                for name in names:
                    print(f"glmsse: {what}: {safe(name)}", file=sys.stderr)
        result = run_gate(args.directory, seed=args.seed, builds=args.builds)
        if args.junit is not None:
            write_whole(Path(args.junit), junit_xml(result))
    except UnfitGate as problem:
        raise Unreadable(f"{safe(args.directory)}: {problem}") from None
    except ReplayFailed as problem:
        raise Unreadable(str(problem)) from None
    except OSError as problem:
        raise Unreadable(f"{safe(str(problem.filename))}: {problem.strerror or 'cannot be written'}") from None
    if args.json:
        print(json.dumps(result.to_dict()))
    else:
        _show(result)
    return _exit_code(result)


def _builds(text: str) -> tuple[str, ...]:
    wanted = text.split(",")
    if not set(wanted) <= set(BUILDS):
        raise argparse.ArgumentTypeError(f"takes {' or '.join(BUILDS)}, or both with a comma between")
    return tuple(build for build in BUILDS if build in wanted)


def _exit_code(result: GateResult) -> int:
    if any(checked.unreadable for checked in result.fixtures):
        return UNREADABLE
    failed = [EXIT_CODES.get(checked.outcome, NOT_ACCEPTED) for checked in result.fixtures if checked.problems]
    return max((NOT_ACCEPTED, *failed)) if not result.passed else ACCEPTED


def _show(result: GateResult) -> None:
    show_table(("fixture", "result", "outcome", "code", "cuttings", "covers"), [_row(item) for item in result.fixtures])
    print()
    covered = f"{len(result.states) - len(result.missing)} of {len(result.states)} states are covered"
    builds = " and ".join(result.builds)
    for checked in result.fixtures:
        for problem in checked.problems:
            print(f"FAILED {safe(checked.name)}: {safe(problem)}")
        for change in checked.drift:
            print(f"drift  {safe(checked.name)}: {safe(change)}")
    for state in result.missing:
        print(f"FAILED state {state}: no fixture covers it ({STATES[state][0]})")
    for problem in result.problems:
        print(f"FAILED {safe(problem)}")
    outcome = "passed" if result.passed else "FAILED"
    print(f"{outcome}: {len(result.fixtures)} fixtures in the {builds} build, {covered}")


def _row(checked: Checked) -> tuple[str, ...]:
    return (
        checked.name,
        "failed" if checked.problems else "passed",
        checked.outcome,
        str((checked.facts or {"verdict": {"code": None}})["verdict"]["code"] or "-"),
        str(checked.cuttings),
        ", ".join(checked.covers) or "-",
    )
