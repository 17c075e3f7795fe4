"""Any legal events, written and read again: nothing is lost, nothing injected, and the grammar holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from encoding import encode, encoder_for, merged, read
from glmsse.encode import write_comment, write_event
from messages_grammar import Message, check

# A build is the same for every example, so the fixture need not be made anew.
in_each_build = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

TEXT = st.text(
    st.one_of(
        st.sampled_from('\r\n\0\u2028\u2029\x85\x0b\x0c\x1c\ufeff\u200b\u202e:😀 \t"\\{}'),
        st.characters(exclude_categories=("Cs",)),
    ),
    min_size=1,
    max_size=12,
)
LINE = TEXT.filter(lambda text: not set(text) & set("\r\n\0"))
JSON_OBJECT = st.dictionaries(
    TEXT,
    st.recursive(
        st.none() | st.booleans() | st.integers(-(10**9), 10**9) | TEXT,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=4,
)


@st.composite
def arguments(draw: Callable[..., Any]) -> str:
    """The JSON text of an object, compact or not, escaped or raw."""
    made = draw(JSON_OBJECT)
    text = json.dumps(made, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 1])))
    return draw(st.sampled_from(["", " ", "\n\t"])) + text


@st.composite
def pieces(draw: Callable[..., Any], text: str) -> list[str]:
    cuts = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=6)))
    return [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True) if text[start:end]]


@st.composite
def chunk_orders(draw: Callable[..., Any], *, choices: int = 1) -> tuple[list[dict[str, Any]], int]:
    """The deltas of a whole stream in any order that keeps each text and each call in its own order."""
    tracks: list[list[tuple[int, dict[str, Any]]]] = []
    finishes = []
    for choice in range(choices):
        for name in ("content", "reasoning_content"):
            tracks.append([(choice, {name: piece}) for piece in draw(st.lists(TEXT, max_size=4))])
        calls = draw(st.lists(arguments(), max_size=3))
        for index, text in enumerate(calls):
            track = [(choice, _piece(index, "", f"call_{choice}_{index}", draw(LINE)))]
            track += [(choice, _piece(index, piece)) for piece in draw(pieces(text))]
            tracks.append(track)
        finishes.append("tool_calls" if calls else "stop")
    order = draw(st.permutations([number for number, track in enumerate(tracks) for _ in track]))
    deltas = [tracks[number].pop(0) for number in order]
    chunks = [_chunk(choice, delta) for choice, delta in deltas]
    chunks += [_chunk(choice, {}, reason) for choice, reason in enumerate(finishes)]
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    return [*chunks, {"id": "r", "choices": [], "usage": usage}], choices


def _piece(index: int, text: str, call_id: str | None = None, name: str | None = None) -> dict[str, Any]:
    piece = {"index": index, "id": call_id, "function": {"name": name, "arguments": text}}
    return {"tool_calls": [piece]}


def _chunk(choice: int, delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    return {"id": "r", "choices": [{"index": choice, "delta": delta, "finish_reason": reason}]}


def _body(chunks: list[dict[str, Any]]) -> bytes:
    return b"".join(write_event(json.dumps(chunk)) for chunk in chunks) + write_event("[DONE]")


@in_each_build
@given(st.lists(st.tuples(st.none() | LINE, st.none() | LINE | st.just(""), TEXT | st.just(""), st.booleans())))
def test_the_framer_reads_back_what_was_written(
    glmsse: ModuleType, written: list[tuple[str | None, str | None, str, bool]]
) -> None:
    data = b""
    expected = []
    last_id = ""
    for event, event_id, text, comment in written:
        if comment:
            data += write_comment(text)
        last_id = last_id if event_id is None else event_id
        data += write_event(text, event=event, id=event_id)
        normal = text.replace("\r\n", "\n").replace("\r", "\n")
        expected.append((event or "message", normal, last_id))
    framer = glmsse.SSEFramer()
    assert [(event.event, event.data, event.id) for event in framer.feed(data)] == expected
    assert framer.tail == 0


@in_each_build
@given(st.one_of(chunk_orders(), chunk_orders(choices=3)), st.booleans())
def test_openai_chunks_are_read_back_as_the_same_stream(
    glmsse: ModuleType, case: tuple[list[dict[str, Any]], int], one_by_one: bool
) -> None:
    chunks, choices = case
    events, verdict, snapshot = read(glmsse, _body(chunks), choices=choices)
    assert verdict.accepted
    data = encode(encoder_for(glmsse, "openai"), events, verdict, one_by_one=one_by_one)
    again, verdict_again, snapshot_again = read(glmsse, data, choices=choices)
    assert verdict_again.accepted
    assert verdict_again.tool_calls == verdict.tool_calls
    assert snapshot_again.choices == snapshot.choices
    assert snapshot_again.usage == snapshot.usage
    for choice in range(choices):
        mine, theirs = (merged(e for e in seen if e.choice == choice) for seen in (events, again))
        assert _by_track(theirs) == _by_track(mine)


def _by_track(events: list[dict[str, Any]]) -> dict[tuple[Any, ...], str]:
    tracks: dict[tuple[Any, ...], str] = {}
    for event in events:
        key = (event["type"], event.get("index"), event.get("id"), event.get("name"), event.get("reason"))
        tracks[key] = tracks.get(key, "") + event.get("text", "") + event.get("arguments", "")
    return tracks


@in_each_build
@given(chunk_orders(), st.booleans(), st.booleans())
def test_anthropic_streams_keep_the_grammar_and_all_text(
    glmsse: ModuleType, case: tuple[list[dict[str, Any]], int], one_by_one: bool, drop_blank_text: bool
) -> None:
    events, verdict, snapshot = read(glmsse, _body(case[0]))
    assert verdict.accepted
    encoder = encoder_for(glmsse, "anthropic", drop_blank_text=drop_blank_text)
    message = check(encode(encoder, events, verdict, one_by_one=one_by_one))
    assert message.stop_reason == ("tool_use" if verdict.tool_calls else "end_turn")
    assert_all_shown(message, snapshot.choices[0], drop_blank_text)


def assert_all_shown(message: Message, choice: Any, drop_blank_text: bool) -> None:
    content = message.joined("text")
    if drop_blank_text:
        assert not any(block.type == "text" and block.text.isspace() for block in message.blocks)
        assert "".join(content.split()) == "".join(choice.content.split())
    else:
        assert content == choice.content
    assert message.joined("thinking") == choice.reasoning_content
    assert sorted(message.calls) == sorted((call.id, call.name, call.arguments) for call in choice.tool_calls)


@in_each_build
@given(chunk_orders(), st.integers(0, 40), st.sampled_from(["cut", "error", "length", "sensitive", "network_error"]))
def test_streams_that_fail_anywhere_never_look_finished(
    glmsse: ModuleType, case: tuple[list[dict[str, Any]], int], at: int, how: str
) -> None:
    chunks = case[0][:-2][:at]
    if how == "error":
        chunks.append({"error": {"code": "1302"}})
    elif how != "cut":
        chunks += [_chunk(0, {}, how), case[0][-1]]
    body = _body(chunks)
    events, verdict, _ = read(glmsse, body[: -len("data: [DONE]\n\n")] if how == "cut" else body)
    assert not verdict.accepted
    message = check(encode(encoder_for(glmsse, "anthropic"), events, verdict))
    data = encode(encoder_for(glmsse, "openai"), events, verdict)
    _, again, _ = read(glmsse, data)
    if how in ("length", "sensitive"):
        assert message.stop_reason in ("max_tokens", "refusal")
        assert (again.outcome, again.code) == (verdict.outcome, verdict.code)
    else:
        assert message.error is not None
        assert message.stop_reason is None
        assert again.provider_code == verdict.code
        assert b"data: [DONE]\n" not in data


@in_each_build
@given(st.data())
def test_calls_that_end_early_and_go_on_are_whole(glmsse: ModuleType, data: st.DataObject) -> None:
    """The events of GLM-4.5, whose calls end and may go on: each call's text is still exact."""
    calls = data.draw(st.lists(arguments(), min_size=1, max_size=4))
    tracks = []
    for index, text in enumerate(calls):
        track: list[Any] = [glmsse.ToolCallStart(index, f"c{index}", "add")]
        for piece in data.draw(pieces(text)):
            track.append(glmsse.ArgumentsDelta(index, piece))
            if data.draw(st.booleans()):
                track.append(glmsse.ToolCallEnd(index))
        tracks.append([*track, glmsse.ToolCallEnd(index)])
    order = data.draw(st.permutations([number for number, track in enumerate(tracks) for _ in track]))
    events = [tracks[number].pop(0) for number in order]
    made = tuple(glmsse.ToolCall(index, f"c{index}", "add", text) for index, text in enumerate(calls))
    verdict = glmsse.Verdict("accepted", tool_calls=made, finish_reason="tool_calls")
    finish = glmsse.Finish("tool_calls")
    for judged in (verdict, None):
        message = check(encode(encoder_for(glmsse, "anthropic"), [*events, finish], judged))
        assert sorted(message.calls) == sorted((call.id, call.name, call.arguments) for call in made)
