"""The sanitizers see what they are there for: each is shown an extension with a planted mistake."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import sanitize
from instrumented import Edit, Recipe, replaced

# A line in pieces of growing size, so that what is kept grows twice; an empty value that is kept; then templates.
TEST = """\
import glmsse
from glmsse.scenarios import SCENARIOS
assert glmsse.IMPLEMENTATION == "compiled"

def test_it():
    framer = glmsse.SSEFramer()
    for size in (10, 4000, 9000, 0):
        framer.feed(b"data: " + b"x" * size)
    assert len(framer.feed(b"\\n\\ndata:\\n")) == 1
    stream = glmsse.ChatStream()
    for at in SCENARIOS["text"].body:
        stream.feed(bytes([at]))
    assert stream.close()
"""

GROWTH = "capacity = max(used + size, capacity, 64)\n            moved = PyMem_Realloc(self._kept"
TOO_SMALL = ("_framer.pyx", replaced(GROWTH, GROWTH.replace("max(used + size, capacity, 64)", "used + size - 1")))
PLANTED = {
    "ubsan": ("_framer.pyx", replaced("if size <= 0:\n            return 0\n        if size > self", "if size > self")),
    "asan": TOO_SMALL,
    "bounds": ("_lane.pxi", replaced("in range(len(self._templates)):", "in range(len(self._templates) + 1):")),
}


SEEN = {"ubsan": "runtime error: null pointer", "asan": "heap-buffer-overflow", "bounds": "IndexError"}


def quickly(name: str, planted: tuple[str, Edit]) -> Recipe:
    """The recipe without optimisation, which takes a compiler most of its time."""
    recipe = sanitize.CHECKS[name].recipe
    return replace(recipe, edits=(planted,), flags=("-O0", *recipe.flags[1:]))


@pytest.mark.parametrize("name", PLANTED)
def test_planted_mistake_is_reported(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "test_it.py").write_text(TEST)
    arguments = ["-q", "-p", "no:cacheprovider", str(tmp_path / "test_it.py")]
    assert sanitize.check(name, arguments, quickly(name, PLANTED[name])) == 1
    assert SEEN[name] in capfd.readouterr().out


def test_memcheck_reports_a_planted_mistake(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    vector = {
        "layer": "framing",
        "name": "y_it",
        "body": "data: xx\n\n",
        "expect": {"events": [{"data": "xx", "offset": 0}]},
    }
    (tmp_path / "one.jsonl").write_text(json.dumps(vector) + "\n")
    assert sanitize.check("memcheck", [str(tmp_path / "one.jsonl")], quickly("memcheck", TOO_SMALL)) == 1
    assert "Invalid write of size 1" in capfd.readouterr().err
