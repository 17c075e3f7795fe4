"""The error tree, and the one table of codes: which class, at which stage, in which words.

Programs compare `code`; people read the sentence. No error holds text of the stream: codes, offsets, sizes and digests
only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from collections.abc import Callable

BEFORE_SSE = "before_sse"
EVENT_DECODING = "event_decoding"
PROVIDER = "provider"
CONNECTION_CLOSE = "connection_close"
GENERATION = "generation"
TOOL_VALIDATION = "tool_validation"


class GlmsseError(Exception):
    """Root of all errors of this package.

    code         stable word for programs, one of `CODES` or `finish_<reason>`; `misuse` of a MisuseError
    parent_code  the wider code this one is a kind of, or None
    stage        where in the reading it happened, as in `Verdict.stage`; None for misuse
    offset       byte of the stream, or None where no byte is at fault
    events       what was completed before the fault in the same call (filled by `SSEFramer.feed` only)
    """

    outcome: ClassVar[str] = "misuse"
    fact_names: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        code: str,
        *,
        offset: int | None = None,
        stage: str | None = None,
        parent_code: str | None = None,
        **facts: object,
    ) -> None:
        self.code = code
        self.offset = offset
        self.stage = stage
        self.parent_code = parent_code
        self.events: list[Any] = []
        for name in self.fact_names:
            setattr(self, name, facts.pop(name, None))
        if facts:
            raise TypeError(f"{type(self).__name__} has no {', '.join(sorted(facts))}")
        super().__init__(code)

    def __str__(self) -> str:
        place = "" if self.offset is None else f" at byte {self.offset}"
        return f"{self.code}{place}: {self._sentence()}"

    def _sentence(self) -> str:
        return sentence_of(self.code)

    def to_dict(self) -> dict[str, Any]:
        """Every field but `events`, as JSON types."""
        names = ("code", "parent_code", "stage", "offset", *self.fact_names)
        return {name: getattr(self, name) for name in names}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, GlmsseError):
            return NotImplemented
        return type(self) is type(other) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((type(self), self.code, self.offset))

    def __reduce__(self) -> tuple[Callable[..., GlmsseError], tuple[Any, ...]]:
        return _rebuild, (type(self), self.to_dict())

    def again(self) -> GlmsseError:
        """An equal error without events and without a traceback, to be raised once more."""
        return _rebuild(type(self), self.to_dict())


def _rebuild(cls: type[GlmsseError], fields: dict[str, Any]) -> GlmsseError:
    return cls(**fields)


class ProtocolError(GlmsseError):
    """The stream breaks the event-stream rules, JSON or the wire contract."""

    outcome = "protocol_error"
    fact_names: ClassVar[tuple[str, ...]] = ("id_digests",)
    id_digests: tuple[str | None, str | None] | None
    """spliced_frame: SHA-256 (first 16 hex digits) of the ids of the cut and of the whole object."""


class LimitError(GlmsseError):
    """A cap of `Limits` was passed, at the byte `offset`.

    limit    the name of the field of Limits
    maximum  its value, in the unit of its name
    seen     what would have been needed, at least
    """

    outcome = "limit_exceeded"
    fact_names: ClassVar[tuple[str, ...]] = ("limit", "maximum", "seen")
    limit: str
    maximum: int
    seen: int

    def _sentence(self) -> str:
        return (
            f"{sentence_of(self.code)}: {self.limit} is {self.maximum}, at least {self.seen} needed; "
            f"raise Limits.{self.limit} if this provider really sends that much"
        )


class ProviderError(GlmsseError):
    """The provider reported an error inside the stream; `category` as in `Verdict.category`.

    provider_code, request_id  the provider's own, where they are short and of harmless characters; its message is not
                               kept, since it can echo input
    """

    outcome = "provider_error"
    fact_names: ClassVar[tuple[str, ...]] = ("category", "provider_code", "request_id")
    category: str | None
    provider_code: str | None
    request_id: str | None

    def _sentence(self) -> str:
        return f"{sentence_of(self.code)} (category {self.category})"


class ResponseError(GlmsseError):
    """The response is no event stream: wrong status or media type, or a content coding left on. `status` is HTTP's."""

    outcome = "http_error"
    fact_names: ClassVar[tuple[str, ...]] = ("status",)
    status: int | None

    def _sentence(self) -> str:
        return f"{sentence_of(self.code)} (HTTP status {self.status})"


