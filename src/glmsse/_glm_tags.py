"""The tags of raw GLM text, and how one is recognised at its place without reading ahead further than it is long."""

from __future__ import annotations

from collections.abc import Iterable

# What stands at a place. NO_TAG and PARTIAL (more text is needed) are no tags and have no length.
NO_TAG = 0
PARTIAL = 1
KEY_OPEN = 2
KEY_CLOSE = 3
VALUE_OPEN = 4
VALUE_CLOSE = 5
CALL_OPEN = 6
CALL_CLOSE = 7
STRAY_CLOSE = 8
THINK_OPEN = 9
THINK_CLOSE = 10
TURN = 11
FUNCTION_OPEN = 12
FUNCTION_CLOSE = 13
GEMMA_OPEN = 14
DSML_OPEN = 15

CALL_OPENER = "<tool_call>"
CALL_CLOSER = "</tool_call>"
THINK_OPENER = "<think>"
THINK_CLOSER = "</think>"
GEMMA_OPENER = "<|tool_call>"
GEMMA_CLOSER = "<tool_call|>"
DSML_OPENER = "<｜DSML｜tool_calls>"
DSML_CLOSER = "</｜DSML｜tool_calls>"

_TURNS = tuple((tag, TURN) for tag in ("<|observation|>", "<|user|>", "<|assistant|>", "<|system|>", "<|endoftext|>"))
_CALL = (CALL_OPENER, CALL_OPEN)
_THINK_CLOSE = (THINK_CLOSER, THINK_CLOSE)
_ARGUMENT_TAGS = (
    ("<arg_key>", KEY_OPEN),
    ("</arg_key>", KEY_CLOSE),
    ("<arg_value>", VALUE_OPEN),
    ("</arg_value>", VALUE_CLOSE),
)

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_"
_NAMESPACE_STARTS = frozenset(_LETTERS)
_NAMESPACE_CHARS = frozenset(_LETTERS + "0123456789.-")
_NAMESPACE_MOST = 64
_NAMESPACE_END = ":tool_call>"

_NOTHING = (NO_TAG, 0)
_MORE = (PARTIAL, 0)


class TagTable:
    """The tags that are looked for in one situation; `namespaces` adds `<NAME:tool_call>`.

    No tag of a table begins with another one, so the first that fits, wholly or as far as the text goes, is the one.
    """

    __slots__ = ("by_second", "namespaces")

    def __init__(self, tags: Iterable[tuple[str, int]], namespaces: bool) -> None:
        self.by_second: dict[str, tuple[tuple[str, int], ...]] = {}
        for entry in tags:
            second = entry[0][1]
            self.by_second[second] = (*self.by_second.get(second, ()), entry)
        self.namespaces = namespaces


def tag_at(text: str, at: int, table: TagTable, final: bool) -> tuple[int, int]:
    """What the `<` at `at` begins and how long it is; with `final` no more text comes, so nothing is PARTIAL."""
    second = text[at + 1 : at + 2]
    if not second:
        return _NOTHING if final else _MORE
    left = len(text) - at
    for tag, kind in table.by_second.get(second, ()):
        if text.startswith(tag, at):
            return kind, len(tag)
        if left < len(tag) and not final and tag.startswith(text[at:]):
            return _MORE
    if table.namespaces and second in _NAMESPACE_STARTS:
        return _namespaced_at(text, at, final)
    return _NOTHING


def _namespaced_at(text: str, at: int, final: bool) -> tuple[int, int]:
    last = at + 1 + _NAMESPACE_MOST
    colon = text.find(":", at + 1, last + 1)
    if colon < 0:
        possible = len(text) <= last and not final and _NAMESPACE_CHARS.issuperset(text[at + 1 :])
        return _MORE if possible else _NOTHING
    if not _NAMESPACE_CHARS.issuperset(text[at + 1 : colon]):
        return _NOTHING
    if text.startswith(_NAMESPACE_END, colon):
        return CALL_OPEN, colon + len(_NAMESPACE_END) - at
    left = len(text) - colon
    possible = left < len(_NAMESPACE_END) and not final and _NAMESPACE_END.startswith(text[colon:])
    return _MORE if possible else _NOTHING


CONTENT_TAGS = TagTable(
    (
        _CALL,
        (CALL_CLOSER, STRAY_CLOSE),
        (THINK_OPENER, THINK_OPEN),
        _THINK_CLOSE,
        *_TURNS,
        (GEMMA_OPENER, GEMMA_OPEN),
        (DSML_OPENER, DSML_OPEN),
    ),
    namespaces=True,
)
REASONING_TAGS = TagTable((_CALL, _THINK_CLOSE, *_TURNS), namespaces=False)
BARE_REASONING_TAGS = TagTable((_THINK_CLOSE,), namespaces=False)
START_TAGS = TagTable(((THINK_OPENER, THINK_OPEN),), namespaces=False)
TURN_TAGS = TagTable(_TURNS, namespaces=False)
# What behind a call closer in an open value makes it a real one.
FOLLOWING_TAGS = TagTable((_CALL, *_TURNS), namespaces=True)


class Dialect:
    """How one envelope writes a call: its own closer and the tags of each situation inside of it."""

    __slots__ = ("behind", "closer", "inside", "key", "name", "qwen", "value", "value_closer")

    def __init__(self, closer: str, qwen: bool = False) -> None:
        own = (closer, CALL_CLOSE)
        inner = (own, _CALL, *_TURNS)
        self.closer = closer
        self.qwen = qwen
        self.value_closer = "</parameter>" if qwen else "</arg_value>"
        ends = () if closer == CALL_CLOSER else ((CALL_CLOSER, STRAY_CLOSE),)
        self.name = TagTable((*_ARGUMENT_TAGS, ("<function=", FUNCTION_OPEN), _THINK_CLOSE, *ends, *inner), True)
        if qwen:
            parameter = (("<parameter=", KEY_OPEN), (self.value_closer, VALUE_CLOSE))
            self.key = TagTable((*parameter, *inner), True)
            self.inside = TagTable((*parameter, ("</function>", FUNCTION_CLOSE), *inner), True)
        else:
            self.key = self.inside = TagTable((*_ARGUMENT_TAGS, *inner), True)
        # Behind Qwen's `</function>` only the call can end.
        self.behind = TagTable(inner, True)
        self.value = TagTable(((self.value_closer, VALUE_CLOSE), own), False)


_PLAIN = Dialect(CALL_CLOSER)
_PLAIN_QWEN = Dialect(CALL_CLOSER, qwen=True)


def dialect_of(opener: str, qwen: bool = False) -> Dialect:
    """The dialect of `<tool_call>` or `<NAME:tool_call>`, with GLM's tags or with Qwen's."""
    if opener == CALL_OPENER:
        return _PLAIN_QWEN if qwen else _PLAIN
    return Dialect(f"</{opener[1:]}", qwen)
