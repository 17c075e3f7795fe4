"""The process that libFuzzer or atheris runs in: python -m fuzz.drivers.child ENGINE TARGET [libFuzzer's arguments]."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

from ..builds import load_builds
from ..targets import Check, target


def main(engine: str, name: str, *arguments: str) -> None:
    ENGINES[engine](name, ["fuzz", *arguments])


def _by_libfuzzer(name: str, arguments: list[str]) -> None:
    """Its symbols are needed by the package's extension, so it comes first and for all to see."""
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
    import _libfuzzer  # type: ignore[import-not-found]

    sys.setdlopenflags(os.RTLD_NOW)
    builds = load_builds(Path(_libfuzzer.__file__).parent)  # the copy that reports its coverage
    _libfuzzer.run(arguments, target(name).checker(builds))


def _by_atheris(name: str, arguments: list[str]) -> None:
    import atheris  # type: ignore[import-untyped, import-not-found, unused-ignore]

    with atheris.instrument_imports(include=["glmsse"], enable_loader_override=False):
        builds = load_builds()
    check = target(name).checker(builds)
    atheris.Setup(arguments, _ignoring_result(check), enable_python_coverage=True)
    atheris.Fuzz()


def _ignoring_result(check: Check) -> Callable[[bytes], None]:
    def called(data: bytes) -> None:
        check(data)

    return called


ENGINES: dict[str, Callable[[str, list[str]], None]] = {"libfuzzer": _by_libfuzzer, "atheris": _by_atheris}

if __name__ == "__main__":
    main(*sys.argv[1:])
