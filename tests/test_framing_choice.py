"""Which build is chosen, and why; each case in an interpreter of its own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import glmsse

PACKAGE = Path(glmsse.__file__).parent
SHOW = "print(framing.IMPLEMENTATION, '|', framing.IMPLEMENTATION_REASON)"

needs_extension = pytest.mark.skipif(glmsse.IMPLEMENTATION != "compiled", reason="the extension is not there")


def said_by(code: str, *, pure: str = "", path: Path = PACKAGE.parent) -> str:
    environment = {**os.environ, "GLMSSE_PURE_PYTHON": pure, "PYTHONPATH": str(path)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@needs_extension
@pytest.mark.parametrize("pure", ["", "0"])
def test_extension_is_chosen_where_it_is(pure: str) -> None:
    assert said_by(f"from glmsse import framing; {SHOW}", pure=pure) == "compiled | the extension is there"


@pytest.mark.parametrize("pure", ["1", "yes", "00", " "])
def test_pure_is_forced_by_any_other_value(pure: str) -> None:
    assert said_by(f"from glmsse import framing; {SHOW}", pure=pure) == "pure | GLMSSE_PURE_PYTHON is set"


def test_pure_is_chosen_where_the_extension_cannot_be_imported() -> None:
    code = f"import sys; sys.modules['glmsse._framer'] = None; from glmsse import framing; {SHOW}"
    assert said_by(code) == "pure | the extension cannot be imported (ModuleNotFoundError)"


@needs_extension
@pytest.mark.parametrize("first", ["glmsse", "acme._vendor.glmsse"])
def test_copy_under_another_name_is_pure_and_keeps_its_own_classes(tmp_path: Path, first: str) -> None:
    shutil.copytree(PACKAGE, tmp_path / "acme" / "_vendor" / "glmsse", ignore=shutil.ignore_patterns("__pycache__"))
    code = f"""
import importlib, sys
sys.path.append({str(PACKAGE.parent)!r})
importlib.import_module({first!r})
import glmsse, acme._vendor.glmsse as copy
print(glmsse.IMPLEMENTATION, copy.IMPLEMENTATION, copy.framing.IMPLEMENTATION_REASON)
for package, other in ((glmsse, copy), (copy, glmsse)):
    try:
        package.SSEFramer().feed("text")
    except package.MisuseError as error:
        print(isinstance(error, other.MisuseError))
"""
    said = "compiled pure the extension was compiled for another package name\nFalse\nFalse"
    assert said_by(code, path=tmp_path) == said


@needs_extension
def test_extension_serves_one_copy_of_the_package_only() -> None:
    code = """
import sys
import glmsse as first
for name in [name for name in sys.modules if name.startswith("glmsse")]:
    del sys.modules[name]
import glmsse as second
print(first.IMPLEMENTATION, second.IMPLEMENTATION, "|", second.framing.IMPLEMENTATION_REASON)
for package in (first, second):
    try:
        package.SSEFramer().feed("text")
    except package.MisuseError:
        print("its own error")
"""
    reason = "the extension already serves another copy of this package"
    assert said_by(code) == f"compiled pure | {reason}\nits own error\nits own error"


@needs_extension
def test_event_of_one_build_is_unpickled_in_the_other() -> None:
    dump = "import glmsse, pickle; print(pickle.dumps(glmsse.ServerSentEvent('x', 'a', '7', 5, 9)).hex())"
    for pure in ("0", "1"):
        load = f"import glmsse, pickle; print(pickle.loads(bytes.fromhex('{said_by(dump, pure=pure)}')).to_dict())"
        for other in ("0", "1"):
            assert said_by(load, pure=other) == str({"event": "x", "data": "a", "id": "7", "retry": 5, "offset": 9})


@needs_extension
def test_subinterpreter_falls_back_to_pure() -> None:
    inside = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); from glmsse import framing; {SHOW}"
    code = f"""
import sys
import glmsse
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
from glmsse import framing
{SHOW}
sys.stdout.flush()
number = interpreters.create()
failed = interpreters.run_string(number, {f"{inside}; sys.stdout.flush()"!r})
interpreters.destroy(number)
assert failed is None, failed
"""
    here, there = said_by(code).splitlines()
    assert here == "compiled | the extension is there"
    assert there == "pure | the extension cannot be imported (ImportError)"
