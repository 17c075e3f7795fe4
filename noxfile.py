"""The tasks of this project, the same that .ci/run and the workflows run: `nox --list`, then `nox -s lint tests-3.13`.

Every session makes the environment it needs. What stands behind -- goes to the session's main command.
"""

from __future__ import annotations

import os
from pathlib import Path

import nox

ROOT = Path(__file__).parent
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14", "3.14t"]
COMPILED = {"GLMSSE_BUILD_EXTENSION": "yes"}
PURE = {"GLMSSE_BUILD_EXTENSION": "no"}

nox.needs_version = ">=2025.5.1"
nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = "CI" in os.environ
nox.options.sessions = ["lint", "types", "tests-3.11", "docs"]


def group(session: nox.Session, *names: str) -> None:
    """Installs dependency groups of pyproject.toml."""
    session.install("--upgrade", "pip")
    session.install(*(part for name in names for part in ("--group", name)))


@nox.session
def lint(session: nox.Session) -> None:
    """Style of the code, and validity and safety of the workflows."""
    group(session, "lint", "workflows")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    workflows = sorted(str(path.relative_to(ROOT)) for path in (ROOT / ".github" / "workflows").glob("*.yml"))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    session.run("check-jsonschema", "--builtin-schema", "vendor.dependabot", ".github/dependabot.yml")
    forms = sorted(str(path.relative_to(ROOT)) for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-issue-forms", *forms)
    session.run("zizmor", "--offline", "--quiet", "--pedantic", ".github")


@nox.session
def types(session: nox.Session) -> None:
    """The package and its typing examples under two strict checkers, the extension's stub, the public names."""
    session.install("-e", ".[test]", env=COMPILED)
    group(session, "lint")
    session.run("mypy")
    session.run("mypy", "tests/typing")
    session.run("python", "-m", "mypy.stubtest", "glmsse._framer")
    session.run("pyright")
    session.run("python", ".ci/public_types.py")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """The whole suite, both builds."""
    session.install("-e", ".[test]", "pytest-xdist", env=COMPILED)
    session.run("pytest", "-q", "-n", "auto", *session.posargs, env=COMPILED)


@nox.session(python=[*PYTHONS, "pypy3.11"])
def pure(session: nox.Session) -> None:
    """The tests that need pytest alone, without the extension."""
    session.install(".", "pytest>=8.2", env=PURE)
    session.run(
        "pytest", "-q", "-o", "addopts=", *(session.posargs or ["@tests/quick.txt"]), env={"GLMSSE_PURE_PYTHON": "1"}
    )


@nox.session
def cases(session: nox.Session) -> None:
    """The pinned cases of the wire contract, where they are laid beside the checkout."""
    script = ROOT.parent / "shared" / "checks" / "run_cases.py"
    if not script.is_file():
        session.skip("there is no ../shared/checks beside this checkout")
    session.install(".", env=COMPILED)
    session.run("python", str(script), *session.posargs)


@nox.session
def speed(session: nox.Session) -> None:
    """The ratios to the peers, and whether they reach their floors; say `-- --share 0.3` on a busy machine."""
    session.install(".", env=COMPILED)
    group(session, "bench")
    session.run("python", "benchmarks/compare.py", *session.posargs)


@nox.session
def instructions(session: nox.Session) -> None:
    """Instructions an event, against the revision accepted last; needs valgrind."""
    session.install("Cython>=3.1", "setuptools>=77")
    session.run("python", "benchmarks/instructions.py", *(session.posargs or ["--accepted"]))


@nox.session
def wheels(session: nox.Session) -> None:
    """Builds the last commit for every interpreter here, checks and tries what was built; `-- --quick`: some tests."""
    group(session, "release")
    out = session.create_tmp()
    session.run("python", "tools/build.py", "--all", out)
    session.run("python", "tools/check_dists.py", out, *session.posargs)


@nox.session
def release(session: nox.Session) -> None:
    """The tests of building and vendoring: equal bytes, build identifiers, copies, and the vendoring tool."""
    group(session, "release")
    session.run("pytest", "-q", "tools/tests", *session.posargs)


@nox.session
def vendored(session: nox.Session) -> None:
    """The whole suite against a copy with another name."""
    session.install("Cython>=3.1", "setuptools>=77")
    session.run("python", "tools/renamed_suite.py", *(session.posargs or ["-n", "auto"]))


@nox.session
def docs(session: nox.Session) -> None:
    """The site without a warning, and what the pages say, run."""
    session.install("-e", ".[test]", env=COMPILED)
    group(session, "docs")
    session.run(
        "mkdocs", "build", "--quiet", "--strict", "--site-dir", session.create_tmp(), env={"NO_MKDOCS_2_WARNING": "1"}
    )
    session.run("pytest", "-q", "tests/test_docs.py", *session.posargs)


@nox.session
@nox.parametrize("check", ["ubsan", "bounds", "asan", "memcheck"])
def sanitize(session: nox.Session, check: str) -> None:
    """The core with an extension that checks itself; memcheck needs valgrind: `nox -s "sanitize(check='ubsan')"`."""
    session.install("-e", ".[test]", env=COMPILED)
    group(session, "proof")
    session.run("python", "tools/sanitize.py", check, *session.posargs)


@nox.session
def refcounts(session: nox.Session) -> None:
    """References and blocks on a debug interpreter (python3.11-dbg): `-- --every 10` takes a tenth of the vectors."""
    group(session, "proof")
    session.run("python", "tools/refcounts.py", *session.posargs)


@nox.session
@nox.parametrize("build", ["compiled", "pure"])
def amplification(session: nox.Session, build: str) -> None:
    """The worst bytes held for bytes fed: `-- --seconds 60` for each reader."""
    session.install("-e", ".", env=COMPILED)
    session.run("python", "tools/amplification.py", "--build", build, *session.posargs)


@nox.session
def soak(session: nox.Session) -> None:
    """Streams without end, with flat memory: `-- --gigabytes 100`."""
    session.install("-e", ".", env=COMPILED)
    session.run("python", "tools/soak.py", *(session.posargs or ["--seconds", "60"]))


@nox.session
@nox.parametrize("build", ["pure", "compiled"])
def coverage_gate(session: nox.Session, build: str) -> None:
    """Every line of the core's source by its own tests; every branch of the Python modules."""
    session.install("-e", ".[test]", env=COMPILED)
    group(session, "proof")
    session.run("python", "tools/coverage_gate.py", build, *session.posargs)


@nox.session
def mutate(session: nox.Session) -> None:
    """Mutants of the core: `-- --sample 50 _lane.pxi`, `-- --all --keep DIRECTORY`; needs Python 3.11."""
    session.install("-e", ".[test]", env=COMPILED)
    group(session, "proof")
    session.run("python", "tools/mutate.py", *session.posargs)


@nox.session
def deep(session: nox.Session) -> None:
    """Every fuzz target for some time: `-- --seconds 600`; and every short string at every cut."""
    session.install("-e", ".[test]", env=COMPILED)
    targets = sorted(path.stem for path in (ROOT / "fuzz" / "targets").glob("[a-z]*.py"))
    if not targets:
        session.error("there are no fuzz targets")
    for target in targets:
        session.run("python", "-m", "fuzz.run", target, *(session.posargs or ["--seconds", "60"]))
    session.run("python", "-m", "fuzz.exhaustive", "--jobs", "2")
