"""How the end of a stream is told in a table, by demo and probe alike."""

from __future__ import annotations

from ..completion import Choice
from ..verdict import Verdict


def terminal_evidence(verdict: Verdict, choice: Choice, argument_pieces: int) -> str:
    """What the end of the stream shows: finish reason, arguments, tokens, sentinel."""
    parts = [verdict.finish_reason or "no finish reason"]
    if choice.tool_calls:
        assembled = "assembled " if argument_pieces > 1 else ""
        parts.append(f"{'valid' if verdict.tool_calls else 'unusable'} {assembled}arguments")
    parts.append(f"{verdict.usage.total_tokens} tokens" if verdict.usage else "no usage")
    parts.append("[DONE]" if verdict.done else "no [DONE]")
    return ", ".join(parts)
