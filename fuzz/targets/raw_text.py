"""Raw GLM text: read whole against in pieces by the other build, and against a chat stream that carries it as content.

An input is a head of four bytes, then the text in UTF-8 (a byte that is none becomes half of a surrogate pair). The
head's first two bytes choose options and caps; the others are where the text is cut.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Sequence
from types import ModuleType
from typing import Any

from ..builds import Builds
from ..readings import agree, choices, joined
from . import Check
from ._sources import STREAM

SOURCES = (
    *STREAM, "_deltas_py.py", "_glm_call.py", "_glm_envelopes.py", "_glm_name.py", "_glm_output.py", "_glm_tags.py",
    "_glm_types.py", "glm_text.py",
)  # fmt: skip
CORPUS = "raw_text"
HEAD = 4
SOME = 4  # events or flags: inputs with more are not kept for that alone
MOST_BYTES = HEAD + 140
JOINT = b">"
TOKENS = tuple(
    text.encode("utf-8", "surrogatepass")
    for text in (
        "<tool_call>", "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "<think>", "</think>",
        "<|user|>", "<|observation|>", "<|endoftext|>", "<x:tool_call>", "</x:tool_call>", "<function=now>",
        "<function=search>", "<function=", "<parameter=q>", "<parameter=", "</parameter>", "</function>",
        "<|tool_call>", "call:", "now{", '<|"|>', "}<tool_call|>", "<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>",
        '<｜DSML｜invoke name="now">', "</｜DSML｜invoke>", '<｜DSML｜parameter name="q" string="true">',
        '{"name":"now"}', '{"name":"search","arguments":{"q":"x"}}', '{"name":"other"}', "search", "now", "other", "q",
        "limit", "tags", "opts", "to", "[1", "null", "nul", "5", "-1.5e3", "true", " ", "\n", "\r\n", "<", "</", ">",
        "{", "}", '"', "\\", "\\u00e9", "é", "😀", "\ud800", "word", "x" * 40,
        "<tool_call>search\n<arg_key>q</arg_key>\n<arg_value>word</arg_value>\n</tool_call>",
        "<tool_call>search<arg_key>limit</arg_key><arg_value>5</arg_value></tool_call>", "<tool_call>now</tool_call>",
    )
)  # fmt: skip

PROPERTIES = {
    "q": {"type": "string"},
    "limit": {"type": "integer"},
    "score": {"type": "number"},
    "exact": {"type": "boolean"},
    "tags": {"type": "array"},
    "opts": {"type": "object"},
    "to": {"type": ["string", "null"]},
    "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
}
OFFERED: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "search", "parameters": {"type": "object", "properties": PROPERTIES}}},
    {"type": "function", "function": {"name": "now"}},
]
STARTS = ("content", "content", "reasoning", "auto")
UNOFFERED = ("text", "text", "call", "drop")
ENDS = ("stop", "stop", "length", None)
TOOLS: tuple[list[dict[str, Any]] | None, ...] = (OFFERED, OFFERED, None, [])
CAPS: tuple[dict[str, int], ...] = (
    *[{}] * 4,
    {"max_content_bytes": 12},
    {"max_reasoning_bytes": 12},
    {"max_argument_bytes": 9},
    {"max_tool_calls": 1},
)
SINGLE, BY_STREAM = 0x38, 0xC0
"""Bits of the second byte which, all set, ask for single characters, and for the chat stream, too."""
USAGE = '"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}'


class Reader:
    """The parser of one build."""

    def __init__(self, package: ModuleType) -> None:
        self._package = package
        self._caps = [package.Limits(**caps) for caps in CAPS]

    def parser(self, options: int, caps: int) -> Any:
        return self._package.ToolCallParser(
            TOOLS[options >> 6],
            start=STARTS[options & 3],
            unoffered=UNOFFERED[options >> 2 & 3],
            limits=self._caps[caps],
        )

    def read(self, pieces: Sequence[str], options: int, caps: int) -> dict[str, Any]:
        """What a reply in these pieces comes to."""
        parser = self.parser(options, caps)
        events: list[Any] = []
        for piece in pieces:
            events += parser.feed(piece)
        events += parser.close(ENDS[options >> 4 & 3])
        return {"events": joined(events), "flags": parser.flags, "choices": choices(parser.snapshot)}

    def read_by_stream(self, pieces: Sequence[str], options: int) -> dict[str, Any]:
        """The same of a reply that a chat stream has as content and that ended with `stop`."""
        parser = self.parser(options, 0)
        stream = self._package.ChatStream(content_parser=parser)
        deltas = [f'{{"delta":{{"content":{json.dumps(piece)}}}}}' for piece in pieces]
        deltas.append('{"delta":{},"finish_reason":"stop"}')
        body = "".join(f'data: {{"choices":[{delta}],{USAGE}}}\n\n' for delta in deltas)
        events = stream.feed(body.encode() + b"data: [DONE]\n\n")
        stream.close()
        kept = joined(event for event in events if event.type not in ("usage", "finish", "done"))
        return {"events": kept, "flags": parser.flags, "choices": [made[:4] for made in choices(stream.snapshot)]}


def checker(builds: Builds) -> Check:
    first, second = Reader(builds.compiled), Reader(builds.pure)

    def check(data: bytes) -> Hashable:
        if len(data) < HEAD:
            return None
        options, more = data[:2]
        text = data[HEAD:].decode("utf-8", "surrogateescape")
        size = len(text) + 1
        cuts = sorted((data[2] % size, data[3] % size))
        pieces = text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :]
        whole = first.read((text,), options, more & 7)
        single = more & SINGLE == SINGLE
        agree("replies", whole, second.read(list(text) if single else pieces, options, more & 7))
        if more & BY_STREAM == BY_STREAM and text.isprintable():
            _compare_with_stream(first, text, pieces, options & ~0x30)
        return options, whole["flags"][:SOME], min(len(whole["events"]), SOME)

    return check


def _compare_with_stream(reader: Reader, text: str, pieces: Sequence[str], options: int) -> None:
    whole = reader.read((text,), options, 0)
    whole["events"] = [event for event in whole["events"] if event[0] != "finish"]
    whole["choices"] = [made[:4] for made in whole["choices"]]
    agree("a reply and its stream", whole, reader.read_by_stream(pieces, options))
