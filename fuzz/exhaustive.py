"""Every string of up to N tokens at every cut, and every cut of short inputs: python -m fuzz.exhaustive --tokens 6.

Strings: both framers read each whole and must agree, and the compiled one reads it in two pieces, cut at every place.
Inputs: those of cuts.py. Prints the counts; at the first difference it ends with exit 1, and shows the input.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from typing import Any

from . import bare, cuts
from .builds import Builds, Difference, load_builds

TOKENS = (b"\r", b"\n", b":", b" ", b"data", b"event", b"id", b"retry", b"\xef\xbb\xbf", b"\x00", b"x")
"""What framing tells apart."""


class Strings:
    """Two framers, to be used again for each string."""

    def __init__(self, compiled: Any, pure: Any) -> None:
        self._compiled = compiled()
        self._pure = pure()

    @classmethod
    def of(cls, builds: Builds) -> Strings:
        """With the framers of both builds."""
        return cls(*(bare.framer_class(bare.file_of(package)) for package in builds))

    def check(self, stream: bytes) -> int:
        """Both framers on the whole, the compiled one on every two pieces; how many readings that were."""
        events, facts = bare.read(self._compiled, (stream,))
        expected = list(map(bare.plain, events))
        twin_events, twin_facts = bare.read(self._pure, (stream,))
        if (expected, facts) != (list(map(bare.plain, twin_events)), twin_facts):
            raise Difference(f"the framers differ over {stream!r}")
        reset, feed, close, told = self._compiled.reset, self._compiled.feed, self._compiled.close, bare.Told
        for at in range(1, len(stream)):
            # bare.read, written out: this line and the next ones run some 10 ** 8 times.
            reset()
            seen: list[Any] = []
            seen_facts = None
            try:
                seen = feed(stream[:at])
                seen += feed(stream[at:])
                close()
            except told as error:
                seen += error.events
                seen_facts = error.facts
            if seen_facts != facts or ((seen or expected) and list(map(bare.plain, seen)) != expected):
                raise Difference(f"a cut at {at} shows in {stream!r}")
        return len(stream) + 1


def strings(size: int, head: tuple[bytes, ...] = ()) -> Iterator[bytes]:
    """Every string of so many tokens that begins with these."""
    start = b"".join(head)
    for chosen in itertools.product(TOKENS, repeat=size - len(head)):
        yield start + b"".join(chosen)


@cache
def _framers() -> Strings:
    return Strings.of(load_builds())


def check_strings(size: int, head: tuple[bytes, ...]) -> tuple[int, int]:
    """All of `strings`; how many they were, and how many readings."""
    framers = _framers()
    readings = [framers.check(stream) for stream in strings(size, head)]
    return len(readings), sum(readings)


def run_strings(most_tokens: int, jobs: int) -> None:
    """Every string of up to so many tokens, in so many processes; prints the counts of each length."""
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        each = map if jobs == 1 else pool.map
        for size in range(1, most_tokens + 1):
            began = time.monotonic()
            heads = itertools.product(TOKENS, repeat=max(0, size - 4))
            parts = list(each(partial(check_strings, size), heads))
            count, readings = (sum(part[column] for part in parts) for column in (0, 1))
            print(f"{size} tokens: {count:,} strings, {readings:,} readings, {_since(began)}", flush=True)


def run_cuts(single: int, double: int) -> None:
    """All inputs, cut; prints the counts of each layer."""
    for layer, cases in cuts.cases(load_builds()):
        began = time.monotonic()
        total = [0] * len(cuts.COUNTED)
        for case in cases:
            try:
                total = [sum(pair) for pair in zip(total, case.check(single, double), strict=True)]
            except Difference as difference:
                raise Difference(f"{layer}: {difference} in {case.body!r}") from None
        counts = ", ".join(f"{count:,} {name}" for count, name in zip(total, cuts.COUNTED, strict=True))
        print(f"{layer}: {counts}, {_since(began)}", flush=True)


def _since(began: float) -> str:
    return f"{time.monotonic() - began:.1f} s"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m fuzz.exhaustive", description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--tokens", type=int, default=6, metavar="N", help="of the longest strings (default 6; 0: none)"
    )
    parser.add_argument(
        "--single", type=int, default=256, metavar="N", help="cut inputs of so many bytes (default 256)"
    )
    parser.add_argument("--double", type=int, default=48, metavar="N", help="cut these twice (default 48)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="processes for the strings (default 1)")
    args = parser.parse_args(arguments)
    try:
        run_cuts(args.single, args.double)
        run_strings(args.tokens, args.jobs)
    except Difference as difference:
        print(difference, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
