"""What has been read so far, in an SQLite file beside the output: the one place that must survive a crash.

Every batch is a transaction, so whenever the process dies, what the journal has is whole. A file is not read again
while its size and time are those of its row, and the settings those of the journal. Rows are kept sorted by path, which
makes the result the same however the work was cut. What a run does not find any more is not in its result.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from types import TracebackType

from .._version import __version__
from .columns import COLUMNS, FLAGS, NAMES, Row
from .finding import Found
from .reading import Settings

SUFFIX = ".journal"
TOGETHER = 500
"""Files that are looked up in one transaction."""

_TYPES = {str: "TEXT", int: "INTEGER", float: "REAL", bool: "INTEGER"}
_COLUMNS = ", ".join(f'"{name}"' for name in NAMES)
_TABLE = ", ".join(f'"{column.name}" {_TYPES[column.kind]}' for column in COLUMNS)
_MARKS = ", ".join("?" * (len(COLUMNS) + 2))


class UnfitJournal(Exception):
    """The journal cannot be used; the message says why."""


def journal_path(out: str | os.PathLike[str]) -> Path:
    """Where the journal of an output is."""
    return Path(f"{os.fspath(out)}{SUFFIX}")


class Journal:
    """The rows of one output. One process has it at a time; UnfitJournal if another has.

    settings   of this run; None to look at what is there, which has to be
    """

    def __init__(self, path: Path, settings: Settings | None) -> None:
        if settings is None and not path.is_file():
            raise UnfitJournal("there is no journal of an audit")
        self.known = 0
        try:
            self._base = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
            self._open(settings)
        except sqlite3.Error as problem:
            with suppress(AttributeError):
                self._base.close()
            if "locked" in str(problem):
                raise UnfitJournal("another audit is at work on it") from None
            raise UnfitJournal("it is no journal of an audit, or cannot be written") from None

    def _open(self, settings: Settings | None) -> None:
        for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=NORMAL"):
            self._base.execute(f"PRAGMA {pragma}").fetchall()
        self._base.execute("BEGIN IMMEDIATE")
        self._base.execute("CREATE TABLE IF NOT EXISTS run (number INTEGER, settings TEXT)")
        last = self._base.execute("SELECT number, settings FROM run").fetchone()
        self._run = 0 if last is None else last[0]
        if settings is not None:
            self._run += 1
            self._begin(_spelt(settings), None if last is None else last[1])
        self._base.execute("COMMIT")
        self._is_empty = self._base.execute("SELECT 1 FROM rows LIMIT 1").fetchone() is None

    def _begin(self, settings: str, before: str | None) -> None:
        if before != settings:
            self._base.execute("DROP TABLE IF EXISTS rows")
        table = f"CREATE TABLE IF NOT EXISTS rows ({_TABLE}, run INTEGER, stamp TEXT, PRIMARY KEY (path)) WITHOUT ROWID"
        self._base.execute(table)
        self._base.execute("DELETE FROM rows WHERE error IS NOT NULL")  # these are tried again
        self._base.execute("DELETE FROM run")
        self._base.execute("INSERT INTO run VALUES (?, ?)", (self._run, settings))

    def undone(self, found: Iterable[Found]) -> Iterator[Found]:
        """Those of them that have yet to be read; `known` counts the others."""
        if self._is_empty:
            yield from found
            return
        keep = "UPDATE rows SET run = ? WHERE path = ? AND stamp = ? AND error IS NULL"
        left = iter(found)
        while some := list(islice(left, TOGETHER)):
            self._base.execute("BEGIN")
            marks = [self._base.execute(keep, (self._run, shown(one.path), one.stamp)).rowcount for one in some]
            self._base.execute("COMMIT")
            self.known += sum(marks)
            yield from (one for one, is_known in zip(some, marks, strict=True) if not is_known)

    def add(self, batch: Sequence[Found], rows: Sequence[Row]) -> None:
        """The rows of a batch, all or none."""
        self._base.execute("BEGIN")
        self._base.executemany(
            f"INSERT OR REPLACE INTO rows VALUES ({_MARKS})",
            [(shown(found.path), *row[1:], self._run, found.stamp) for found, row in zip(batch, rows, strict=True)],
        )
        self._base.execute("COMMIT")

    def finish(self) -> None:
        """This run has found all that it will: what was not found goes."""
        self._base.execute("DELETE FROM rows WHERE run <> ?", (self._run,))

    def rows(self) -> Iterator[Row]:
        """All rows, sorted by path; nothing of them is held."""
        for row in self._base.execute(f"SELECT {_COLUMNS} FROM rows ORDER BY path"):
            cells = list(row)
            for place in FLAGS:  # SQLite has numbers only
                if cells[place] is not None:
                    cells[place] = bool(cells[place])
            yield tuple(cells)

    def ask(self, question: str) -> list[tuple[object, ...]]:
        """The answer to a query over the table `rows`."""
        return self._base.execute(question).fetchall()

    def close(self) -> None:
        self._base.close()

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def shown(path: str) -> str:
    """A path as text that can be written: bytes that are no UTF-8 are spelt out."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return path


def _spelt(settings: Settings) -> str:
    known = {
        "glmsse": __version__,
        "columns": NAMES,
        "reading": settings.reading.to_dict(),
        "sha256": settings.sha256,
        "max_file_bytes": settings.max_file_bytes,
    }
    return json.dumps(known, sort_keys=True)
