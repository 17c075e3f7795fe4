"""Memory: small when idle, bounded per wire byte, given back after a large event; and no stream sees another."""

from __future__ import annotations

import gc
import json
import random
import sys
import tracemalloc
from types import ModuleType
from typing import Any

import pytest

USAGE = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}


def chunk(delta: dict[str, Any], response: str = "r", **more: Any) -> bytes:
    return (
        b"data: " + json.dumps({"id": response, "choices": [{"index": 0, "delta": delta, **more}]}).encode() + b"\n\n"
    )


def answer(number: int) -> bytes:
    pick = random.Random(number)
    words = [f"w{pick.randrange(1000)} " for _ in range(8)]
    end = chunk({}, f"r{number}", finish_reason="stop")[:-3] + b',"usage":' + json.dumps(USAGE).encode() + b"}\n\n"
    return b"".join(chunk({"content": word}, f"r{number}") for word in words) + end + b"data: [DONE]\n\n"


def held(make: Any, count: int) -> float:
    """Bytes that each of so many objects holds."""
    kept = [make() for _ in range(10)]
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    kept = [make() for _ in range(count)]
    gc.collect()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(kept) == count
    return (after - before) / count


def test_idle_framer_is_small(glmsse: ModuleType) -> None:
    assert held(glmsse.SSEFramer, 500) < 600


def test_stream_leaves_nothing_for_the_cycle_collector(glmsse: ModuleType) -> None:
    def used() -> None:
        stream = glmsse.ChatStream()
        stream.feed(answer(1))
        stream.close()

    used()
    gc.collect()
    gc.disable()
    try:
        for _ in range(20):
            used()
        assert gc.collect() == 0
    finally:
        gc.enable()


def test_ten_thousand_interleaved_streams_equal_their_solo_runs(glmsse: ModuleType) -> None:
    count = 10_000 if glmsse.IMPLEMENTATION == "compiled" else 2_000
    bodies = [answer(number) for number in range(count)]
    streams = [glmsse.ChatStream() for _ in bodies]
    for at in range(0, max(map(len, bodies)), 200):
        for body, stream in zip(bodies, streams, strict=True):
            stream.feed(body[at : at + 200])
    for number in random.Random(5).sample(range(count), 300):
        solo = glmsse.ChatStream()
        solo.feed(bodies[number])
        assert streams[number].close() == solo.close()
        assert streams[number].snapshot == solo.snapshot
    assert all(stream.close().accepted for stream in streams)


@pytest.mark.parametrize("line", [b"data:x\n", b"data:xy\n", b": x\n", b"x\n", b"data: " + b"x" * 500 + b"\n"])
def test_pending_block_holds_at_most_twice_its_bytes(glmsse: ModuleType, line: bytes) -> None:
    limits = glmsse.Limits(max_event_lines=None, max_event_bytes=None)
    block = line * (2_000_000 // len(line))
    stream = glmsse.ChatStream(limits=limits)
    stream.feed(b"data: 1")
    tracemalloc.start()
    for at in range(0, len(block), 4096):
        stream.feed(block[at : at + 4096])
    holding = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert holding <= 2 * len(block) + 64 * 1024


def test_large_event_does_not_stay_in_an_idle_stream(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_event_bytes=None))
    tracemalloc.start()
    framer.feed(b"data: ")
    for _ in range(1000):
        framer.feed(b"x" * 4096)
    assert len(framer.feed(b"\n\n")) == 1
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert left < 64 * 1024


def test_text_is_held_once(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream(deltas=False)
    data = chunk({"content": "word and "})
    stream.feed(data)
    tracemalloc.start()
    for _ in range(20_000):
        stream.feed(data)
    holding = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert holding < 2 * 9 * 20_000 + 32 * 1024
    assert sys.getsizeof(stream.snapshot.choices[0].content) > 9 * 20_000
