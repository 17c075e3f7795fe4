"""Runs the vectors on every interpreter the package claims: `python tools/every_interpreter.py [NAME …] [--list]`.

CPython 3.10 to 3.13 and a debug build, compiled and pure; PyPy and CPython 3.14 for WebAssembly (Pyodide under node),
pure. One generated C file is compiled for each CPython, so Cython is needed here only. What is missing is said, and is
a failure where CI=true. Exit 1 for a failure or a difference.

CPython comes from pyenv or the PATH, the debug build from Debian's python3.11-dbg, PyPy from its pypy3 (a 3.9, so with
stand-ins for what the package needs of 3.10), Pyodide from npm; GLMSSE_PYODIDE names a folder that holds it already.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VECTORS = ROOT / "vectors" / "run.py"
PYODIDE = "pyodide@314.0.7"
OLDEST = (3, 10)
MOST_SECONDS = 600
ASK = """\
import sys, sysconfig
get = sysconfig.get_config_var
print(sys.version_info[0], sys.version_info[1], int(hasattr(sys, "gettotalrefcount")))
print(sysconfig.get_path("include"), get("EXT_SUFFIX"))
"""


class MissingError(Exception):
    """An interpreter or a tool for it is not here."""


def call(command: list[str], **more: str) -> str:
    """What a command prints; RuntimeError with its last lines if it fails."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("GLMSSE_", "PYTHON"))}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", **more}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=MOST_SECONDS, check=False)
    if done.returncode:
        raise RuntimeError((done.stdout + done.stderr).strip()[-2000:])
    return done.stdout


def cpython(version: str) -> str:
    """The path of this CPython, the newest of pyenv's or the one on the PATH."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = sorted(root.glob(f"versions/{version}.*/bin/python"), key=lambda path: len(path.parts[-3]))
    path = str(found[-1]) if found else shutil.which(f"python{version}")
    if path is None or not call([path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]).startswith(version):
        raise MissingError(f"CPython {version} is not installed")
    return path


def on_path(program: str, package: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise MissingError(f"{program} is not installed (Debian: {package})")
    return path


def generated_c(folder: Path) -> Path:
    """The extension as C, translated once."""
    target = folder / "_framer.c"
    if not target.exists():
        try:
            call([sys.executable, "-m", "cython", "-3", str(ROOT / "src/glmsse/_framer.pyx"), "-o", str(target)])
        except RuntimeError as problem:
            raise MissingError(f"Cython is needed to translate the extension: {str(problem)[-200:]}") from None
    return target


def package_for(python: str, folder: Path, *, compiled: bool) -> Path:
    """A copy of the package for one interpreter, with or without its extension."""
    target = Path(tempfile.mkdtemp(dir=folder))
    shutil.copytree(ROOT / "src" / "glmsse", target / "glmsse", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    if compiled:
        _, where = call([python, "-c", ASK]).splitlines()
        include, suffix = where.split()
        flags = ["-shared", "-fPIC", "-O1", "-fwrapv", f"-I{include}"]
        compiler = shlex.split(os.environ.get("CC", "gcc"))
        call([*compiler, *flags, str(generated_c(folder)), "-o", str(target / "glmsse" / f"_framer{suffix}")])
    return target


def read_with(find: Callable[[], str], folder: Path, build: str, *, debug: bool = False) -> str:
    python = find()
    major, minor, is_debug = map(int, call([python, "-c", ASK]).splitlines()[0].split())
    if (major, minor) < OLDEST:
        raise MissingError(f"{python} is Python {major}.{minor}, and the package needs {OLDEST[0]}.{OLDEST[1]}")
    if debug and not is_debug:
        raise MissingError(f"{python} is no debug build")
    package = package_for(python, folder, compiled=build == "compiled")
    return call([python, "-X", "dev", "-W", "error", str(VECTORS), "--build", build], PYTHONPATH=str(package))


def read_with_pypy(folder: Path) -> str:
    """With Debian's, which is a 3.9, through stand-ins for what that lacks."""
    pypy = on_path("pypy3", "pypy3")
    if "pypy" not in call([pypy, "-c", "import sys; print(sys.implementation.name)"]):
        raise MissingError(f"{pypy} is no PyPy")
    major, minor = map(int, call([pypy, "-c", "import sys; print(*sys.version_info[:2])"]).split())
    if (major, minor) >= OLDEST:
        return read_with(lambda: pypy, folder, "pure")
    said = call([pypy, str(ROOT / "tools" / "on_python39.py"), str(ROOT / "src"), "--build", "pure"])
    return f"{said.rstrip()}, by tools/on_python39.py"


def read_with_pyodide(folder: Path) -> str:
    node = on_path("node", "nodejs")
    ready = os.environ.get("GLMSSE_PYODIDE")
    if ready is None:
        npm = on_path("npm", "npm")
        try:
            call([npm, "install", "--no-audit", "--no-fund", "--prefix", str(folder), PYODIDE])
        except RuntimeError as problem:
            raise MissingError(f"npm cannot install {PYODIDE}: {str(problem)[-200:]}") from None
    where = ready or str(folder / "node_modules" / "pyodide")
    return call([node, str(ROOT / "tools" / "pyodide_vectors.mjs"), where, str(ROOT)])


def interpreters(folder: Path) -> Iterator[tuple[str, Callable[[], str]]]:
    for version in ("3.10", "3.11", "3.12", "3.13"):
        for build in ("compiled", "pure"):
            yield f"{version}-{build}", lambda v=version, b=build: read_with(lambda: cpython(v), folder, b)  # type: ignore[misc]
    for build in ("compiled", "pure"):
        yield (
            f"debug-{build}",
            lambda b=build: read_with(  # type: ignore[misc]
                lambda: on_path("python3.11-dbg", "python3.11-dbg"), folder, b, debug=True
            ),
        )
    yield "pypy-pure", lambda: read_with_pypy(folder)
    yield "3.14-pyodide", lambda: read_with_pyodide(folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="what to run (default: all)")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    args = parser.parse_args()
    in_ci = os.environ.get("CI") == "true"
    bad = missing = 0
    with tempfile.TemporaryDirectory() as name:
        known = dict(interpreters(Path(name)))
        if args.list:
            print("\n".join(known))
            return 0
        unknown = set(args.names).difference(known)
        if unknown:
            parser.error(f"unknown: {', '.join(sorted(unknown))}")
        for wanted in args.names or known:
            begun = time.monotonic()
            try:
                said = known[wanted]().strip().splitlines()[-1]
            except MissingError as problem:
                missing += 1
                said = f"MISSING {problem}"
            except (RuntimeError, subprocess.TimeoutExpired) as problem:
                bad += 1
                said = f"FAILED {problem}"
            print(f"{wanted:14} {time.monotonic() - begun:5.0f} s  {said}", flush=True)
    if missing:
        print(f"{missing} missing" + (": CI=true, so this fails" if in_ci else ""))
    return 1 if bad or (missing and in_ci) else 0


if __name__ == "__main__":
    sys.exit(main())
