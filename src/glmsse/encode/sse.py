"""The one writer of server-sent events: what it writes, `SSEFramer` reads back, and nothing else.

Event injection is what it is there to prevent: no text can end a line or an event that the caller did not end.
"""

from __future__ import annotations

import json
from typing import Any

from ..errors import MisuseError

_LINE_BREAKERS = ("\r", "\n", "\0")
_MOST_RETRY = 10**17 - 1  # 17 digits, as many as are read


def write_event(data: str, *, event: str | None = None, id: str | None = None, retry: int | None = None) -> bytes:
    """One event, with its blank line.

    data   split at CR, LF and CRLF into a line each; read back, these line ends are LF
    event  the event's name; None writes no line, which is read as `message`
    id     the last event id, which stays for later events until another is written

    MisuseError for CR, LF or NUL in a name or an id, for an empty name (it cannot be read back), and for half a
    surrogate pair anywhere.
    """
    written = _written(data, event, id, retry)
    if isinstance(written, bytes):
        return written
    del data, event, id  # no frame of ours holds text when something is raised
    raise MisuseError(written)


def write_comment(text: str = "") -> bytes:
    """A comment in a block of its own: readers ignore it, but it keeps a connection busy."""
    written = _problem_of("text", text) or _encoded([f": {line}" for line in _split(text)])
    if isinstance(written, bytes):
        return written
    del text
    raise MisuseError(written)


def write_json(value: dict[str, Any], *, event: str | None = None) -> bytes:
    """One event whose data is compact JSON in raw UTF-8, so one line."""
    written = _written(json.dumps(value, ensure_ascii=False, separators=(",", ":")), event)
    if isinstance(written, bytes):
        return written
    del value, event
    raise MisuseError(written)


def _written(data: str, event: str | None = None, id: str | None = None, retry: int | None = None) -> bytes | str:
    """The event, or what is wrong with the arguments."""
    lines = []
    if event is not None:
        problem = _problem_of("event", event, line=True) or (
            "" if event else "event takes a name that is not empty, or None"
        )
        if problem:
            return problem
        lines.append(f"event: {event}")
    if id is not None:
        problem = _problem_of("id", id, line=True)
        if problem:
            return problem
        lines.append(f"id: {id}")
    if retry is not None:
        if type(retry) is not int or not 0 <= retry <= _MOST_RETRY:
            return "retry takes milliseconds: an int from 0 up, of at most 17 digits"
        lines.append(f"retry: {retry}")
    problem = _problem_of("data", data)
    if problem:
        return problem
    lines += ("data: " + line for line in _split(data))
    return _encoded(lines)


def _problem_of(option: str, value: object, *, line: bool = False) -> str:
    """What is wrong with a text, which may have to be one line; "" if nothing is."""
    if not isinstance(value, str):
        return f"{option} takes a str, not {type(value).__name__}"
    if line and any(breaker in value for breaker in _LINE_BREAKERS):
        return f"{option} takes no CR, LF or NUL"
    return ""


def _split(text: str) -> list[str]:
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _encoded(lines: list[str]) -> bytes | str:
    try:
        return "\n".join((*lines, "", "")).encode()
    except UnicodeEncodeError:
        return "half of a surrogate pair cannot be written as UTF-8"
