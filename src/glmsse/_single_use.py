"""Objects that serve one stream and hold its text: never pickled, never copied."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex

from .errors import MisuseError


class SingleUse:
    """Refuses pickling and copying with MisuseError."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise MisuseError(f"{type(self).__name__} serves one stream; it cannot be pickled or copied")
