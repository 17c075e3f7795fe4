"""Numbers as people read them."""

from __future__ import annotations

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size(count: float) -> str:
    """Bytes, such as `17.2 KiB`."""
    power = 0
    while count >= 1024 and power < len(_UNITS) - 1:
        count, power = count / 1024, power + 1
    return f"{count:.1f} {_UNITS[power]}" if power else f"{count:.0f} B"


def seconds(value: float) -> str:
    """A time, such as `340 ms`, `1.25 s` or `3 min 20 s`."""
    if not value:
        return "0 s"
    if value < 1:
        return f"{value * 1000:.0f} ms" if value >= 0.01 else f"{value * 1000:.1f} ms"
    if value < 60:
        return f"{value:.2f} s"
    minutes, rest = divmod(round(value), 60)
    return f"{minutes} min {rest} s"


def number(value: float) -> str:
    """A count, such as `1,204`."""
    return f"{value:,.0f}"


def plural(count: int, thing: str) -> str:
    """A count of things, such as `1 event` or `2 events`."""
    return f"{count:,} {thing}" if count == 1 else f"{count:,} {thing}s"


def place(value: float, timed: bool) -> str:
    """A place on a timeline's axis."""
    return seconds(value) if timed else f"event {value:,.0f}"
