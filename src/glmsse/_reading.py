"""What the sync and the async loops of the adapters share: one answer or event stream under its deadlines."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .chat import ChatStream
from .deadlines import Clock, Countdown, Deadlines
from .errors import GlmsseError, MisuseError, fault
from .events import ChatEvent, Failed
from .framing import ServerSentEvent, SSEFramer
from .response import MOST_BODY_BYTES

if TYPE_CHECKING:
    from typing_extensions import Buffer

OnError = Callable[[Exception], object]


class _Reading:
    """The deadlines around each read.

    Here and in the loops a piece is deleted once it is fed, so that no traceback of ours holds input.
    """

    def __init__(self, deadlines: Deadlines, clock: Clock) -> None:
        self.clock = clock
        self._deadlines = deadlines
        self._countdown: Countdown | None = None

    @property
    def countdown(self) -> Countdown:
        """Starts with the first read: an iterator that nobody asks spends no time."""
        if self._countdown is None:
            self._countdown = self._deadlines.start(self.clock)
        return self._countdown

    def begin_read(self) -> float | None:
        return self.countdown.begin_read()


class EventReading(_Reading):
    """Reading an event stream of any kind."""

    def __init__(self, framer: SSEFramer, deadlines: Deadlines, clock: Clock) -> None:
        super().__init__(deadlines, clock)
        self._framer = framer

    def check_deadlines(self) -> None:
        code = self.countdown.passed
        if code is not None:
            raise self._deadline_fault(code)

    def timed_out(self) -> GlmsseError:
        return self._deadline_fault(self.countdown.next_code or "deadline_total")

    def take(self, data: Buffer) -> tuple[list[ServerSentEvent], GlmsseError | None]:
        """The events that a piece completes, and the fault to raise after them."""
        bytes_before = self._framer.bytes_seen
        error: GlmsseError | None = None
        try:
            events = self._framer.feed(data)
        except MisuseError:
            raise
        except GlmsseError as raised:
            events, error = raised.events, raised.again()
        finally:
            del data
        self.countdown.end_read(self._framer.bytes_seen - bytes_before)
        if events:
            self.countdown.progressed()
        return events, error

    def end(self) -> None:
        """Raises the fault of a tail; where there is none, no event is left either."""
        self._framer.close()

    def _deadline_fault(self, code: str) -> GlmsseError:
        return fault(code, offset=self._framer.bytes_seen)


class ChatReading(_Reading):
    """Reading one answer. Whatever happens, the stream gets its verdict here."""

    def __init__(self, stream: ChatStream, deadlines: Deadlines, clock: Clock, on_error: OnError | None) -> None:
        super().__init__(deadlines, clock)
        self.stream = stream
        self._on_error = on_error
        self._ended_by: Exception | str | None = None

    def goes_on(self) -> bool:
        stream = self.stream
        if stream.verdict is not None:
            return False
        if stream.failed and stream.bytes_seen >= MOST_BODY_BYTES:
            return False  # a refused response: its body has said all that is read of it
        self._ended_by = self.countdown.passed
        return self._ended_by is None

    def take(self, data: Buffer) -> list[ChatEvent]:
        stream, countdown = self.stream, self.countdown
        bytes_before, pieces_before = stream.bytes_seen, stream.pieces_seen
        try:
            events = stream.feed(data)
        finally:
            del data
        countdown.end_read(stream.bytes_seen - bytes_before)
        if stream.pieces_seen != pieces_before:
            countdown.progressed()
        return events

    def timed_out(self) -> None:
        self._ended_by = self.countdown.next_code

    def broke(self, error: Exception) -> None:
        """The source raised."""
        self._ended_by = error
        if self._on_error is not None:
            self._on_error(error)

    def end(self) -> list[ChatEvent]:
        """The last events, where the stream did not end by itself."""
        if self.stream.verdict is not None:
            return []
        verdict = self.stream.close(self._ended_by)
        events = self.stream.closing_events
        if verdict.error is not None and not any(isinstance(event, Failed) for event in events):
            events.append(Failed(verdict.error))
        return events

    def abandon(self, error: BaseException) -> None:
        """The reading is broken off: by the consumer, or by an exception that is not the source's to make."""
        self.stream.close(self._ended_by or (error if isinstance(error, Exception) else "cancelled"))
