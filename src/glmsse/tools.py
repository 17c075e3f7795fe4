"""From an accepted verdict to calls that may be run: reviewed, approved, checked again. Nothing here runs a tool.

gate = ToolGate([ToolRule("lookup_timezone", schema=json_schema({...}), needs_approval=False)])
for call in gate.review(verdict, stream_id=request_id):
    ready = call if isinstance(call, Refusal) else gate.permit(call, ask_a_person(call))
    if isinstance(ready, Refusal):
        messages.append(ready.message())
    else:
        result = run(ready.name, ready.arguments, key=ready.idempotency_key)
        messages.append(ready.result_message(result))
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from hashlib import sha256
from hmac import compare_digest
from typing import Any, ClassVar

from ._checks import Objection, Schema, check_schema_argument, objection_of_policy, objection_of_schema
from .completion import ToolCall, _Record
from .deadlines import check_seconds
from .errors import MisuseError
from .limits import Limits, checked_limits
from .policies import Policy, ProposedCall
from .strict_json import is_blank, read_strictly
from .verdict import Verdict

REFUSALS = {
    "unknown_tool": "there is no tool of this name",
    "duplicate_call_id": "another call of this answer has the same id",
    "arguments_empty": "the arguments are empty; an object is needed",
    "arguments_not_json": "the arguments are not JSON",
    "arguments_not_object": "the arguments are not a JSON object",
    "duplicate_key": "the arguments have the same key twice",
    "json_nonfinite": "the arguments hold NaN, Infinity or a number beyond a double",
    "json_too_deep": "the arguments nest too deep",
    "json_number_too_long": "a number in the arguments has too many digits",
    "lone_surrogate": "a text in the arguments holds half of a surrogate pair",
    "schema": "the arguments do not fit the tool's schema",
    "policy": "the tool may not be used with these arguments",
    "unapproved": "nobody has approved this call",
    "changed": "the call is not the one that was reviewed or approved",
    "expired": "the call was not run in time",
}
"""Why a call is refused, by code, in the words that the model is told."""

_WORDS_OF_JSON = {"bad_json": "arguments_not_json"}


@dataclass(frozen=True, slots=True)
class ToolRule:
    """What one tool may be called with. MisuseError for a rule that cannot be meant.

    name            of the tool, compared letter by letter
    schema          a callable that takes the arguments as a dict and refuses by raising, or by returning False or a
                    hint for the model; see `json_schema` and `pydantic_schema`
    policies        callables that take a `ProposedCall` and return True to let it pass; see `path_within` and others
    needs_approval  whether a person must approve each call, which is so unless the rule says no
    valid_seconds   how long after its review a call may still be run
    """

    name: str
    _: KW_ONLY
    schema: Schema | None = None
    policies: Iterable[Policy] = ()
    needs_approval: bool = True
    valid_seconds: float = 300.0

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise MisuseError(f"name takes the name of a tool, not {type(self.name).__name__}")
        check_schema_argument(self.schema)
        if callable(self.policies) or not isinstance(self.policies, Iterable):
            raise MisuseError(f"policies takes a list of callables, not {type(self.policies).__name__}")
        object.__setattr__(self, "policies", tuple(self.policies))
        if not all(map(callable, self.policies)):
            raise MisuseError("policies takes a list of callables")
        if not isinstance(self.needs_approval, bool):
            raise MisuseError(f"needs_approval takes a bool, not {type(self.needs_approval).__name__}")
        if self.valid_seconds is None:
            raise MisuseError("valid_seconds takes seconds: an approval is not for ever")
        check_seconds("valid_seconds", self.valid_seconds)


@dataclass(frozen=True, slots=True, repr=False)
class Refusal(_Record):
    """A call that may not be run, and why: `code` is one of REFUSALS, `hint` the application's own word.

    call_id, choice, index  of the call, as in its ToolCall

    It says nothing about the connection: the answer was whole and accepted. `cause` names the class of what a schema
    or policy raised, for logs; it is not sent.
    """

    code: str
    call_id: str
    choice: int = 0
    index: int = 0
    hint: str | None = None
    cause: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Code, words and hint, as the model is told."""
        told = {"code": self.code, "message": REFUSALS[self.code]}
        return {**told, "hint": self.hint} if self.hint else told

    def message(self) -> dict[str, Any]:
        """The tool message that tells the model."""
        return _tool_message(self.call_id, json.dumps({"error": self.to_dict()}))

    def __repr__(self) -> str:
        return f"Refusal({self.code!r}, choice={self.choice}, index={self.index})"


