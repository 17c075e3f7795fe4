"""Any stream, cut anywhere, in both builds: the same events, verdict and errors; and what holds for every verdict."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest

from conftest import BUILDS
from wire import DONE, USAGE, plain

pytest.importorskip("hypothesis")
from hypothesis import example, given, settings
from hypothesis import strategies as st

glmsse = BUILDS["pure"]
NAMES = sorted(glmsse.TOLERANCES)

texts = st.sampled_from(
    ["", "a", "Hi", "é", "北\U0001f600", "{}", '{"a":', "1}", "\u2028", "\ud83d", "\ude00", "x" * 40, " ", "null"]
)
odd = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.floats(allow_nan=False) | texts,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["text", "type", "index", "a"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def mostly(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """What the wire usually has, now and then something else."""
    return st.one_of(usual, usual, usual, usual, usual, usual, usual, usual, odd)


def some(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


words = st.sampled_from(["c1", "c2", "f", "g", "", None])
functions = some(name=mostly(st.sampled_from(["f", "g", "", None])), arguments=mostly(texts | st.none()))
pieces = some(
    index=mostly(st.sampled_from([0, 0, 0, 1, 2, None])),
    id=mostly(words),
    type=mostly(st.just("function")),
    function=mostly(functions),
)
parts = st.lists(
    st.sampled_from([{"type": "text", "text": "a"}, {"type": "thinking", "thinking": "b"}, {"type": "x"}]), max_size=2
)
deltas = some(
    role=st.just("assistant"),
    content=mostly(texts | st.none()) | parts,
    reasoning_content=mostly(texts | st.none()),
    reasoning=mostly(texts | st.none()),
    tool_calls=mostly(st.lists(pieces, max_size=2)),
    function_call=st.none() | functions,
)
reasons = st.sampled_from(
    [
        "stop",
        "tool_calls",
        "stop",
        "tool_calls",
        "length",
        "null",
        "end_turn",
        "tool_use",
        "function_call",
        "",
        None,
        "Odd!",
    ]
)
choices = some(
    index=mostly(st.sampled_from([0, 0, 0, 0, None, 1])),
    delta=mostly(deltas),
    finish_reason=reasons,
    message=st.none() | deltas,
)
usages = st.sampled_from([USAGE, USAGE, None, {}, {**USAGE, "total_tokens": True}, {**USAGE, "cached_tokens": 3}])
chunks = some(
    id=mostly(st.sampled_from(["r-1", "r-1", "r-1", "", "r-2"])),
    choices=mostly(st.lists(choices, max_size=2)),
    usage=usages | odd,
    error=st.sampled_from([None, None, None, None, {"code": "1302"}]),
    created=st.integers(0, 5),
)
simple_deltas = st.one_of(
    st.fixed_dictionaries({"content": texts}),
    st.fixed_dictionaries({"reasoning_content": texts}),
    st.fixed_dictionaries({"tool_calls": st.lists(pieces, min_size=1, max_size=1)}),
)
simple_chunks = simple_deltas.map(lambda delta: {"id": "r-1", "choices": [{"index": 0, "delta": delta}]})
ends = st.builds(
    lambda reason: {"id": "r-1", "choices": [{"delta": {}, "finish_reason": reason}], "usage": USAGE}, reasons
)


def _event(made: Any, line_end: str, prefix: str) -> bytes:
    return f"{prefix}data: {json.dumps(made)}{line_end}{line_end}".encode()


line_ends = st.sampled_from(["\n", "\n", "\r\n", "\r"])
prefixes = st.sampled_from(["", "", "", "", ": comment\n", "event: x\r\n", "id: 5\r", "\n"])
events = st.builds(_event, chunks | simple_chunks | simple_chunks | ends, line_ends, prefixes)
noise = st.sampled_from(
    [
        b"\n",
        b": ping\n\n",
        b"data:\n\n",
        b"data: {\n\n",
        b"data: [1]\n\n",
        b"data: NaN\n\n",
        b'data: {"a":1,"a":2}\n\n',
        b"\xff\n",
        b"event: error\ndata: x\n\n",
        b'data: {"a":{\ndata: }}\n\n',
        b'data: {"id":"A","cdata: {"id":"B"}\n\n',
        b'data: {}\ndata: {"choices":[]}\n\n',
        b"data: : x\n\n",
        b"data: 1e999\n\n",
    ]
)
bodies = st.builds(
    lambda items, last: b"".join(items) + last,
    st.lists(st.one_of(events, events, events, events, noise), max_size=6),
    st.sampled_from([DONE, DONE, DONE, DONE[:-1], b"", b"data: {"]),
)
whole_bodies = st.builds(
    lambda items, last: b"".join(_event(item, "\n", "") for item in (*items, last)) + DONE,
    st.lists(simple_chunks, max_size=4),
    ends,
)
neat_pieces = some(
    index=st.sampled_from([0, 0, 1]),
    id=st.sampled_from(["c1", "c1", "c2"]),
    function=some(
        name=st.sampled_from(["f", "f", "g"]),
        arguments=st.sampled_from(
            ["{}", "{}", '{"a":', "1}", "[1]", " ", '{"a":1,"a":1}', "NaN", '{"a":"\\ud800"}', {"a": 1}]
        ),
    ),
)
neat_deltas = st.one_of(
    st.lists(neat_pieces, min_size=1, max_size=2).map(lambda made: {"tool_calls": made}),
    neat_pieces.map(lambda made: {"tool_calls": [made]}),
    st.fixed_dictionaries({"reasoning": st.just("Hm")}),
    st.fixed_dictionaries({"content": st.just("Hi")}),
    st.fixed_dictionaries({"content": parts}),
)


def _neat_choice(delta: Any, reason: str | None, index: int, key: str) -> dict[str, Any]:
    return {"id": "r-1", "choices": [{"index": index, key: delta, "finish_reason": reason}]}


neat_chunks = st.builds(
    _neat_choice,
    neat_deltas,
    st.sampled_from([None] * 9 + ["tool_calls", "stop"]),
    st.sampled_from([0] * 9 + [1]),
    st.sampled_from(["delta"] * 9 + ["message"]),
)
neat_ends = st.builds(
    lambda reason, usage: {"id": "r-1", "choices": [{"delta": {}, "finish_reason": reason}], "usage": usage},
    st.sampled_from(["tool_calls", "tool_calls", "stop"]),
    st.sampled_from([USAGE, USAGE, USAGE, None]),
)
neat_bodies = st.builds(
    lambda items, last: b"".join(_event(item, "\n", "") for item in (*items, *last)) + DONE,
    st.lists(neat_chunks, min_size=1, max_size=3),
    st.lists(neat_ends, min_size=1, max_size=2),
)
any_body = bodies | whole_bodies | neat_bodies | neat_bodies
allowed = st.one_of(
    st.just([]),
    st.just(NAMES),
    st.just(list(glmsse.PROFILES["gateway"])),
    st.lists(st.sampled_from(NAMES), unique=True, max_size=5),
)
options = st.fixed_dictionaries(
    {
        "allow": allowed,
        "choices": st.sampled_from([1, 1, 1, 2]),
        "deltas": st.booleans(),
        "collect": st.booleans(),
        "digest": st.booleans(),
        "limits": st.sampled_from(
            [
                {},
                {},
                {"max_content_bytes": 5},
                {"max_argument_bytes": 5},
                {"max_events": 4},
                {"max_event_bytes": 150},
                {"max_tool_calls": 1},
            ]
        ),
    }
)


def _run(build: Any, data: bytes, cuts: list[int], error: str | None = None, **settings: Any) -> dict[str, Any]:
    limits = build.Limits(**settings.pop("limits", {}))
    stream = build.ChatStream(limits=limits, **settings)
    seen: list[Any] = []
    edges = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    for start, stop in pairwise(edges):
        seen += stream.feed(data[start:stop])
    before = stream.verdict
    verdict = stream.close(error)
    assert before is None or (before is verdict and stream.closing_events == [])
    seen += stream.closing_events
    return {
        "events": plain(seen),
        "verdict": verdict.to_dict(),
        "calls": [
            (call.choice, call.index, call.id, call.name, call.arguments, call.complete) for call in verdict.tool_calls
        ],
        "snapshot": stream.snapshot.to_dict(),
        "complete": [call.complete for choice in stream.snapshot.choices for call in choice.tool_calls],
        "counts": (stream.bytes_seen, stream.events_seen, stream.phase),
    }


cuttings = st.lists(st.integers(0, 5000), max_size=8)


@settings(max_examples=600, deadline=None)
@given(any_body, cuttings, cuttings, options, st.sampled_from([None, None, "cancelled", "other"]))
def test_cutting_and_build_change_nothing(
    data: bytes, first: list[int], second: list[int], chosen: Any, error: str | None
) -> None:
    whole = _run(BUILDS["pure"], data, [], error, **chosen)
    for build in BUILDS.values():
        assert _run(build, data, first, error, **chosen) == whole
        assert _run(build, data, second, error, **chosen) == whole
    assert _run(glmsse, data, list(range(len(data))), error, **chosen) == whole


@settings(max_examples=600, deadline=None)
@given(any_body, options)
def test_what_holds_for_every_verdict(data: bytes, chosen: Any) -> None:
    got = _run(glmsse, data, [], **chosen)
    verdict, seen = got["verdict"], got["events"]

    assert verdict["accepted"] is (verdict["outcome"] == "accepted") is (verdict["code"] is None)
    assert verdict["accepted"] or not got["calls"]
    assert set(verdict["tolerated"]) <= set(chosen["allow"])
    assert verdict["done"] or verdict["tolerated"] or not verdict["accepted"]
    assert [item["type"] for item in seen[:-1] if item["type"] in ("done", "failed")] == []
    generated = any(item["type"].endswith(("delta", "start")) for item in seen)
    assert not (generated and verdict["replay"] == "safe")
    if seen and seen[-1]["type"] == "failed":
        assert seen[-1]["error"] == verdict["error"]
    for call in got["calls"]:
        assert call[2]
        assert call[3]
    json.dumps(verdict, allow_nan=False)
    json.dumps(got["snapshot"], ensure_ascii=False).encode() if "nonfinite_ok" not in chosen["allow"] else None


@settings(max_examples=600, deadline=None)
@given(any_body, options)
def test_events_and_snapshot_tell_the_same(data: bytes, chosen: Any) -> None:
    chosen = {**chosen, "deltas": True, "collect": True}
    got = _run(glmsse, data, [], **chosen)
    for choice in got["snapshot"]["choices"]:
        mine = [item for item in got["events"] if item["choice"] == choice["index"]]
        message = choice["message"]
        assert message["content"] == "".join(item["text"] for item in mine if item["type"] == "content.delta")
        assert message.get("reasoning_content", "") == "".join(
            item["text"] for item in mine if item["type"] == "reasoning.delta"
        )
        started = [item["index"] for item in mine if item["type"] == "tool_call.start"]
        assert len(started) == len(set(started))
        joined = dict.fromkeys(started, "")
        for item in mine:
            if item["type"] == "tool_call.arguments.delta":
                joined[item["index"]] += item["arguments"]
        kept = [call["function"]["arguments"] for call in message.get("tool_calls", [])]
        if len(started) == len(kept):
            assert [joined[index] for index in sorted(started)] == kept


@settings(max_examples=600, deadline=None)
@given(any_body, options)
def test_tolerances_that_were_not_used_change_nothing(data: bytes, chosen: Any) -> None:
    """With exactly the recorded ones allowed the verdict is the same."""
    first = _run(glmsse, data, [], **chosen)
    second = _run(glmsse, data, [], **{**chosen, "allow": first["verdict"]["tolerated"]})
    for part in ("verdict", "calls", "snapshot", "counts"):
        assert second[part] == first[part]


@settings(max_examples=600, deadline=None)
@given(any_body, options)
def test_tap_and_full_reading_agree(data: bytes, chosen: Any) -> None:
    full = _run(glmsse, data, [], **{**chosen, "deltas": True, "collect": True})
    tap = _run(glmsse, data, [], **{**chosen, "deltas": False, "collect": False})
    assert {**tap["verdict"], "tool_calls": 0} == {**full["verdict"], "tool_calls": 0}
    assert tap["counts"] == full["counts"]
    assert tap["complete"] == full["complete"]
    kinds = ("finish", "usage", "done", "failed")
    assert tap["events"] == [item for item in full["events"] if item["type"] in kinds]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.one_of(events, noise), max_size=4), any_body)
@example([], b"")
def test_prefix_of_a_stream_is_never_accepted_by_the_strict_profile(items: list[bytes], data: bytes) -> None:
    whole = b"".join(items) + data
    for length in range(0, len(whole), 5):
        stream = glmsse.ChatStream()
        stream.feed(whole[:length])
        verdict = stream.close()
        if verdict.accepted:
            assert verdict.done
            assert verdict.missing == ()
        else:
            assert verdict.tool_calls == ()


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), cuttings)
def test_any_bytes_never_raise(data: bytes, cuts: list[int]) -> None:
    for build in BUILDS.values():
        assert _run(build, data, cuts) == _run(glmsse, data, [])


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=60), cuttings)
def test_any_text_passes_unchanged(text: str, cuts: list[int]) -> None:
    made = {
        "choices": [{"delta": {"content": text, "reasoning_content": text}, "finish_reason": "stop"}],
        "usage": USAGE,
    }
    for line in (json.dumps(made), json.dumps(made, ensure_ascii=False)):
        data = f"data: {line}\n\n".encode() + DONE
        for build in BUILDS.values():
            got = _run(build, data, cuts)
            assert got["verdict"]["accepted"]
            message = got["snapshot"]["choices"][0]["message"]
            assert (message["content"], message.get("reasoning_content", "")) == (text, text)
