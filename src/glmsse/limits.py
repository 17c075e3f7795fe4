"""The caps on everything a peer can make grow."""

from __future__ import annotations

from dataclasses import dataclass, fields

from .errors import MisuseError

# Every supported interpreter agrees up to here: json nests this deep without touching the recursion limit, and
# int() converts this many digits (its own limit is 4,300).
MOST_JSON_DEPTH = 256
MOST_NUMBER_CHARS = 4000

_HARD_CAPS = {"max_json_depth": MOST_JSON_DEPTH, "max_number_chars": MOST_NUMBER_CHARS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Caps of one stream: positive integers, or None for "no limit" (the two JSON caps take no None).

    A cap trips at the first byte, event, call or choice beyond it, before that one is stored. Anything but a positive
    int or None raises MisuseError here, so nothing below has to check again.
    """

    max_event_bytes: int | None = 1024 * 1024
    """All lines of the pending block, without line ends. The longest GLM event recorded has 729 bytes; some routers
    send a whole reasoning trace as one event."""
    max_event_lines: int | None = 4096
    """Lines of the pending block, comments too: bounds memory per wire byte."""
    max_stream_bytes: int | None = 256 * 1024 * 1024
    """Bytes of the body. 128 K tokens at 400 bytes an event are 50 MiB."""
    max_events: int | None = 1_000_000
    """Blank lines of the body, so dispatched, ignored and empty blocks: work without output is charged too."""
    max_content_bytes: int | None = 16 * 1024 * 1024
    """Decoded UTF-8 of one choice's content."""
    max_reasoning_bytes: int | None = 16 * 1024 * 1024
    """Decoded UTF-8 of one choice's reasoning."""
    max_tool_calls: int | None = 64
    """Calls of one choice. One host was seen repeating a call 38 times."""
    max_argument_bytes: int | None = 1024 * 1024
    """Decoded UTF-8 of one call's arguments."""
    max_choices: int | None = 16
    """Choice indexes from 0 up to, but without, this one."""
    max_json_depth: int = 64
    """Nesting of objects and arrays, at most 256."""
    max_number_chars: int = 64
    """Characters of one JSON number, at most 4,000."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            most = _HARD_CAPS.get(field.name)
            if value is None and most is None:
                continue
            if type(value) is not int or value < 1:
                none = "" if most else " or None"
                raise MisuseError(f"Limits.{field.name} takes a positive int{none}, not {type(value).__name__}")
            if most is not None and value > most:
                raise MisuseError(f"Limits.{field.name} is at most {most}: beyond it interpreters disagree")


DEFAULT_LIMITS = Limits()


def checked_limits(limits: Limits | None) -> Limits:
    """The caller's limits, or the defaults; MisuseError for anything else."""
    if limits is None:
        return DEFAULT_LIMITS
    if not isinstance(limits, Limits):
        raise MisuseError(f"limits takes a Limits or None, not {type(limits).__name__}")
    return limits
