"""The verdict: whether the answer may be used and, if not, at which stage it failed and why.

`judge` reads the evidence that a stream left, in one fixed order; the first stage that fails decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from ._repr import shape
from .assembly import ACCEPTED_REASONS, Assembly, CallAssembly, ChoiceAssembly
from .completion import ToolCall
from .errors import (
    BEFORE_SSE,
    EVENT_DECODING,
    GENERATION,
    PROVIDER,
    TOOL_VALIDATION,
    GlmsseError,
    ProviderError,
    fault,
    finish_code,
    rejected,
)
from .events import Usage
from .framing import decode_plain
from .limits import Limits
from .profiles import Policy
from .provider import AMBIGUOUS_CATEGORIES, SAFE_CATEGORIES, ProviderReport
from .strict_json import JSONFault, StrictDecoder, holds_lone_surrogate, is_blank

# Finish reasons after which asking again the same way is no use (wire-contract §5, classes truncated and content).
POINTLESS_REASONS = frozenset(("length", "model_context_window_exceeded", "sensitive", "content_filter"))

Checks = tuple[tuple[str, "bool | None"], ...]


@dataclass(frozen=True, slots=True, repr=False)
class Verdict:
    """The typed answer to "may I use this?"; false in a condition unless accepted.

    outcome        accepted, http_error, protocol_error, provider_error, limit_exceeded, incomplete or not_accepted
    stage, code    where it failed and why; None when accepted. `error` is the same as an exception
    missing        of done, finish_reason, usage: what never came, tolerated or not
    tolerated      the tolerances that were really used
    tool_calls     the calls that may be run; empty unless accepted
    finish_reason  of choice 0, or the first one that is neither stop nor tool_calls
    usage          the last usage event; done: whether `[DONE]` came
    category       of an http or provider error: auth, account, balance, entitlement, quota, rate, overload, request,
                   context, content, server, duplicate or unknown
    provider_code, request_id   of such an error, where they are short and harmless
    retry_after    seconds of the response header, if it was a number
    replay         safe (nothing was generated as far as can be known), ambiguous (may have been generated and billed)
                   or pointless
    checks         (name, passed) of http_status, media_type, events_parse, no_error, finish_reason, usage, done, tools;
                   None is "not judged", which a tolerated absence is too
    digest         SHA-256 over the events seen, when asked for
    """

    outcome: str
    stage: str | None = None
    code: str | None = None
    error: GlmsseError | None = None
    missing: tuple[str, ...] = ()
    tolerated: tuple[str, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str | None = None
    usage: Usage | None = None
    done: bool = False
    category: str | None = None
    provider_code: str | None = None
    request_id: str | None = None
    retry_after: int | None = None
    replay: str = "ambiguous"
    checks: Checks = ()
    digest: str | None = None

    @property
    def accepted(self) -> bool:
        """Whether the answer is whole and may be used, its calls too; the same as `bool(verdict)`."""
        return self.outcome == "accepted"

    def __bool__(self) -> bool:
        return self.accepted

    def raise_for_verdict(self) -> None:
        """Raise the error unless the answer is accepted."""
        if self.error is not None:
            raise self.error.again()

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON types, without any text of the answer: of tool calls and usage only counts."""
        usage = self.usage
        changed = {
            "accepted": self.accepted,
            "error": self.error.to_dict() if self.error else None,
            "tool_calls": [{"choice": call.choice, "index": call.index} for call in self.tool_calls],
            "usage": usage
            and {
                "prompt_tokens": usage.prompt_tokens,
                "completion_tokens": usage.completion_tokens,
                "total_tokens": usage.total_tokens,
                "cached_tokens": usage.cached_tokens,
            },
            "missing": list(self.missing),
            "tolerated": list(self.tolerated),
            "checks": dict(self.checks),
        }
        return {field.name: getattr(self, field.name) for field in fields(self)} | changed

    def __repr__(self) -> str:
        place = "" if self.error is None else f", stage={self.stage!r}, code={self.code!r}, offset={self.error.offset}"
        return f"Verdict({self.outcome!r}{place}, tool_calls={shape(self.tool_calls)}, replay={self.replay!r})"


@dataclass(slots=True)
class Evidence:
    """What is known when a stream ends."""

    assembly: Assembly
    policy: Policy
    limits: Limits
    offset: int = 0
    """Where the stream ended: the sentinel's block, or the end of the body."""
    fault: GlmsseError | None = None
    done: bool = False
    clean_end: bool = True
    """The body ended by itself: neither by an error nor, of course, by the sentinel."""
    close_code: str | None = None
    """deadline_* or cancelled, when the reader gave up."""
    tail: int = 0
    """Bytes of an event without its blank line."""
    read_any: bool = False
    """A chunk or the sentinel was read."""
    status_checked: bool = False
    retry_after: int | None = None
    report: ProviderReport | None = None
    """What the body of a refused response says."""
    offered_tools: frozenset[str] | None = None
    digest: str | None = None


