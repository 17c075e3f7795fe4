"""Where the bytes come from, and how a stream for them is set up: the options that the reading commands share."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import fields
from typing import Any, BinaryIO

from ..capture.packed import BrokenGzip, unpacked
from ..chat import ChatStream
from ..limits import Limits
from ..profiles import PROFILES, TOLERANCES
from .outcome import Unreadable
from .terminal import Progress, safe

READ_BYTES = 64 * 1024
MOST_DIGITS = 18


def add_reading_options(parser: argparse.ArgumentParser) -> None:
    """The options that say how strictly any stream is read."""
    parser.add_argument("--profile", default="zai", choices=PROFILES, help="set of tolerances (default: zai)")
    for option, turn in (("--allow", "on"), ("--deny", "off")):
        words = f"turn a tolerance {turn} (repeatable; glmsse info lists them)"
        parser.add_argument(option, action="append", default=[], choices=TOLERANCES, metavar="NAME", help=words)
    parser.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=N",
        help="set a cap such as max_event_bytes=65536, or =none for no limit (repeatable)",
    )


def add_stream_options(parser: argparse.ArgumentParser) -> None:
    """The same for one stream, whose request is not at hand."""
    add_reading_options(parser)
    parser.add_argument("--choices", type=int, default=1, metavar="N", help="how many choices to expect (default: 1)")


def stream_words(args: argparse.Namespace) -> list[str]:
    """The same options as words, for another process."""
    words = ["--profile", args.profile, "--choices", str(args.choices)]
    for option, values in (("--allow", args.allow), ("--deny", args.deny), ("--limit", args.limit)):
        words += [word for value in values for word in (option, value)]
    return words


def stream_for(args: argparse.Namespace, **options: Any) -> ChatStream:
    """A stream as the options ask for; MisuseError names what they got wrong."""
    return ChatStream(
        args.profile,
        allow=args.allow,
        deny=args.deny,
        choices=args.choices,
        limits=limits_from(args.limit),
        **options,
    )


def limits_from(settings: list[str]) -> Limits:
    """The caps that --limit asks for."""
    known = {field.name for field in fields(Limits)}
    values: dict[str, Any] = {}
    for setting in settings:
        name, _, value = setting.partition("=")
        if name not in known:
            raise Unreadable(f"--limit takes one of {', '.join(sorted(known))}")
        if value != "none" and not (value.isascii() and value.isdigit() and len(value) <= MOST_DIGITS):
            raise Unreadable(f"--limit {name} takes a positive number, or none")
        values[name] = None if value == "none" else int(value)
    return Limits(**values)


def read_pieces(path: str) -> Iterator[bytes]:
    """The bytes of a file, unpacked if it is called so, or of standard input for `-`, as they come."""
    try:
        if path != "-":
            with open(path, "rb") as file, closing(_pieces(file, path, os.fstat(file.fileno()).st_size)) as stored:
                yield from unpacked(path, stored)
        elif sys.stdin is not None:
            yield from _pieces(sys.stdin.buffer, "standard input", None)
        else:
            raise Unreadable("standard input is closed")
    except OSError as problem:
        name = "standard input" if path == "-" else safe(path)
        raise Unreadable(f"{name}: {problem.strerror or 'cannot be read'}") from None
    except BrokenGzip as problem:
        raise Unreadable(f"{safe(path)}: {problem}") from None


def _pieces(file: BinaryIO, name: str, total: int | None) -> Generator[bytes]:
    progress = Progress(name, total)
    read = getattr(file, "read1", file.read)
    try:
        while data := read(READ_BYTES):
            yield data
            progress.advance(len(data))
    finally:
        progress.clear()
