"""The command line: `glmsse`, or `python -m glmsse`."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from io import TextIOWrapper

from ._version import __version__
from .cli import audit, bench, check, convert, demo, gate, info, probe, proxy, redact, report, serve, show, tools
from .cli.outcome import UNREADABLE, Unreadable
from .errors import MisuseError

COMMANDS = (demo, show, check, convert, tools, probe, redact, gate, audit, report, serve, proxy, bench, info)

EPILOG = """\
exit codes: 0 accepted, 1 not accepted, 2 usage or unreadable input, 3 protocol error, 4 limit

examples:
  glmsse demo
  glmsse demo --write samples
  glmsse text samples/text.sse
  curl -sN … | glmsse events --json -
  glmsse convert --to anthropic samples/tool.sse
  glmsse check --profile gateway recordings/*.sse
"""


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="glmsse",
        description="Reads streamed answers of large language models: typed events out, one verdict at the end.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"glmsse {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code is the return value."""
    args = build_parser().parse_args(argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a test or a shell may have put something else there
            stream.reconfigure(errors="backslashreplace")
    try:
        code: int = args.run(args)
        sys.stdout.flush()
        return code
    except (Unreadable, MisuseError) as problem:
        print(f"glmsse: {problem}", file=sys.stderr)
        return UNREADABLE
    except BrokenPipeError:
        # The reader of our output has left; keep the interpreter's own flush at exit from failing as well.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
