"""The plain loop: our own mutator, no dependencies, and an input that comes to something new joins the pool."""

from __future__ import annotations

import hashlib
import time
import traceback
from collections.abc import Hashable
from pathlib import Path

from .. import corpora
from ..mutate import Mutator
from ..targets import Check, Target
from . import Part

MOST_IN_POOL = 4000
BETWEEN_CLOCKS = 200


class Loop:
    """Runs a check in this process. The same seed makes the same inputs."""

    def __init__(self, target: Target, check: Check, seed: int, found: Path) -> None:
        self._check = check
        self._pool = corpora.read(target.CORPUS)
        self._mutator = Mutator(seed, target.TOKENS, target.JOINT, target.MOST_BYTES)
        self._seen: set[Hashable] = set()
        self._found = found

    def run(self, executions: int, seconds: float) -> Part:
        mutate, check, pool, seen = self._mutator.mutate, self._check, self._pool, self._seen
        end = time.monotonic() + seconds
        for number in range(executions):
            if number % BETWEEN_CLOCKS == 0 and time.monotonic() > end:
                return Part(number, None)
            data = mutate(pool)
            try:
                outcome = check(data)
            except Exception:
                traceback.print_exc()
                return Part(number + 1, self._keep(data))
            if outcome not in seen and len(pool) < MOST_IN_POOL:
                seen.add(outcome)
                pool.append(data)
        return Part(executions, None)

    def _keep(self, data: bytes) -> Path:
        self._found.mkdir(parents=True, exist_ok=True)
        path = self._found / f"crash-{hashlib.sha1(data).hexdigest()}"
        path.write_bytes(data)
        return path
