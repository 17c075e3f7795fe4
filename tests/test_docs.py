"""The README and the pages: their Python blocks run, their commands parse, their tables leave nothing out."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import glmsse
import glmsse.encode
from glmsse.__main__ import build_parser
from glmsse.answers import ANSWER_REFUSALS
from glmsse.errors import CODES
from glmsse.profiles import FINISH_ALIASES
from glmsse.provider import CATEGORY_OF_CODE, CATEGORY_OF_STATUS, CATEGORY_OF_TYPE
from glmsse.scenarios import SCENARIOS
from glmsse.server.running import stand_in
from glmsse.tools import REFUSALS

ROOT = Path(__file__).resolve().parents[1]
PAGES = {str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}
PROVIDER = "https://api.z.ai"

# A block of Python, and the output that follows it, if any. A comment before the block keeps it from being run.
BLOCK = re.compile(r"(<!-- compile only: [^>]+ -->\n+)?```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)
COMMANDS = re.compile(r"```sh\n(.*?)```", re.DOTALL)


def _load_tables() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_tables", ROOT / "docs" / "hooks" / "tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TABLES = _load_tables()


def _text(name: str) -> str:
    return PAGES[name].read_text(encoding="utf-8")


def _blocks(name: str) -> list[tuple[str, str, str]]:
    return BLOCK.findall(_text(name))


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The provider's place, on loopback."""
    with stand_in() as base:
        yield base


@pytest.mark.parametrize("name", [name for name in PAGES if _blocks(name)])
def test_python_blocks_of_a_page_run_in_their_order_and_print_what_it_says(
    name: str, provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ZAI_API_KEY", "any")
    samples = tmp_path / "samples"
    samples.mkdir()
    for scenario in SCENARIOS.values():
        (samples / f"{scenario.name}.sse").write_bytes(scenario.body)
    space: dict[str, Any] = {"__name__": "page"}
    for number, (compile_only, source, output) in enumerate(_blocks(name), 1):
        code = compile(source.replace(PROVIDER, provider), f"{name}, block {number}", "exec", dont_inherit=True)
        if compile_only:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, space)
        if output:
            lines = [line.rstrip() for line in printed.getvalue().strip().splitlines()]
            assert lines == output.strip().splitlines(), f"{name}, block {number}"


def test_the_pages_have_blocks_with_output() -> None:
    assert sum(bool(output) for name in PAGES for _, _, output in _blocks(name)) >= 20


def _commands() -> Iterator[tuple[str, list[str]]]:
    for name in PAGES:
        for block in COMMANDS.findall(_text(name)):
            for line in block.splitlines():
                for words in re.split(r"&&|\||;|>", line.partition(" #")[0]):
                    parts = shlex.split(words)
                    while parts and re.fullmatch(r"[A-Z_]+=\S+", parts[0]):
                        del parts[0]
                    if parts[:1] == ["glmsse"]:
                        yield name, parts[1:]


@pytest.mark.parametrize(("name", "words"), list(_commands()), ids=" ".join)
def test_commands_on_the_pages_are_commands(name: str, words: list[str]) -> None:
    assert callable(build_parser().parse_args(words).run)


def test_some_commands_are_found() -> None:
    assert len(list(_commands())) >= 15


@pytest.mark.parametrize("name", PAGES)
def test_relative_links_lead_to_files(name: str) -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", _text(name)):
        assert (PAGES[name].parent / target).exists(), target
    for quoted in re.findall(r"`((?:deploy|docs|examples|benchmarks|tests)/[\w./-]*)`", _text(name)):
        assert (ROOT / quoted).exists(), quoted
    for included in re.findall(r'^--8<-- "([^"]+)"$', _text(name), re.MULTILINE):
        assert (ROOT / included).is_file(), included


@pytest.mark.parametrize("name", PAGES)
def test_every_marker_names_a_table(name: str) -> None:
    assert "<!-- table:" not in TABLES.filled_in(_text(name))


