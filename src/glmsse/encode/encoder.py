"""What both encoders share: turns, checks of what the caller hands in, and the one place where a stream ends."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from .._single_use import SingleUse
from ..errors import GlmsseError, MisuseError, ResponseError, fault
from ..events import (
    ArgumentsDelta,
    ChatEvent,
    ContentDelta,
    Done,
    Failed,
    Finish,
    ReasoningDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from ..verdict import Verdict
from .calls import OutgoingCall
from .ending import ChoiceEnd, ErrorReport, reasons_to_write, report_on, report_on_verdict

_EVENTS = (
    ReasoningDelta,
    ContentDelta,
    ToolCallStart,
    ArgumentsDelta,
    ToolCallEnd,
    Finish,
    Usage,
    Done,
    Failed,
)

# Argument text that was written cannot be taken back, so a tolerance that changed its beginning has come too late.
_CHANGED_AFTER_WRITING = "arguments_not_json"


def checked_text(option: str, value: str) -> str:
    """An option of an encoder that is written into the stream; MisuseError for anything but writable text."""
    if not isinstance(value, str):
        raise MisuseError(f"{option} takes a str, not {type(value).__name__}")
    if any("\ud800" <= character <= "\udfff" for character in value):
        raise MisuseError(f"{option} holds half of a surrogate pair")
    return value


class OutgoingChoice:
    """One choice: its finish reason and its calls by index."""

    __slots__ = ("begun", "calls", "reason")

    def __init__(self) -> None:
        self.begun = False
        self.reason: str | None = None
        self.calls: dict[int, OutgoingCall] = {}

    def call(self, index: int) -> OutgoingCall:
        if index not in self.calls:
            self.calls[index] = OutgoingCall(index)
        return self.calls[index]


class Encoder(SingleUse, ABC):
    """Typed events in, the bytes of a stream out. `encode` any number of times, then `finish` once.

    The events are those of a `ChatStream` (with deltas) or of a `ToolCallParser`, all of them, in their order. Bytes
    come as early as they can be right; the rest with `finish`. After a MisuseError the encoder is of no more use.
    """

    __slots__ = ("_choices", "_ended", "_finished", "_refused", "_usage")

    def __init__(self) -> None:
        self._choices: dict[int, OutgoingChoice] = {}
        self._usage: Usage | None = None
        self._refused: GlmsseError | None = None
        self._ended = False
        self._finished = False

    def encode(self, events: Iterable[ChatEvent]) -> bytes:
        """The bytes that these events allow to write. A `Failed` among them ends the stream with an error."""
        batch = list(events)
        for event in batch:
            self._check(event)
        if self._finished:
            raise MisuseError("encode was called after finish")
        out: list[bytes] = []
        for event in batch:
            if self._ended or self._refused:
                break
            self._take(event, out)
        return b"".join(out)

    def finish(self, verdict: Verdict | None) -> bytes:
        """The rest of the stream. An accepted verdict ends it normally, any other with an error; one over a cut or
        withheld answer (`length`, `model_context_window_exceeded`, `sensitive`, `content_filter`) with that reason.

        verdict  of the stream that the events come from; None where nobody judged it, as with raw text: the finish
                 events then decide, and calls are passed on unread
        """
        if verdict is not None and not isinstance(verdict, Verdict):
            raise MisuseError(f"finish takes a Verdict or None, not {type(verdict).__name__}")
        if self._finished:
            raise MisuseError("finish was called twice")
        if verdict is not None:
            for call in verdict.tool_calls:
                self._check_choice(call.choice)
        self._finished = True
        if self._ended:
            return b""
        out: list[bytes] = []
        error = self._finish(verdict, out)
        if error is not None:
            # What was prepared for a normal end is dropped: nothing of it may be mistaken for one.
            out = [self._error(error)]
        self._ended = True
        return b"".join(out)

    def ping(self) -> bytes:
        """A sign of life for the client, for a comment that came in or by the caller's timer; nothing after the end."""
        return b"" if self._ended else self._ping()

    def __repr__(self) -> str:
        return f"<{type(self).__name__}, {len(self._choices)} choices{', ended' if self._ended else ''}>"

    # What the protocols differ in.

    def _check_choice(self, choice: int) -> None:
        """MisuseError for a choice that cannot be written."""

    @abstractmethod
    def _ping(self) -> bytes:
        """What keeps the connection busy and says nothing."""

    @abstractmethod
    def _error(self, report: ErrorReport) -> bytes:
        """The end of a stream that failed."""

    @abstractmethod
    def _begin(self, choice: int, out: list[bytes]) -> None:
        """The choice has its first event."""

    @abstractmethod
    def _write_text(self, event: ContentDelta | ReasoningDelta, out: list[bytes]) -> None:
        """A piece of content or reasoning came."""

    @abstractmethod
    def _write_call(self, choice: int, call: OutgoingCall, piece: str, out: list[bytes]) -> None:
        """The call has changed: it became known, got a piece (not taken yet, "" for none), or ended."""

    @abstractmethod
    def _write_end(self, reasons: dict[int, str], verdict: Verdict | None, out: list[bytes]) -> ErrorReport | None:
        """The rest of a stream that ends without an error, or the error after all."""

    # What they share.

    def _check(self, event: object) -> None:
        if not isinstance(event, _EVENTS):
            raise MisuseError(f"encode takes events of a ChatStream or ToolCallParser, not {type(event).__name__}")
        if not isinstance(event, (Usage, Done, Failed)):
            self._check_choice(event.choice)

    def _choice(self, index: int, out: list[bytes]) -> OutgoingChoice:
        choice = self._choices.setdefault(index, OutgoingChoice())
        if not choice.begun:
            choice.begun = True
            self._begin(index, out)
        return choice

    def _take(self, event: ChatEvent, out: list[bytes]) -> None:
        if isinstance(event, Usage):
            self._usage = event
            return
        if isinstance(event, Failed):
            self._fail(event, out)
            return
        if isinstance(event, Done):
            return
        choice = self._choice(event.choice, out)
        if isinstance(event, (ContentDelta, ReasoningDelta)):
            self._write_text(event, out)
        elif isinstance(event, Finish):
            choice.reason = choice.reason or event.reason
        else:
            self._take_call(choice, event, out)

    def _take_call(
        self, choice: OutgoingChoice, event: ToolCallStart | ArgumentsDelta | ToolCallEnd, out: list[bytes]
    ) -> None:
        call = choice.call(event.index)
        piece = ""
        if isinstance(event, ToolCallStart):
            call.id, call.name = event.id or call.id, event.name or call.name
        elif isinstance(event, ArgumentsDelta):
            call.ended = False
            piece = event.arguments
        else:
            call.ended = True
        self._write_call(event.choice, call, piece, out)

    def _fail(self, event: Failed, out: list[bytes]) -> None:
        if isinstance(event.error, ResponseError):
            # The body of a refused response says what kind of error it is, so the verdict is waited for.
            self._refused = event.error
            return
        out.append(self._error(report_on(event.error)))
        self._ended = True

    def _finish(self, verdict: Verdict | None, out: list[bytes]) -> ErrorReport | None:
        if self._refused is not None:
            if verdict is None or verdict.accepted:
                return report_on(self._refused)
            return report_on_verdict(verdict)
        if verdict is not None and verdict.usage is not None:
            self._usage = verdict.usage
        if verdict is not None and verdict.accepted:
            self._take_over_calls(verdict, out)
        ends = {index: ChoiceEnd(choice.reason, bool(choice.calls)) for index, choice in sorted(self._choices.items())}
        reasons = reasons_to_write(ends, verdict)
        if isinstance(reasons, ErrorReport):
            return reasons
        return self._write_end(reasons, verdict, out)

    def _take_over_calls(self, verdict: Verdict, out: list[bytes]) -> None:
        """Ids and names that the verdict made up, and calls of which no event came."""
        self._choice(0, out)
        for judged in verdict.tool_calls:
            call = self._choice(judged.choice, out).call(judged.index)
            if not call.known:
                call.id, call.name = call.id or judged.id, call.name or judged.name

    def _settle_calls(self, index: int, verdict: Verdict | None) -> list[tuple[OutgoingCall, list[str]]] | ErrorReport:
        """The last pieces of every call of a choice; an error if a call cannot be shown as it was accepted, or has no
        id or name in a stream that ends normally."""
        accepted = verdict is not None and verdict.accepted
        judged = {} if verdict is None else {(call.choice, call.index): call for call in verdict.tool_calls}
        settled = []
        for call in self._choices[index].calls.values():
            expected = judged.get((index, call.index))
            pieces = call.settle(expected.arguments if expected else None, accepted=accepted)
            code = None
            if not call.known and (accepted or verdict is None):
                code = "tool_name_missing" if call.id else "tool_id_missing"
            elif pieces is None:
                code = _CHANGED_AFTER_WRITING
            if code:
                return report_on(fault(code, choice=index, index=call.index))
            settled.append((call, pieces or []))
        return settled
