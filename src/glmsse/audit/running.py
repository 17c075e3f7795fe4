"""The audit: finds, reads, keeps and writes, with a bounded number of batches under way."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from functools import partial
from time import monotonic
from typing import NamedTuple

from ..capture.recording import stream_for
from ..errors import MisuseError
from .columns import PLACES, Row, unreadable
from .finding import Found, batches, find
from .journal import Journal, journal_path
from .pools import BATCHES_A_WORKER, MakeExecutor, Pool, cores, local_pool
from .reading import Settings
from .summary import Summary, summarise
from .writing import writer_for

TRIES = 3
"""Of a batch that is lost with its worker: once among others, then by itself."""

Done = tuple[Sequence[Found], list[Row]]


class Progress(NamedTuple):
    """How far an audit is: files read in this run and before it, those that could not be read, bytes, seconds."""

    read: int = 0
    known: int = 0
    unreadable: int = 0
    bytes: int = 0
    seconds: float = 0.0


def audit(
    paths: Iterable[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    settings: Settings | None = None,
    workers: int | None = None,
    executor: Executor | MakeExecutor | None = None,
    in_flight: int | None = None,
    progress: Callable[[Progress], object] | None = None,
) -> Summary:
    """Read every recording under `paths` and write a row for each to `out`, sorted by path.

    paths      files, folders, patterns, and URLs that fsspec knows (extra: audit)
    out        a local file that ends in .parquet (extra: audit), .csv or .jsonl; beside it is its journal, by which a
               run that was broken off is taken up again
    settings   how files are read
    workers    processes of this machine (default: one a core); 1 is this process. With more, a script calls this under
               `if __name__ == "__main__":`, since each of them imports it
    executor   another pool than these: an Executor, which stays open, or a callable that makes one, which is called
               again if it breaks
    in_flight  the most batches under way (default: three a worker)
    progress   told after each batch

    What cannot be read is a row with its error. MisuseError for options that cannot be meant, and if no worker can do
    anything; UnfitJournal if the journal is another audit's, OSError if `out` cannot be written.
    """
    settings = settings or Settings()
    write = writer_for(out)
    workers = cores() if workers is None else workers
    if workers < 1 or settings.max_file_bytes < 1 or (in_flight is not None and in_flight < 1):
        raise MisuseError("workers, in_flight and max_file_bytes take positive numbers")
    stream_for(settings.reading)  # wrong options are one error, not one a file
    most = in_flight or BATCHES_A_WORKER * max(workers, getattr(executor, "_max_workers", None) or 1)
    with Journal(journal_path(out), settings) as journal:
        pool = Pool(executor or partial(local_pool, workers), settings)
        try:
            _read_all(journal, pool, (os.fspath(path) for path in paths), most, progress or (lambda _: None))
        finally:
            pool.close()
        journal.finish()
        write(journal.rows())
        return summarise(journal)


def summary_of(out: str | os.PathLike[str]) -> Summary:
    """The summary of an audit that was made, by its journal; UnfitJournal if that is not there."""
    with Journal(journal_path(out), None) as journal:
        return summarise(journal)


def rows_of(out: str | os.PathLike[str]) -> Iterator[Row]:
    """The rows of an audit that was made, sorted by path, by its journal; UnfitJournal if that is not there."""
    with Journal(journal_path(out), None) as journal:
        yield from journal.rows()


def _read_all(
    journal: Journal, pool: Pool, paths: Iterable[str], most: int, tell: Callable[[Progress], object]
) -> None:
    start = monotonic()
    read = failed = size = 0
    for batch, rows in _done(pool, batches(journal.undone(find(paths))), most):
        journal.add(batch, rows)
        read += len(rows)
        failed += sum(row[PLACES["error"]] is not None for row in rows)
        size += sum(found.size or 0 for found in batch)
        tell(Progress(read, journal.known, failed, size, monotonic() - start))


def _done(pool: Pool, work: Iterable[Sequence[Found]], most: int) -> Iterator[Done]:
    """The batches with their rows, as they are done; the next ones are looked for only when there is room."""
    flying: dict[Future[list[Row]], Sequence[Found]] = {}
    for batch in work:
        while len(flying) >= most:
            yield from _landed(pool, flying)
        future = pool.submit(batch)
        if future is None:
            yield batch, _lost(batch)
        else:
            flying[future] = batch
    while flying:
        yield from _landed(pool, flying)


def _landed(pool: Pool, flying: dict[Future[list[Row]], Sequence[Found]]) -> Iterator[Done]:
    """Wait for some. If any is lost, wait for all, and try those that are lost again, one at a time."""
    lost: list[Sequence[Found]] = []
    wait(flying, return_when=FIRST_COMPLETED)
    while True:
        for future in [future for future in flying if future.done()]:
            batch = flying.pop(future)
            rows = _rows(future)
            if isinstance(rows, str):
                lost.append(batch)
            else:
                pool.has_worked = True
                yield batch, rows
        if not lost or not flying:
            break
        wait(flying)
    if lost and not pool.has_worked:
        _try_out(pool)
    for batch in lost:
        yield from _again(pool, batch)


def _try_out(pool: Pool) -> None:
    """MisuseError if the workers fail without any file too, as where this package is missing: no file is to blame."""
    rows: list[Row] | str = []
    for _ in range(1, TRIES):
        future = pool.submit(())
        rows = [] if future is None else _rows(future)
        if not isinstance(rows, str):
            return
    raise MisuseError(f"the workers can read nothing ({rows}): glmsse has to be installed where they are")


def _again(pool: Pool, batch: Sequence[Found]) -> Iterator[Done]:
    """A lost batch by itself, so that nobody else suffers from it; at last each file by itself."""
    fault = None
    for _ in range(1, TRIES):
        future = pool.submit(batch)
        rows = _lost(batch) if future is None else _rows(future)
        if not isinstance(rows, str):
            yield batch, rows
            return
        fault = rows
    if len(batch) == 1:
        yield batch, _lost(batch, fault)
        return
    middle = len(batch) // 2
    yield from _again(pool, batch[:middle])
    yield from _again(pool, batch[middle:])


def _rows(future: Future[list[Row]]) -> list[Row] | str:
    """What came of it. If it is lost with its worker, the class of the exception: each engine has its own for that."""
    try:
        return future.result()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as problem:  # CancelledError is none of Exception on some versions
        return type(problem).__name__


def _lost(batch: Sequence[Found], fault: str | None = None) -> list[Row]:
    return [unreadable(found.path, found.size, "worker_lost", fault) for found in batch]
