"""The README's Python blocks: those with an output block behind them run and print just that, the others compile."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[1] / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_python_block_does_what_the_readme_says(number: int) -> None:
    source, output = BLOCKS[number]
    code = compile(source, f"README block {number}", "exec")
    if not output:
        return
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(code, {"__name__": "readme"})
    assert printed.getvalue().strip() == output.strip()


def test_readme_has_the_two_commands_each_in_one_line() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert "python -m pip install . && glmsse demo" in lines
    assert 'python -m pip install -e ".[test]" && python -m pytest' in lines


def test_some_blocks_are_run() -> None:
    assert sum(bool(output) for _, output in BLOCKS) >= 2
