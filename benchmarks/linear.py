"""Shows that work grows with the input and not faster: `python benchmarks/linear.py [--build compiled|pure]`.

Counts instructions under `valgrind --tool=callgrind`, which no other load disturbs, for shapes made to be slow: twice
the input may take at most 2.05 times the instructions. Exit 1 if one takes more. The compiled build is the one that is
installed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
MOST_GROWTH = 2.05
COUNTER = """\
#include <valgrind/callgrind.h>
void zero(void) { CALLGRIND_ZERO_STATS; }
void dump(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
"""

Action = Callable[[], object]


def _chunk(choice: str) -> bytes:
    return b'data: {"id":"r","choices":[{"index":0,%b}]}\n\n' % choice.encode()


def _tool(index: int, fields: str, function: str) -> bytes:
    return _chunk(f'"delta":{{"tool_calls":[{{"index":{index},{fields}"function":{{{function}}}}}]}}')


# name → what is read, the input for a count, bytes (or characters) a feed, the count
SHAPES: dict[str, tuple[str, Callable[[int], Any], int, int]] = {
    "framer: a line that never ends, in drips": ("framer", lambda n: b"data: " + b"x" * n, 3, 30_000),
    "framer: tiny data lines of one event": ("framer", lambda n: b"data:x\n" * n, 7, 6_000),
    "framer: blank lines": ("framer", lambda n: b"\r\n" * n, 1, 12_000),
    "framer: comments without a blank line": ("framer", lambda n: b":\n" * n, 2, 12_000),
    "framer: a character cut at every byte": (
        "framer",
        lambda n: b"data: " + "\u20ac".encode() * n + b"\n\n",
        1,
        8_000,
    ),
    "chat: one piece an event": ("chat", lambda n: _chunk('"delta":{"content":"x"}') * n, 512, 2_000),
    "chat: arguments before the id": ("chat", lambda n: _tool(0, "", '"arguments":"x"') * n, 512, 1_000),
    "chat: a call an event": (
        "chat",
        lambda n: b"".join(_tool(at, f'"id":"c{at}",', '"name":"f","arguments":"{}"') for at in range(n)),
        4096,
        400,
    ),
    "chat: broken JSON that looks spliced": ("chat", lambda n: b'data: {"a":"' + b"data: " * n + b"\n\n", 4096, 1_500),
    "chat: brackets and keys": ("chat", lambda n: b'data: {"x":[' + b'{"a":[]},' * n + b"1]}\n\n", 4096, 3_000),
    "raw text: argument tags": (
        "text",
        lambda n: "<tool_call>f" + "<arg_key>k</arg_key><arg_value>v</arg_value>" * n,
        3,
        100,
    ),
    "raw text: closers and openers in a value": (
        "text",
        lambda n: "<tool_call>f<arg_key>k</arg_key><arg_value>" + "</tool_call></arg_valu<tool_call>" * n,
        3,
        100,
    ),
}


def action(glmsse: Any, kind: str, data: Any, size: int) -> Action:
    """Reading the whole input, with no caps in the way."""
    free = [name for name in glmsse.Limits.__dataclass_fields__ if not name.startswith(("max_json", "max_number"))]
    limits = glmsse.Limits(**dict.fromkeys(free))
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    if kind == "framer":
        reader = glmsse.SSEFramer(limits)
    elif kind == "chat":
        reader = glmsse.ChatStream(limits=limits)
    else:
        reader = glmsse.ToolCallParser([{"name": "f"}], limits=limits)

    def read() -> None:
        for piece in pieces:
            reader.feed(piece)
        if kind != "framer":
            reader.close()

    return read


def measured(counter: str) -> None:
    """The part that runs under callgrind: each shape at its count and at twice that."""
    import ctypes
    import gc

    import glmsse

    library = ctypes.CDLL(counter)
    gc.disable()
    for at, (kind, make, size, count) in enumerate(SHAPES.values()):
        action(glmsse, kind, make(count), size)()  # what is made once is made before counting
        for times in (1, 2):
            read = action(glmsse, kind, make(times * count), size)
            library.zero()
            read()
            library.dump(f"{at}/{times}".encode())


def counts(build: str, folder: Path) -> dict[tuple[int, int], int]:
    """Instructions by number of the shape and how many times its count."""
    library = folder / "counter.so"
    (folder / "counter.c").write_text(COUNTER)
    subprocess.run(["gcc", "-shared", "-fPIC", str(folder / "counter.c"), "-o", str(library)], check=True)
    program = (
        f"import sys; sys.path[:0] = [{str(ROOT / 'src')!r}, {str(ROOT / 'benchmarks')!r}]; import glmsse, linear; "
    )
    program += f"assert glmsse.IMPLEMENTATION == {build!r}; linear.measured({str(library)!r})"
    environment = ["env", "-i", "PYTHONHASHSEED=0", f"GLMSSE_PURE_PYTHON={int(build == 'pure')}"]
    out = folder / f"out-{build}"
    tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
    done = subprocess.run(
        [*environment, *tool, sys.executable, "-B", "-c", program], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    found = {}
    for path in folder.glob(f"{out.name}.*"):
        text = path.read_text()
        name = re.search(r"^desc: Trigger: Client Request: (\d+)/(\d)$", text, re.MULTILINE)
        total = re.search(r"^(?:totals|summary): (\d+)", text, re.MULTILINE)
        if name and total:
            found[int(name[1]), int(name[2])] = int(total[1])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--build", choices=("compiled", "pure"), help="count one build only (default: both)")
    args = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is needed")
    over = 0
    for build in [args.build] if args.build else ["compiled", "pure"]:
        with tempfile.TemporaryDirectory() as name:
            found = counts(build, Path(name))
        for at, shape in enumerate(SHAPES):
            growth = found[at, 2] / found[at, 1]
            over += growth > MOST_GROWTH
            verdict = "OVER" if growth > MOST_GROWTH else "ok"
            print(f"{build:9} {shape:44} {found[at, 1]:13,} {growth:6.3f} {verdict}", flush=True)
    return 1 if over else 0


if __name__ == "__main__":
    sys.exit(main())
