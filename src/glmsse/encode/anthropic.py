"""Typed events → an Anthropic Messages stream (grammar and mapping: wire-contract §12)."""

from __future__ import annotations

from collections import deque
from typing import Any

from ..errors import MisuseError
from ..events import ContentDelta, ReasoningDelta, Usage
from ..verdict import Verdict
from .calls import OutgoingCall
from .encoder import Encoder, checked_text
from .ending import STOP_REASON_OF_CUT, ErrorReport
from .sse import write_json

_STOP_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", **STOP_REASON_OF_CUT}


class _TextBlock:
    """A text or thinking block, with what was not written yet."""

    __slots__ = ("blank", "held", "kind")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.held: list[str] = []
        self.blank = True
        """Nothing but white space so far, written or not."""

    def take(self, text: str) -> None:
        self.held.append(text)
        self.blank = self.blank and text.isspace()


class _CallBlock:
    """A tool_use block, with its call."""

    __slots__ = ("call",)
    kind = "tool_use"

    def __init__(self, call: OutgoingCall) -> None:
        self.call = call


class AnthropicEncoder(Encoder):
    """Writes the events of a Messages stream, of choice 0 alone; another choice is a MisuseError.

    model               the model's name in `message_start`
    message_id          the message's id there
    thinking_signature  sent at the end of each thinking block; GLM has none, so the default is ""; None sends none
    drop_blank_text     True: a text block that would hold white space alone, like GLM's newline before its reasoning,
                        is left out (default: all text is written)

    One block is open at a time. Text of another kind closes the open block and opens a new one. A call's block stays
    open until its arguments are a whole JSON object, since blocks cannot be reopened; what comes meanwhile, text or
    pieces of other calls, waits and follows in order. So the joined `partial_json` of a call is its argument text, but
    for white space that follows a whole object when another block has begun. What waits is bounded by the parser's
    caps (`max_content_bytes`, `max_reasoning_bytes`, `max_argument_bytes`, `max_tool_calls`). A call without id or name
    waits for `finish`, and is written only if the verdict has made them up.

    `message_delta` waits for `finish`, because usage can trail the finish reason. Error events have our code and
    words, and end the stream. A ping is a `ping` event.
    """

    __slots__ = (
        "_blocks_begun",
        "_drop_blank_text",
        "_id",
        "_model",
        "_open",
        "_signature",
        "_started",
        "_states",
        "_waiting",
    )

    def __init__(
        self, model: str, *, message_id: str, thinking_signature: str | None = "", drop_blank_text: bool = False
    ) -> None:
        super().__init__()
        self._model = checked_text("model", model)
        self._id = checked_text("message_id", message_id)
        if thinking_signature is not None:
            checked_text("thinking_signature", thinking_signature)
        if not isinstance(drop_blank_text, bool):
            raise MisuseError(f"drop_blank_text takes a bool, not {type(drop_blank_text).__name__}")
        self._signature = thinking_signature
        self._drop_blank_text = drop_blank_text
        self._started = False
        self._open: _TextBlock | _CallBlock | None = None
        self._waiting: deque[_TextBlock | _CallBlock] = deque()
        self._states: dict[int, str] = {}
        self._blocks_begun = 0

    def _check_choice(self, choice: int) -> None:
        if choice != 0:
            raise MisuseError("an Anthropic message has one choice: hand in the events of choice 0 only")

    def _ping(self) -> bytes:
        return write_json({"type": "ping"}, event="ping")

    def _error(self, report: ErrorReport) -> bytes:
        error = {"type": report.type, "message": report.message}
        return write_json({"type": "error", "error": error}, event="error")

    def _begin(self, choice: int, out: list[bytes]) -> None:
        message: dict[str, Any] = {
            "id": self._id,
            "type": "message",
            "role": "assistant",
            "model": self._model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": usage_object(self._usage),
        }
        out.append(_event("message_start", message=message))

    def _write_text(self, event: ContentDelta | ReasoningDelta, out: list[bytes]) -> None:
        kind = "text" if isinstance(event, ContentDelta) else "thinking"
        last = self._waiting[-1] if self._waiting else self._open
        if not isinstance(last, _TextBlock) or last.kind != kind:
            last = _TextBlock(kind)
            self._waiting.append(last)
        last.take(event.text)
        self._pump(out)

    def _write_call(self, choice: int, call: OutgoingCall, piece: str, out: list[bytes]) -> None:
        state = self._states.get(call.index)
        if piece:
            (call.take_late if state == "closed" else call.take)(piece)
        if state is None and call.known:
            self._states[call.index] = "waiting"
            self._waiting.append(_CallBlock(call))
        self._pump(out)

    def _pump(self, out: list[bytes]) -> None:
        """Write what may be written: the open block's pieces, then whatever waits behind it."""
        while True:
            block = self._open
            if block is not None:
                self._write_held(block, out)
                if not self._waiting or (isinstance(block, _CallBlock) and not block.call.whole):
                    return
            following = self._next_block()
            if following is None:
                return
            if isinstance(block, _TextBlock) and isinstance(following, _TextBlock) and block.kind == following.kind:
                # Only a blank text that was dropped stood between the two.
                block.held = following.held
                continue
            self._close(out)
            self._begin_block(following, out)

    def _next_block(self) -> _TextBlock | _CallBlock | None:
        """The next block that is to be written, if any; the one that may be dropped waits until it is decided."""
        while self._waiting:
            block = self._waiting[0]
            if not self._is_dropped(block):
                return self._waiting.popleft()
            if len(self._waiting) == 1:
                return None  # its text may go on
            self._waiting.popleft()
        return None

    def _is_dropped(self, block: _TextBlock | _CallBlock) -> bool:
        return self._drop_blank_text and isinstance(block, _TextBlock) and block.kind == "text" and block.blank

    def _begin_block(self, block: _TextBlock | _CallBlock, out: list[bytes]) -> None:
        if isinstance(block, _CallBlock):
            call = block.call
            self._states[call.index] = "open"
            start: dict[str, Any] = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        elif block.kind == "text":
            start = {"type": "text", "text": ""}
        else:
            start = {"type": "thinking", "thinking": "", "signature": ""}
        out.append(_event("content_block_start", index=self._blocks_begun, content_block=start))
        self._blocks_begun += 1
        self._open = block
        if isinstance(block, _CallBlock):
            self._delta({"type": "input_json_delta", "partial_json": ""}, out)

    def _write_held(self, block: _TextBlock | _CallBlock, out: list[bytes]) -> None:
        if isinstance(block, _CallBlock):
            self._write_arguments(block.call.release(), out)
            return
        for text in block.held:
            self._delta({"type": f"{block.kind}_delta", block.kind: text}, out)
        block.held = []

    def _write_arguments(self, pieces: list[str], out: list[bytes]) -> None:
        for piece in pieces:
            self._delta({"type": "input_json_delta", "partial_json": piece}, out)

    def _delta(self, delta: dict[str, Any], out: list[bytes]) -> None:
        out.append(_event("content_block_delta", index=self._blocks_begun - 1, delta=delta))

    def _close(self, out: list[bytes]) -> None:
        block = self._open
        if block is None:
            return
        if block.kind == "thinking" and self._signature is not None:
            self._delta({"type": "signature_delta", "signature": self._signature}, out)
        if isinstance(block, _CallBlock):
            self._states[block.call.index] = "closed"
        out.append(_event("content_block_stop", index=self._blocks_begun - 1))
        self._open = None

    def _write_end(self, reasons: dict[int, str], verdict: Verdict | None, out: list[bytes]) -> ErrorReport | None:
        settled = self._settle_calls(0, verdict)
        if isinstance(settled, ErrorReport):
            return settled
        # Under a cut answer a call without id or name is left out: its block could not even begin.
        self._waiting += (_CallBlock(call) for call, _ in settled if call.known and call.index not in self._states)
        self._write_all_blocks({call.index: pieces for call, pieces in settled}, out)
        stop = {"stop_reason": _STOP_REASONS[reasons[0]], "stop_sequence": None}
        out.append(_event("message_delta", delta=stop, usage=usage_object(self._usage)))
        out.append(_event("message_stop"))
        return None

    def _write_all_blocks(self, last_pieces: dict[int, list[str]], out: list[bytes]) -> None:
        """No more comes: every block is written to its end, one after the other."""
        while True:
            if isinstance(self._open, _CallBlock):
                self._write_arguments(last_pieces.pop(self._open.call.index), out)
            elif self._open is not None:
                self._write_held(self._open, out)
            self._close(out)
            following = self._next_block()
            if following is None:
                return
            self._begin_block(following, out)


def usage_object(usage: Usage | None) -> dict[str, int]:
    """Anthropic's counts: cached prompt tokens stand beside `input_tokens`. Zeros where nothing is known."""
    if usage is None:
        return _counts(0, 0, 0)
    cached = usage.cached_tokens or 0
    # Some gateways report the prompt without its cached part; their total shows it.
    is_beside = usage.total_tokens == usage.prompt_tokens + usage.completion_tokens + cached
    uncached = usage.prompt_tokens if is_beside else max(usage.prompt_tokens - cached, 0)
    return _counts(uncached, cached, usage.completion_tokens)


def _counts(uncached: int, cached: int, output: int) -> dict[str, int]:
    return {
        "input_tokens": uncached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": output,
    }


def _event(type_: str, **fields: Any) -> bytes:
    return write_json({"type": type_, **fields}, event=type_)
