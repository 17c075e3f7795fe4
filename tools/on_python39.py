"""Runs the vectors on Python 3.9, with what that lacks filled in: `pypy3 tools/on_python39.py FOLDER [ARGUMENT …]`.

The package needs 3.10. This is for PyPy, of which Debian has no newer one: its JSON scanner, its strings and its
buffers are what is to be tested, and these do not depend on the stand-ins here. FOLDER holds the package.
"""

from __future__ import annotations

import bisect
import builtins
import dataclasses
import sys
from pathlib import Path

_dataclass, _zip, _bisect_right = dataclasses.dataclass, builtins.zip, bisect.bisect_right


def dataclass(cls=None, *, slots=False, kw_only=False, **options):
    """As in 3.10, but without slots; fields behind KW_ONLY may also be given by position."""

    def decorate(cls):
        fields = cls.__dict__.get("__annotations__", {})  # noqa: RUF063 (3.9 has no inspect.get_annotations)
        if "_" in fields:
            behind = list(fields)[list(fields).index("_") + 1 :]
            del fields["_"]
            for name in behind:
                if name not in cls.__dict__:
                    setattr(cls, name, None)
        made = _dataclass(cls, **options)
        made.__match_args__ = tuple(field.name for field in dataclasses.fields(made) if field.init)
        return made

    return decorate if cls is None else decorate(cls)


def zip_(*iterables, strict=False):
    return _zip(*iterables)


def bisect_right(items, wanted, low=0, high=None, *, key=None):
    high = len(items) if high is None else high
    if key is None:
        return _bisect_right(items, wanted, low, high)
    while low < high:
        middle = (low + high) // 2
        if wanted < key(items[middle]):
            high = middle
        else:
            low = middle + 1
    return low


if __name__ == "__main__":
    dataclasses.dataclass, dataclasses.KW_ONLY = dataclass, object()
    builtins.zip, bisect.bisect_right = zip_, bisect_right
    sys.path[:0] = [sys.argv[1], str(Path(__file__).resolve().parent.parent / "vectors")]
    import run

    sys.exit(run.main(sys.argv[2:]))
