"""One payload → the chunks in it: strict JSON, and the shape of every field that is read.

`ChunkReader` turns the data of an event into objects. The functions below it read single fields and judge their type
when they are read, so that what came before a fault in the same chunk is kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from typing import Any

from .errors import ProtocolError, fault
from .framing import decode_plain
from .limits import Limits
from .profiles import Policy
from .strict_json import JSONFault, StrictDecoder, has_lone_surrogate

BLANKS = " \t\n"
_MOST_SPLICES = 16
SENTINEL = "[DONE]"

Object = dict[str, Any]


class ChunkReader:
    """Reads payloads under one stream's limits and policy."""

    __slots__ = ("_limits", "_made_decoder", "_policy")

    def __init__(self, limits: Limits, policy: Policy) -> None:
        self._limits = limits
        self._made_decoder: StrictDecoder | None = None
        self._policy = policy

    @property
    def _decoder(self) -> StrictDecoder:
        """Made when first needed: an idle stream is to be small."""
        if self._made_decoder is None:
            self._made_decoder = StrictDecoder(self._limits, decode_plain)
        return self._made_decoder

    def read(self, text: str) -> Sequence[Object]:
        """The chunks of a payload that is neither blank nor the sentinel; none if it is to be ignored.

        Raises ProtocolError without an offset, which the caller knows.
        """
        decoder = self._decoder
        try:
            value = decoder.decode(text)
        except JSONFault as refusal:
            code = refusal.code
        else:
            if decoder.duplicate_key or decoder.nonfinite:
                self._judge_extras()
            if isinstance(value, dict):
                return (value,)
            if self._policy.use("ignore_non_object_events"):
                return ()
            raise fault("event_not_object")
        if text.lstrip(BLANKS).startswith(":") and self._policy.use("ignore_comment_data"):
            return ()
        if code != "bad_json":
            raise fault(code)
        return self._read_broken(text)

    def whole_object(self, text: str) -> Object | None:
        """The object that `text` is by strict JSON, or None; never raises."""
        try:
            value = self._decoder.decode(text)
        except JSONFault:
            return None
        if self._decoder.duplicate_key and not self._policy.allows("dup_keys_last"):
            return None
        if self._decoder.nonfinite and not self._policy.allows("nonfinite_ok"):
            return None
        return value if isinstance(value, dict) else None

    def _judge_extras(self) -> None:
        if self._decoder.duplicate_key and not self._policy.use("dup_keys_last"):
            raise fault("duplicate_key")
        if self._decoder.nonfinite and not self._policy.use("nonfinite_ok"):
            raise fault("json_nonfinite")

    def _read_broken(self, text: str) -> Sequence[Object]:
        """What a payload that is no JSON can still be by tolerance; else raises the most telling code."""
        if self._policy.allows("split_adjacent_json_lines"):
            chunks = self._adjacent_lines(text)
            if chunks:
                self._policy.use("split_adjacent_json_lines")
                return chunks
        splice = self._splice(text)
        raise splice or fault("bad_json")

    def _adjacent_lines(self, text: str) -> list[Object] | None:
        lines = text.split("\n")
        if len(lines) < 2:
            return None
        chunks = []
        for line in lines:
            chunk = self.whole_object(line)
            if chunk is None:
                return None
            self._judge_extras()
            chunks.append(chunk)
        return chunks

    def _splice(self, text: str) -> ProtocolError | None:
        """A cut object, then `data: ` and a whole one in the same event: two responses were mixed on the way
        (Z.ai GLM-4.7 and 5.1, anomalyco/opencode issue 8282)."""
        if not text.lstrip(BLANKS).startswith("{"):
            return None
        head, second = "", None
        at = 0
        for _ in range(_MOST_SPLICES):  # the texts of both may hold the marker as well
            at = text.find("data: ", at + 1)
            if at < 0:
                return None
            head, second = text[:at], self.whole_object(text[at + 6 :])
            if second is not None:
                break
        if second is None:
            return None
        second_id = second.get("id")
        digests = (_digest(_first_id(head)), _digest(second_id if isinstance(second_id, str) else None))
        error = fault("spliced_frame", parent_code="bad_json", id_digests=digests)
        assert isinstance(error, ProtocolError)
        return error


def _first_id(head: str) -> str | None:
    """The `id` of an object that was cut off, where it is still whole."""
    _, marker, rest = head.partition('"id":')
    if not marker:
        return None
    try:
        value, _ = json.JSONDecoder().raw_decode(rest.lstrip(BLANKS))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, str) else None


