"""Builds what a release publishes from the last commit: python tools/build.py dist

One source distribution, the pure wheel, and the binary wheel of each interpreter that is asked for; the wheels are made
from the source distribution, so it is complete. Two builds of one commit by the same tools are equal byte for byte,
wherever and whenever they are made.
"""

from __future__ import annotations

import argparse
import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from interpreters import MINIMUM, interpreters

ROOT = Path(__file__).resolve().parents[1]


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True).stdout


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.exit(f"{done.stdout.decode(errors='replace')}\n{' '.join(command)} failed")


def _plain(member: tarfile.TarInfo, when: int) -> tarfile.TarInfo:
    """The entry without what depends on who built it, where and when."""
    plain = tarfile.TarInfo(member.name)
    plain.type, plain.size, plain.mtime = member.type, member.size, when
    plain.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
    return plain


def normalise(sdist: Path, when: int) -> None:
    """Writes a source distribution anew, so that its bytes depend on its files and the time given alone.

    The wheels need no such care: their builder sorts the entries and honours SOURCE_DATE_EPOCH.
    """
    written = io.BytesIO()
    with tarfile.open(sdist) as old, tarfile.open(fileobj=written, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            new.addfile(_plain(member, when), old.extractfile(member) if member.isfile() else None)
    with sdist.open("wb") as raw, gzip.GzipFile("", "wb", mtime=when, fileobj=raw) as packed:
        packed.write(written.getvalue())


def build(out: Path, pythons: list[str]) -> list[Path]:
    """Builds everything into a directory; the paths of what was made."""
    out.mkdir(parents=True, exist_ok=True)
    when = _git("log", "-1", "--format=%ct").decode().strip()
    # A umask of the builder's would be seen in the modes of the wheels' entries.
    os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="glmsse-") as directory:
        work = Path(directory)
        environment = {
            **os.environ,
            "SOURCE_DATE_EPOCH": when,
            # The compiler is given relative paths: without debugging information no directory is in its output.
            "CFLAGS": "-g0",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }
        with tarfile.open(fileobj=io.BytesIO(_git("archive", "--format=tar", "HEAD"))) as archive:
            archive.extractall(work / "tree")
        made = work / "made"
        _run([sys.executable, "-m", "build", "--sdist", "--outdir", str(made), str(work / "tree")], environment)
        (sdist,) = made.iterdir()
        normalise(sdist, int(when))
        for python, extension in [(sys.executable, "no"), *((python, "yes") for python in pythons)]:
            command = [
                python,
                "-m",
                "pip",
                "wheel",
                "-q",
                "--no-deps",
                "--no-cache-dir",
                "--wheel-dir",
                str(made),
                str(sdist),
            ]
            _run(command, {**environment, "GLMSSE_BUILD_EXTENSION": extension})
        return [Path(shutil.copy(path, out)) for path in sorted(made.iterdir())]


def main() -> None:
    parser = argparse.ArgumentParser(prog="tools/build.py", description=__doc__.split("\n\n")[0])
    parser.add_argument("out", type=Path, help="the directory for what is built")
    parser.add_argument("--python", action="append", default=[], help="make the binary wheel of this one (repeatable)")
    parser.add_argument("--all", action="store_true", help="make the binary wheel of every CPython on this machine")
    args = parser.parse_args()
    pythons = args.python
    if args.all:
        pythons = [one.path for one in interpreters() if one.implementation == "cpython" and one.version >= MINIMUM]
    for path in build(args.out, pythons):
        print(path)


if __name__ == "__main__":
    main()
