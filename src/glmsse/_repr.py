"""Reprs that never show text of a stream."""

from __future__ import annotations


def shape(value: object) -> str:
    """A value for a repr: numbers as they are, whatever can hold text as its size or its kind."""
    if value is None or isinstance(value, (bool, int)):
        return repr(value)
    if isinstance(value, str):
        return f"<{len(value)} chars>"
    if isinstance(value, (tuple, list)):
        return f"<{len(value)} items>"
    if isinstance(value, Exception) and hasattr(value, "code"):
        return f"<{value.code}>"
    return f"<{type(value).__name__}>"
