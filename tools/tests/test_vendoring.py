"""Copies of the package under another name, as docs/vendoring.md makes them."""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import vendor

PAGE = (vendor.ROOT / "docs" / "vendoring.md").read_text(encoding="utf-8")
READ = 'S = {copy}.ChatStream(); S.feed(b"data: [DONE]\\n\\n"); print(S.close().code)'


def said_by(code: str, *paths: Path) -> list[str]:
    """The lines that a fresh interpreter prints, which sees these directories and no installed package."""
    start = f"import sys; sys.path[:0] = {[str(path) for path in paths]!r}"
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("GLMSSE_", "PYTHON"))}
    command = [sys.executable, "-I", "-S", "-c", f"{start}\n{code}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def block(language: str, number: int = 0) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[number]


def imports_of(path: Path) -> Iterator[str]:
    """What a module imports at run time, while it is imported itself, with the dots of a relative import in front."""
    pending: list[ast.AST] = list(ast.parse(path.read_text(encoding="utf-8")).body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            pending.extend(node.orelse)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            pending.extend(ast.iter_child_nodes(node))


def make_packages(directory: Path) -> Path:
    """`acme` and `acme._vendor`; where the copy is to be."""
    copy = directory / "acme" / "_vendor" / "glmsse"
    copy.parent.mkdir(parents=True)
    for parent in (copy.parent, copy.parent.parent):
        (parent / "__init__.py").touch()
    return copy


@pytest.fixture
def pure_copy(tmp_path: Path) -> Path:
    """A directory with `acme._vendor.glmsse`, made by the first command of the page."""
    make_packages(tmp_path / "acme" / "src")
    (checkout := tmp_path / "glmsse").symlink_to(vendor.ROOT)
    command = shlex.split(block("sh", 0))
    subprocess.run(
        [sys.executable, *command[1:-1], str(tmp_path / "acme/src/acme/_vendor/glmsse")], cwd=checkout, check=True
    )
    return tmp_path / "acme" / "src"


@pytest.mark.parametrize("path", sorted(vendor.package_files()), ids=str)
def test_core_imports_only_itself_and_the_standard_library(path: Path) -> None:
    if path.suffix != ".py":
        assert "import glmsse" not in (vendor.SOURCE / path).read_text(encoding="utf-8")
        return
    for name in imports_of(vendor.SOURCE / path):
        if name.startswith("."):
            folder = (vendor.SOURCE / path).parents[len(name) - len(name.lstrip(".")) - 1]
            module = folder.joinpath(*filter(None, name.lstrip(".").split(".")))
            assert module.relative_to(vendor.SOURCE).parts[:1] not in {(beyond,) for beyond in vendor.BEYOND_CORE}
            assert f"{module.relative_to(vendor.SOURCE).as_posix()}.py" not in vendor.BEYOND_CORE
        else:
            assert name.partition(".")[0] in sys.stdlib_module_names


def test_every_module_of_the_core_is_reached_from_its_public_names(pure_copy: Path) -> None:
    code = (
        "import acme._vendor.glmsse, acme._vendor.glmsse.encode\n"
        "print(*sorted(name for name in sys.modules if name.startswith('acme._vendor.glmsse.')), sep='\\n')"
    )
    files = [path for path in vendor.package_files() if path.suffix == ".py" and path.name != "__init__.py"]
    folders = {path.parent for path in files} - {Path()}
    expected = {".".join(path.with_suffix("").parts) for path in [*files, *folders]}
    reached = {name.removeprefix("acme._vendor.glmsse.") for name in said_by(code, pure_copy)}
    assert reached == expected - {"_async_reads"}  # imported by the first async adapter that is called


def test_copy_by_the_first_command_reads_an_answer_without_the_package(pure_copy: Path) -> None:
    code = f"import acme._vendor.glmsse as copy; {READ.format(copy='copy')}; print(copy.IMPLEMENTATION)"
    assert said_by(code, pure_copy) == ["incomplete_stream", "pure"]
    assert (pure_copy / "acme" / "_vendor" / "glmsse" / "LICENSE").is_file()


def test_copy_is_replaced_and_a_stranger_is_not(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = tmp_path / "glmsse"
    vendor.main([str(copy)])
    (copy / "left_over.py").touch()
    vendor.main([str(copy)])
    assert not (copy / "left_over.py").exists()
    with pytest.raises(SystemExit):
        vendor.main([str(tmp_path)])
    assert "is no copy of this package" in capsys.readouterr().err
    assert copy.is_dir()


def test_second_command_compiles_the_copy_under_its_own_name(pure_copy: Path) -> None:
    command = shlex.split(block("sh", 1).replace("../acme/src", str(pure_copy)))
    subprocess.run([sys.executable, "-m", "Cython.Build.Cythonize", *command[1:]], cwd=pure_copy.parent, check=True)
    code = (
        "from acme._vendor.glmsse import framing, SSEFramer\n"
        f"import acme._vendor.glmsse as copy; {READ.format(copy='copy')}\n"
        "print(framing.IMPLEMENTATION, SSEFramer.__module__)"
    )
    assert said_by(code, pure_copy) == ["incomplete_stream", "compiled acme._vendor.glmsse._framer"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with `glmsse`, compiled under that name."""
    import renamed_suite

    package = tmp_path_factory.mktemp("original") / "glmsse"
    vendor.copy_package(package, core=False)
    renamed_suite.compile_extension(package)
    return package.parent


@pytest.mark.parametrize("first", ["glmsse", "acme._vendor.glmsse"])
@pytest.mark.parametrize("pure", ["", "1"])
def test_copies_share_no_class_in_either_order(original: Path, compiled_copy: Path, first: str, pure: str) -> None:
    code = f"""
import importlib, os
os.environ["GLMSSE_PURE_PYTHON"] = {pure!r}
importlib.import_module({first!r})
import glmsse, acme._vendor.glmsse as copy
print(glmsse.IMPLEMENTATION, copy.IMPLEMENTATION)
classes = [name for name in glmsse.__all__ if isinstance(getattr(glmsse, name), type)]
print([name for name in classes if getattr(glmsse, name) is getattr(copy, name)])
for one, other in ((glmsse, copy), (copy, glmsse)):
    {READ.format(copy="one")}
    event = one.ChatStream(profile="gateway").feed(b"data: x\\n\\n")[-1]
    print(isinstance(event, one.Failed), isinstance(event, other.Failed), isinstance(event.error, other.GlmsseError))
    try:
        one.SSEFramer().feed("text")
    except one.MisuseError as error:
        print(isinstance(error, other.MisuseError))
"""
    build = "pure" if pure else "compiled"
    each = ["incomplete_stream", "True False False", "False"]
    assert said_by(code, original, compiled_copy) == [f"{build} {build}", "[]", *each, *each]


def test_binary_of_another_name_is_refused_and_the_pure_twin_used(original: Path, tmp_path: Path) -> None:
    copy = make_packages(tmp_path)
    shutil.copytree(original / "glmsse", copy)
    code = f"""
import acme._vendor.glmsse as copy
print(copy.IMPLEMENTATION, "|", copy.framing.IMPLEMENTATION_REASON)
{READ.format(copy="copy")}
import glmsse
print(glmsse.IMPLEMENTATION, copy.SSEFramer is glmsse.SSEFramer)
"""
    reason = "the extension was compiled for another package name"
    assert said_by(code, tmp_path, original) == [f"pure | {reason}", "incomplete_stream", "compiled False"]


def test_vendoring_tool_makes_the_same_copy(built: Path, tmp_path: Path) -> None:
    copy = make_packages(tmp_path)
    (copy.parent / "vendor.txt").write_text(block("text"), encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(block("toml"), encoding="utf-8")
    environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(built)}
    subprocess.run([sys.executable, "-m", "vendoring", "sync"], cwd=tmp_path, env=environment, check=True)
    made = {str(path.relative_to(copy)): path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    expected = {str(name): (vendor.SOURCE / name).read_bytes() for name in vendor.package_files()}
    assert made == expected | {"LICENSE": (vendor.ROOT / "LICENSE").read_bytes()}


def test_page_tells_the_version_and_the_sizes() -> None:
    version = (vendor.SOURCE / "_version.py").read_text(encoding="utf-8").split('"')[1]
    assert block("text") == f"glmsse=={version}\n"
    told = re.search(r"core is (\d+) KiB of Python in ([\d,]+) lines, and (\d+) KiB in ([\d,]+) lines", PAGE)
    assert told is not None
    numbers = [int(number.replace(",", "")) for number in told.groups()]
    size = vendor.core_size()
    exact = [size["pure_bytes"] / 1024, size["pure_lines"], size["bytes"] / 1024, size["lines"]]
    assert numbers == pytest.approx(exact, rel=0.05)


def test_page_drops_what_is_beyond_the_core() -> None:
    dropped = {name.rstrip("/") for name in re.findall(r'"glmsse/(.*?)"', block("toml"))}
    assert dropped == vendor.BEYOND_CORE