def test_all_tables_are_on_a_page() -> None:
    used = {marker for name in PAGES for marker in TABLES.MARKER.findall(_text(name))}
    assert used == set(TABLES.TABLES)


def _first_cells(table: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)


def test_tables_leave_nothing_out() -> None:
    limits = [field.name for field in fields(glmsse.Limits)]
    assert _first_cells(TABLES.TABLES["limits"]()) == limits
    assert set(TABLES.attribute_docs(glmsse.Limits)) == set(limits)
    assert _first_cells(TABLES.TABLES["codes"]()) == list(CODES)
    assert _first_cells(TABLES.TABLES["profiles"]()) == list(glmsse.PROFILES)
    assert _first_cells(TABLES.TABLES["tolerances"]()) == list(glmsse.TOLERANCES)
    assert _first_cells(TABLES.TABLES["aliases"]()) == list(FINISH_ALIASES)
    assert _first_cells(TABLES.TABLES["refusals"]()) == list(REFUSALS)
    assert _first_cells(TABLES.TABLES["answer_refusals"]()) == list(ANSWER_REFUSALS)
    assert _first_cells(TABLES.TABLES["scenarios"]()) == [f"{name}.sse" for name in SCENARIOS]


def test_every_code_outcome_and_category_has_advice_and_no_advice_is_left_over() -> None:
    assert set(TABLES.ADVICE) == set(CODES)
    outcomes = {cls.outcome for cls, _, _ in CODES.values()}
    assert set(TABLES.OUTCOME_ADVICE) == {"accepted", *outcomes}
    categories = {*CATEGORY_OF_CODE.values(), *CATEGORY_OF_STATUS.values(), *CATEGORY_OF_TYPE.values(), "unknown"}
    assert set(TABLES.CATEGORY_ADVICE) == categories


def test_advice_names_tolerances_and_limits_that_exist() -> None:
    known = {*glmsse.TOLERANCES, *CODES, *(field.name for field in fields(glmsse.Limits)), *glmsse.PROFILES}
    known |= {field.name for field in fields(glmsse.Verdict)}
    for code, advice in TABLES.ADVICE.items():
        for name in re.findall(r"`([a-z]+_[a-z_]+)`", advice):
            assert name in known, (code, name)


def test_every_stage_is_explained() -> None:
    stages = {stage for _, stage, _ in CODES.values()} | {"generation"}
    assert stages <= set(_first_cells(_text("docs/verdicts.md")))


def test_reference_has_every_public_name() -> None:
    pages = "\n".join(_text(name) for name in PAGES if name.startswith("docs/reference/"))
    documented = {path.rpartition(".")[2] for path in re.findall(r"^::: ([\w.]+)$", pages, re.MULTILINE)}
    public = {*glmsse.__all__, *glmsse.encode.__all__} - {"__version__", "ChatEvent", "IMPLEMENTATION"}
    assert public - {"PROFILES", "TOLERANCES"} == documented
    for name in ("ChatEvent", "IMPLEMENTATION", "PROFILES", "TOLERANCES"):
        assert name in pages


def test_reference_names_what_can_be_imported() -> None:
    for name in PAGES:
        for path in re.findall(r"^::: ([\w.]+)$", _text(name), re.MULTILINE):
            module, _, attribute = path.rpartition(".")
            assert getattr(importlib.import_module(module), attribute).__doc__


def test_help_of_every_command_is_on_its_page() -> None:
    page = TABLES.TABLES["commands"]()
    for name in ("demo", "events", "text", "check", "convert", "tools", "probe", "serve", "proxy", "bench", "info"):
        assert f"## glmsse {name}\n" in page


def test_readme_has_the_two_commands_each_in_one_line() -> None:
    lines = _text("README.md").splitlines()
    assert "python -m pip install . && glmsse demo" in lines
    assert 'python -m pip install -e ".[test]" && python -m pytest' in lines
