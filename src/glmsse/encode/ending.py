"""How a stream that is written has to end: with finish reasons, or with an error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..assembly import ACCEPTED_REASONS
from ..errors import GENERATION, GlmsseError, ProviderError, fault, finish_code, rejected
from ..verdict import Verdict

# Reasons that say by themselves that the answer is cut or withheld, so they are passed on; as Anthropic's stop reason.
STOP_REASON_OF_CUT = {
    "length": "max_tokens",
    "model_context_window_exceeded": "model_context_window_exceeded",
    "sensitive": "refusal",
    "content_filter": "refusal",
}

_TYPE_OF_CATEGORY = {
    "auth": "authentication_error",
    "account": "permission_error",
    "entitlement": "permission_error",
    "balance": "billing_error",
    "request": "invalid_request_error",
    "context": "invalid_request_error",
    "content": "invalid_request_error",
    "rate": "rate_limit_error",
    "quota": "rate_limit_error",
    "overload": "overloaded_error",
}
_TYPE_OF_THE_OTHERS = "api_error"


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """An error as it is told to a client: our code and words, never those of the stream."""

    type: str
    code: str
    message: str


def report_on(error: GlmsseError) -> ErrorReport:
    """The report on a fault that a `Failed` event carries."""
    if isinstance(error, ProviderError):
        return _report(error.category, error.code, str(error), error.provider_code, error.request_id)
    return _report(None, error.code, str(error))


def report_on_verdict(verdict: Verdict) -> ErrorReport:
    """The report on a verdict that is not accepted."""
    code = verdict.code or verdict.outcome
    message = code if verdict.error is None else str(verdict.error)
    return _report(verdict.category, code, message, verdict.provider_code, verdict.request_id)


def _report(
    category: str | None, code: str, message: str, provider_code: str | None = None, request_id: str | None = None
) -> ErrorReport:
    if provider_code is not None:
        message += f"; provider code {provider_code}"
    if request_id is not None:
        message += f"; request id {request_id}"
    return ErrorReport(_TYPE_OF_CATEGORY.get(category or "", _TYPE_OF_THE_OTHERS), code, message)


@dataclass(frozen=True, slots=True)
class ChoiceEnd:
    """What an encoder knows of one choice when its stream ends."""

    reason: str | None
    has_calls: bool


def reasons_to_write(ends: Mapping[int, ChoiceEnd], verdict: Verdict | None) -> dict[int, str] | ErrorReport:
    """The finish reason of each choice, or the error that ends the stream instead.

    A verdict that is not accepted passes only as a cut or withheld answer, and then with no choice that would look
    like calls ready to be run.
    """
    if verdict is None or verdict.accepted:
        error = _fault_in(ends, judged=verdict is not None)
        if error is not None:
            return report_on(error)
    elif not _only_cut(ends, verdict):
        return report_on_verdict(verdict)
    otherwise = verdict.finish_reason if verdict is not None else None
    return {choice: _agreed_reason(end, otherwise) for choice, end in ends.items()}


def _agreed_reason(end: ChoiceEnd, otherwise: str | None) -> str:
    reason = end.reason or otherwise or "stop"
    return "tool_calls" if reason == "stop" and end.has_calls else reason


def _only_cut(ends: Mapping[int, ChoiceEnd], verdict: Verdict) -> bool:
    if verdict.stage != GENERATION or verdict.finish_reason not in STOP_REASON_OF_CUT or not ends:
        return False
    return all(
        end.reason in STOP_REASON_OF_CUT or (end.reason == "stop" and not end.has_calls) for end in ends.values()
    )


def _fault_in(ends: Mapping[int, ChoiceEnd], *, judged: bool) -> GlmsseError | None:
    """What is wrong with the events alone; a verdict may have accepted a finish that no event shows."""
    if not ends:
        return fault("empty_stream")
    for choice, end in ends.items():
        if end.reason is None:
            if judged:
                continue
            return fault("incomplete_stream", missing=("finish_reason",))
        if end.reason not in ACCEPTED_REASONS and (judged or end.reason not in STOP_REASON_OF_CUT):
            return rejected(finish_code(end.reason), GENERATION, choice=choice)
        if end.reason == "tool_calls" and not end.has_calls:
            return fault("tool_finish_without_calls", choice=choice)
    return None
