"""Signs of life for a client that waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from time import monotonic

from .watch import Watch


@asynccontextmanager
async def pinging(watch: Watch, seconds: float, ping: Callable[[], Awaitable[None]]) -> AsyncGenerator[None, None]:
    """While the block runs, `ping` is called after each so many seconds in which nothing was sent."""
    over = asyncio.Event()
    task = asyncio.create_task(_ping(watch, seconds, ping, over))
    try:
        yield
    except BaseException:
        task.cancel()
        raise
    over.set()
    await task  # what it is sending is sent whole


async def _ping(watch: Watch, seconds: float, ping: Callable[[], Awaitable[None]], over: asyncio.Event) -> None:
    while not over.is_set():
        left = watch.sent_at + seconds - monotonic()
        if left <= 0:
            await ping()
            continue
        try:
            await asyncio.wait_for(over.wait(), left)
        except asyncio.TimeoutError:
            continue
