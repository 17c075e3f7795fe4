"""Chunks → typed events and the snapshot, per choice: the one place where text is joined and where calls are kept."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from .chunk import (
    Object,
    arguments_field,
    content_pieces,
    delta_field,
    index_field,
    is_error,
    legacy_call,
    object_field,
    objects_field,
    reasoning_field,
    replace_surrogates,
    word_field,
)
from .completion import Choice, Completion, ToolCall
from .errors import fault, limit_fault
from .events import (
    ArgumentsDelta,
    ChatEvent,
    ContentDelta,
    Failed,
    Finish,
    ReasoningDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from .framing import ChatLane, TextStore
from .limits import Limits
from .profiles import FINISH_ALIASES, Policy
from .provider import read_report
from .strict_json import has_lone_surrogate

ACCEPTED_REASONS = ("stop", "tool_calls")
CONTENT, REASONING, ARGUMENTS = range(3)


class ContentParser(Protocol):
    """Reads markup that a server left in the content; `ToolCallParser` is one."""

    def feed(self, text: str) -> list[ChatEvent]: ...

    def close(self, reason: str | None = "stop") -> list[ChatEvent]: ...


class TextBuffer:
    """One text that arrives in pieces, as UTF-8. Joins surrogate halves over two pieces; counts before it stores."""

    __slots__ = ("_high", "_limit", "_maximum", "_policy", "store")

    def __init__(self, limits: Limits, limit: str, policy: Policy, *, keep: bool) -> None:
        self._limit = limit
        self._maximum: int | None = getattr(limits, limit)
        self._policy = policy
        self._high = ""
        self.store = TextStore(self._maximum, keep)

    def take(self, piece: str) -> str:
        """Add a piece; what can be shown of it now, "" if that is nothing. A fault adds nothing."""
        piece = self._high + piece
        high = ""
        try:
            raw = piece.encode()
        except UnicodeEncodeError:
            raw = b""
        if not raw and piece:
            piece, high = self._mend(piece)
            raw = piece.encode()
        size = self.store.size + len(raw)
        if self._maximum is not None and size > self._maximum:
            raise limit_fault(self._limit, self._maximum, size)
        self.store.add(raw)
        self._high = high
        self.store.waiting = bool(high)
        return piece

    @property
    def waits(self) -> bool:
        """Whether the first half of a surrogate pair waits for the other."""
        return self.store.waiting

    def settle(self) -> str:
        """The text ends here, and a half still waits: it is lone, which is a fault or, by tolerance, U+FFFD."""
        if not self._policy.use("surrogate_replace"):
            raise fault("lone_surrogate")
        self._high = ""
        self.store.waiting = False
        return self.take("\ufffd")

    def _mend(self, piece: str) -> tuple[str, str]:
        """The piece with pairs joined, and the high half at its end that waits for the next piece."""
        piece = piece.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
        high = ""
        if "\ud800" <= piece[-1] <= "\udbff":
            piece, high = piece[:-1], piece[-1]
        if has_lone_surrogate(piece):
            if not self._policy.use("surrogate_replace"):
                raise fault("lone_surrogate")
            piece = replace_surrogates(piece)
        return piece, high

    @property
    def size(self) -> int:
        return self.store.size

    @property
    def text(self) -> str:
        return self.store.text


class CallAssembly:
    """One tool call as received so far."""

    __slots__ = ("_begins_with_empty_object", "arguments", "complete", "from_content", "id", "index", "name", "started")

    def __init__(self, index: int, arguments: TextBuffer) -> None:
        self.index = index
        self.from_content = False
        self.id: str | None = None
        self.name: str | None = None
        self.arguments = arguments
        self.started = False
        self.complete = False
        self._begins_with_empty_object = False

    def take(self, piece: str) -> str:
        if not self.arguments.size:
            self._begins_with_empty_object = piece == "{}"
        return self.arguments.take(piece)

    @property
    def text_after_empty_object(self) -> str | None:
        """The arguments without a first piece of exactly `{}`, if more pieces followed."""
        return self.arguments.text[2:] if self._begins_with_empty_object and self.arguments.size > 2 else None


class Piece(NamedTuple):
    """A non-empty piece of text as it came, and where it went: what the fast lane learns from."""

    kind: int
    text: str
    store: TextStore
    choice: int
    call: CallAssembly | None = None


class ChoiceAssembly:
    """One choice as received so far."""

    __slots__ = (
        "_index_aliases",
        "_limits",
        "_policy",
        "calls",
        "content",
        "finish_reason",
        "index",
        "last_call",
        "reasoning",
    )

    def __init__(self, index: int, limits: Limits, policy: Policy, *, collect: bool) -> None:
        self.index = index
        self._limits = limits
        self._policy = policy
        self.reasoning = TextBuffer(limits, "max_reasoning_bytes", policy, keep=collect)
        self.content = TextBuffer(limits, "max_content_bytes", policy, keep=collect)
        self.calls: dict[int, CallAssembly] = {}
        self.last_call: CallAssembly | None = None
        self.finish_reason: str | None = None
        self._index_aliases: dict[int, int] = {}

    @property
    def has_aliases(self) -> bool:
        """Whether an index on the wire is not the index of its call any more."""
        return bool(self._index_aliases)

    def sorted_calls(self) -> list[CallAssembly]:
        return [self.calls[index] for index in sorted(self.calls)] if self.calls else []

    def open_call(self, index: int) -> CallAssembly:
        """A new call, not stored yet: a faulty piece must add nothing."""
        most = self._limits.max_tool_calls
        if most is not None and len(self.calls) >= most:
            raise limit_fault("max_tool_calls", most, len(self.calls) + 1)
        # Arguments are kept even where no text is: the verdict has to parse them.
        return CallAssembly(index, TextBuffer(self._limits, "max_argument_bytes", self._policy, keep=True))

    def index_of(self, index: int | None, call_id: str | None, name: str | None) -> int:
        """The call that a piece belongs to, by its index or, where that is absent or used again, by tolerance."""
        if index is None:
            return self._index_without(call_id)
        target = self._index_aliases.get(index, index)
        call = self.calls.get(target)
        if call is None or not call.id or not call_id or call.id == call_id or not name:
            return target
        if not self._policy.use("index_reuse_split"):
            return target
        self._index_aliases[index] = self.next_index()
        return self._index_aliases[index]

    def _index_without(self, call_id: str | None) -> int:
        ambiguous = any(self.calls)  # another call than 0 is open
        if self._policy.allows("index_by_id"):
            target = self._index_by_id(call_id)
            if target or ambiguous:
                self._policy.use("index_by_id")
            return target
        if ambiguous:
            raise fault("unexpected_shape")
        return 0

    def _index_by_id(self, call_id: str | None) -> int:
        if self.last_call is None:
            return 0
        if call_id is None:
            return self.last_call.index
        for call in self.calls.values():
            if call.id == call_id:
                return call.index
        return self.last_call.index if self.last_call.id is None else self.next_index()

    def next_index(self) -> int:
        return max(self.calls, default=-1) + 1


class _Markup:
    """Content with markup in it: what reads it, what came of it as a whole, and the calls by the parser's index."""

    __slots__ = ("calls", "parser", "raw")

    def __init__(self, parser: ContentParser, limits: Limits, policy: Policy) -> None:
        self.parser = parser
        self.raw = TextBuffer(limits, "max_content_bytes", policy, keep=False)
        self.calls: dict[int, CallAssembly] = {}


