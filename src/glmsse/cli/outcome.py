"""Exit codes, which scripts rely on."""

from __future__ import annotations

from ..verdict import Verdict

ACCEPTED = 0
NOT_ACCEPTED = 1
UNREADABLE = 2
PROTOCOL = 3
LIMIT = 4

EXIT_CODES = {"accepted": ACCEPTED, "protocol_error": PROTOCOL, "limit_exceeded": LIMIT}
"""Of outcomes; all others are NOT_ACCEPTED."""


class Unreadable(Exception):
    """Input that cannot be read, or an argument that cannot be meant; the message is for people."""


def exit_code(verdict: Verdict) -> int:
    return EXIT_CODES.get(verdict.outcome, NOT_ACCEPTED)
