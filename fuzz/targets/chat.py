"""The whole chat stream: read whole by the compiled build with its lane, against in pieces, by the other build or lane.

An input is a head of six bytes, then the body. The head's first two bytes choose options and caps, by table; bits 4 and
5 of the second which reading it is compared with, bits 6 and 7 how the stream is closed. Two bytes each say where the
body is cut.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import ModuleType
from typing import Any

from ..builds import Builds
from ..readings import agree, calls, choices, judged, plain
from . import Check
from ._sources import STREAM

SOURCES = (*STREAM, "_deltas_py.py", "_framer_py.py", "_lane_py.py")
CORPUS = "chat"
HEAD = 6
SOME = 6  # events: inputs with more are not kept for that alone
MOST_BYTES = HEAD + 400
JOINT = b"\n\n"


def _chunk(fields: str) -> bytes:
    return b'data: {"id":"r-1","choices":[{"index":0,%s}]}\n\n' % fields.encode()


def _delta(fields: str) -> bytes:
    return _chunk(f'"delta":{{{fields}}}')


USAGE = b'"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}'
TOKENS = (
    _delta('"content":"Hi"'), _delta('"reasoning_content":"Hm"'), _delta('"role":"assistant","content":"é\\n"'),
    _delta('"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]'),
    _delta('"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\":"}}]'),
    _delta('"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]'),
    _delta('"tool_calls":[{"index":1,"id":"c2","function":{"name":"g","arguments":"{}"}}]'),
    _delta('"content":"\\ud83d"'), _delta('"content":"\\ude00"'), _delta('"reasoning":"x"'),
    _delta('"content":[{"type":"text","text":"p"}]'), _delta('"content":null'),
    _chunk('"delta":{},"finish_reason":"stop"'), _chunk('"delta":{},"finish_reason":"tool_calls"'),
    _chunk('"finish_reason":"length","delta":{"content":""}'), _chunk('"message":{"content":"m"}'),
    b'data: {"choices":[],' + USAGE + b"}\n\n",
    b'data: {"id":"r-1","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],' + USAGE + b"}\n\n",
    b'data: {"id":"r-1","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],' + USAGE + b"}\n\n",
    b"data: [DONE]\n\n", b'data: {"error":{"code":"1302"}}\n\n', b"event: error\ndata: x\n\n", b": ping\n\n",
    b"data: NaN\n\n", b"data: {\n\n", b"\r\n", b"\n", b"\r", b"data: ", b"event: ", b"id: 5\n", b"\xef\xbb\xbf",
    b'"id":', b'"r-2"', b'"choices":', b'"index":1', b'"index":0', b'"delta":', b'"content":', b'"reasoning_content":',
    b'"tool_calls":', b'"function":', b'"name":', b'"arguments":', b'"finish_reason":', b'"usage":', b'"created":1',
    b'"model":"glm-5.2"', b'"object":"chat.completion.chunk"', b"null", b"true", b"1e999", b"-0", b"12345678901",
    b"{}", b"[]", b"{", b"}", b"[", b"]", b",", b":", b'"', b'""', b"\\u00e9", b"\\ud83d\\ude00", b"\\n", b"\\", b" ",
    b"\xc3\xa9", b"\xf0\x9f\x98\x80", b"\xff", USAGE,
)  # fmt: skip

OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {},
    {},
    {},
    {"deltas": False},
    {"deltas": False},
    {"deltas": False, "collect": False},
    {"collect": False},
    {"choices": 2},
    {"digest": True},
    {"profile": "router"},
    {"profile": "hosted"},
    {"profile": "gateway"},
    {"profile": "gateway", "deltas": False, "choices": 2},
    {"allow": "all"},
    {"tools": [{"type": "function", "function": {"name": "f"}}]},
)
CAPS: tuple[dict[str, int], ...] = (
    *[{}] * 9,
    {"max_content_bytes": 5},
    {"max_reasoning_bytes": 3},
    {"max_argument_bytes": 5},
    {"max_tool_calls": 1},
    {"max_events": 3},
    {"max_event_bytes": 120},
    {"max_stream_bytes": 300, "max_json_depth": 4, "max_number_chars": 3},
)
ERRORS = (None, None, "cancelled", "other")


class Reader:
    """One build, with or without the lane."""

    def __init__(self, package: ModuleType, *, lane: bool) -> None:
        self._chat = package.chat
        self._lane = lane
        self._caps = [package.Limits(**caps) for caps in CAPS]
        self._options = [
            {**options, "allow": sorted(package.TOLERANCES)} if options.get("allow") == "all" else options
            for options in OPTIONS
        ]

    def read(self, pieces: Sequence[bytes], options: int, caps: int, error: str | None) -> dict[str, Any]:
        """What a stream in these pieces comes to."""
        self._chat.FAST_LANE = self._lane
        try:
            stream = self._chat.ChatStream(limits=self._caps[caps], **self._options[options])
        finally:
            self._chat.FAST_LANE = True
        events: list[Any] = []
        for piece in pieces:
            events += stream.feed(piece)
        early = stream.verdict
        verdict = stream.close(error)
        snapshot = stream.snapshot
        return {
            "events": [plain(event) for event in events + stream.closing_events],
            "early verdict": early is None or early is verdict,
            "verdict": judged(verdict),
            "calls": calls(verdict.tool_calls),
            "choices": choices(snapshot),
            "usage": repr(snapshot.usage),
            "head": (snapshot.id, snapshot.model, snapshot.created),
            "counts": (stream.bytes_seen, stream.events_seen, stream.pieces_seen, stream.phase),
        }


def checker(builds: Builds) -> Check:
    readers = [
        Reader(package, lane=lane) for package in (builds.compiled, builds.pure) for lane in (True, False)
    ]  # compiled with its lane comes first
    first = readers[0]

    def check(data: bytes) -> Hashable:
        if len(data) < HEAD:
            return None
        options, second = data[:2]
        body = data[HEAD:]
        size = len(body) + 1
        cuts = sorted((int.from_bytes(data[2:4], "big") % size, int.from_bytes(data[4:6], "big") % size))
        caps, error = second & 15, ERRORS[second >> 6]
        whole = first.read((body,), options & 15, caps, error)
        pieces = body[: cuts[0]], body[cuts[0] : cuts[1]], body[cuts[1] :]
        cut = readers[second >> 4 & 3].read(pieces, options & 15, caps, error)
        agree("chat streams", whole, cut)
        return options & 15, whole["verdict"]["code"], min(len(whole["events"]), SOME), whole["counts"][3]

    return check
