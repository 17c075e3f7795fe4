"""Every allocation fails once, in turn: MemoryError, or the right result, and never a wrong one or a crash.

Each stretch runs in a process of its own. There the n-th allocation from its start on fails and all after it work, for
n = 0, 1, 2, … until it needs no more of them. After MemoryError the step is tried again, as by a caller who takes no
notice: it is refused, or had not begun. A verdict that is accepted all the same must be that of the undisturbed run.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from conftest import BUILDS, PACKAGE

SETUP = f"""
import faulthandler, importlib, json, sys
import _testcapi
faulthandler.enable()
glmsse = importlib.import_module({PACKAGE!r})
from {PACKAGE}.scenarios import SCENARIOS
assert glmsse.IMPLEMENTATION == sys.argv[1]
BODY = SCENARIOS[sys.argv[2]].body
PIECES = [BODY[at : at + 7] for at in range(0, len(BODY), 7)]
CHUNKS = [json.loads(part[6:]) for part in BODY.split(b"\\n\\n") if part.startswith(b"data: {{")]
CALM = 3  # runs in a row that met no failure, after which there is nothing left to fail


def in_turn(attempt):
    '''Lets one allocation after the other fail; how many runs met MemoryError.'''
    met = calm = number = 0
    while calm < CALM:
        hit = attempt(number)
        met += hit
        calm = 0 if hit else calm + 1
        number += 1
        assert number < 20000
    return met


def guarded(number, steps):
    '''What the steps return and whether one met MemoryError: the n-th allocation from here on fails.

    That step is tried again, as a caller may who takes no notice; a refusal ends it.
    '''
    results, hit, at = [None] * len(steps), False, 0
    _testcapi.set_nomemory(number, number + 1)
    while at < len(steps):
        try:
            results[at] = steps[at]()
        except MemoryError:
            _testcapi.remove_mem_hooks()
            hit = True
            continue
        except glmsse.MisuseError:
            assert hit
            break
        at += 1
    _testcapi.remove_mem_hooks()
    return results, hit
"""

FRAMER = """
REST = [b"data: a", b"b" * 200, b"c" * 5000, b"\\n", b"data: d\\nid: 5\\nretry: 3\\n", b"\\n"]
LAST = glmsse.ServerSentEvent(data="a" + "b" * 200 + "c" * 5000 + "\\nd", id="5", retry=3)
EVENTS = [*glmsse.SSEFramer().feed(BODY), LAST]

def attempt(number):
    framer = glmsse.SSEFramer()
    steps = [lambda piece=piece: framer.feed(piece) for piece in PIECES + REST] + [framer.close]
    results, hit = guarded(number, steps)
    events = [event for part in results for event in part or ()]
    assert events == EVENTS[: len(events)], "a wrong event"
    assert hit or events == EVENTS
    framer.reset()
    assert framer.feed(BODY) == EVENTS[:-1] and framer.close() == []
    return hit
"""

CHAT = """
def read(pieces, verb, number):
    streams = []
    def make():
        streams[:] = [glmsse.ChatStream("gateway")]
    feeds = [lambda piece=piece: getattr(streams[0], verb)(piece) for piece in pieces]
    last = [lambda: streams[0].close(), lambda: streams[0].snapshot]
    results, hit = guarded(number, [make, *feeds, *last])
    events = [event for part in results[1:-2] for event in part or ()]
    if hit and results[-2] is None:  # what was refused can still be closed
        results[-2], results[-1] = streams[0].close(), streams[0].snapshot
    return events, results[-2], results[-1], hit

CALM_RUN = {verb: read(pieces, verb, 10**6) for verb, pieces in (("feed", PIECES), ("add", CHUNKS))}

def both(number, verb, pieces):
    expected, right, snapshot, _ = CALM_RUN[verb]
    assert right.accepted
    events, verdict, shown, hit = read(pieces, verb, number)
    assert events == expected[: len(events)], "a wrong event"
    if verdict or not hit:
        assert (verdict, shown) == (right, snapshot), "a wrong answer was accepted"
    assert hit or events == expected
    assert read(pieces, verb, 10**6) == CALM_RUN[verb]
    return hit

def attempt(number):
    return both(number, "feed", PIECES)
"""

ADDED = (
    CHAT
    + """
def attempt(number):
    return both(number, "add", CHUNKS)
"""
)

RAW = """
TEXT = "a<think>b</think>c<tool_call>f\\n<arg_key>k</arg_key><arg_value>v w</arg_value></tool_call>"
PIECES = [TEXT[at : at + 5] for at in range(0, len(TEXT), 5)]

def read(number):
    parsers = []
    def make():
        parsers[:] = [glmsse.ToolCallParser()]
    feeds = [lambda piece=piece: parsers[0].feed(piece) for piece in PIECES]
    results, hit = guarded(number, [make, *feeds, lambda: parsers[0].close("tool_calls")])
    return [event for part in results[1:] for event in part or ()], hit

EXPECTED = read(10**6)[0]

def attempt(number):
    events, hit = read(number)
    assert hit or events == EXPECTED
    if any(event.type == "finish" for event in events):
        assert events == EXPECTED, "a wrong answer was finished"
    assert read(10**6) == (EXPECTED, False)
    return hit
"""


@pytest.mark.parametrize("scenario", ["text", "tool"])
@pytest.mark.parametrize("stretch", [FRAMER, CHAT, ADDED, RAW], ids=["framer", "chat", "added", "raw"])
@pytest.mark.parametrize("build", list(BUILDS))
def test_every_failing_allocation_is_survived(build: str, stretch: str, scenario: str) -> None:
    if importlib.util.find_spec("_testcapi") is None:
        assert "CI" not in os.environ, "this interpreter has no _testcapi"
        pytest.skip("this interpreter has no _testcapi, which makes allocations fail")
    program = SETUP + stretch + "\nmet = in_turn(attempt)\nprint(met)\n"
    environment = {**os.environ, "GLMSSE_PURE_PYTHON": "1" if build == "pure" else "0", "PYTHONMALLOC": "default"}
    done = subprocess.run(
        [sys.executable, "-c", program, build, scenario], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert int(done.stdout) > 10
