#!/usr/bin/env python3
"""How the time of `ToolCallParser` grows: 16 times the text, or the arguments, may cost at most 20 times as much.

    python benchmarks/glm_text.py [--feed CHARS] [--repeat N]

Prints seconds (the best of a few runs) and ratios; exits 1 when a ratio is above the bar.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

from glmsse.glm_text import ToolCallParser
from glmsse.limits import Limits

FACTOR = 16
BAR = 20.0
# Caps would end the large sizes early; the growth is what is measured.
UNLIMITED = Limits(max_argument_bytes=None, max_content_bytes=None, max_reasoning_bytes=None, max_tool_calls=None)

OPEN = "<tool_call>Write<arg_key>content</arg_key><arg_value>"
CLOSE = "</arg_value></tool_call>"


def tools(properties: int) -> list[dict[str, object]]:
    parameters = {"properties": {f"key_{number}": {"type": "integer"} for number in range(properties)}}
    return [{"name": "Write", "parameters": {"properties": {"content": {"type": "string"}}}},
            {"name": "Many", "parameters": parameters},
            {"name": "Typed", "parameters": {"properties": {"content": {"type": ["array", "object"]}}}}]  # fmt: skip


def code_value(size: int) -> str:
    line = '    if a < b:\n        print("x\\n")  # 中\n'
    return OPEN + (line * (size // len(line) + 1))[:size] + CLOSE


def many_arguments(count: int) -> str:
    pairs = (f"<arg_key>key_{number}</arg_key><arg_value>{number}</arg_value>" for number in range(count))
    return f"<tool_call>Many{''.join(pairs)}</tool_call>"


def repeated(unit: str, before: str = "", after: str = "") -> Callable[[int], str]:
    return lambda size: before + unit * (size // len(unit)) + after


# name, how a text of a size is made, sizes (the first and the last ratio is of neighbours 16 times apart)
SHAPES: list[tuple[str, Callable[[int], str], tuple[int, ...]]] = [
    ("string value, chars", code_value, (2_000, 20_000, 200_000)),
    ("string value, x16", code_value, (12_500, 200_000)),
    ("arguments", many_arguments, (25, 50, 100, 200, 400, 800, 1_600)),
    ("prose", repeated("word and < word "), (12_500, 200_000)),
    ("whitespace in content", repeated(" ", "a"), (12_500, 200_000)),
    ("whitespace behind a closer in a value", repeated(" ", OPEN + "</tool_call>", "x" + CLOSE), (12_500, 200_000)),
    ("whitespace behind a key", repeated(" ", "<tool_call>Write<arg_key>k</arg_key>"), (12_500, 200_000)),
    ("< in content", repeated("<"), (12_500, 200_000)),
    ("< in a value", repeated("<", OPEN, CLOSE), (12_500, 200_000)),
    ("</ in a value", repeated("</", OPEN, CLOSE), (12_500, 200_000)),
    ("call closers in a value", repeated("</tool_call> ", OPEN, "x" + CLOSE), (12_500, 200_000)),
    ("openers that become text", repeated("<tool_call>"), (12_500, 200_000)),
    ("openers with a long region", repeated("<tool_call>" + "a b" * 180), (12_500, 200_000)),
    ("openers behind a name", repeated("<tool_call>Write"), (12_500, 200_000)),
    ("openers of namespaces", repeated("<aaaaaaaaaaaaaaaa"), (12_500, 200_000)),
    ("namespaced openers", repeated("<a:tool_call>"), (12_500, 200_000)),
    ("lone key closers", repeated("</arg_key>", "<tool_call>Write<arg_key>k"), (12_500, 200_000)),
    ("words between arguments", repeated("word ", OPEN + "</arg_value>"), (12_500, 200_000)),
    ("a long key", repeated("k", "<tool_call>Write<arg_key>"), (12_500, 200_000)),
    ("typed value", repeated('[1,"\\n"],', "<tool_call>Typed<arg_key>content</arg_key><arg_value>[", "1]" + CLOSE),
     (12_500, 200_000)),
    ("brackets left open", repeated("[", "<tool_call>Typed<arg_key>content</arg_key><arg_value>", CLOSE),
     (12_500, 200_000)),
    ("JSON payload", repeated('{"a":1},', '<tool_call>{"name":"Write","x":[', "1]}</tool_call>"), (12_500, 200_000)),
    ("Gemma payload", repeated('{a:<|"|>"<|"|>},', "<|tool_call>call:Write{x:[", "1]}<tool_call|>"), (12_500, 200_000)),
    ("Qwen value", repeated("a\n", "<tool_call><function=Write><parameter=content>", "</parameter></tool_call>"),
     (12_500, 200_000)),
]  # fmt: skip


def seconds(text: str, feed: int, offered: list[dict[str, object]], repeat: int) -> float:
    best = float("inf")
    for _ in range(repeat):
        pieces = [text[at : at + feed] for at in range(0, len(text), feed)]
        parser = ToolCallParser(offered, limits=UNLIMITED)
        start = time.perf_counter()
        for piece in pieces:
            parser.feed(piece)
        parser.close()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--feed", type=int, default=3, help="characters per feed; 0 feeds the whole text (default 3)")
    options.add_argument("--repeat", type=int, default=3, help="runs of which the best counts (default 3)")
    args = options.parse_args()
    offered = tools(4_000)
    slow = []
    for name, make, sizes in SHAPES:
        times: dict[int, float] = {}
        before = 0
        for size in sizes:
            text = make(size)
            times[size] = seconds(text, args.feed or len(text), offered, args.repeat)
            ratio = f"   x{times[size] / times[before]:5.1f} for x{size / before:g}" if before else ""
            print(f"{name:40} {size:8,}  {times[size]:9.4f} s{ratio}")
            before = size
        for size in sizes:
            if size * FACTOR in times:
                growth = times[size * FACTOR] / times[size]
                if growth > BAR:
                    # A busy machine can slow one of the two down: only what is slow twice counts.
                    small, large = make(size), make(size * FACTOR)
                    first = seconds(small, args.feed or len(small), offered, 3 * args.repeat)
                    growth = seconds(large, args.feed or len(large), offered, 3 * args.repeat) / first
                    print(f"{name:40} {size:8,}  measured again: x{growth:.1f} for x{FACTOR}")
                if growth > BAR:
                    slow.append(f"{name}: x{growth:.1f} from {size:,} to {size * FACTOR:,}")
    for line in slow:
        print(f"above the bar of x{BAR:g} for x{FACTOR}: {line}")
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
