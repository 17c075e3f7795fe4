"""What carries a check out many times: `loop` needs nothing, `libfuzzer` needs clang, `atheris` needs the package.

A driver is made for a target and a working folder, and then runs parts of a run, each for some time.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol


class Part(NamedTuple):
    """What a part of a run came to."""

    executions: int
    found: Path | None
    """The input over which the check failed; nothing is executed after it."""


class Driver(Protocol):
    """One of the drivers, ready to run."""

    def run(self, executions: int, seconds: float) -> Part:
        """Executes until so many executions are done or so much time has passed, or something is found."""
        ...
