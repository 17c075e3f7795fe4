"""How long a stream may take. No I/O and no clock of its own: an adapter hands one in and asks before each read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from math import isfinite

from .errors import MisuseError

Clock = Callable[[], float]
"""Seconds that only go forward, such as `time.monotonic`."""


class ReadTimedOut(Exception):
    """A timer broke off a read; stays inside the adapters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Seconds a stream may take, each a positive number or None for "no limit". One object serves many streams.

    first_byte  from the start of reading to the first byte of the body, whatever it is
    idle        waiting without progress; it runs from the first byte on, or from the start where first_byte is None.
                Progress is a piece of text or of a call, a finish reason, a usage. Comments, blank lines and empty
                deltas are none, so a stream of these alone runs out. Time the consumer takes is not waiting.
    total       from the start of reading to the end of the answer, the consumer's time included

    A model may think for minutes without a byte: choose first_byte for that, and idle for what comes after.
    """

    first_byte: float | None = None
    idle: float | None = None
    total: float | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            check_seconds(f"Deadlines.{field.name}", getattr(self, field.name))

    def start(self, clock: Clock) -> Countdown:
        """A countdown for one stream, beginning now."""
        if not callable(clock):
            raise MisuseError(f"clock takes a callable, not {type(clock).__name__}")
        return Countdown(self, clock)


def check_seconds(name: str, value: object) -> None:
    """MisuseError for anything but a positive finite number or None."""
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise MisuseError(f"{name} takes seconds or None, not {type(value).__name__}")
    if not isfinite(value) or value <= 0:
        raise MisuseError(f"{name} takes a positive finite number of seconds; None means no limit")


class Countdown:
    """The deadlines of one stream, on the clock.

    Around each read call `begin_read`, which says how long it may take, and `end_read`; call `progressed` for what
    brought the answer forward. `passed` is the code of a deadline that is over: hand it to `ChatStream.close`.
    """

    __slots__ = ("_any_byte", "_clock", "_deadlines", "_reading_since", "_started", "_waited")

    def __init__(self, deadlines: Deadlines, clock: Clock) -> None:
        self._deadlines = deadlines
        self._clock = clock
        self._started = clock()
        self._reading_since: float | None = None
        self._waited = 0.0
        self._any_byte = False

    def begin_read(self) -> float | None:
        """A read begins; the seconds it may take, never below 0, or None for no limit."""
        self._reading_since = self._clock()
        left = min(self._left(), default=None)
        return None if left is None else max(0.0, left[0])

    def end_read(self, size: int) -> None:
        """The read is over and brought `size` bytes."""
        if self._reading_since is not None:
            self._waited += self._clock() - self._reading_since
            self._reading_since = None
        if size and not self._any_byte:
            self._any_byte = True
            if self._deadlines.first_byte is not None:
                self._waited = 0.0

    def progressed(self) -> None:
        """What was read brought the answer forward: idle begins anew."""
        self._waited = 0.0
        if self._reading_since is not None:
            self._reading_since = self._clock()

    @property
    def passed(self) -> str | None:
        """The code of the deadline that is over: deadline_first_byte, deadline_idle or deadline_total; else None."""
        seconds, code = min(self._left(), default=(1.0, ""))
        return None if seconds > 0 else code

    @property
    def next_code(self) -> str | None:
        """The code of the deadline that is over first if nothing comes, for a read that a timer broke off."""
        return min(self._left(), default=(0.0, None))[1]

    def _left(self) -> list[tuple[float, str]]:
        """Each running deadline as (seconds left, code); the least is the one that is over first."""
        now = self._clock()
        waited = self._waited
        if self._reading_since is not None:
            waited += now - self._reading_since
        deadlines = self._deadlines
        left = []
        if deadlines.first_byte is not None and not self._any_byte:
            left.append((deadlines.first_byte - (now - self._started), "deadline_first_byte"))
        elif deadlines.idle is not None:
            left.append((deadlines.idle - waited, "deadline_idle"))
        if deadlines.total is not None:
            left.append((deadlines.total - (now - self._started), "deadline_total"))
        return left
