"""A read that asyncio breaks off in time. Imported only when a deadline asks for it: else any event loop will do.

It imports nothing of its package: what is imported late may come from another copy of it.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Buffer


async def next_within(pieces: AsyncIterator[Buffer], seconds: float, late: type[Exception]) -> Buffer:
    """The next piece; raises `late` if it does not come in time, and the source sees a cancellation."""
    timer = _timer(seconds)
    try:
        async with timer:
            return await pieces.__anext__()
    except Exception:
        # The source's own timeout errors are not ours; whatever it makes of our cancellation is.
        if not timer.expired():
            raise
    raise late


class _Timer:
    """`asyncio.timeout` as far as it is needed here, for Python 3.10."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._expired = False

    def expired(self) -> bool:
        return self._expired

    async def __aenter__(self) -> _Timer:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a deadline needs a running task")
        self._task = task
        self._handle = asyncio.get_running_loop().call_later(self._seconds, self._fire)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._handle.cancel()
        if self._expired and kind is asyncio.CancelledError:
            raise TimeoutError

    def _fire(self) -> None:
        self._expired = True
        self._task.cancel()


if sys.version_info >= (3, 11):
    _timer = asyncio.timeout
else:
    _timer = _Timer