class IncompleteStream(GlmsseError):
    """The stream ended before the answer did. `missing` as in `Verdict.missing`; `tail` counts the bytes of an event
    that never got its blank line."""

    outcome = "incomplete"
    fact_names: ClassVar[tuple[str, ...]] = ("missing", "tail")
    missing: tuple[str, ...] | None
    tail: int | None

    def _sentence(self) -> str:
        if self.tail:
            return f"{sentence_of(self.code)} ({self.tail} bytes)"
        missing = f" (missing: {', '.join(self.missing)})" if self.missing else ""
        return f"{sentence_of(self.code)}{missing}"


class RejectedError(GlmsseError):
    """The stream is whole, but its answer may not be used. `choice` and `index` name the tool call at fault, if any."""

    outcome = "not_accepted"
    fact_names: ClassVar[tuple[str, ...]] = ("choice", "index")
    choice: int | None
    index: int | None

    def _sentence(self) -> str:
        place = "" if self.index is None else f" (choice {self.choice}, call {self.index})"
        return f"{sentence_of(self.code)}{place}"


class MisuseError(GlmsseError, TypeError, ValueError):
    """The calling program broke a rule of this package: a wrong type, an unknown option, a call out of turn.

    Also a TypeError and a ValueError, so that code which guards its arguments with those keeps working.
    """

    fact_names: ClassVar[tuple[str, ...]] = ("reason",)
    reason: str | None

    def __init__(
        self,
        reason: str = "",
        *,
        code: str = "misuse",
        offset: int | None = None,
        stage: str | None = None,
        parent_code: str | None = None,
    ) -> None:
        super().__init__(code, offset=offset, stage=stage, parent_code=parent_code, reason=reason)

    def __str__(self) -> str:
        return self.reason or self.code


# Class, stage, and the sentence of each code. A code of the form finish_<reason> is not listed: see `finish_code`.
_TABLE: tuple[tuple[type[GlmsseError], str, dict[str, str]], ...] = (
    (
        ResponseError,
        BEFORE_SSE,
        {
            "http_status": "the status is not 200; category, retry_after and replay of the verdict say what to do",
            "content_type": "the media type is not text/event-stream, so the body is not read as a stream",
            "content_encoding": "a content coding is left on; ask for identity, or decode before feeding",
        },
    ),
    (
        ProtocolError,
        EVENT_DECODING,
        {
            "invalid_utf8": "a line is not UTF-8",
            "bad_json": "an event is not JSON",
            "spliced_frame": "one event holds a cut object and a whole one: two responses were mixed; ask again",
            "event_not_object": "an event is JSON but not an object",
            "json_nonfinite": "JSON holds NaN, Infinity or a number beyond a double",
            "json_too_deep": "JSON nests deeper than Limits.max_json_depth",
            "json_number_too_long": "a JSON number is longer than Limits.max_number_chars",
            "duplicate_key": "a JSON object has the same key twice",
            "lone_surrogate": "a text holds half of a surrogate pair without the other half",
            "unexpected_shape": "a field of a chunk has another JSON type or value than the wire contract says",
            "stable_conflict": "the id, type or name of a tool call changed",
            "arguments_type": "the arguments of a tool call are not a string",
            "unexpected_choice": "a choice came that was not promised; pass choices=N to ChatStream",
            "finish_conflict": "a choice finished with two different reasons",
            "delta_after_finish": "a choice went on after its finish reason",
            "response_id_changed": "the response id changed: two responses were mixed",
            "legacy_function_call": "a delta holds the old function_call instead of tool_calls",
            "message_not_delta": "a choice holds a message instead of a delta",
        },
    ),
    (ProviderError, PROVIDER, {"provider_error": "the provider reported an error in the stream"}),
    (
        LimitError,
        EVENT_DECODING,
        {
            "event_too_large": "an event is too large",
            "too_many_event_lines": "an event has too many lines",
            "too_many_events": "the stream has too many events",
            "stream_too_large": "the stream is too large",
            "content_too_large": "the content of a choice is too large",
            "reasoning_too_large": "the reasoning of a choice is too large",
            "argument_too_large": "the arguments of a tool call are too large",
            "too_many_tool_calls": "a choice has too many tool calls",
            "too_many_choices": "the response has too many choices",
        },
    ),
    (
        IncompleteStream,
        CONNECTION_CLOSE,
        {
            "unterminated_event": "the stream ended inside an event, which was not delivered",
            "incomplete_stream": "the stream ended without all evidence of a complete answer",
            "empty_stream": "the stream ended without a single chunk",
            "deadline_first_byte": "no byte came before the first-byte deadline",
            "deadline_idle": "nothing new came before the idle deadline",
            "deadline_total": "the answer was not complete before the total deadline",
            "cancelled": "the reader gave up before the answer was complete",
        },
    ),
    (
        RejectedError,
        TOOL_VALIDATION,
        {
            "tool_id_missing": "a tool call has no id, so its result could not be returned",
            "tool_name_missing": "a tool call has no name",
            "tool_not_offered": "a tool call names a tool that is not among the tools given to ChatStream",
            "tool_finish_without_calls": "the finish reason is tool_calls, but there is no call",
            "tools_without_tool_finish": "there are tool calls, but the finish reason is stop",
            "arguments_empty": "the arguments of a tool call are empty",
            "arguments_not_json": "the arguments of a tool call are not JSON",
            "arguments_not_object": "the arguments of a tool call are not a JSON object",
        },
    ),
)

