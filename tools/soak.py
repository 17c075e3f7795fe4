"""Reads streams without end and watches the memory: python tools/soak.py (--gigabytes N | --seconds N) [--build B]

Streams are generated anew in each round from a seed: texts, reasoning, calls, usage, comments, in every script and cut
anywhere, good ones and spoilt ones; each verdict and each joined text is checked. They go through chat streams and bare
framers. It fails at a wrong verdict or text, and when the resident memory rose in the second half over the first.

Each body is read many times, cut otherwise by each stream: the reader is tried out and not the generator.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

MOST_GROWTH = 2 * 1024 * 1024  # what allocators move by themselves
WARM = 0.2  # of the run: before that caches fill
SIZES = (500, 500, 2_000, 5_000, 5_000, 20_000, 20_000, 50_000, 50_000, 200_000)
SAY_SECONDS = 20
TIMES = 60  # that a body is read
WORDS = ["word ", "naïve ", "Größe ", "数据流", "🙂", "\n", '\t"quoted" ', "back\\slash ", "\u2028", "x" * 300]
USAGE = {"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14}


@dataclass(frozen=True)
class Body:
    """A stream and what must come of it: the code of its verdict, and its text."""

    wire: bytes
    code: str | None
    content: str
    arguments: str
    events: int


def resident() -> int:
    """Bytes of this process that are in memory."""
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def make_body(pick: random.Random, size: int) -> Body:
    """One stream of about this size; a third of them are cut or spoilt."""
    parts: list[bytes] = []
    content: list[str] = []
    arguments: list[str] = []

    def chunk(delta: dict[str, Any], **more: Any) -> None:
        choice = {"index": 0, "delta": delta, **({"finish_reason": more.pop("reason")} if "reason" in more else {})}
        record = {"id": "r", "model": "glm-5.2", "choices": [choice], **more}
        text = json.dumps(record, ensure_ascii=pick.random() < 0.5)
        parts.append(f"data: {text}".encode() + pick.choice((b"\n\n", b"\n\n", b"\r\n\r\n")))

    length = 0
    while length < size * 3 // 4:
        piece = "".join(pick.choices(WORDS, k=pick.randint(1, 3)))
        if pick.random() < 0.2:
            chunk({"reasoning_content": piece})
        else:
            content.append(piece)
            chunk({"content": piece})
        if pick.random() < 0.05:
            parts.append(b": keep-alive\n\n")
        length += len(parts[-1])
    calls = pick.random() < 0.5
    if calls:
        call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": ""}}
        chunk({"tool_calls": [call]})
        value = json.dumps({"text": pick.choice(WORDS) * 50})
        for at in range(0, len(value), 9):
            arguments.append(value[at : at + 9])
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": value[at : at + 9]}}]})
    kind = pick.choice(("good", "good", "good", "good", "cut", "spoilt"))
    if kind == "spoilt":
        parts.append(b'data: {"choices": [}\n\n')
    if kind != "cut":
        chunk({}, reason="tool_calls" if calls else "stop", usage=USAGE)
        parts.append(b"data: [DONE]\n\n")
    code = {"good": None, "cut": "incomplete_stream", "spoilt": "bad_json"}[kind]
    events = sum(part.startswith(b"data") for part in parts)
    return Body(b"".join(parts), code, "".join(content), "".join(arguments), events)


def read_chat(glmsse: Any, body: Body, pick: random.Random) -> None:
    stream = glmsse.ChatStream(deltas=pick.random() < 0.5)
    for data in cut(body.wire, pick):
        stream.feed(data)
    verdict = stream.close()
    choice = stream.snapshot.choices[0]
    assert verdict.code == body.code, f"the code is {verdict.code}, not {body.code}"
    assert choice.content == body.content, "another content"
    assert "".join(call.arguments for call in choice.tool_calls) == body.arguments, "other arguments"
    assert [call.arguments for call in verdict.tool_calls] == ([body.arguments] if verdict and body.arguments else [])


def read_frames(glmsse: Any, body: Body, pick: random.Random) -> None:
    framer = glmsse.SSEFramer()
    count = sum(len(framer.feed(data)) for data in cut(body.wire, pick))
    framer.close()
    assert count == body.events == framer.events_seen, "another number of events"


def cut(wire: bytes, pick: random.Random) -> list[bytes]:
    size = pick.choice((17, 300) if len(wire) < 10_000 else (1460, 16384, 65536))
    return [wire[at : at + size] for at in range(0, len(wire), size)]


class Memory:
    """What the process held over the run, by how much of it was done."""

    def __init__(self) -> None:
        self.seen: list[tuple[float, int]] = []

    def growth(self) -> int:
        """By how much the middle value of the second half is over that of the first, after the warm-up."""
        last = self.seen[-1][0]
        first = [size for at, size in self.seen if WARM * last <= at < last * (1 + WARM) / 2]
        second = [size for at, size in self.seen if at >= last * (1 + WARM) / 2]
        return int(median(second) - median(first or second))


def soak(glmsse: Any, most_bytes: float, most_seconds: float, seed: int) -> int:
    pick = random.Random(seed)
    memory = Memory()
    begun = said = time.monotonic()
    done = streams = 0
    while done < most_bytes and time.monotonic() - begun < most_seconds:
        bodies = [make_body(pick, size) for size in SIZES]
        for _ in range(TIMES):
            for body in bodies:
                read = read_frames if streams % 4 == 3 else read_chat
                read(glmsse, body, pick)
                done += len(body.wire)
                streams += 1
        memory.seen.append((float(done), resident()))
        now = time.monotonic()
        if now - said >= SAY_SECONDS:
            said = now
            print(f"{done / 1e9:8.2f} GB, {streams} streams, {memory.seen[-1][1] // 1024} KiB", flush=True)
    seconds = time.monotonic() - begun
    growth = memory.growth()
    flat = growth <= MOST_GROWTH
    print(
        f"{glmsse.IMPLEMENTATION}: {done / 1e9:.2f} GB, {streams} streams in {seconds:.0f} s "
        f"({done / 1e6 / seconds:.0f} MB/s), all verdicts right; second half {growth // 1024:+d} KiB over the first: "
        f"{'flat' if flat else 'GROWS'}"
    )
    return 0 if flat else 1


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    amount = parser.add_mutually_exclusive_group(required=True)
    amount.add_argument("--gigabytes", type=float, help="stop after so many bytes")
    amount.add_argument("--seconds", type=float, help="stop after so long")
    parser.add_argument("--build", choices=("compiled", "pure"), default="compiled", help="(default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="of the streams (default: %(default)s)")
    args = parser.parse_args(argv)
    os.environ["GLMSSE_PURE_PYTHON"] = "1" if args.build == "pure" else "0"
    import glmsse

    if args.build != glmsse.IMPLEMENTATION:
        print(f"the {args.build} build is not here", file=sys.stderr)
        return 1
    return soak(glmsse, (args.gigabytes or float("inf")) * 1e9, args.seconds or float("inf"), args.seed)


if __name__ == "__main__":
    sys.exit(main())
