"""What the stand-in provider can answer, by name: the scenarios, and what only a connection can do wrong."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Literal

from ..provider import CATEGORY_OF_CODE
from ..scenarios import ANSWER, DONE, SCENARIOS, body, finish, frame, reasoning, text, tool_piece

Ending = Literal["end", "stay", "comments", "reset", "cut"]
"""end as HTTP does; stay silent with the connection open; send comments for ever; reset or close it in the body."""

EVENT_STREAM = "text/event-stream;charset=UTF-8"
JSON = "application/json"
REQUEST_ID = "req-stand-in"
COMMENT = b": keep-alive\n\n"

RAW_CALL = "<tool_call>lookup_timezone<arg_key>city</arg_key><arg_value>Hong Kong</arg_value></tool_call>"
WIDE_TEXT = ("香港現在是", "下午三点。", "Ça va, naïve café 🙂")

_STATUS_OF_CATEGORY = {
    "auth": 401,
    "account": 429,
    "balance": 429,
    "entitlement": 429,
    "quota": 429,
    "rate": 429,
    "overload": 429,
    "server": 500,
}


@dataclass(frozen=True)
class Wanted:
    """What a request says about the answer's size."""

    choices: int = 2
    events: int = 2000


@dataclass(frozen=True)
class Answer:
    """A response: its head, the pieces of its body as they are written, and how it ends."""

    pieces: Callable[[Wanted], Iterable[bytes]]
    status: int = 200
    media_type: str = EVENT_STREAM
    headers: tuple[tuple[str, str], ...] = ()
    wait: float = 0.0
    """Seconds between the head and the first byte of the body."""
    ending: Ending = "end"


def status_of(code: str) -> int:
    """The HTTP status that goes with a business code."""
    return _STATUS_OF_CATEGORY.get(CATEGORY_OF_CODE.get(code, "request"), 400)


def error_body(code: str, message: str) -> bytes:
    return json.dumps({"error": {"code": code, "message": message}, "request_id": REQUEST_ID}).encode()


def by_event(data: bytes) -> Iterator[bytes]:
    """A body cut behind each blank line."""
    at = 0
    while at < len(data):
        end = data.find(b"\n\n", at)
        end = len(data) if end < 0 else end + 2
        yield data[at:end]
        at = end


def by_event_crlf(data: bytes) -> Iterator[bytes]:
    """The body with CRLF line ends, every event cut between the last CR and its LF."""
    whole = data.replace(b"\n", b"\r\n")
    at = 0
    while at < len(whole):
        end = whole.find(b"\r\n\r\n", at)
        end = len(whole) if end < 0 or end + 4 == len(whole) else end + 3
        yield whole[at:end]
        at = end


def inside_characters(data: bytes) -> Iterator[bytes]:
    """A body cut before every byte that continues a UTF-8 character."""
    at = 0
    for place, byte in enumerate(data):
        if byte & 0xC0 == 0x80:
            yield data[at:place]
            at = place
    yield data[at:]


def _whole(data: bytes) -> Callable[[Wanted], Iterable[bytes]]:
    return lambda wanted: by_event(data)


def _stream(data: bytes, *, ending: Ending = "end", wait: float = 0.0) -> Answer:
    return Answer(_whole(data), ending=ending, wait=wait)


def _refusal(code: str, *, retry_after: int | None = None) -> Answer:
    headers = () if retry_after is None else (("retry-after", str(retry_after)),)
    data = error_body(code, f"made-up refusal of class {CATEGORY_OF_CODE[code]}")
    return Answer(lambda wanted: (data,), status=status_of(code), media_type=JSON, headers=headers)


def _parallel() -> bytes:
    chunks = [reasoning("Two cities, two calls.")]
    for index, city in enumerate(("Hong Kong", "Reykjavík")):
        arguments = json.dumps({"city": city}, ensure_ascii=False)
        chunks.append(tool_piece(arguments[:6], index=index, call_id=f"call_{index}", name="lookup_timezone"))
        chunks.append(tool_piece(arguments[6:], index=index))
    return body([*chunks, finish("tool_calls", 177, prompt_tokens=160)])


def _choices(wanted: Wanted) -> Iterator[bytes]:
    """The choices' pieces interleave; one usage at the end."""
    for piece in ("Answer", " number "):
        for choice in range(wanted.choices):
            yield frame(text(piece, choice=choice))
    for choice in range(wanted.choices):
        yield frame(text(str(choice), choice=choice))
        last = choice == wanted.choices - 1
        yield frame(finish("stop", 15 + 4 * wanted.choices if last else None, choice=choice))
    yield DONE


def _long(wanted: Wanted) -> Iterator[bytes]:
    return chain(repeat(frame(text("word ")), wanted.events), (frame(finish("stop", 15 + wanted.events)), DONE))


_TEXT = SCENARIOS["text"].body
_WIDE = body([*map(text, WIDE_TEXT), finish("stop", 40)])
_TWO_EVENTS = body([reasoning("Let me see."), text(ANSWER)], done=False)
_GATEWAY_ERROR = error_body("1234", "made-up network error under 200")
_HTML = b"<!doctype html><title>Log in</title><p>Please log in."

GOOD: dict[str, Answer] = {
    "parallel": _stream(_parallel()),
    "choices": Answer(_choices),
    "long": Answer(_long),
    "raw_glm": _stream(body([text(RAW_CALL[:30]), text(RAW_CALL[30:]), finish("stop", 60)])),
    "comments_first": _stream(COMMENT * 5 + _TEXT),
    "crlf": Answer(lambda wanted: by_event_crlf(_TEXT)),
    "one_byte": Answer(lambda wanted: (_TEXT[at : at + 1] for at in range(len(_TEXT)))),
    "split_characters": Answer(lambda wanted: inside_characters(_WIDE)),
    "slow_first_byte": _stream(_TEXT, wait=2.0),
    "stays_open": _stream(_TEXT, ending="stay"),
}
"""More ways to answer well."""

FAULTY: dict[str, Answer] = {
    "silence": _stream(b"", ending="stay"),
    "stall": _stream(_TWO_EVENTS, ending="stay"),
    "comments_only": _stream(COMMENT, ending="comments"),
    "reset": _stream(_TEXT[:-60], ending="reset"),
    "cut": _stream(_TEXT[:-60], ending="cut"),
    "empty": _stream(b""),
    "error_event": _stream(frame(text("The")) + b"event: error\ndata: " + error_body("1305", "busy") + b"\n\n"),
    "gzip": Answer(lambda wanted: (gzip.compress(_TEXT, mtime=0),), headers=(("content-encoding", "gzip"),)),
    "html": Answer(lambda wanted: (_HTML,), media_type="text/html;charset=UTF-8"),
    "html_502": Answer(lambda wanted: (_HTML,), status=502, media_type="text/html;charset=UTF-8"),
    "json_under_200": Answer(lambda wanted: (_GATEWAY_ERROR,), media_type=JSON),
    "401": _refusal("1002"),
    "429": _refusal("1302", retry_after=3),
    **{f"error_{code}": _refusal(code) for code in CATEGORY_OF_CODE},
}
"""What only a connection or a response head can do wrong, and a refusal for each business code."""


ANSWERS: dict[str, Answer] = {
    **{name: _stream(scenario.body) for name, scenario in SCENARIOS.items()},
    **GOOD,
    **FAULTY,
}