@dataclass(frozen=True, slots=True)
class Approval:
    """A person's yes to exactly one call. It proves which call was meant, not who said so: that is the application's
    part, as is showing the person `ReviewedCall.call` and nothing else.

    digest  of the call that was approved, as `ReviewedCall.digest`
    by      the person's name, for the records
    """

    digest: str
    by: str


@dataclass(frozen=True, slots=True, repr=False)
class ReviewedCall(_Record):
    """A call that passed the review. It is not to be run yet: `ToolGate.permit` decides that, when it is.

    call             the verdict's call, with its exact argument text
    stream_id        as given to `review`
    digest           SHA-256 over stream id, choice, index, call id, name and the exact argument bytes
    idempotency_key  the same whenever the same call is reviewed, another one for any other call:
                     32 hexadecimal digits
    expires_at       when it can no longer be run, in seconds on the gate's clock
    """

    call: ToolCall
    stream_id: str
    digest: str
    needs_approval: bool
    expires_at: float

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.call.name or ""

    @property
    def idempotency_key(self) -> str:
        """The start of the digest, for a tool that must not run the same call twice."""
        return self.digest[:32]

    def approve(self, *, by: str) -> Approval:
        """The approval of this call by a person, named for the records."""
        if not isinstance(by, str) or not by:
            raise MisuseError(f"by takes the name of a person, not {type(by).__name__}")
        return Approval(_digest_of(self.stream_id, self.call), by)


@dataclass(frozen=True, slots=True, repr=False)
class PermittedCall(_Record):
    """A call to be run now, with the arguments as they were read from the reviewed bytes a moment ago.

    arguments        parsed by strict JSON; this object is yours, nobody else holds it
    call_id          for the result message, which `result_message` makes
    idempotency_key  as of the ReviewedCall
    expires_at       seconds on the gate's clock
    approved_by      the name in the approval, or None where none was needed
    """

    name: str
    arguments: dict[str, Any]
    call_id: str
    idempotency_key: str
    expires_at: float
    approved_by: str | None = None

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # arguments are a dict

    def result_message(self, result: object) -> dict[str, Any]:
        """The tool message with the result: a str as it is, anything else as JSON. MisuseError for what is no JSON."""
        if isinstance(result, str):
            return _tool_message(self.call_id, result)
        content = None
        with suppress(TypeError, ValueError, RecursionError):
            content = json.dumps(result, ensure_ascii=False, allow_nan=False)
        if content is None:
            raise MisuseError(f"result takes a str or what is JSON, not this {type(result).__name__}")
        return _tool_message(self.call_id, content)