def may_end_here(evidence: Evidence) -> bool:
    """Whether nothing is missing at the end of the body, tolerances counted; asking does not use them."""
    return _judge_end(evidence, tuple(_missing(evidence, evidence.assembly.promised_choices()))) is None


def judge(evidence: Evidence) -> Verdict:
    """The verdict over a stream that has ended."""
    assembly = evidence.assembly
    promised = assembly.promised_choices()
    choices = [choice for _, choice in promised if choice is not None]
    missing = tuple(_missing(evidence, promised))
    calls: tuple[ToolCall, ...] = ()
    error = evidence.fault or _judge_end(evidence, missing)
    if error is None:
        for what in missing:
            evidence.policy.use(_tolerance_for(what, evidence) or "")
        error = _judge_finish(choices)
    if error is None:
        calls, error = _judge_calls(evidence, choices)
    report = _report(evidence, error)
    finish_reason = _finish_reason(choices, accepted=error is None)
    return Verdict(
        outcome=error.outcome if error else "accepted",
        stage=error.stage if error else None,
        code=error.code if error else None,
        error=error,
        missing=missing,
        tolerated=evidence.policy.used,
        tool_calls=calls if error is None and assembly.collect else (),
        finish_reason=finish_reason,
        usage=assembly.usage,
        done=evidence.done,
        category=report.category if report else None,
        provider_code=report.provider_code if report else None,
        request_id=report.request_id if report else None,
        retry_after=evidence.retry_after,
        replay=_replay(error, report, finish_reason, evidence),
        checks=_checks(error, missing, evidence),
        digest=evidence.digest,
    )


def _missing(evidence: Evidence, promised: list[tuple[int, ChoiceAssembly | None]]) -> Iterator[str]:
    if not evidence.done:
        yield "done"
    for _, choice in promised:
        if choice is None or choice.finish_reason is None:
            yield "finish_reason"
            break
    if evidence.assembly.usage is None:
        yield "usage"


def _judge_end(evidence: Evidence, missing: tuple[str, ...]) -> GlmsseError | None:
    """Unterminated event, empty stream, missing evidence; what the reader said it gave up for comes first."""
    offset = evidence.offset
    if evidence.close_code:
        return fault(evidence.close_code, offset=offset, missing=missing)
    if evidence.tail:
        return fault("unterminated_event", offset=offset, missing=missing, tail=evidence.tail)
    if not evidence.read_any:
        return fault("empty_stream", offset=offset, missing=missing)
    if any(_tolerance_for(what, evidence) is None for what in missing):
        return fault("incomplete_stream", offset=offset, missing=missing)
    return None


def _tolerance_for(what: str, evidence: Evidence) -> str | None:
    """The tolerance that makes up for missing evidence, where it is on and holds."""
    if what == "usage" and evidence.policy.allows("usage_optional"):
        return "usage_optional"
    if what == "done" and evidence.clean_end and evidence.policy.allows("done_optional"):
        return "done_optional"
    return None


def _finish_reason(choices: list[ChoiceAssembly], *, accepted: bool) -> str | None:
    for choice in choices:
        if choice.finish_reason is not None and choice.finish_reason not in ACCEPTED_REASONS:
            return choice.finish_reason
    first = choices[0] if choices and choices[0].index == 0 else None
    if first is None:
        return None
    return "tool_calls" if accepted and first.finish_reason == "stop" and first.calls else first.finish_reason


def _judge_finish(choices: list[ChoiceAssembly]) -> GlmsseError | None:
    for choice in choices:
        if choice.finish_reason not in ACCEPTED_REASONS:
            return rejected(finish_code(choice.finish_reason or ""), GENERATION, choice=choice.index)
    return None


def _judge_calls(evidence: Evidence, choices: list[ChoiceAssembly]) -> tuple[tuple[ToolCall, ...], GlmsseError | None]:
    """The calls that may be run, by choice and index, or the error of the first that may not."""
    judge_call: _CallJudge | None = None
    accepted = []
    for choice in choices:
        index = choice.index
        if choice.calls and choice.finish_reason == "stop" and not evidence.policy.use("stop_with_tools"):
            return (), rejected("tools_without_tool_finish", TOOL_VALIDATION, choice=index)
        if not choice.calls and choice.finish_reason == "tool_calls":
            return (), rejected("tool_finish_without_calls", TOOL_VALIDATION, choice=index)
        for call in choice.sorted_calls():
            judge_call = judge_call or _CallJudge(evidence)
            judged = judge_call(index, call)
            if isinstance(judged, str):
                return (), rejected(judged, TOOL_VALIDATION, choice=index, index=call.index)
            accepted.append(judged)
    return tuple(accepted), None


