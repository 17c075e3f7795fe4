"""How far an audit is: a line that is kept up to date on a terminal, elsewhere a line every so often."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

from ..audit import Progress

EVERY_SECONDS = 15.0


@contextmanager
def show_progress() -> Generator[Callable[[Progress], object]]:
    """What to tell the progress to; on standard error."""
    if sys.stderr is not None and sys.stderr.isatty():
        try:
            from rich.console import Console
        except ImportError:
            pass
        else:
            with Console(stderr=True).status("looking for recordings") as status:
                yield lambda progress: status.update(_words(progress))
            return
    yield _Lines().tell


class _Lines:
    def __init__(self) -> None:
        self._last = 0.0

    def tell(self, progress: Progress) -> None:
        if progress.seconds - self._last >= EVERY_SECONDS:
            self._last = progress.seconds
            print(f"glmsse: {_words(progress)}", file=sys.stderr, flush=True)


def _words(progress: Progress) -> str:
    rate = progress.bytes / max(progress.seconds, 0.001) / 1e6
    parts = [f"{progress.read:,} recordings read", f"{rate:,.0f} MB/s"]
    if progress.known:
        parts.append(f"{progress.known:,} known already")
    if progress.unreadable:
        parts.append(f"{progress.unreadable:,} unreadable")
    return ", ".join(parts)
