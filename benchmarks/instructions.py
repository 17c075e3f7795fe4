"""Counts instructions an event, which no other load disturbs: `python benchmarks/instructions.py [--accepted]`.

Runs under `valgrind --tool=callgrind` with an empty environment and takes the slope between two sizes, so start-up
cancels out. With --base, that revision is built by the same compiler in the same run, and a case that needs more than
2 % over it fails (exit 1). --accepted takes the revision in the file `accepted` beside this one: name a newer one there
in the commit that has a good reason to need more.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import corpus

ROOT = Path(__file__).resolve().parent.parent
SIZES = (2000, 8000)
MOST_OVER = 1.02

# case → corpus, bytes a feed (0: one event), options of the stream
CASES: dict[str, tuple[Callable[[int], bytes], int, dict[str, bool]]] = {
    "text, 16 KiB a feed": (corpus.glm, 16384, {"deltas": False}),
    "delta events, 16 KiB a feed": (corpus.glm, 16384, {}),
    "delta events, one event a feed": (corpus.glm, 0, {}),
    "tap, 64 KiB a feed": (corpus.glm, 65536, {"deltas": False, "collect": False}),
    "template-hostile": (corpus.template_hostile, 16384, {"deltas": False}),
}
PROGRAM = """\
import sys
sys.path.insert(0, {package!r})
import glmsse
assert glmsse.IMPLEMENTATION == "compiled"
body = open({path!r}, "rb").read()
feed = {feed}
stream = glmsse.ChatStream(**{options!r})
at = 0
while at < len(body):
    end = at + feed if feed else body.index(10, at) + 2
    stream.feed(body[at:end])
    at = end
"""


def build(revision: str | None, folder: Path) -> Path:
    """The package as of a revision, or as it stands, installed into a folder of its own."""
    source = ROOT
    if revision is not None:
        source = folder / "source"
        source.mkdir()
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, check=True, capture_output=True).stdout
        subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
    target = folder / "package"
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(target), str(source)]
    subprocess.run(command, check=True, env={**os.environ, "GLMSSE_BUILD_EXTENSION": "yes"})
    return target


def count(package: Path, case: str, events: int, folder: Path) -> int:
    make, feed, options = CASES[case]
    path = folder / "body.sse"
    path.write_bytes(make(events))
    program = PROGRAM.format(package=str(package), path=str(path), feed=feed, options=options)
    command = ["env", "-i", "PYTHONHASHSEED=0", "valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null"]
    done = subprocess.run([*command, sys.executable, "-B", "-c", program], capture_output=True, text=True, check=True)
    line = next(line for line in done.stderr.splitlines() if "Collected" in line)
    return int(line.rpartition(":")[2])


def per_event(package: Path, case: str, folder: Path) -> float:
    small, large = (count(package, case, size, folder) for size in SIZES)
    return (large - small) / (SIZES[1] - SIZES[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--base", metavar="REV", help="revision to compare with (default: only count)")
    parser.add_argument("--accepted", action="store_true", help="compare with the revision accepted last")
    args = parser.parse_args()
    if args.accepted:
        args.base = Path(__file__).with_name("accepted").read_text().strip()
    over = 0
    with tempfile.TemporaryDirectory() as name:
        folders = [Path(name, part) for part in ("now", "base")]
        for folder in folders:
            folder.mkdir()
        now = build(None, folders[0])
        base = build(args.base, folders[1]) if args.base else None
        for case in CASES:
            instructions = per_event(now, case, Path(name))
            line = f"{case:34}{instructions:10,.0f} instructions an event"
            if base is not None:
                before = per_event(base, case, Path(name))
                over += instructions > MOST_OVER * before
                line += f"  {instructions / before:6.3f} of {args.base[:10]}"
            print(line, flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
