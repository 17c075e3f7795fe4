"""`glmsse redact`: recordings that may be shown to others."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from ..capture import Recording, UnfitRecording
from ..capture.recording import BODY_SUFFIX, sidecar_path, write_whole
from ..capture.redact import CannotRedact, kept_fields, redact_with
from ..errors import MisuseError
from .outcome import ACCEPTED, UNREADABLE, Unreadable
from .progress import track
from .terminal import safe

EPILOG = """\
Text becomes other text of the same length and class, ids, names and argument keys become pseudonyms; sizes, escapes,
event boundaries, cuts, usage, the model's name and the words of the protocol stay, and so does the verdict, which is
checked. Look at the result before you hand it on: lengths, numbers of tokens and times are still those of the original.
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "redact",
        help="make recordings shareable: other text, same behaviour",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", metavar="FILE|DIR", help=f"a recorded body, or a directory of *{BODY_SUFFIX}")
    parser.add_argument("-o", "--out", required=True, metavar="OUT", help="a new file, or a directory for a directory")
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="FIELD",
        help="leave the values of this field as they are, such as name (repeatable; default: none)",
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """The exit code is 2 if a recording could not be read, redacted or written."""
    source, out = Path(args.source), Path(args.out)
    pairs = [(source, out)]
    if source.is_dir():
        bodies = sorted(source.rglob(f"*{BODY_SUFFIX}"))
        if not bodies:
            raise Unreadable(f"{safe(args.source)}: no *{BODY_SUFFIX} in it")
        pairs = [(body, out / body.relative_to(source)) for body in bodies]
    kept = kept_fields(args.keep)
    matched: set[str] = set()
    problems = 0
    for body, target in track(pairs, len(pairs), "redacting"):
        try:
            matched |= _redact(body, target, kept)
        except Unreadable as problem:
            problems += 1
            print(f"glmsse: {problem}", file=sys.stderr)
        else:
            print(safe(str(target)))
    if problems < len(pairs):
        for name in sorted(kept - matched):
            print(f"glmsse: --keep {safe(name)}: no recording has this field", file=sys.stderr)
    return UNREADABLE if problems else ACCEPTED


def _redact(body: Path, target: Path, kept: frozenset[str]) -> frozenset[str]:
    """Those of the `kept` fields that the recording has."""
    beside = sidecar_path(target)
    for path in (target, beside):
        if path is not None and path.exists():
            raise Unreadable(f"{safe(str(path))}: it is there already, and nothing is replaced")
    try:
        redacted, matched = redact_with(Recording.load(body), kept)
        target.parent.mkdir(parents=True, exist_ok=True)
        if beside is None:
            write_whole(target, redacted.body)
        else:
            redacted.write(target)
    except OSError as problem:
        raise Unreadable(f"{safe(str(body))}: {problem.strerror or 'cannot be read or written'}") from None
    except (UnfitRecording, CannotRedact, MisuseError) as problem:  # the last for a reading that is not known
        raise Unreadable(f"{safe(str(body))}: {problem}") from None
    return matched
