"""`ChatStream`: the bytes of one streamed chat completion in, typed events out, one verdict at the end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ._single_use import SingleUse
from .assembly import Assembly, ContentParser
from .chunk import BLANKS, SENTINEL, ChunkReader
from .completion import Completion
from .errors import CLOSE_CODES, GlmsseError, MisuseError, fault, limit_fault
from .events import ChatEvent, Done, Failed, Usage
from .framing import ChatLane, ServerSentEvent, SSEFramer
from .limits import Limits, checked_limits
from .offered_tools import offered_names
from .profiles import Policy
from .provider import read_report
from .response import MOST_BODY_BYTES, Headers, ResponseHead, read_head
from .strict_json import nests_deeper
from .verdict import Evidence, Verdict, judge, may_end_here

if TYPE_CHECKING:
    from typing_extensions import Buffer


FAST_LANE = True
"""A switch for tests: without the fast lane every result is the same, only slower."""

INTERRUPTED = "an earlier call was interrupted and the stream lost its place: close it"


class ChatStream(SingleUse):
    """Reads one streamed chat completion.

    profile      one of PROFILES: the tolerances that are on; `zai` is strict
    allow, deny  names of TOLERANCES to turn on or off beside the profile; deny wins
    limits       caps, see Limits
    tools        the request's tools; if given, a call of any other name is refused as tool_not_offered
    choices      how many choices were asked for (`n` of the request); each needs its finish reason
    deltas       False: no event for pieces and calls, only finish, usage, done and failed
    collect      False: only arguments are kept, for the verdict to parse; neither it nor the snapshot shows any
    digest       True: the verdict has a SHA-256 over the events seen
    content_parser   a ToolCallParser for servers that leave raw GLM markup in `content`: events, snapshot and verdict
                 then show its calls. The finish reason stop is accepted with these, and tolerated as stop_with_tools

    `feed` never raises for what the peer sent: the last event is then `Failed`. MisuseError is for the caller alone: a
    wrong type, an unknown option, a call out of turn, two threads in one stream. One object serves one response.
    """

    __slots__ = (
        "_adding",
        "_assembly",
        "_body",
        "_bytes_ignored",
        "_closed",
        "_closing_events",
        "_digest",
        "_ended",
        "_events",
        "_events_read",
        "_evidence",
        "_fast_events_before",
        "_framer",
        "_head",
        "_interrupted",
        "_lane",
        "_limits",
        "_policy",
        "_reader",
        "_refused",
        "_verdict",
    )

    def __init__(
        self,
        profile: str = "zai",
        *,
        allow: Iterable[str] = (),
        deny: Iterable[str] = (),
        limits: Limits | None = None,
        tools: Iterable[dict[str, Any]] | None = None,
        choices: int = 1,
        deltas: bool = True,
        collect: bool = True,
        digest: bool = False,
        content_parser: ContentParser | None = None,
    ) -> None:
        self._limits = checked_limits(limits)
        # A server that leaves calls in the content does not know that there are any.
        also = () if content_parser is None else ("stop_with_tools",)
        self._policy = Policy(profile, allow, deny, also=also)
        if not (type(deltas) is type(collect) is type(digest) is bool):
            raise MisuseError("deltas, collect and digest take a bool each")
        if type(choices) is not int or choices < 1:
            raise MisuseError("choices takes a positive int")
        if self._limits.max_choices is not None and choices > self._limits.max_choices:
            raise MisuseError("choices is more than Limits.max_choices")
        if content_parser is not None:
            if choices != 1:
                raise MisuseError("content_parser reads one choice")
            if not callable(getattr(content_parser, "feed", None)) or not callable(
                getattr(content_parser, "close", None)
            ):
                raise MisuseError("content_parser takes a ToolCallParser")
            content_parser.feed("")  # MisuseError here if it was closed already, and not when the peer's bytes come
        self._framer = SSEFramer(self._limits)
        self._reader = ChunkReader(self._limits, self._policy)
        self._lane = ChatLane(
            self._limits,
            deltas=deltas,
            aliases=self._policy.allows("reasoning_alias"),
            enabled=FAST_LANE and not digest and content_parser is None,
        )
        self._assembly = Assembly(
            self._limits,
            self._policy,
            self._lane,
            choices=choices,
            deltas=deltas,
            collect=collect,
            content_parser=content_parser,
        )
        self._evidence = Evidence(self._assembly, self._policy, self._limits, offered_tools=offered_names(tools))
        self._digest = sha256() if digest else None
        self._head: ResponseHead | None = None
        self._refused: GlmsseError | None = None
        self._body: bytearray | None = None  # the start of a refused response's
        self._bytes_ignored = 0
        self._closed = self._adding = False
        self._interrupted = False  # by MemoryError or the like, at a place that nobody knows: nothing more is read
        self._ended = False  # nothing is read any more: refused, judged or closed
        self._verdict: Verdict | None = None
        self._events: list[ChatEvent] = []
        self._closing_events: Sequence[ChatEvent] = ()
        self._events_read = 0
        self._fast_events_before = 0  # forget took the lane that counted them

    def start(self, status: int, headers: Headers) -> list[ChatEvent]:
        """Check the response before its body: status 200, then text/event-stream, then no content coding left.

        Returns nothing, or `[Failed]`; then feed the body all the same (it may say why) and close for the verdict.
        """
        problem = None
        if self._head is not None or self.bytes_seen or self.events_seen or self._closed or self._is_busy():
            problem = "start comes once, before the first feed, add or close"
        else:
            try:
                self._head = read_head(status, headers)
            except MisuseError as error:
                problem = error.reason
        del headers
        if self._head is None or problem is not None:
            raise MisuseError(problem or "")
        self._refused = self._head.fault(self._policy)
        self._ended = self._refused is not None
        return [Failed(self._refused)] if self._refused else []

    def feed(self, data: Buffer) -> list[ChatEvent]:
        """The events that these bytes complete. `data` is any C-contiguous bytes-like object, cut anywhere.

        After `[DONE]`, a fault or a refused start the bytes are counted and nothing is returned.
        """
        if self._ended:
            problem = self._ignore(data)
            del data
            if problem is not None:
                raise problem
            return []
        events: list[ChatEvent] = []
        self._events = events
        try:
            fault = self._framer._feed_to(data, self._lane, events, self)
            if fault is None:
                return events
            del data  # no frame of ours holds input when something is raised
            return self._end_feed(fault, events)
        except MisuseError:
            raise
        except BaseException:
            self._interrupted = self._ended = True
            raise

    def add(self, chunk: dict[str, Any]) -> list[ChatEvent]:
        """The events of one chunk that was parsed elsewhere. It never is the sentinel: alone, `add` needs
        `done_optional`. Each counts into `max_events`; of strict JSON only the depth can be judged any more."""
        problem = None
        if self._closed:
            problem = "add was called after close"
        elif self._is_busy():
            problem = "add was called while the stream was at work: one stream, one thread"
        elif self._interrupted:
            problem = INTERRUPTED
        elif not isinstance(chunk, dict):
            problem = f"add takes a dict, not {type(chunk).__name__}"
        if problem:
            del chunk
            raise MisuseError(problem)
        events: list[ChatEvent] = []
        if self._ended:
            return events
        self._adding = self._ended = True  # a feed from within takes the slow way, and is refused there
        try:
            self._guard(self._read_added, chunk, self.bytes_seen, events)
        except BaseException:
            self._interrupted = True
            raise
        finally:
            self._adding = False
        self._ended = self._verdict is not None
        return events

    def close(self, error: BaseException | str | None = None) -> Verdict:
        """The verdict, now that the body has ended; again and again the same one. See also `closing_events`.

        error  what ended it, if it did not end by itself: an exception, or one of deadline_first_byte, deadline_idle,
               deadline_total and cancelled (which an exception may carry as its `code`). Another exception or word
               leaves the code to the evidence. After `[DONE]` or a fault it changes nothing.
        """
        if self._is_busy():
            raise MisuseError("close was called while the stream was at work: one stream, one thread")
        if error is not None and not isinstance(error, (str, BaseException)):
            raise MisuseError(f"close takes an exception or a code, not {type(error).__name__}")
        self._closed = self._ended = True
        if self._verdict is None:
            interrupted, self._interrupted = self._interrupted, True  # until there is a verdict
            self._evidence.clean_end = error is None and not interrupted
            self._evidence.close_code = _close_code(error)
            if self._refused or interrupted:  # what was read is all there is
                self._evidence.fault = self._refused or self._evidence.fault
                self._judge(self.bytes_seen)
            else:
                self._end_body()
        assert self._verdict is not None
        return self._verdict

    def forget(self) -> None:
        """Let go of all text, after `close`: what stays are the counters and the verdict, with its calls and usage.

        For those who keep streams longer than their answers. Memory is released, not overwritten.
        """
        if not self._closed:
            raise MisuseError("forget comes after close")
        self._bytes_ignored, self._events_read = self.bytes_seen, self.events_seen
        self._fast_events_before = self.fast_events_seen
        self._framer = SSEFramer(self._limits)
        self._lane = ChatLane(self._limits, deltas=False, aliases=False, enabled=False)
        self._assembly.forget(self._lane)
        self._events, self._closing_events, self._body, self._head = [], (), None, None

    @property
    def closing_events(self) -> list[ChatEvent]:
        """The events that only `close` could read: of a last event without its blank line (`flush_tail`), and those
        that end calls and held-back text where no `[DONE]` came. Empty before `close` and after `forget`."""
        return list(self._closing_events)

    @property
    def snapshot(self) -> Completion:
        """What has been received so far. Built at each call, so ask for it at the end, not at every event."""
        return self._assembly.snapshot()

    @property
    def verdict(self) -> Verdict | None:
        """The verdict, from `[DONE]`, a fault or `close` on; it never changes."""
        return self._verdict

    @property
    def phase(self) -> str:
        """waiting, started, reasoning, answering or calling (whatever came last), complete or failed."""
        if self._refused:
            return "failed"
        if self._verdict is not None:
            return "complete" if self._verdict.accepted else "failed"
        return self._assembly.activity or ("started" if self._evidence.read_any else "waiting")

    @property
    def done(self) -> bool:
        """Whether `[DONE]` came."""
        return self._evidence.done

    @property
    def failed(self) -> bool:
        """Whether the answer may not be used: a refused start, a fault, or a verdict that is not accepted."""
        return self.phase == "failed"

    @property
    def usage(self) -> Usage | None:
        """The last usage event."""
        return self._assembly.usage

    @property
    def events_seen(self) -> int:
        """Events read, up to the one that ended the stream; of chunks given to `add` also."""
        return self._events_read + self._lane.hits

    @property
    def fast_events_seen(self) -> int:
        """How many of `events_seen` the fast lane took, by template or scanner. It measures speed alone: it depends on
        the build and on the cutting."""
        return self._fast_events_before + self._lane.hits

    @property
    def bytes_seen(self) -> int:
        """All bytes fed, those behind the end too."""
        return self._framer.bytes_seen + self._bytes_ignored

    @property
    def collects(self) -> bool:
        """Whether text is kept for the snapshot."""
        return self._assembly.collect

    @property
    def pieces_seen(self) -> int:
        """Non-empty pieces of text and calls, finish reasons and usages so far, events made of them or not: what a
        deadline counts as progress."""
        return self._assembly.pieces_seen

    def __repr__(self) -> str:
        return f"<ChatStream {self.phase}, {self.bytes_seen} bytes, {self.events_seen} events>"

    def _is_busy(self) -> bool:
        return self._adding or self._framer.busy

    def _end_feed(self, fault: GlmsseError, events: list[ChatEvent]) -> list[ChatEvent]:
        """What the framer found: a misuse is raised, a fault of the peer is the last event."""
        if isinstance(fault, MisuseError):
            raise fault
        if self._verdict is None:
            self._fail(fault, events)
        return events

    def _receive(self, event: ServerSentEvent) -> None:
        """An event that the lane did not take. What follows the end in the same feed is ignored."""
        if self._verdict is None:
            self._guard(self._read_event, event, event.offset, self._events)

    def _receive_usage(self, raw: dict[str, Any]) -> None:
        """The usage beside a piece that the lane takes."""
        self._assembly.take_usage(raw, self._events)

    def _ignore(self, data: Buffer) -> MisuseError | None:
        """Count bytes that are not read any more; of a refused response keep the start of the body."""
        if self._closed:
            return MisuseError("feed was called after close")
        if self._interrupted:
            return MisuseError(INTERRUPTED)
        if self._adding:
            return MisuseError("feed was called while the stream was at work: one stream, one thread")
        try:
            view = memoryview(data)
        except (TypeError, ValueError, BufferError):
            return MisuseError(f"feed takes a C-contiguous bytes-like object, which this {type(data).__name__} is not")
        if not view.c_contiguous:
            return MisuseError("feed takes a C-contiguous bytes-like object, which this view is not")
        self._bytes_ignored += view.nbytes
        if self._refused:
            self._body = self._body or bytearray()
            self._body += view.tobytes()[: MOST_BODY_BYTES - len(self._body)]
        return None

    def _guard(
        self, read: Callable[[Any, list[ChatEvent]], None], item: object, offset: int, events: list[ChatEvent]
    ) -> None:
        """Read one event or chunk; a fault in it ends the stream, at the offset of its block."""
        self._events_read += 1
        try:
            read(item, events)
        except GlmsseError as error:
            # A fresh error: the one raised holds frames, and these hold text.
            fault = error.again()
        else:
            return
        fault.offset = offset
        self._fail(fault, events)

    def _read_event(self, event: ServerSentEvent, events: list[ChatEvent]) -> None:
        if self._digest is not None:
            data = event.data.encode()
            self._digest.update(b"%b\n%d\n%b\n" % (event.event.encode(), len(data), data))
        text = event.data.strip(BLANKS)
        if event.event == "error":
            raise read_report(self._reader.whole_object(text)).as_fault()
        if text == SENTINEL:
            self._finish(event.offset, events)
        elif text:
            chunks = self._reader.read(text)
            if len(chunks) == 1:
                self._evidence.read_any |= self._assembly.take_payload(chunks[0], event.data, events)
            else:
                for chunk in chunks:
                    self._read_chunk(chunk, events)

    def _read_added(self, chunk: dict[str, Any], events: list[ChatEvent]) -> None:
        most = self._limits.max_events
        if most is not None and self.events_seen > most:
            raise limit_fault("max_events", most, self.events_seen)
        if nests_deeper(chunk, self._limits.max_json_depth):
            raise fault("json_too_deep")
        if self._digest is not None:
            self._digest.update(_spelt(chunk))
        self._read_chunk(chunk, events)

    def _read_chunk(self, chunk: dict[str, Any], events: list[ChatEvent]) -> None:
        self._evidence.read_any |= self._assembly.take(chunk, events)
        self._lane.clear()

    def _finish(self, offset: int, events: list[ChatEvent]) -> None:
        self._assembly.end(events)
        self._evidence.read_any = self._evidence.done = True
        events.append(Done())
        self._judge(offset)

    def _fail(self, fault: GlmsseError, events: list[ChatEvent]) -> None:
        events.append(Failed(fault))
        self._evidence.fault = fault
        self._judge(self.bytes_seen)

    def _end_body(self) -> None:
        """The body ended without the sentinel."""
        events: list[ChatEvent] = []
        self._closing_events = events
        self._evidence.tail = self._framer.tail
        if self._evidence.clean_end and self._policy.allows("flush_tail"):
            self._flush_tail(events)
        if self._verdict is None:
            # Where nothing else is missing than what a tolerance makes up for, the answer ends as at the sentinel.
            ends = may_end_here(self._evidence)
            try:
                (self._assembly.end if ends else self._assembly.end_content)(events)
            except GlmsseError as error:
                self._fail(error.again(), events)
            else:
                self._judge(self.bytes_seen)

    def _flush_tail(self, events: list[ChatEvent]) -> None:
        event = self._framer._tail_event()
        if event is None:
            return
        text = event.data.strip(BLANKS)
        if text == SENTINEL or self._reader.whole_object(text) is not None:
            self._policy.use("flush_tail")
            self._evidence.tail = 0
            self._guard(self._read_event, event, event.offset, events)

    def _judge(self, offset: int) -> None:
        evidence = self._evidence
        evidence.offset = offset
        if self._head is not None:
            evidence.status_checked = True
            evidence.retry_after = self._head.retry_after
            if self._refused:
                evidence.report = self._head.report(bytes(self._body or b""))
        if self._digest is not None:
            evidence.digest = self._digest.hexdigest()
        self._lane.clear()
        self._ended = True
        self._verdict = judge(evidence)


def _spelt(chunk: dict[str, Any]) -> bytes:
    """The chunk as JSON, for the digest; what JSON cannot spell is left out or named by its type."""
    try:
        return json.dumps(chunk, default=lambda value: type(value).__name__, skipkeys=True).encode()
    except ValueError:  # a number of more digits than the interpreter writes
        return b"{}"


def _close_code(error: BaseException | str | None) -> str | None:
    code = error if isinstance(error, str) else getattr(error, "code", None)
    return code if isinstance(code, str) and code in CLOSE_CODES else None
