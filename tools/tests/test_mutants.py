"""The mutants: each changes one thing, and what only says how something is typed or told stays as it is."""

from __future__ import annotations

from pathlib import Path

import mutants
import vendor

SOURCE = '''\
"""A page."""
from typing import Any
Pair = tuple[int, Any]
def add(first: int = 1, second: int | None = None) -> int | None:
    """Both."""
    if first is not None and second < 3:
        return first + second
    return {"a key": "word"}
'''


def changes(path: Path, source: str) -> set[tuple[str, str]]:
    path.write_text(source, encoding="utf-8")
    return {(mutant.old_line, mutant.new_line) for mutant in mutants.mutants_of(path, path.name)}


def test_each_place_of_a_python_module_has_its_mutants(tmp_path: Path) -> None:
    head = "def add(first: int = 1, second: int | None = None) -> int | None:"
    test = "if first is not None and second < 3:"
    assert changes(tmp_path / "one.py", SOURCE) == {
        (head, head.replace("= 1", "= (1 + 1)")),
        (test, test.replace("is not", "is")),
        (test, test.replace("and", "or")),
        (test, test.replace("<", "<=")),
        (test, test.replace("3", "(3 + 1)")),
        ("return first + second", "return first - second"),
        ("return first + second", "return None"),
        ('return {"a key": "word"}', 'return {"a key": "Xword"}'),
        ('return {"a key": "word"}', "return None"),
    }


def test_declarations_and_casts_of_the_extension_stay(tmp_path: Path) -> None:
    lines = ("cdef int size(Bytes at, int most = 3) except? -1:", "    cdef int here", "    here = <int>at[0] + 1")
    assert changes(tmp_path / "one.pyx", "\n".join((*lines, "    return here", ""))) == {
        ("here = <int>at[0] + 1", "here = <int>at[(0 + 1)] + 1"),
        ("here = <int>at[0] + 1", "here = <int>at[0] - 1"),
        ("here = <int>at[0] + 1", "here = <int>at[0] + (1 + 1)"),
        ("here = <int>at[0] + 1", "pass"),
    }


def test_every_file_of_the_extension_has_many_mutants() -> None:
    names = [name for name in vendor.package_files() if name.suffix in (".pyx", ".pxi")]
    assert all(len(mutants.mutants_of(vendor.SOURCE / name, str(name))) > 200 for name in names)
