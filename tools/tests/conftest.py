"""What the tests of building and vendoring share. They need git, a C compiler and the dependency group `release`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with what the last commit is published as, for this interpreter."""
    out = tmp_path_factory.mktemp("built")
    subprocess.run([sys.executable, str(ROOT / "tools" / "build.py"), str(out), "--python", sys.executable], check=True)
    return out


@pytest.fixture(scope="session")
def compiled_copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory on which `acme._vendor.glmsse` is a copy of the core, compiled under that name."""
    import renamed_suite
    import vendor

    directory = tmp_path_factory.mktemp("compiled")
    package = directory / "acme" / "_vendor" / "glmsse"
    vendor.copy_package(package)
    for parent in (package.parent, package.parent.parent):
        (parent / "__init__.py").touch()
    renamed_suite.compile_extension(package)
    return directory