CODES = {code: (cls, stage, sentence) for cls, stage, codes in _TABLE for code, sentence in codes.items()}
"""Every fixed code: its class, its stage, and what it means."""

CLOSE_CODES = frozenset(("deadline_first_byte", "deadline_idle", "deadline_total", "cancelled"))
"""The codes that `ChatStream.close(error=…)` takes over."""

# The fault codes of Limits' caps, for the places that count.
LIMIT_CODES = {
    "max_event_bytes": "event_too_large",
    "max_event_lines": "too_many_event_lines",
    "max_stream_bytes": "stream_too_large",
    "max_events": "too_many_events",
    "max_content_bytes": "content_too_large",
    "max_reasoning_bytes": "reasoning_too_large",
    "max_argument_bytes": "argument_too_large",
    "max_tool_calls": "too_many_tool_calls",
    "max_choices": "too_many_choices",
}

_REASON_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz_")


def finish_code(reason: str) -> str:
    """`finish_<reason>` for a reason of 1 to 40 letters a to z or `_`, else finish_other: a code never carries text."""
    if 1 <= len(reason) <= 40 and _REASON_LETTERS.issuperset(reason):
        return f"finish_{reason}"
    return "finish_other"


def sentence_of(code: str) -> str:
    entry = CODES.get(code)
    return entry[2] if entry else "the finish reason says that the answer is not complete or not usable"


def fault(code: str, **facts: Any) -> GlmsseError:
    """The error for a code of `CODES`, of the right class and at the right stage. The caller raises it."""
    cls, stage, _ = CODES[code]
    return cls(code, stage=stage, **facts)


def limit_fault(limit: str, maximum: int, seen: int, offset: int | None = None) -> GlmsseError:
    """The LimitError for one cap of `Limits`."""
    return fault(LIMIT_CODES[limit], limit=limit, maximum=maximum, seen=seen, offset=offset)


def rejected(code: str, stage: str, *, choice: int | None = None, index: int | None = None) -> GlmsseError:
    """The RejectedError of a finish reason (stage generation) or of a call at stage tool_validation, where strict JSON
    codes keep their name."""
    return RejectedError(code, stage=stage, choice=choice, index=index)
