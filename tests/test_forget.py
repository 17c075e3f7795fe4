"""A stream that was told to forget holds no text; counters and verdict stay."""

from __future__ import annotations

import gc
import tracemalloc
from types import FunctionType, ModuleType
from typing import Any

import pytest

from wire import body, content, end, piece, reasoning, tools

MARK = "CANARY do-not-show"
ANSWER = body(
    {**reasoning(MARK), "id": MARK, "model": MARK},
    {**content(MARK), "id": MARK},
    {**content(f"{MARK}!"), "id": MARK},
    {**tools(piece('{"a":1', id="c1", name="f")), "id": MARK},
    {**tools(piece("1")), "id": MARK},
    {**tools(piece("}")), "id": MARK},
    {**end("tool_calls"), "id": MARK},
)
BODIES = {
    "whole": ANSWER,
    "cut in an event": ANSWER[:-30] + MARK.encode(),
    "at fault": ANSWER[:400] + b'\n\ndata: {"' + MARK.encode() + b"\n\n",
    "in a field": b"event: " + MARK.encode() + b"\nid: " + MARK.encode() + b"\ndata: " + MARK.encode(),
}


def texts_within(root: object) -> list[Any]:
    """Every text that can be reached from here, classes, modules and functions aside."""
    found, seen, pending = [], set(), [root]
    while pending:
        item = pending.pop()
        if id(item) in seen or isinstance(item, (type, ModuleType, FunctionType)):
            continue
        seen.add(id(item))
        if isinstance(item, (str, bytes, bytearray)):
            found.append(item)
        pending += gc.get_referents(item)
    return found


def marked(texts: list[Any]) -> list[Any]:
    return [text for text in texts if "CANARY" in (text if isinstance(text, str) else text.decode(errors="replace"))]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("options", [{}, {"digest": True}, {"deltas": False}], ids=repr)
def test_no_text_can_be_reached_any_more(glmsse: Any, name: str, options: Any) -> None:
    stream = glmsse.ChatStream(**options)
    stream.feed(BODIES[name])
    stream.close()
    if name != "in a field":  # which the compiled build holds where nothing can be reached
        assert marked(texts_within(stream)) != []

    stream.forget()

    assert marked(texts_within(stream)) == []


def test_refused_response_is_forgotten_too(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    stream.start(500, {"x-request-id": "req-CANARY", "content-type": MARK})
    stream.feed(MARK.encode())
    assert stream.close().request_id == "req-CANARY"
    verdict = stream.close()

    stream.forget()

    assert [text for text in marked(texts_within(stream)) if text is not verdict.request_id] == []


def test_memory_of_a_long_answer_is_given_back(glmsse: Any) -> None:
    parts = [content("x" * 1000), reasoning("y" * 1000)] * 300
    calls = [tools(piece("z" * 1000, id="c1", name="f"))] * 300
    data = body(*parts, *calls, end("tool_calls"))
    tracemalloc.start()
    stream = glmsse.ChatStream(deltas=False)
    stream.feed(data)
    stream.close()
    before = tracemalloc.get_traced_memory()[0]
    stream.forget()
    after = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert before > 900_000
    assert after < 24_000


def test_counters_and_verdict_stay(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    stream.feed(ANSWER)
    verdict = stream.close()

    def counters() -> tuple[Any, ...]:
        return (stream.bytes_seen, stream.events_seen, stream.pieces_seen, stream.phase, stream.done, stream.failed)

    before, fast = counters(), stream.fast_events_seen
    stream.forget()
    stream.forget()

    assert counters() == before == (len(ANSWER), 8, 8, "complete", True, False)
    assert stream.fast_events_seen == fast
    assert stream.verdict is verdict
    assert stream.close() is verdict
    assert verdict.tool_calls[0].arguments == '{"a":11}'


def test_snapshot_is_that_of_a_stream_without_text(glmsse: Any) -> None:
    stream = glmsse.ChatStream(choices=2)
    stream.feed(ANSWER)
    stream.close()
    stream.forget()
    assert stream.snapshot == glmsse.ChatStream(choices=2).snapshot
    assert stream.usage is None


def test_forget_comes_after_close(glmsse: Any) -> None:
    stream = glmsse.ChatStream()
    stream.feed(ANSWER)
    with pytest.raises(glmsse.MisuseError, match="forget comes after close"):
        stream.forget()
    stream.close()
    stream.forget()
    with pytest.raises(glmsse.MisuseError, match="feed was called after close"):
        stream.feed(b"data: x\n\n")
    with pytest.raises(glmsse.MisuseError, match="add was called after close"):
        stream.add({})


def test_streams_that_forget_do_not_touch_others(glmsse: Any) -> None:
    one, other = glmsse.ChatStream(), glmsse.ChatStream()
    one.feed(ANSWER)
    other.feed(ANSWER)
    one.close()
    other.close()
    one.forget()
    assert other.snapshot.choices[0].content == f"{MARK}{MARK}!"