class ToolGate:
    """Reviews the calls of an accepted verdict, and permits each one once it is to be run.

    rules   one ToolRule for each tool that may be called; a call of any other is refused
    limits  the JSON caps of the arguments
    clock   seconds, for `valid_seconds`; the wall clock, so that a review may outlive its process

    Argument text is read by strict JSON whatever the stream tolerated. A review is not remembered: who must not run a
    call twice passes `idempotency_key` on to the tool.
    """

    def __init__(
        self, rules: Iterable[ToolRule], *, limits: Limits | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._rules: dict[str, ToolRule] = {}
        for rule in rules:
            if not isinstance(rule, ToolRule):
                raise MisuseError(f"rules takes ToolRule objects, not {type(rule).__name__}")
            if rule.name in self._rules:
                raise MisuseError("rules has two rules for one tool")
            self._rules[rule.name] = rule
        self._limits = checked_limits(limits)
        if not callable(clock):
            raise MisuseError(f"clock takes a callable, not {type(clock).__name__}")
        self._clock = clock

    def review(self, verdict: Verdict, *, stream_id: str, context: object = None) -> tuple[ReviewedCall | Refusal, ...]:
        """Every call of the verdict, in its order, as reviewed or refused. Raises the verdict's error, as
        `raise_for_verdict`, unless it is accepted: of such an answer no call is looked at.

        stream_id  what names this answer among all others, such as the id of your request
        context    handed to the policies, such as the user for whom the call would run
        """
        if not isinstance(verdict, Verdict):
            raise MisuseError(f"review takes a Verdict, not {type(verdict).__name__}: only it says what may be run")
        verdict.raise_for_verdict()
        if not verdict.accepted:
            raise MisuseError("review takes an accepted verdict")
        if not isinstance(stream_id, str) or not stream_id:
            raise MisuseError(f"stream_id takes a text that is not empty, not {type(stream_id).__name__}")
        seen: set[tuple[int, str | None]] = set()
        reviewed = []
        for call in verdict.tool_calls:
            key = (call.choice, call.id)
            reviewed.append(
                _refusal("duplicate_call_id", call) if key in seen else self._review(call, stream_id, context)
            )
            seen.add(key)
        return tuple(reviewed)

    def permit(
        self, reviewed: ReviewedCall, approval: Approval | None = None, *, context: object = None
    ) -> PermittedCall | Refusal:
        """The call as it may be run now, or why it may not: everything is checked again, on the same bytes.

        reviewed  of this gate's `review`, or rebuilt from storage: a changed byte is refused as `changed`
        approval  needed if the rule says so; one of another call is refused as `changed`
        context   handed to the policies, as in `review`
        """
        if not isinstance(reviewed, ReviewedCall):
            raise MisuseError(f"permit takes a ReviewedCall, not {type(reviewed).__name__}")
        if approval is not None and not isinstance(approval, Approval):
            raise MisuseError(f"approval takes an Approval or None, not {type(approval).__name__}")
        call = reviewed.call
        rule = self._rules.get(reviewed.name)
        if rule is None:
            return _refusal("unknown_tool", call)
        digest = _digest_of(reviewed.stream_id, call)
        if not _same(digest, reviewed.digest) or (approval is not None and not _same(digest, approval.digest)):
            return _refusal("changed", call)
        if rule.needs_approval and approval is None:
            return _refusal("unapproved", call)
        if self._clock() >= reviewed.expires_at:
            return _refusal("expired", call)
        refusal = self._judge(call, rule, context)
        if refusal is not None:
            return refusal
        # Read once more: a schema or policy may have changed the object it was given.
        arguments, _ = read_strictly(call.arguments, self._limits)
        return PermittedCall(
            name=reviewed.name,
            arguments=arguments,
            call_id=call.id or "",
            idempotency_key=digest[:32],
            expires_at=reviewed.expires_at,
            approved_by=approval.by if approval else None,
        )

    def _review(self, call: ToolCall, stream_id: str, context: object) -> ReviewedCall | Refusal:
        rule = self._rules.get(call.name or "")
        if rule is None:
            return _refusal("unknown_tool", call)
        refusal = self._judge(call, rule, context)
        if refusal is not None:
            return refusal
        expires_at = self._clock() + rule.valid_seconds
        return ReviewedCall(call, stream_id, _digest_of(stream_id, call), rule.needs_approval, expires_at)

    def _judge(self, call: ToolCall, rule: ToolRule, context: object) -> Refusal | None:
        """Strict JSON, then the schema, then the policies in their order."""
        if is_blank(call.arguments):
            return _refusal("arguments_empty", call)
        arguments, code = read_strictly(call.arguments, self._limits)
        if code is not None:
            return _refusal(_WORDS_OF_JSON.get(code, code), call)
        if not isinstance(arguments, dict):
            return _refusal("arguments_not_object", call)
        objection = objection_of_schema(rule.schema, arguments)
        if objection is not None:
            return _refusal("schema", call, objection)
        request = ProposedCall(rule.name, arguments, context, call.id or "", call.choice, call.index)
        for policy in rule.policies:
            objection = objection_of_policy(policy, request)
            if objection is not None:
                return _refusal("policy", call, objection)
        return None


def _refusal(code: str, call: ToolCall, objection: Objection | None = None) -> Refusal:
    hint, cause = (objection.hint, objection.cause) if objection else (None, None)
    return Refusal(code, call.id or "", call.choice, call.index, hint, cause)


def _tool_message(call_id: str, content: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def _digest_of(stream_id: str, call: ToolCall) -> str:
    """Each field with its length before it, so that no two calls give the same bytes."""
    hashed = sha256()
    for field in (stream_id, str(call.choice), str(call.index), call.id or "", call.name or "", call.arguments):
        raw = field.encode("utf-8", "surrogatepass")
        hashed.update(b"%d:" % len(raw))
        hashed.update(raw)
    return hashed.hexdigest()


def _same(digest: str, other: object) -> bool:
    return isinstance(other, str) and compare_digest(digest.encode(), other.encode("utf-8", "surrogatepass"))
