"""Both builds for every test: ask for the fixture `glmsse`, and the test runs once a build."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

import pytest

PACKAGE = "glmsse"
RECORDINGS = Path(__file__).resolve().parents[2] / "shared" / "recordings"


@contextmanager
def _pure_switch(value: str) -> Iterator[None]:
    before = os.environ.get("GLMSSE_PURE_PYTHON")
    os.environ["GLMSSE_PURE_PYTHON"] = value
    try:
        yield
    finally:
        if before is None:
            del os.environ["GLMSSE_PURE_PYTHON"]
        else:
            os.environ["GLMSSE_PURE_PYTHON"] = before


def _own_modules() -> dict[str, ModuleType]:
    return {name: module for name, module in sys.modules.items() if f"{name}.".startswith(f"{PACKAGE}.")}


def _import_all() -> ModuleType:
    """The package, with the public modules that it does not import by itself."""
    package = importlib.import_module(PACKAGE)
    importlib.import_module(f"{PACKAGE}.encode")
    importlib.import_module(f"{PACKAGE}.scenarios")
    return package


def _load(build: str) -> ModuleType:
    """A copy of the package of its own, with the build asked for."""
    kept = _own_modules()
    for name in kept:
        del sys.modules[name]
    try:
        with _pure_switch("1" if build == "pure" else "0"):
            return _import_all()
    finally:
        for name in _own_modules():
            del sys.modules[name]
        sys.modules.update(kept)
        parent, _, name = PACKAGE.rpartition(".")
        if parent:  # a copy inside another package is also found as an attribute of that
            setattr(sys.modules[parent], name, kept[PACKAGE])


def _load_builds() -> dict[str, ModuleType]:
    with _pure_switch("0"):
        package = _import_all()
    if package.IMPLEMENTATION == "compiled":
        return {"compiled": package, "pure": _load("pure")}
    if os.environ.get("GLMSSE_BUILD_EXTENSION") == "yes":
        raise pytest.UsageError("the extension was asked for (GLMSSE_BUILD_EXTENSION=yes) but is not there")
    return {"pure": package}


BUILDS = _load_builds()


def pytest_report_header() -> list[str]:
    lines = [f"glmsse builds under test: {', '.join(BUILDS)}"]
    if not RECORDINGS.is_dir():
        lines.append("recordings: not there, their tests are skipped")
    return lines


@pytest.fixture(params=list(BUILDS))
def glmsse(request: pytest.FixtureRequest) -> ModuleType:
    """The package, once per build."""
    return BUILDS[request.param]


@pytest.fixture(scope="session")
def builds() -> dict[str, ModuleType]:
    """Every build at once, by name, for tests that compare them."""
    return BUILDS
