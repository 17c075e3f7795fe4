"""Copies the core of glmsse into another package: python tools/vendor.py src/acme/_vendor/glmsse

The copy has every module that reads, judges, encodes and gates an answer, for both builds, and the licence. It needs no
other package and no glmsse beside it. Compile it with: cythonize --inplace src/acme/_vendor/glmsse/_framer.pyx
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "glmsse"

# What the command line, the servers, recordings and audits are made of; all else is the core (docs/vendoring.md).
BEYOND_CORE = frozenset({"__main__.py", "audit", "capture", "cli", "proxy", "report", "scenarios.py", "server"})
KINDS = frozenset({".py", ".pyi", ".pyx", ".pxi", ".typed", ".html", ".css"})


def package_files(*, core: bool = True) -> Iterator[Path]:
    """Every source file of the package, or of its core, relative to the package."""
    for path in sorted(SOURCE.rglob("*")):
        name = path.relative_to(SOURCE)
        kept = path.suffix in KINDS or path.name == "py.typed"
        if kept and path.is_file() and not (core and name.parts[0] in BEYOND_CORE):
            yield name


def copy_package(destination: Path, *, core: bool = True) -> int:
    """Copies the files and the licence to a directory that is not there yet; how many files."""
    names = list(package_files(core=core))
    for name in names:
        target = destination / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(SOURCE / name, target)
    shutil.copyfile(ROOT / "LICENSE", destination / "LICENSE")
    return len(names) + 1


def core_size() -> dict[str, int]:
    """What the copy weighs: bytes and lines of code, for the pure twin alone and with what the compiled one needs."""

    def weigh(suffixes: tuple[str, ...]) -> tuple[int, int]:
        texts = [(SOURCE / name).read_text(encoding="utf-8") for name in package_files() if name.suffix in suffixes]
        return sum(len(text.encode()) for text in texts), sum(text.count("\n") for text in texts)

    pure, whole = weigh((".py",)), weigh((".py", ".pyi", ".pyx", ".pxi"))
    return {"pure_bytes": pure[0], "pure_lines": pure[1], "bytes": whole[0], "lines": whole[1]}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="tools/vendor.py", description=__doc__.split("\n\n")[0])
    parser.add_argument("destination", type=Path, nargs="?", help="the new package, replaced if it is a glmsse copy")
    parser.add_argument("--size", action="store_true", help="print what the core weighs and stop")
    args = parser.parse_args(arguments)
    if args.size:
        print(*(f"{name} {value}" for name, value in core_size().items()), sep="\n")
        return 0
    if args.destination is None:
        parser.error("say where to")
    destination: Path = args.destination
    if destination.exists():
        if not (destination / "_framer.pyx").is_file():
            parser.error(f"{destination} is there and is no copy of this package")
        shutil.rmtree(destination)
    print(f"{copy_package(destination)} files in {destination}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
