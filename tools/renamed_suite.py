"""Runs the whole suite against a renamed copy of the package: python tools/renamed_suite.py [pytest's arguments]

The package becomes acme._vendor.glmsse with the extension compiled under that name, the tests are rewritten to import
it, and the environment has no glmsse: whatever still says the old name fails. Needs Cython, setuptools, a C compiler.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from vendor import ROOT, copy_package

NAME = "acme._vendor.glmsse"

# How the tests and examples name the package: in imports, on command lines, and in dotted names within quotes.
RENAMES = (
    (r"\bfrom glmsse(?=[\w.]* import )", f"from {NAME}"),
    (r"\bimport glmsse(?= as |(?:\.\w+)+$)", f"import {NAME}"),
    (r"\bimport ((?:\w+, )*)glmsse\b(?!\.)", rf"import \1{NAME} as glmsse"),
    (r'(-m ?|"-m", ")glmsse\b', rf"\1{NAME}"),
    (r"""(["'])glmsse(?=\.(?!recording\b)[a-z_]+)""", rf"\1{NAME}"),  # "glmsse.recording" is a file's format
    (r'^PACKAGE = "glmsse"', f'PACKAGE = "{NAME}"'),
)

# What is about the installed distribution, its pages or its own name, and so cannot hold for a copy.
NOT_FOR_A_COPY = (
    "test_benchmark_corpus.py",
    "test_docs.py",
    "test_framing_choice.py",
    "test_fuzz*.py",
    "test_proxy_balancers.py",
    "test_proxy_deployment.py",
    "test_readme.py",
    "test_threat_model.py",
    "test_vectors.py",
)


def renamed(text: str) -> str:
    for pattern, replacement in RENAMES:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def copy_renamed(tree: Path) -> None:
    """The package, its tests and its examples under the other name, in a directory of their own."""
    package = tree.joinpath(*NAME.split("."))
    copy_package(package, core=False)
    for parent in (package.parent, package.parent.parent):
        (parent / "__init__.py").touch()
    for folder in ("tests", "examples"):
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__", *NOT_FOR_A_COPY))
        for path in (tree / folder).rglob("*.py"):
            path.write_text(renamed(path.read_text(encoding="utf-8")), encoding="utf-8")


def compile_extension(package: Path) -> None:
    command = [sys.executable, "-m", "Cython.Build.Cythonize", "--inplace", "--quiet", str(package / "_framer.pyx")]
    subprocess.run(command, check=True, env={**os.environ, "CFLAGS": "-w"})


def fresh_environment(directory: Path, tree: Path) -> str:
    """The Python of an environment with what the tests need, and the tree in place of the package."""
    subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True)
    python = str(directory / ("Scripts" if os.name == "nt" else "bin") / "python")
    pip = [python, "-m", "pip", "--disable-pip-version-check", "-q"]
    environment = {**os.environ, "GLMSSE_BUILD_EXTENSION": "no"}
    subprocess.run([*pip, "install", f"{ROOT}[test]", "pytest-xdist"], check=True, env=environment)
    subprocess.run([*pip, "uninstall", "-y", "glmsse"], check=True)
    where = subprocess.run(
        [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    (Path(where.stdout.strip()) / "acme.pth").write_text(f"{tree}\n", encoding="utf-8")
    return python


def main(arguments: list[str]) -> int:
    with tempfile.TemporaryDirectory() as directory:
        work = Path(directory).resolve()
        tree = work / "tree"
        copy_renamed(tree)
        compile_extension(tree.joinpath(*NAME.split(".")))
        shutil.copy(ROOT / "pyproject.toml", tree)  # after the compiler, which would build by it; pytest needs it
        if (ROOT.parent / "shared").is_dir():
            (work / "shared").symlink_to(ROOT.parent / "shared")
        python = fresh_environment(work / "environment", tree)
        own = {name: value for name, value in os.environ.items() if not name.startswith(("GLMSSE_", "PYTHON"))}
        command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments]
        environment = {**own, "GLMSSE_BUILD_EXTENSION": "yes"}
        return subprocess.run(command, cwd=tree, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