class Assembly:
    """All choices of one response. `take` adds one chunk and appends its events to `events`.

    lane     knows what the model does, and takes pieces of text directly once it has seen some
    deltas   whether pieces and calls make events; if not, only finish and usage do
    collect  whether text is kept for the snapshot
    """

    __slots__ = (
        "_changes",
        "_deltas",
        "_is_described",
        "_lane",
        "_limits",
        "_markup",
        "_pieces_seen",
        "_plain",
        "_policy",
        "_promised",
        "choices",
        "collect",
        "created",
        "model",
        "response_id",
        "usage",
    )

    def __init__(
        self,
        limits: Limits,
        policy: Policy,
        lane: ChatLane,
        *,
        choices: int,
        deltas: bool,
        collect: bool,
        content_parser: ContentParser | None = None,
    ) -> None:
        self._limits = limits
        self._policy = policy
        self._lane = lane
        self._promised = choices
        self._deltas = deltas
        self.collect = collect
        self.choices: dict[int, ChoiceAssembly] = {}
        self.response_id: str | None = None
        self.model: str | None = None
        self.created: int | None = None
        self.usage: Usage | None = None
        self._markup = None if content_parser is None else _Markup(content_parser, limits, policy)
        self._is_described = False
        self._pieces_seen = 0
        self._changes = 0  # whatever happened, pieces of text aside
        self._plain: Piece | None = None

    @property
    def activity(self) -> str | None:
        """What the model does now: reasoning, answering, calling, or None before the first piece."""
        return self._lane.activity

    @property
    def pieces_seen(self) -> int:
        """Pieces that brought anything, finish reasons and usages: counted also where no event is made of them."""
        return self._pieces_seen + self._lane.hits

    @property
    def generated(self) -> bool:
        """Whether any piece of text or of a call has come."""
        return self.activity is not None

    @property
    def has_calls(self) -> bool:
        return any(choice.calls for choice in self.choices.values())

    def take(self, chunk: Object, events: list[ChatEvent]) -> bool:
        """Add one chunk; whether it had anything to read. Raises the fault at which reading must stop."""
        if is_error(chunk):
            raise read_report(chunk).as_fault()
        choices = chunk.get("choices")
        if choices:
            self._take_identity(chunk)
        elif choices in (None, []) and chunk.get("usage") is None:
            return False
        if chunk.get("usage") is not None:
            self.take_usage(object_field(chunk, "usage"), events)
        for choice in objects_field(chunk, "choices"):
            self._take_choice(choice, events)
        return True

    def take_payload(self, chunk: Object, data: str, events: list[ChatEvent]) -> bool:
        """`take` the only chunk of a payload, and let the lane learn from it."""
        pieces, changes, tolerances = self._pieces_seen, self._changes, self._policy.count_used
        read = self.take(chunk, events)
        if self._changes != changes or self._policy.count_used != tolerances:
            self._lane.offer(self._open_texts(), self.response_id, self._policy.has_used("reasoning_alias"))
        elif self._plain is not None and self._pieces_seen == pieces + 1:
            self._lane.note(data, self._plain)
        self._plain = None
        return read

    def _open_texts(self) -> Iterator[tuple[int, TextStore, int, CallAssembly | None]]:
        """Every text that a piece can go to without doing anything else: kind, store, choice, call."""
        for choice in self.choices.values():
            if choice.finish_reason is None:
                yield REASONING, choice.reasoning.store, choice.index, None
                yield CONTENT, choice.content.store, choice.index, None
            if not choice.has_aliases and choice.finish_reason in (None, "tool_calls"):
                for call in choice.calls.values():
                    # What its first piece is, `args_leading_empty_object` has to know.
                    if call.started and not call.complete and call.arguments.size:
                        yield ARGUMENTS, call.arguments.store, choice.index, call

    def end(self, events: list[ChatEvent]) -> None:
        """The sentinel came: texts end, and so do the calls that came after their choice's finish reason."""
        self.end_content(events)
        for choice in self.choices.values():
            self._settle(choice, events)
            if choice.finish_reason is not None:
                self._end_calls(choice, events)

    def promised_choices(self) -> list[tuple[int, ChoiceAssembly | None]]:
        """Every choice that was promised or seen, in order; None for one not seen yet."""
        if self._promised == len(self.choices) == 1:
            return list(self.choices.items())
        return [(index, self.choices.get(index)) for index in sorted({*range(self._promised), *self.choices})]

    def forget(self, lane: ChatLane) -> None:
        """Let go of all text, the old lane's too; what was counted stays."""
        self._pieces_seen = self.pieces_seen
        lane.activity = self.activity
        self._lane = lane
        self.choices.clear()
        self.response_id = self.model = self.created = self.usage = self._markup = self._plain = None

    def snapshot(self) -> Completion:
        return Completion(
            choices=tuple(self._choice_snapshot(index, choice) for index, choice in self.promised_choices()),
            id=self.response_id,
            model=self.model,
            created=self.created,
            usage=self.usage.raw if self.usage else None,
        )

    def _choice_snapshot(self, index: int, choice: ChoiceAssembly | None) -> Choice:
        if choice is None:
            return Choice(index)
        calls = tuple(
            ToolCall(
                choice=index,
                index=call.index,
                id=call.id,
                name=call.name,
                arguments=call.arguments.text if self.collect else "",
                complete=call.complete,
            )
            for call in choice.sorted_calls()
        )
        return Choice(index, choice.content.text, choice.reasoning.text, calls, choice.finish_reason)

    def _take_identity(self, chunk: Object) -> None:
        response_id = word_field(chunk, "id", self._policy)
        if response_id is not None and response_id != self.response_id:
            if self.response_id is None:
                self.response_id = response_id
                self._changes += 1
            elif not self._policy.use("response_id_unstable"):
                raise fault("response_id_changed")
        if not self._is_described:
            # For the snapshot only, so never judged; of the first chunk with choices, and not looked for again.
            self._is_described = True
            model, created = chunk.get("model"), chunk.get("created")
            self.model = model if isinstance(model, str) and model and not has_lone_surrogate(model) else None
            self.created = created if type(created) is int else None

    def take_usage(self, raw: Object, events: list[ChatEvent]) -> None:
        """Keep an object that has the three totals; any other is not usage."""
        prompt, completion = _count(raw.get("prompt_tokens")), _count(raw.get("completion_tokens"))
        total = _count(raw.get("total_tokens"))
        if prompt is None or completion is None or total is None:
            return
        self.usage = Usage(prompt, completion, total, _cached_tokens(raw), raw)
        self._pieces_seen += 1
        self._plain = None
        events.append(self.usage)

    def _take_choice(self, fields: Object, events: list[ChatEvent]) -> None:
        choice = self._choice_of(fields)
        delta, is_message = delta_field(fields, self._policy)
        self._take_reasoning(choice, reasoning_field(delta, self._policy), events)
        for is_reasoning, text in content_pieces(delta, self._policy):
            if is_reasoning:
                self._take_reasoning(choice, text, events)
            else:
                self._take_content(choice, text, events)
        for position, piece in enumerate(objects_field(delta, "tool_calls")):
            index = index_field(piece)
            self._take_tool_piece(choice, piece, position if index is None and is_message else index, events)
        legacy = legacy_call(delta, self._policy)
        if legacy is not None:
            self._take_tool_piece(choice, legacy, 0, events)
        self._take_finish(choice, fields, events)

    def _choice_of(self, fields: Object) -> ChoiceAssembly:
        index = index_field(fields) or 0
        if index and index >= self._promised:
            if self._policy.use("choice_index_ignore"):
                index = 0
            elif not self._policy.allows("multi_choice"):
                raise fault("unexpected_choice")
            else:
                most = self._limits.max_choices
                if most is not None and index >= most:
                    raise limit_fault("max_choices", most, index + 1)
                self._policy.use("multi_choice")
        elif index and self._policy.use("choice_index_ignore"):
            index = 0
        choice = self.choices.get(index)
        if choice is None:
            choice = ChoiceAssembly(index, self._limits, self._policy, collect=self.collect)
            self.choices[index] = choice
            self._changes += 1
        return choice

    def _take_reasoning(self, choice: ChoiceAssembly, text: str, events: list[ChatEvent]) -> None:
        if not text:
            return
        self._judge_late_text(choice)
        shown = choice.reasoning.take(text)
        self._lane.activity = "reasoning"
        self._pieces_seen += 1
        self._plain = Piece(REASONING, text, choice.reasoning.store, choice.index)
        if shown and self._deltas:
            events.append(ReasoningDelta(shown, choice.index))

    def _take_content(self, choice: ChoiceAssembly, text: str, events: list[ChatEvent]) -> None:
        if not text:
            return
        self._judge_late_text(choice)
        if self._markup is not None:
            read = self._markup.parser.feed(self._markup.raw.take(text))
            self._take_markup(choice, self._markup, read, events)
            return
        self._take_plain_content(choice, text, events)

    def _take_plain_content(self, choice: ChoiceAssembly, text: str, events: list[ChatEvent]) -> None:
        shown = choice.content.take(text)
        self._lane.activity = "answering"
        self._pieces_seen += 1
        self._plain = Piece(CONTENT, text, choice.content.store, choice.index)
        if shown and self._deltas:
            events.append(ContentDelta(shown, choice.index))

    def _take_markup(
        self, choice: ChoiceAssembly, markup: _Markup, read: list[ChatEvent], events: list[ChatEvent]
    ) -> None:
        """What the content parser made of the content, as if the server had sent it so."""
        for event in read:
            if isinstance(event, ContentDelta):
                self._take_plain_content(choice, event.text, events)
            elif isinstance(event, ReasoningDelta):
                self._take_reasoning(choice, event.text, events)
            elif isinstance(event, Failed):
                raise event.error.again()
            elif isinstance(event, (ToolCallStart, ArgumentsDelta, ToolCallEnd)):
                self._take_call_in_content(choice, markup.calls, event, events)

    def _take_call_in_content(
        self,
        choice: ChoiceAssembly,
        calls: dict[int, CallAssembly],
        event: ToolCallStart | ArgumentsDelta | ToolCallEnd,
        events: list[ChatEvent],
    ) -> None:
        self._lane.activity = "calling"
        self._pieces_seen += 1
        if isinstance(event, ToolCallStart):
            call = choice.open_call(choice.next_index())
            call.id, call.name, call.from_content = event.id, event.name, True
            choice.calls[call.index] = choice.last_call = calls[event.index] = call
            self._start_call(choice, call, "", events)
            return
        call = calls[event.index]
        if isinstance(event, ToolCallEnd):
            self._end_call(choice, call, events)
            return
        shown = call.take(event.arguments)
        if shown and self._deltas:
            events.append(ArgumentsDelta(call.index, shown, choice.index))

    def end_content(self, events: list[ChatEvent]) -> None:
        """The answer ended without a finish reason: let go of what the content parser still holds."""
        choice = self.choices.get(0)
        if self._markup is not None and choice is not None and choice.finish_reason is None:
            self._take_markup(choice, self._markup, self._markup.parser.close(None), events)

    def _judge_late_text(self, choice: ChoiceAssembly) -> None:
        if choice.finish_reason is not None and not self._policy.use("finish_advisory"):
            raise fault("delta_after_finish")

    def _take_tool_piece(
        self, choice: ChoiceAssembly, piece: Object, index: int | None, events: list[ChatEvent]
    ) -> None:
        # GLM-4.5 repeats its finish reason on each call, so calls may follow that one reason.
        if choice.finish_reason not in (None, "tool_calls"):
            raise fault("delta_after_finish")
        policy = self._policy
        call_id = word_field(piece, "id", policy)
        if word_field(piece, "type", policy) not in (None, "function"):
            raise fault("unexpected_shape")
        function = object_field(piece, "function")
        name = word_field(function, "name", policy)
        arguments = arguments_field(function, policy)

        target = choice.index_of(index, call_id, name)
        call = choice.calls.get(target)
        is_new = call is None
        if call is None:
            call = choice.open_call(target)
        call_id = self._agreed_id(call, call_id, name)
        name = self._agreed_name(call, name)
        header = (call.id, call.name, call.started, call.complete)
        is_first = not call.arguments.size
        shown = call.take(arguments)
        if shown or (call_id, name) != (call.id, call.name):
            self._pieces_seen += 1

        call.id, call.name = call_id, name
        if is_new:
            choice.calls[target] = choice.last_call = call
        self._lane.activity = "calling"
        self._show_piece(choice, call, shown, events)
        now = (call.id, call.name, call.started, call.complete)
        if is_new or is_first or not shown or header != now or not call.started:
            self._changes += 1
        else:
            self._plain = Piece(ARGUMENTS, arguments, call.arguments.store, choice.index, call)

    def _agreed_id(self, call: CallAssembly, call_id: str | None, name: str | None) -> str | None:
        if call.id is None or call_id is None or call.id == call_id:
            return call.id or call_id
        if name in (None, call.name) and self._policy.use("id_keep_first"):
            return call.id
        raise fault("stable_conflict")

    def _agreed_name(self, call: CallAssembly, name: str | None) -> str | None:
        if call.name is None or name is None or call.name == name:
            return call.name or name
        if not call.arguments.size and self._policy.use("name_concat"):
            return call.name + name
        raise fault("stable_conflict")

    def _show_piece(self, choice: ChoiceAssembly, call: CallAssembly, shown: str, events: list[ChatEvent]) -> None:
        """The events of one piece: a call starts when its id and name are known, with what came before as one delta."""
        if shown:
            call.complete = False
        # Under name_concat the name may still grow until the first argument piece.
        may_grow = self._policy.allows("name_concat") and not call.arguments.size
        if not call.started and call.id and call.name and not may_grow:
            self._start_call(choice, call, call.arguments.text.removesuffix(shown), events)
        if call.started and shown and self._deltas:
            events.append(ArgumentsDelta(call.index, shown, choice.index))

    def _start_call(self, choice: ChoiceAssembly, call: CallAssembly, arguments: str, events: list[ChatEvent]) -> None:
        call.started = True
        if not self._deltas:
            return
        events.append(ToolCallStart(call.index, call.id, call.name, choice.index))
        if arguments:
            events.append(ArgumentsDelta(call.index, arguments, choice.index))

    def _take_finish(self, choice: ChoiceAssembly, fields: Object, events: list[ChatEvent]) -> None:
        reason = word_field(fields, "finish_reason", self._policy)
        if reason is None or (reason == "null" and self._policy.use("finish_null_string")):
            return
        if reason in FINISH_ALIASES and self._policy.use("finish_aliases"):
            reason = FINISH_ALIASES[reason]
        elif reason == "function_call" and self._policy.use("legacy_function_call"):
            reason = "tool_calls"
        known = choice.finish_reason
        if known not in (None, reason):
            if (known, reason) == ("tool_calls", "stop") and self._policy.use("finish_keep_tool_calls"):
                return
            raise fault("finish_conflict")
        self._changes += 1
        if self._markup is not None and known is None:
            if self._markup.raw.waits:
                self._markup.raw.settle()
            self._take_markup(choice, self._markup, self._markup.parser.close(reason), events)
        self._settle(choice, events)
        choice.finish_reason = reason
        self._end_calls(choice, events)
        if known is None:
            self._pieces_seen += 1
            events.append(Finish(reason, choice.index))

    def _settle(self, choice: ChoiceAssembly, events: list[ChatEvent]) -> None:
        """No more text: judge the surrogate halves that still wait."""
        if choice.reasoning.waits:
            last = choice.reasoning.settle()
            if self._deltas:
                events.append(ReasoningDelta(last, choice.index))
        if choice.content.waits:
            last = choice.content.settle()
            if self._deltas:
                events.append(ContentDelta(last, choice.index))
        for call in choice.sorted_calls():
            last = call.arguments.settle() if call.arguments.waits else ""
            if last and call.started and self._deltas:
                events.append(ArgumentsDelta(call.index, last, choice.index))

    def _end_calls(self, choice: ChoiceAssembly, events: list[ChatEvent]) -> None:
        """The choice has finished: start what could not start before, and end what is whole."""
        whole = choice.finish_reason in ACCEPTED_REASONS
        for call in choice.sorted_calls():
            if not call.started:
                self._start_call(choice, call, call.arguments.text, events)
            if whole and not call.complete and not call.from_content:
                self._end_call(choice, call, events)

    def _end_call(self, choice: ChoiceAssembly, call: CallAssembly, events: list[ChatEvent]) -> None:
        call.complete = True
        if self._deltas:
            events.append(ToolCallEnd(call.index, choice.index))


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _cached_tokens(usage: Object) -> int | None:
    """Cached prompt tokens, in the three spellings seen (wire-contract §6)."""
    details: Any = usage.get("prompt_tokens_details")
    for holder, key in ((details, "cached_tokens"), (usage, "cached_tokens"), (usage, "prompt_cache_hit_tokens")):
        count = _count(holder.get(key)) if isinstance(holder, dict) else None
        if count is not None:
            return count
    return None
