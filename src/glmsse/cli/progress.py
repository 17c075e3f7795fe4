"""A bar for long runs: on a terminal, if rich is there (extra: cli)."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def track(items: Iterable[T], total: int | None, what: str) -> Iterator[T]:
    """The items as they are, with a bar on standard error while they are taken."""
    if sys.stderr.isatty():
        try:
            from rich.console import Console
            from rich.progress import track as tracked
        except ImportError:
            pass
        else:
            return iter(tracked(items, what, total, console=Console(stderr=True), transient=True))
    return iter(items)
