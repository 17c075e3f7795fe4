"""Text for a terminal: nothing in it can move the cursor, change colours or reorder what stands beside it."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import TextIO

# C0 but tab and line feed, DEL, C1, and the characters that change the direction of text (Unicode UAX #9).
_UNSAFE = [
    *(code for code in range(0x20) if code not in (0x09, 0x0A)),
    *range(0x7F, 0xA0),
    0x061C,
    *range(0x200E, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
]
_ESCAPES = {code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _UNSAFE}


_STYLES = {"failed": "bold red", "passed": "green"}


def safe(text: str) -> str:
    """The text with control, escape and direction characters spelt out; tabs and line feeds stay."""
    return text.translate(_ESCAPES)


def quoted(text: str) -> str:
    """The text on one line, in quotes."""
    return safe(json.dumps(text, ensure_ascii=False))


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Left-aligned columns under a ruled head."""
    lines = [list(head), *([safe(cell).replace("\n", " ") for cell in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def show_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table: on a terminal that fits it, by rich if it is there (extra: cli), else as plain text."""
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text
        except ImportError:
            pass
        else:
            drawn = Table(*head)
            for row in rows:
                drawn.add_row(*(Text(safe(cell), _STYLES.get(cell, "")) for cell in row))
            Console().print(drawn)
            return
    print(table(head, rows))


class Progress:
    """Bytes read so far, on a terminal only and only for inputs that take a while."""

    STEP = 4 * 1024 * 1024

    def __init__(self, name: str, total: int | None, out: TextIO | None = None) -> None:
        self._out = sys.stderr if out is None else out
        self._name = safe(name)
        self._total = total
        self._seen = self._shown = 0
        self._active = self._out.isatty()

    def advance(self, count: int) -> None:
        self._seen += count
        if self._active and self._seen - self._shown >= self.STEP:
            self._shown = self._seen
            whole = "" if not self._total else f" of {self._total / 2**20:.0f} MiB"
            print(f"\r{self._name}: {self._seen / 2**20:.0f}{whole or ' MiB'}", end="", file=self._out, flush=True)

    def clear(self) -> None:
        if self._shown:
            print("\r\x1b[K", end="", file=self._out, flush=True)


class States:
    """What a stream is doing, in one line that is overwritten; on a terminal only."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = sys.stderr if out is None else out
        self._active = self._out.isatty()
        self._shown = ""

    def show(self, state: str) -> None:
        if self._active and state != self._shown:
            self._shown = state
            print(f"\r\x1b[K[{safe(state)}]", end="", file=self._out, flush=True)

    def clear(self) -> None:
        if self._shown:
            self._shown = ""
            print("\r\x1b[K", end="", file=self._out, flush=True)
