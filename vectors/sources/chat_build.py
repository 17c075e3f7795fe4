"""What the sources of chat.jsonl are written with."""

from __future__ import annotations

from typing import Any

from wire import body, end, event, piece, tools

TOOL_END = end("tool_calls")
CALL_0 = tools(piece('{"a":1}', id="c1", name="f"))
F = ("c1", "f", '{"a":1}')
SETTINGS = ("profile", "allow", "deny", "limits", "options", "start", "close")

FIELDS = "a field that is read but has another JSON type is a fault; fields that are not read are never judged"
ORDER = "an object is read in one order, and what came before a fault stays"
TEXT = "each piece is an event as it arrives, and an empty piece is none"
TOOL = "pieces of a call are keyed by index; id, type and name are stable; arguments are appended byte for byte"
FINISH = "one finish reason a choice; equal repeats pass"
SENTINEL = "[DONE] after trimming blanks ends the stream; nothing behind it is read"
ERROR = "an error object is looked for before anything else, and never healed"
EVIDENCE = "accepted needs [DONE], a finish reason of each promised choice, and usage"
USAGE_RULE = "the last usage with three totals counts; sums are not checked"
CUT = "a stream that was cut is never accepted, wherever the cut is"
STRICT = "JSON is strict, and one object a payload"
SURROGATE = "halves of a pair over two pieces of one field are joined; a half that stays alone is a fault"
CAP = "a cap trips at the first unit beyond it, before that is stored"
HTTP = "status, then media type, then content coding are judged before the body"
CALLS = "calls are judged by choice and index, each by name, id, arguments"
TOLERANCE = "one tolerance changes one rule and is recorded where it was needed"
CHOICES = "a choice that was not promised is a fault; each promised one needs its finish reason"


def y(name: str, reason: str, *parts: Any, done: bool = True, **more: Any) -> dict[str, Any]:
    """Accepted. `done`: whether the sentinel is added."""
    return _vector("y_" + name, reason, parts, done, {"code": None, "tolerated": [], "finish_reason": "stop"}, more)


def n(name: str, reason: str, code: str, *parts: Any, done: bool = True, at: int | None = None, **more: Any) -> Any:
    """Not accepted. `at`: the part at whose first byte the fault is; -1 is the end of the body."""
    claim: dict[str, Any] = {"code": code, "tolerated": []}
    if at is not None:
        claim["offset"] = len(body(*(parts if at < 0 else parts[:at]), done=done and at < 0))
    return _vector("n_" + name, reason, parts, done, claim, more)


def i(vector: dict[str, Any]) -> dict[str, Any]:
    """The same, where readers differ."""
    return {**vector, "name": "i_" + vector["name"][2:]}


def _vector(name: str, reason: str, parts: Any, done: bool, claim: dict[str, Any], more: dict[str, Any]) -> Any:
    settings = {key: more.pop(key) for key in SETTINGS if key in more}
    made = {"name": name, "layer": "chat", "reason": reason, **settings}
    return {**made, "body": body(*parts, done=done), "claim": {**claim, **more}}


def raw(fields: str) -> bytes:
    """A chunk whose choice has these members, spelt by hand."""
    return event('{"id":"r-1","choices":[{' + fields + "}]}")
