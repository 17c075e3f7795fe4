"""Reads everything there is, up to a size: python -m fuzz.exhaustive --tokens 7 --cuts 256.

--tokens N   every string of up to N of eight tokens: whole by both framers, at every single cut by the compiled one,
             and up to N - 1 tokens by the pure one
--cuts N     every body of the corpora up to N bytes at every single and every double cut, and truncated at every byte

Prints how many readings agreed. The first that do not end the run with an exception that shows the input.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from . import corpora
from .builds import Builds, Difference, load_builds
from .targets import _framing, chat, raw_text

TOKENS = (b"\r", b"\n", b":", b" ", b"data", b"event", b"\xef\xbb\xbf", b"x")
FIRST = 2
"""Tokens that a process of its own begins with."""

Read = Callable[[Sequence[Any]], Any]


def strings(most: int, start: bytes = b"", used: int = 0) -> Iterator[tuple[int, bytes]]:
    """Every string of up to `most` tokens that begins with these, and its number of tokens."""
    for more in range(most - used + 1):
        for chosen in itertools.product(TOKENS, repeat=more):
            yield used + more, start + b"".join(chosen)


def framer_of(package: Any, options: int = 0) -> Read:
    """What the framer of this build tells of pieces, with the caps of a fuzz input's first byte."""
    errors = "replace" if options & 8 else "strict"
    framer = package.SSEFramer(package.Limits(**_framing.CAPS[options & 7]), errors=errors)
    return lambda pieces: _framing.told(framer, package.GlmsseError, pieces, False)


def agree_on_strings(builds: Builds, strings: Iterator[tuple[int, bytes]], pure_cuts: int) -> int:
    """Reads each in every way; strings of more than `pure_cuts` tokens are not cut for the pure framer."""
    compiled, pure = framer_of(builds.compiled), framer_of(builds.pure)
    readings = 0
    for tokens, text in strings:
        whole = compiled((text,))
        same(whole, pure((text,)), text)
        for read in (compiled, pure) if tokens <= pure_cuts else (compiled,):
            for at in range(1, len(text)):
                same(whole, read((text[:at], text[at:])), text, at)
            readings += max(0, len(text) - 1)
        readings += 2
    return readings


def same(whole: Any, other: Any, data: Any, *cuts: int) -> None:
    """Difference, with the input, which is one of ours."""
    if whole != other:
        raise Difference(f"{data!r} is not the same when cut at {cuts}" if cuts else f"builds differ over {data!r}")


def _part(task: tuple[bytes, int, int]) -> int:
    start, used, most = task
    return agree_on_strings(load_builds(), strings(most, start, used), most - 1)


def agree_on_all_strings(most: int, jobs: int = 1) -> int:
    """Every string of up to `most` tokens; how many readings agreed."""
    if jobs == 1 or most <= FIRST:
        return agree_on_strings(load_builds(), strings(most), most - 1)
    tasks = [(b"".join(chosen), FIRST, most) for chosen in itertools.product(TOKENS, repeat=FIRST)]
    with ProcessPoolExecutor(jobs) as pool:
        return agree_on_strings(load_builds(), strings(FIRST - 1), FIRST) + sum(pool.map(_part, tasks))


def agree_on_cuts(data: Any, read: Read, *, double: bool) -> int:
    """Every single cut of a body, and every double one if asked for."""
    whole = read((data,))
    size = len(data)
    for at in range(1, size):
        same(whole, read((data[:at], data[at:])), data, at)
    pairs = list(itertools.combinations(range(1, size), 2)) if double else []
    for first, second in pairs:
        same(whole, read((data[:first], data[first:second], data[second:])), data, first, second)
    return size + len(pairs)


def bodies(builds: Builds) -> Iterator[tuple[str, Any, list[Read]]]:
    """The bodies of the corpora, each with readers of both builds, and of the chat stream with and without its lane."""
    for data in corpora.read("framer"):
        yield "framer", data[_framing.HEAD :], [framer_of(package, data[0]) for package in builds]
    streams = [chat.Reader(package, lane=lane) for package in builds for lane in (True, False)]
    for data in corpora.read("chat"):
        yield "chat", data[chat.HEAD :], [_bound(reader, data[0] & 15, data[1] & 15, None) for reader in streams]
    parsers = [raw_text.Reader(package) for package in builds]
    for data in corpora.read("raw_text"):
        text = data[raw_text.HEAD :].decode("utf-8", "surrogateescape")
        yield "raw_text", text, [_bound(reader, data[0], data[1] & 7) for reader in parsers]


def _bound(reader: Any, *options: Any) -> Read:
    return lambda pieces: reader.read(pieces, *options)


def agree_when_truncated(kind: str, data: Any, reads: Sequence[Read]) -> int:
    """At every byte all readers agree; a chat stream without its end is not accepted, and offers no call then."""
    for size in range(len(data)):
        told = reads[0]((data[:size],))
        for read in reads[1:]:
            same(told, read((data[:size],)), data, size)
        if kind == "chat" and not told["verdict"]["code"]:
            assert told["verdict"]["done"] or told["verdict"]["tolerated"], (data, size)
        elif kind == "chat":
            assert told["calls"] == [], (data, size)
    return len(data) * len(reads)


def agree_on_corpora(builds: Builds, most_bytes: int) -> int:
    """Bodies of up to so many bytes: every cut by the first reader, single ones by the others, truncated by all."""
    readings = 0
    for kind, data, reads in bodies(builds):
        if len(data) <= most_bytes:
            readings += sum(agree_on_cuts(data, read, double=read is reads[0]) for read in reads)
            readings += agree_when_truncated(kind, data, reads)
    return readings


def _since(start: float) -> str:
    return f"in {time.monotonic() - start:,.0f} s"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.exhaustive", description=__doc__.split("\n\n")[0])
    parser.add_argument("--tokens", type=int, default=6, metavar="N", help="strings of up to N tokens (default 6)")
    parser.add_argument("--cuts", type=int, default=0, metavar="N", help="bodies of up to N bytes (default: none)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes for the strings (default 1)")
    args = parser.parse_args(arguments)
    start = time.monotonic()
    readings = agree_on_all_strings(args.tokens, args.jobs)
    print(f"strings of up to {args.tokens} tokens: {readings:,} readings agreed", _since(start), flush=True)
    if args.cuts:
        start = time.monotonic()
        readings = agree_on_corpora(load_builds(), args.cuts)
        print(f"bodies of up to {args.cuts} bytes: {readings:,} readings agreed", _since(start))
    return 0


if __name__ == "__main__":
    sys.exit(main())
