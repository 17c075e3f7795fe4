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
    lines = []
    if event is not None:
        lines.append("event: " + _checked_line("event", event))
        if event == "":
            raise MisuseError("event takes a name that is not empty, or None")
    if id is not None:
        lines.append("id: " + _checked_line("id", id))
    if retry is not None:
        if type(retry) is not int or not 0 <= retry <= _MOST_RETRY:
            raise MisuseError("retry takes milliseconds: an int from 0 up, of at most 17 digits")
        lines.append(f"retry: {retry}")
    lines += ("data: " + line for line in _split("data", data))
    return _encoded(lines)


def write_comment(text: str = "") -> bytes:
    """A comment in a block of its own: readers ignore it, but it keeps a connection busy."""
    return _encoded([f": {line}" for line in _split("text", text)])


def write_json(value: dict[str, Any], *, event: str | None = None) -> bytes:
    """One event whose data is compact JSON in raw UTF-8, so one line."""
    return write_event(json.dumps(value, ensure_ascii=False, separators=(",", ":")), event=event)


def _checked_line(option: str, value: str) -> str:
    if not isinstance(value, str):
        raise MisuseError(f"{option} takes a str, not {type(value).__name__}")
    if any(breaker in value for breaker in _LINE_BREAKERS):
        del value
        raise MisuseError(f"{option} takes no CR, LF or NUL")
    return value


def _split(option: str, text: str) -> list[str]:
    if not isinstance(text, str):
        raise MisuseError(f"{option} takes a str, not {type(text).__name__}")
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _encoded(lines: list[str]) -> bytes:
    try:
        return "\n".join((*lines, "", "")).encode()
    except UnicodeEncodeError:
        pass
    # Raised here, where no error that holds the text is being handled.
    del lines
    raise MisuseError("half of a surrogate pair cannot be written as UTF-8")
