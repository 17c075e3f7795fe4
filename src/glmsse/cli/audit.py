"""`glmsse audit`: a row for every recording of a large collection."""

from __future__ import annotations

import argparse
import json
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from ..audit import Settings, Summary, UnfitJournal, audit, rows_of
from ..audit.columns import NAMES
from ..audit.finding import is_url
from ..audit.reading import MAX_FILE_BYTES
from ..audit.writing import FORMATS
from ..capture import Reading
from ..capture.recording import reading_limits, write_whole
from ..report import Collection, Entry
from .audit_progress import show_progress
from .extras import need
from .outcome import ACCEPTED, EXIT_CODES, NOT_ACCEPTED, UNREADABLE, Unreadable
from .source import add_stream_options, limits_from
from .terminal import safe, show_table

DASK_IN_FLIGHT = 64
"""Batches under way in a cluster of few cores: it may grow."""

EPILOG = """\
Folders and patterns are searched for *.sse and *.sse.gz; files that are named are read whatever they are called. A
sidecar says how its body is read; the options are for bodies without one. What cannot be read is a row with its error.
Beside OUT is its journal: the same command again goes on where it was broken off, and reads only what is new or has
changed. See docs/audit.md. Exit codes are those of check: 2 if anything cannot be read, else the highest of the single
verdicts.
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "audit",
        help="write a row for every recording of a large collection",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="files, folders, patterns, URLs such as s3://…")
    endings = ", ".join(FORMATS)
    parser.add_argument("-o", "--out", required=True, metavar="OUT", help=f"a file that ends in {endings}")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core; 1: this one)")
    parser.add_argument("--dask", metavar="ADDRESS", help="work on this Dask cluster (default: on this machine)")
    parser.add_argument(
        "--sha256", action="store_true", help="digests too, held against sidecars (default: sizes only)"
    )
    words = f"a longer body is not read, only its row written (default: {MAX_FILE_BYTES})"
    parser.add_argument("--max-file-bytes", type=int, default=MAX_FILE_BYTES, metavar="N", help=words)
    parser.add_argument("--report", metavar="HTML", help="write a page of outcomes too (extra: report; default: none)")
    parser.add_argument("--json", action="store_true", help="print the summary as a JSON object (default: tables)")
    add_stream_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    _look_for_extras(args)
    limits = reading_limits(limits_from(args.limit))
    reading = Reading(args.profile, tuple(args.allow), tuple(args.deny), args.choices, limits=limits)
    settings = Settings(reading, sha256=args.sha256, max_file_bytes=args.max_file_bytes)
    try:
        with _engine(args) as engine, show_progress() as tell:
            summary = audit(args.paths, args.out, settings=settings, progress=tell, **engine)
        if args.report is not None and summary.recordings:
            _write_report(args.out, args.report)
    except UnfitJournal as problem:
        raise Unreadable(f"the journal of {safe(args.out)}: {problem}") from None
    except OSError as problem:
        raise Unreadable(f"{safe(args.out)}: {problem.strerror or 'cannot be written'}") from None
    if not summary.recordings:
        raise Unreadable("there is no recording to be found")
    if args.json:
        print(json.dumps({"out": args.out, **summary.to_dict()}))
    else:
        _show(summary, args.out)
    return _exit_code(summary)


def _write_report(out: str, page: str) -> None:
    from ..report.page import collection_page

    collection = Collection()
    for row in rows_of(out):
        cells: dict[str, Any] = dict(zip(NAMES, row, strict=True))
        entry = Entry(
            name=cells["path"],
            outcome=cells["outcome"],
            code=cells["code"] or cells["error"],
            model=cells["model"],
            route=cells["route"],
            bytes=cells["size"],
            events=cells["events"],
            tokens=cells["total_tokens"],
            first_content_seconds=cells["first_content_seconds"],
            seconds=cells["total_seconds"],
        )
        collection.add(entry)
    html = collection_page(Path(out).name, collection, [])
    try:
        write_whole(Path(page), html.encode(errors="replace"))
    except OSError as problem:
        raise Unreadable(f"{safe(page)}: {problem.strerror or 'cannot be written'}") from None


def _look_for_extras(args: argparse.Namespace) -> None:
    if args.report is not None:
        need("audit --report", "report")
    if any(map(is_url, args.paths)):
        need("audit of URLs", "audit")
    if Path(args.out).suffix.lower() == ".parquet":
        need("audit to .parquet", "audit")
    if args.dask is not None:
        need("audit --dask", "dask")
        if args.workers is not None:
            raise Unreadable("--workers is for this machine, --dask for another")


@contextmanager
def _engine(args: argparse.Namespace) -> Generator[dict[str, Any]]:
    """Where the work is done, as options of `audit`."""
    if args.dask is None:
        yield {"workers": args.workers}
        return
    distributed: Any = import_module("distributed")
    try:
        client = distributed.Client(args.dask)
    except (OSError, ValueError):
        client = None
    if client is None:
        raise Unreadable(f"{safe(args.dask)}: there is no Dask scheduler to be reached")
    with client:
        in_flight = max(DASK_IN_FLIGHT, 3 * sum(client.ncores().values()))
        yield {"executor": client.get_executor(pure=False), "in_flight": in_flight}


def _exit_code(summary: Summary) -> int:
    if summary.unreadable:
        return UNREADABLE
    return max((EXIT_CODES.get(outcome, NOT_ACCEPTED) for outcome in summary.outcomes), default=ACCEPTED)


def _show(summary: Summary, out: str) -> None:
    tables: tuple[tuple[str, Mapping[str, float], str], ...] = (
        ("outcome", summary.outcomes, "recordings"),
        ("code", summary.codes, "recordings"),
        ("error", summary.errors, "recordings"),
        ("largest", dict(summary.largest), "bytes"),
        ("slowest", dict(summary.slowest), "seconds"),
    )
    for name, numbers, unit in tables:
        if numbers:
            show_table((name, unit), [(word, f"{number:,}") for word, number in numbers.items()])
            print()
    counts = ", ".join(f"{count:,} {outcome}" for outcome, count in summary.outcomes.items())
    print(f"{summary.recordings:,} audited: {counts}; the rows are in {safe(out)}")
