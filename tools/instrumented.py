"""Builds a copy of the package in a directory of its own, its extension compiled with other flags: for the tools here.

The source may be edited on the way, which is how directives are changed, mutants are made and the tools are tried out
with a planted mistake. Needs Cython and a C compiler (CC, gcc).
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from vendor import copy_package

ASK = "import sysconfig as s; print(s.get_path('include')); print(s.get_config_var('EXT_SUFFIX'))"
MOST_SECONDS = 600

Edit = Callable[[str], str]


class BuildError(Exception):
    """Cython or the compiler refuses the source; its message has their last lines."""


@dataclass(frozen=True)
class Recipe:
    """How an extension is built.

    flags       of the compiler, behind -shared -fPIC -g
    directives  of Cython, in place of those that the source has
    edits       changes to source files, by name
    python      the interpreter it is built for
    """

    flags: tuple[str, ...] = ("-O2", "-fwrapv", "-DNDEBUG")
    directives: tuple[tuple[str, str], ...] = ()
    edits: tuple[tuple[str, Edit], ...] = ()
    python: str = sys.executable


def run(command: list[str]) -> str:
    """What a command prints; BuildError if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    if done.returncode:
        raise BuildError((done.stdout + done.stderr).strip()[-3000:])
    return done.stdout


def with_directives(source: str, directives: Iterable[tuple[str, str]]) -> str:
    """The source with a line of directives in front; Cython lets the later ones of a header win, so those go."""
    wanted = dict(directives)
    header, _, rest = source.partition("\n")
    kept = [
        one.strip()
        for one in header.removeprefix("# cython:").split(",")
        if one.strip().partition("=")[0] not in wanted
    ]
    return f"# cython: {', '.join([*kept, *(f'{name}={value}' for name, value in wanted.items())])}\n{rest}"


def build(folder: Path, recipe: Recipe = Recipe()) -> Path:
    """Copies and compiles the package into `folder`, which then goes to PYTHONPATH; BuildError if that fails."""
    package = folder / "glmsse"
    copy_package(package, core=False)
    for name, edit in recipe.edits:
        path = package / name
        path.write_text(edit(path.read_text(encoding="utf-8")), encoding="utf-8")
    source = package / "_framer.pyx"
    source.write_text(with_directives(source.read_text(encoding="utf-8"), recipe.directives), encoding="utf-8")
    # From the folder, so that Cython knows the module by its dotted name.
    run(
        [
            sys.executable,
            "-m",
            "cython",
            "-3",
            "-w",
            str(folder),
            "glmsse/_framer.pyx",
            "--module-name",
            "glmsse._framer",
        ]
    )
    include, suffix = run([recipe.python, "-c", ASK]).split()
    compiler = shlex.split(os.environ.get("CC", "gcc"))
    target = package / f"_framer{suffix}"
    run(
        [
            *compiler,
            "-shared",
            "-fPIC",
            "-g",
            f"-I{include}",
            *recipe.flags,
            str(source.with_suffix(".c")),
            "-o",
            str(target),
        ]
    )
    return folder


def environment(folder: Path, more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment in which the copy in this folder is the package, and a missing extension is an error."""
    own = {name: value for name, value in os.environ.items() if not name.startswith(("GLMSSE_", "PYTHON"))}
    return {
        **own,
        "PYTHONPATH": str(folder),
        "GLMSSE_BUILD_EXTENSION": "yes",
        "PYTHONDONTWRITEBYTECODE": "1",
        **(more or {}),
    }


def replaced(old: str, new: str) -> Edit:
    """An edit that puts `new` in the one place where the source says `old`."""

    def edit(source: str) -> str:
        if source.count(old) != 1:
            raise BuildError(f"{old!r} is there {source.count(old)} times")
        return source.replace(old, new)

    return edit