def _digest(text: str | None) -> str | None:
    return None if text is None else sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def is_error(chunk: Object) -> bool:
    """Whether the object reports an error, whatever else it holds (wire-contract §8.2)."""
    return chunk.get("error") is not None or chunk.get("object") == "error" or chunk.get("type") == "error"


def text_field(holder: Object, key: str) -> str:
    """A text that arrives in pieces; absent and null are "". Lone surrogates are judged where pieces are joined."""
    value = holder.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise fault("unexpected_shape")
    return value


def word_field(holder: Object, key: str, policy: Policy) -> str | None:
    """A text that comes whole, such as an id or a name; absent, null and "" are None."""
    value = holder.get(key)
    if value is None or value == "":
        return None
    if not isinstance(value, str):
        raise fault("unexpected_shape")
    if has_lone_surrogate(value):
        if not policy.use("surrogate_replace"):
            raise fault("lone_surrogate")
        value = replace_surrogates(value)
    return value


def index_field(holder: Object) -> int | None:
    """The `index` of a choice or a call; None if absent or null."""
    value = holder.get("index")
    if value is None:
        return None
    if type(value) is not int or value < 0:
        raise fault("unexpected_shape")
    return value


def object_field(holder: Object, key: str) -> Object:
    """An object; absent and null are the empty one."""
    value = holder.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise fault("unexpected_shape")
    return value


def objects_field(holder: Object, key: str) -> Iterable[Object]:
    """The objects of a list, each judged when its turn comes; absent and null are the empty list."""
    value = holder.get(key)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise fault("unexpected_shape")
    return _objects(value)


def _objects(items: list[object]) -> Iterator[Object]:
    for item in items:
        if not isinstance(item, dict):
            raise fault("unexpected_shape")
        yield item


def delta_field(choice: Object, policy: Policy) -> tuple[Object, bool]:
    """The delta of a choice, and whether it is a `message` read in its place."""
    delta = object_field(choice, "delta")
    if delta or choice.get("message") is None:
        return delta, False
    if not policy.use("message_as_delta"):
        raise fault("message_not_delta")
    return object_field(choice, "message"), True


def reasoning_field(delta: Object, policy: Policy) -> str:
    """The reasoning piece: `reasoning_content`, or its alias where that one is empty; never both."""
    text = text_field(delta, "reasoning_content")
    if text or delta.get("reasoning") in (None, "") or not policy.use("reasoning_alias"):
        return text
    return text_field(delta, "reasoning")


def content_pieces(delta: Object, policy: Policy) -> Sequence[tuple[bool, str]]:
    """The pieces of `content` as (is reasoning, text); more than one only for a list of typed parts."""
    value = delta.get("content")
    if not value:
        value = text_field(delta, "content")
    if isinstance(value, str):
        return ((False, value),) if value else ()
    if not isinstance(value, list):
        raise fault("unexpected_shape")
    if not policy.use("content_parts"):
        raise fault("unexpected_shape")
    return [_content_part(part) for part in value]


def _content_part(part: object) -> tuple[bool, str]:
    if isinstance(part, dict):
        if part.get("type") == "text":
            return False, _needed_text(part, "text")
        if part.get("type") == "thinking":
            thinking = part.get("thinking")
            if not isinstance(thinking, list):
                return True, _needed_text(part, "thinking")
            return True, "".join(_inner_text(inner) for inner in thinking)
    raise fault("unexpected_shape")


def _inner_text(part: object) -> str:
    if isinstance(part, dict) and part.get("type") == "text":
        return _needed_text(part, "text")
    raise fault("unexpected_shape")


def _needed_text(part: Object, key: str) -> str:
    value = part.get(key)
    if not isinstance(value, str):
        raise fault("unexpected_shape")
    return value


def arguments_field(function: Object, policy: Policy) -> str:
    """The piece of argument text; absent and null are ""."""
    value = function.get("arguments")
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and policy.use("args_object_serialize"):
        try:
            return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        except (TypeError, ValueError):
            pass  # no JSON, which only a chunk that was parsed elsewhere can hold
    raise fault("arguments_type")


def legacy_call(delta: Object, policy: Policy) -> Object | None:
    """`function_call` as a tool piece, where it says anything."""
    if delta.get("function_call") is None:
        return None
    function = object_field(delta, "function_call")
    if function.get("name") in (None, "") and function.get("arguments") in (None, ""):
        return None
    if not policy.use("legacy_function_call"):
        raise fault("legacy_function_call")
    return {"index": 0, "id": "legacy-0", "function": function}


def replace_surrogates(text: str) -> str:
    """Every surrogate code point as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
