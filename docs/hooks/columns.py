"""Lays out docstrings: entries that are aligned as `name   what it is` become a definition list."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

# A name or several, then at least two blanks, then words; further lines of the entry are indented.
_ENTRY = re.compile(r"([\w*`\[\]]+(?:, [\w*`]+)*) {2,}(\S.*)")


def laid_out(text: str) -> str:
    """The docstring as Markdown."""
    return "\n\n".join(_paragraph(paragraph) for paragraph in re.split(r"\n\s*\n", text))


def _paragraph(paragraph: str) -> str:
    lines = paragraph.split("\n")
    if not _ENTRY.fullmatch(lines[0]):
        return paragraph
    entries: list[list[str]] = []
    for line in lines:
        entry = _ENTRY.fullmatch(line)
        if entry:
            names = ", ".join(f"`{name.strip('`')}`" for name in entry[1].split(", "))
            entries.append([names, entry[2]])
        elif line.startswith("  "):
            entries[-1].append(line.strip())
        else:
            return paragraph
    return "\n\n".join(f"{names}\n:   {' '.join(words)}" for names, *words in entries)


class Columns(Extension):
    """The layout, for every object that is loaded."""

    def on_object(self, *, obj: Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = laid_out(obj.docstring.value)
