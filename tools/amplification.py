"""Searches for the bytes that make a stream hold most memory: python tools/amplification.py [--seconds N] [--build B]

tracemalloc says what is held after each pattern has been fed over and over, 64 KiB of it, with the caps on counts off;
the ratio is bytes held, less the constant, to bytes fed. Patterns are made of the tokens of the protocol: first each
token and each pair, then random ones and changes of the worst so far, from a seed. It fails when one of them holds more
than twice its bytes and the constant.

Events that were handed out are the caller's and not counted. Chat patterns are held by caps on counts instead: with a
million calls or choices allowed the objects of each would be larger than the bytes that open it.
"""

from __future__ import annotations

import argparse
import gc
import os
import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

FED = 64 * 1024
PIECES = (1, 61, 4096)
MOST_RATIO = 2.0
CONSTANT = 16 * 1024

LINE = [b"data:", b"data: ", b"data", b"event:", b"id:", b"retry:", b"x", b"xy", b":", b" ", b"\n", b"\r", b"\r\n"]
LINE += [b"1", b"\xe2\x82\xac", b"\x00", b"\xef\xbb\xbf", b"x" * 500, b"\n\n"]
START = b'data: {"id":"r","choices":[{"index":0,"delta":{'
CHAT = [
    START + b'"content":"w"}}]}\n\n',
    START + b'"content":"\\u00e9\\ud83d\\ude00"}}]}\n\n',
    START + b'"content":"' + b"long " * 90 + b'"}}]}\n\n',
    START + b'"reasoning_content":"r"}}]}\n\n',
    START + b'"content":"","reasoning_content":null}}]}\n\n',
    START + b'"role":"assistant","padding":"pppppppp"}}]}\n\n',
    START + b'"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"x"}}]}}]}\n\n',
    START + b'"tool_calls":[{"index":0,"function":{"arguments":"{\\"a\\":1}"}}]}}]}\n\n',
    START + b'"tool_calls":[{"index":7,"id":"b","function":{"name":"g","arguments":""}}]}}]}\n\n',
    b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2,"more":[1,2,3]}}\n\n',
    b": comment\n\n",
    b"data:\n\n",
    b"\n",
]


def held(make: Callable[[], Any], wire: bytes, piece: int) -> int:
    """Bytes that the reader holds after these, which are fed in pieces and again and again."""
    gc.collect()
    tracemalloc.start()
    reader = make()
    before = tracemalloc.get_traced_memory()[0]
    for at in range(0, len(wire), piece):
        reader.feed(wire[at : at + piece])
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return after - before


def ratio(make: Callable[[], Any], pattern: bytes, pieces: tuple[int, ...] = PIECES) -> tuple[float, int]:
    """The worst ratio of a pattern, and the size of the pieces it was met with."""
    wire = (pattern * (FED // len(pattern) + 1))[:FED]
    return max(((held(make, wire, piece) - CONSTANT) / FED, piece) for piece in pieces)


Pattern = tuple[bytes, ...]


def patterns(tokens: list[bytes], best: list[Pattern], pick: random.Random) -> Iterator[Pattern]:
    """First each token alone and each pair, then random ones and the best with one token changed, without an end."""
    yield from ((one,) for one in tokens)
    yield from ((one, two) for one in tokens for two in tokens if one != two)
    while True:
        if best and pick.random() < 0.7:
            changed = list(best[-1])
            at = pick.randrange(len(changed))
            changed[at : at + pick.choice((0, 1, 1))] = pick.choices(tokens, k=pick.choice((0, 1, 1, 2)))
            yield tuple(changed[:8]) or (pick.choice(tokens),)
        else:
            yield tuple(pick.choices(tokens, k=pick.randint(2, 6)))


def search(name: str, make: Callable[[], Any], tokens: list[bytes], seconds: float, seed: int) -> float:
    """The worst ratio found; it is printed with its pattern."""
    worst = (float("-inf"), 0)
    best: list[Pattern] = []
    seen: set[Pattern] = set()
    ends = time.monotonic() + seconds
    for pattern in patterns(tokens, best, random.Random(seed)):
        if time.monotonic() > ends:
            break
        if pattern in seen:
            continue
        seen.add(pattern)
        found = ratio(make, b"".join(pattern), PIECES[1:] if len(seen) % 8 else PIECES)
        if found > worst:
            worst = found
            best.append(pattern)
    shown = b"".join(best[-1])[:60] if best else b""
    print(f"{name:8} {len(seen):6} patterns, worst {worst[0]:.2f} in pieces of {worst[1]}: {shown!r}")
    return worst[0]


def readers(glmsse: Any) -> dict[str, tuple[Callable[[], Any], list[bytes]]]:
    """What is searched: makers of readers, and the tokens for each."""
    limits = glmsse.Limits(max_event_lines=None, max_event_bytes=None, max_events=None)

    return {
        "framer": (lambda: glmsse.SSEFramer(limits, errors="replace"), LINE),
        "stream": (lambda: glmsse.ChatStream("gateway", limits=limits), LINE),
        "chat": (lambda: glmsse.ChatStream(limits=limits), CHAT),
        "tap": (lambda: glmsse.ChatStream(limits=limits, deltas=False, collect=False), CHAT),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="for each reader (default: %(default)s)")
    parser.add_argument("--build", choices=("compiled", "pure"), help="build that is used (default: any)")
    parser.add_argument("--seed", type=int, default=1, help="of the random patterns (default: %(default)s)")
    args = parser.parse_args(argv)
    if args.build:
        os.environ["GLMSSE_PURE_PYTHON"] = "1" if args.build == "pure" else "0"
    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
    import glmsse

    if args.build not in (None, glmsse.IMPLEMENTATION):
        print(f"the {args.build} build is not here", file=sys.stderr)
        return 1
    print(f"{glmsse.IMPLEMENTATION} build, {FED // 1024} KiB each, at most {MOST_RATIO} and {CONSTANT // 1024} KiB")
    found = [search(name, *parts, args.seconds, args.seed) for name, parts in readers(glmsse).items()]
    return 1 if max(found) > MOST_RATIO else 0


if __name__ == "__main__":
    sys.exit(main())
