"""The compiled framer: a stream read whole against the same stream in pieces."""

from __future__ import annotations

from ..builds import Builds
from . import Check
from ._framing import JOINT, MOST_BYTES, TOKENS, comparing

__all__ = ["CORPUS", "JOINT", "MOST_BYTES", "SOURCES", "TOKENS", "checker"]

SOURCES = ("_framer.pyx", "errors.py", "limits.py")
CORPUS = "framer"


def checker(builds: Builds) -> Check:
    return comparing(builds.compiled, builds.compiled)
