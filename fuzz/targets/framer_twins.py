"""The two framers: a stream read whole by the compiled one against the same stream in pieces by the pure one."""

from __future__ import annotations

from ..builds import Builds
from . import Check
from ._framing import JOINT, MOST_BYTES, TOKENS, comparing

__all__ = ["CORPUS", "JOINT", "MOST_BYTES", "SOURCES", "TOKENS", "checker"]

SOURCES = ("_framer.pyx", "_framer_py.py", "errors.py", "limits.py")
CORPUS = "framer"


def checker(builds: Builds) -> Check:
    return comparing(builds.compiled, builds.pure)
