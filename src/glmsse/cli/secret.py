"""The key, and keeping it out of everything that is shown or kept. A peer may send it back."""

from __future__ import annotations

import os
from collections.abc import Mapping

from .outcome import Unreadable

KEY_VARIABLE = "ZAI_API_KEY"
SHORTEST_KEY = 8
"""A shorter one would hide half of every text that it happens to be part of."""


def key_from(environment: Mapping[str, str] = os.environ) -> str:
    """The key; Unreadable, without showing it, if there is none or it cannot go into a header."""
    key = environment.get(KEY_VARIABLE, "").strip()
    if not key:
        raise Unreadable(f"set {KEY_VARIABLE} to your key")
    if len(key) < SHORTEST_KEY or not all("!" <= char <= "~" for char in key):
        raise Unreadable(f"{KEY_VARIABLE} holds no usable key: visible ASCII only, {SHORTEST_KEY} characters or more")
    return key


class Mask:
    """Bytes in, the same bytes out, the secret overwritten by asterisks wherever it stands and however it is cut.

    It holds back what may be the secret's beginning; `close` gives that out.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret.encode()
        self._held = b""
        self.found = 0

    def feed(self, data: bytes) -> bytes:
        secret = self._secret
        whole = self._held + data
        self.found += whole.count(secret)
        whole = whole.replace(secret, b"*" * len(secret))
        held = self._beginning_at_the_end(whole)
        self._held = whole[len(whole) - held :]
        return whole[: len(whole) - held]

    def close(self) -> bytes:
        held, self._held = self._held, b""
        return held

    def _beginning_at_the_end(self, data: bytes) -> int:
        for size in range(min(len(self._secret) - 1, len(data)), 0, -1):
            if data.endswith(self._secret[:size]):
                return size
        return 0


def masked(text: str, secret: str) -> str:
    """A whole text without the secret."""
    return text.replace(secret, "*" * len(secret))
