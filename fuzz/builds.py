"""Both builds of the package in one process, and which version of its sources they are."""

from __future__ import annotations

import hashlib
import importlib
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "glmsse"
SWITCH = "GLMSSE_PURE_PYTHON"
MODULES = ("glmsse", "glmsse.encode", "glmsse.glm_text", "glmsse.chat")


class Builds(NamedTuple):
    """Two copies of the package, which share nothing."""

    compiled: ModuleType
    pure: ModuleType


class Difference(AssertionError):
    """Two readings that must agree do not. Says which and in what, never the input."""


@cache
def load_builds(folder: Path = SOURCE.parent) -> Builds:
    """Both builds of the package in this folder, by default of the sources that are hashed; always the same ones.
    ImportError if the extension is not there, as nothing could be compared."""
    compiled = _load("0", folder)
    if compiled.IMPLEMENTATION != "compiled":
        raise ImportError(f"the compiled build is needed, but {compiled.framing.IMPLEMENTATION_REASON}")
    return Builds(compiled, _load("1", folder))


def _load(switch: str, folder: Path) -> ModuleType:
    """A copy of its own, which is not left in sys.modules."""
    kept_modules, kept_switch = _take_out(), os.environ.get(SWITCH)
    os.environ[SWITCH] = switch
    sys.path.insert(0, str(folder))
    try:
        package, *_ = [importlib.import_module(name) for name in MODULES]
        return package
    finally:
        sys.path.remove(str(folder))
        _take_out()
        sys.modules.update(kept_modules)
        if kept_switch is None:
            del os.environ[SWITCH]
        else:
            os.environ[SWITCH] = kept_switch


def _take_out() -> dict[str, ModuleType]:
    names = [name for name in sys.modules if f"{name}.".startswith("glmsse.")]
    return {name: sys.modules.pop(name) for name in names}


def source_hash(names: tuple[str, ...]) -> str:
    """16 hex digits over the names and bytes of these files of the package."""
    digest = hashlib.sha256()
    for name in sorted(names):
        content = (SOURCE / name).read_bytes()
        digest.update(f"{name} {len(content)}\n".encode() + content)
    return digest.hexdigest()[:16]
