"""What breaks an exchange off from outside: the client leaves, a deadline passes, a write waits too long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from time import monotonic
from typing import Any

from ..deadlines import Deadlines

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

_FINEST_CHECK = 0.02
_COARSEST_CHECK = 2.0
_CHECKS_PER_DEADLINE = 20


class Watch:
    """Runs the work of one exchange in a task of its own, and cancels it when it has to end.

    One timer looks at all deadlines now and then, so a read costs next to nothing; a deadline is noticed late by a
    tenth of the shortest one at most, and never early.
    """

    def __init__(self, deadlines: Deadlines, send_seconds: float, receive: Receive, send: Send) -> None:
        self.code: str | None = None
        """What broke the work off: cancelled or deadline_*."""
        self.client_gone = False
        self.slow_client = False
        self.sent_bytes = 0
        self.sent_at = monotonic()
        self._countdown = deadlines.start(monotonic)
        self._send_seconds = send_seconds
        self._receive = receive
        self._send = send
        self._turn = asyncio.Lock()  # a ping comes from a task of its own
        self._pieces_seen: Callable[[], int] = int
        self._pieces = 0
        self._answered = False
        self._sending_since: float | None = None
        self._task: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        known = (deadlines.first_byte, deadlines.idle, deadlines.total, send_seconds)
        shortest = min(seconds for seconds in known if seconds is not None)
        self._interval = min(max(shortest / _CHECKS_PER_DEADLINE, _FINEST_CHECK), _COARSEST_CHECK)

    async def run(self, work: Coroutine[Any, Any, None]) -> None:
        """Returns when the work is done or broken off; what the work raises is raised."""
        task = self._task = asyncio.create_task(work)
        leaving = asyncio.create_task(self._wait_for_leaving())
        self._check()
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError:
            self._break_off("cancelled")
            await asyncio.wait((task,))
            raise
        finally:
            if self._timer is not None:
                self._timer.cancel()
            leaving.cancel()
        if not task.cancelled():
            task.result()

    def first_byte(self, size: int) -> None:
        """The body has begun."""
        self._countdown.end_read(size)
        self._countdown.begin_read()

    def follow(self, pieces_seen: Callable[[], int]) -> None:
        """The answer comes forward whenever this number, which begins at 0, is another one."""
        self._pieces_seen = pieces_seen

    async def send(self, message: Message) -> None:
        if message.get("more_body") is False:
            self._answered = True
        async with self._turn:
            self._sending_since = monotonic()
            try:
                await self._send(message)
            finally:
                self._sending_since = None
                self.sent_at = monotonic()

    async def send_body(self, data: bytes) -> None:
        self.sent_bytes += len(data)
        await self.send({"type": "http.response.body", "body": data, "more_body": True})

    async def _wait_for_leaving(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        if not self._answered:  # servers say so at the end of a whole answer too
            self.client_gone = True
            self._break_off("cancelled")

    def _check(self) -> None:
        countdown = self._countdown
        pieces = self._pieces_seen()
        if pieces != self._pieces:
            self._pieces = pieces
            countdown.progressed()
        countdown.end_read(0)
        code = countdown.passed
        delay = self._interval
        if self._sending_since is None:
            left = countdown.begin_read()
            delay = delay if left is None else min(delay, max(left, 0.001))
        elif code is None and monotonic() - self._sending_since > self._send_seconds:
            self.slow_client = True
            code = "cancelled"
        if code is not None:
            self._break_off(code)
            return
        self._timer = asyncio.get_running_loop().call_later(delay, self._check)

    def _break_off(self, code: str) -> None:
        if self._task is not None and not self._task.done() and self.code is None:
            self.code = code
            self._task.cancel()
