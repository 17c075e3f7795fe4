"""Where the work is done: anything that is a `concurrent.futures.Executor`, and how one that broke is replaced."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor
from contextlib import suppress
from functools import partial
from multiprocessing.connection import wait
from threading import Thread
from typing import ParamSpec, TypeVar

from ..errors import MisuseError
from .columns import Row
from .finding import Found
from .reading import Settings, read_batch

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")
MakeExecutor = Callable[[], Executor]

BATCHES_A_WORKER = 3
"""In flight: one at work, and what keeps a worker busy while results are put away."""


class InProcess(Executor):
    """Does the work at once, in the caller's thread."""

    def submit(
        self, fn: Callable[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Future[Result]:
        future: Future[Result] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def local_pool(workers: int) -> Executor:
    """Processes of this machine, of which one has begun; for one worker, this process."""
    if workers == 1:
        return InProcess()
    # Started anew, not forked: a fork copies locks that other threads hold.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_begin_worker)
    try:
        pool.submit(cores).result()
    except BrokenExecutor:
        pool.shutdown(wait=False)
    else:
        return pool
    hint = 'a script calls audit under `if __name__ == "__main__":`, or with workers=1'
    raise MisuseError(f"no process can be started: {hint}")


def cores() -> int:
    """How many this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _begin_worker() -> None:
    """The terminal's interrupt is the main process's to handle; and a worker ends with that, however it ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)


class Pool:
    """An executor that batches are given to.

    executor    one that is there, which stays open; or what makes one, which is then made again when it breaks
    has_worked  whether it has ever returned anything; told by who asks
    """

    def __init__(self, executor: Executor | MakeExecutor, settings: Settings) -> None:
        self._make: MakeExecutor | None = None if isinstance(executor, Executor) else executor
        self._executor = executor if isinstance(executor, Executor) else executor()
        self._task = partial(read_batch, settings)
        self.has_worked = False

    def submit(self, batch: Sequence[Found]) -> Future[list[Row]] | None:
        """The rows to be; None if the executor takes nothing any more."""
        for _ in range(2):
            try:
                return self._executor.submit(self._task, batch)
            except BrokenExecutor:
                if self._make is None:
                    return None
                self._executor.shutdown(wait=False)
                with suppress(MisuseError):  # they could be started once, so this is no reason to stop
                    self._executor = self._make()
            except Exception:  # each engine has its own for being closed
                return None
        return None

    def close(self) -> None:
        """What is in flight is given up."""
        if self._make is not None:
            self._executor.shutdown(wait=True, cancel_futures=True)