class _CallJudge:
    """Judges one call after the other: name, id, arguments."""

    def __init__(self, evidence: Evidence) -> None:
        self._policy = evidence.policy
        self._offered = evidence.offered_tools
        self._decoder = StrictDecoder(evidence.limits, decode_plain)

    def __call__(self, choice: int, call: CallAssembly) -> ToolCall | str:
        """The call as it may be run, or the code of the first rule that it breaks."""
        if not call.name:
            return "tool_name_missing"
        if self._offered is not None and call.name not in self._offered:
            return "tool_not_offered"
        if call.from_content and not call.complete:
            return "arguments_not_json"  # its markup was cut, whatever the text so far may parse to
        call_id = call.id or self._made_up_id(choice, call.index)
        if not call_id:
            return "tool_id_missing"
        arguments = call.arguments.text
        if is_blank(arguments) and self._policy.use("args_empty_as_object"):
            arguments = "{}"
        code = self._argument_fault(arguments)
        rest = call.text_after_empty_object
        if code == "arguments_not_json" and rest is not None and self._policy.allows("args_leading_empty_object"):
            code = self._argument_fault(rest)
            if code != "arguments_not_json":
                self._policy.use("args_leading_empty_object")
                arguments = rest
        if code:
            return code
        return ToolCall(
            choice=choice, index=call.index, id=call_id, name=call.name, arguments=arguments, complete=call.complete
        )

    def _made_up_id(self, choice: int, index: int) -> str | None:
        if not self._policy.use("id_synthesize"):
            return None
        return f"local-{choice}-{index}" if choice else f"local-{index}"

    def _argument_fault(self, arguments: str) -> str | None:
        """The code of the first strict rule that the argument text breaks, tolerances counted."""
        if is_blank(arguments):
            return "arguments_empty"
        try:
            value = self._decoder.decode(arguments)
        except JSONFault as refusal:
            return "arguments_not_json" if refusal.code == "bad_json" else refusal.code
        broken: tuple[tuple[bool, str, str], ...] = (
            (self._decoder.duplicate_key, "dup_keys_last", "duplicate_key"),
            (self._decoder.nonfinite, "nonfinite_ok", "json_nonfinite"),
            (holds_lone_surrogate(arguments, value), "surrogate_replace", "lone_surrogate"),
            (not isinstance(value, dict), "args_any_json", "arguments_not_object"),
        )
        return next((code for is_so, tolerance, code in broken if is_so and not self._policy.use(tolerance)), None)


def _report(evidence: Evidence, error: GlmsseError | None) -> ProviderReport | None:
    if isinstance(error, ProviderError):
        return ProviderReport(error.category or "unknown", error.provider_code, error.request_id)
    if error is not None and error.stage == BEFORE_SSE:
        return evidence.report
    return None


def _replay(
    error: GlmsseError | None, report: ProviderReport | None, finish_reason: str | None, evidence: Evidence
) -> str:
    """Whether the same request may be sent again (design §3)."""
    if error is None:
        return "pointless"
    if report is not None and not evidence.assembly.generated:
        if report.category in SAFE_CATEGORIES:
            return "safe"
        return "ambiguous" if report.category in AMBIGUOUS_CATEGORIES else "pointless"
    if error.stage == GENERATION and finish_reason in POINTLESS_REASONS:
        return "pointless"
    return "ambiguous"


def _checks(error: GlmsseError | None, missing: tuple[str, ...], evidence: Evidence) -> Checks:
    absent = None if error is None else False
    came = dict.fromkeys(missing, absent)
    stage = error.stage if error else None
    code = error.code if error else None
    read = stage != BEFORE_SSE
    status_fine = code != "http_status"
    parsed = stage != EVENT_DECODING and code != "unterminated_event"
    tools_judged = stage == TOOL_VALIDATION or (error is None and evidence.assembly.has_calls)
    return (
        ("http_status", status_fine if evidence.status_checked else None),
        ("media_type", code != "content_type" if evidence.status_checked and status_fine else None),
        ("events_parse", parsed if read else None),
        ("no_error", read and stage != PROVIDER),
        ("finish_reason", came.get("finish_reason", True) and stage != GENERATION if read else None),
        ("usage", came.get("usage", True) if read else None),
        ("done", came.get("done", True) if read else None),
        ("tools", error is None if tools_judged else None),
    )
