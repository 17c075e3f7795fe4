"""The mutator of the plain loop: it knows a target's tokens and where its inputs may be taken apart."""

from __future__ import annotations

import random
from collections.abc import Sequence

MOST_CHANGES = 4
FROM_JOINT = 0.5
"""How often a place is moved behind the next joint."""


class Mutator:
    """Makes new inputs of old ones; the same seed and inputs make the same."""

    def __init__(self, seed: int, tokens: Sequence[bytes], joint: bytes, most_bytes: int) -> None:
        self._random = random.Random(seed).random
        self._tokens = tokens
        self._joint = joint
        self._most_bytes = most_bytes

    def mutate(self, pool: Sequence[bytes]) -> bytes:
        """One input of the pool with one to four changes."""
        chance = self._random
        data = pool[int(chance() * len(pool))]
        for _ in range(1 + int(chance() * MOST_CHANGES)):
            choice = int(chance() * 8)
            start = self._place(data)
            if choice < 3:
                tokens = self._tokens
                data = data[:start] + tokens[int(chance() * len(tokens))] + data[start:]
            elif choice == 3:
                data = data[:start] + bytes((int(chance() * 256),)) + data[start + 1 :]
            elif choice == 4:
                data = data[:start] + data[self._place(data) :]
            elif choice == 5:
                data = data[:start] + data[start + 1 + int(chance() * 8) :]
            elif choice == 6:
                end = self._place(data)
                data = data[:end] + data[min(start, end) :]
            else:
                other = pool[int(chance() * len(pool))]
                data = data[:start] + other[self._place(other) :]
        return data[: self._most_bytes]

    def _place(self, data: bytes) -> int:
        """Anywhere, or behind a joint."""
        place = int(self._random() * (len(data) + 1))
        if self._random() < FROM_JOINT:
            found = data.find(self._joint, place)
            if found >= 0:
                return found + len(self._joint)
        return place
