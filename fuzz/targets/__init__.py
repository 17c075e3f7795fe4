"""What is fuzzed: one module a target, found by its name.

A target has
    SOURCES     the files of the package that it runs through; their hash is what executions are counted for
    TOKENS      what its inputs are made of, for the mutator and as libFuzzer's dictionary
    JOINT       the bytes behind which its inputs may be taken apart
    MOST_BYTES  of one input
    CORPUS      the name of its corpus, which targets of the same inputs share
    checker     (Builds) -> check; check(data) raises Difference if two readings that must agree do not, and returns
                what the input came to, in few words: an input that comes to something new is kept by the plain loop
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from ..builds import Builds

Check = Callable[[bytes], Hashable]


class Target(Protocol):
    """What the modules of this folder have."""

    SOURCES: tuple[str, ...]
    TOKENS: tuple[bytes, ...]
    JOINT: bytes
    MOST_BYTES: int
    CORPUS: str

    @staticmethod
    def checker(builds: Builds) -> Check: ...


NAMES = tuple(sorted(path.stem for path in Path(__file__).parent.glob("[a-z]*.py")))


def target(name: str) -> Target:
    """The target of this name."""
    return cast(Target, import_module(f"{__name__}.{name}"))
