"""`glmsse report`: pictures of recordings."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..capture import Reading, Recording, UnfitRecording
from ..capture.recording import SUFFIXES, reading_limits, write_whole
from ..errors import MisuseError
from ..report import Collection, Entry, Section, Timeline, entry_of, section_of, timeline_of
from ..report.collection import UNREADABLE as UNREADABLE_ENTRY
from ..report.strip import Line, plain, strip
from .extras import need
from .outcome import ACCEPTED, UNREADABLE, Unreadable
from .progress import track
from .source import add_stream_options, limits_from
from .terminal import safe

MOST_FAILED = 20

EPILOG = f"""\
Without --out the timeline of one recording is drawn in the terminal. The page is one file that loads nothing, for a
phone, a dark screen or paper. Of a directory it has outcomes, drift, the slowest and the largest, and a timeline of
each of these and of the first {MOST_FAILED} that were not accepted. The options on how to read are for recordings
without a sidecar.
"""

_COLOURS = {"reasoning": "magenta", "content": "cyan", "tool_calls": "yellow", "axis": "dim"}


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="draw what came when in a recording, or many recordings at a glance",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "source", metavar="FILE|DIR", help=f"a recorded body, or a directory of *{' and *'.join(SUFFIXES)}"
    )
    parser.add_argument("-o", "--out", metavar="HTML", help="write a page (default for a file: draw in the terminal)")
    parser.add_argument(
        "--show-text",
        action="store_true",
        help="put visible content into the page (default: no text; reasoning: never)",
    )
    add_stream_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """The exit code is 2 if a recording cannot be read."""
    source = Path(args.source)
    reading = Reading(
        profile=args.profile,
        allow=tuple(args.allow),
        deny=tuple(args.deny),
        choices=args.choices,
        limits=reading_limits(limits_from(args.limit)),
    )
    if args.out is None:
        if source.is_dir():
            raise Unreadable("a directory needs --out: it becomes a page")
        _, timeline = _read(source, reading)
        _show(source.name, timeline)
        return ACCEPTED
    need("report --out", "report")
    code = ACCEPTED
    if source.is_dir():
        page, code = _collection(source, reading, args.show_text)
    else:
        page = _single(source, reading, args.show_text)
    try:
        write_whole(Path(args.out), page.encode(errors="replace"))
    except OSError as problem:
        raise Unreadable(f"{safe(args.out)}: {problem.strerror or 'cannot be written'}") from None
    print(safe(args.out))
    return code


def _single(path: Path, reading: Reading, show_text: bool) -> str:
    from ..report.page import recording_page

    return recording_page(section_of(path.name, *_read(path, reading), show_text=show_text))


def _collection(folder: Path, reading: Reading, show_text: bool) -> tuple[str, int]:
    from ..report.page import collection_page

    paths = sorted(path for path in folder.rglob("*") if path.name.endswith(SUFFIXES))
    if not paths:
        raise Unreadable(f"{safe(str(folder))}: no *{' or *'.join(SUFFIXES)} in it")
    collection = Collection()
    failed: list[Entry] = []
    code = ACCEPTED
    for path in track(paths, len(paths), "reading"):
        name = path.relative_to(folder).as_posix()
        try:
            recording, timeline = _read(path, reading)
        except Unreadable as problem:
            print(f"glmsse: {problem}", file=sys.stderr)
            collection.add(Entry(name, UNREADABLE_ENTRY))
            code = UNREADABLE
            continue
        entry = entry_of(name, recording, timeline)
        collection.add(entry)
        collection.add_shape(entry, recording)
        if not timeline.verdict.accepted and len(failed) < MOST_FAILED:
            failed.append(entry)
    drawn = dict.fromkeys(entry.name for entry in (*failed, *collection.slowest, *collection.largest))
    sections: list[Section] = []
    for name in drawn:
        try:
            sections.append(_section(folder, name, len(sections) + 1, reading, show_text))
        except Unreadable as problem:  # it was there a moment ago
            print(f"glmsse: {problem}; its timeline is left out", file=sys.stderr)
            code = UNREADABLE
    return collection_page(folder.resolve().name, collection, sections), code


def _section(folder: Path, name: str, number: int, reading: Reading, show_text: bool) -> Section:
    recording, timeline = _read(folder / name, reading)
    return section_of(name, recording, timeline, anchor=f"r{number}", show_text=show_text)


def _read(path: Path, reading: Reading) -> tuple[Recording, Timeline]:
    try:
        recording = Recording.load(path)
        if recording.sidecar.sha256 is None:
            recording = Recording(recording.body, replace(recording.sidecar, reading=reading))
        return recording, timeline_of(recording)
    except OSError as problem:
        raise Unreadable(f"{safe(str(path))}: {problem.strerror or 'cannot be read'}") from None
    except (UnfitRecording, MisuseError) as problem:
        raise Unreadable(f"{safe(str(path))}: {problem}") from None


def _show(name: str, timeline: Timeline) -> None:
    verdict = timeline.verdict
    said = verdict.outcome if verdict.code is None else f"{verdict.outcome} ({verdict.code})"
    print(f"{safe(name)}: {said}, {timeline.events:,} events")
    width = min(shutil.get_terminal_size().columns, 120)
    encoding = sys.stdout.encoding or "ascii"
    _print_lines(strip(timeline, width, ascii_only=not _can_say("▁█", encoding)))


def _print_lines(lines: Sequence[Line]) -> None:
    """In colours on a terminal if rich is there (extra: cli)."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.text import Text
        except ImportError:
            pass
        else:
            console = Console()
            for line, text in zip(lines, plain(list(lines)), strict=True):
                console.print(Text(text, _COLOURS.get(line.kind, "")))
            return
    for text in plain(list(lines)):
        print(text)


def _can_say(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
