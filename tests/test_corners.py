"""Places that only unusual input reaches, each with what is right there. Both builds, unless one has no such place."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from conftest import BUILDS
from test_fast_lane import END, START, assert_all_paths_agree, event, outcome_of
from wire import HELLO, body, chunk, codes, content, end, piece, read, tools, types, verdict_of

HIGH = "\ud83d"  # the first half of a pair, which json.dumps spells as an escape


def halved(delta: dict[str, Any], **more: Any) -> bytes:
    """A chunk in ASCII, so that half of a surrogate pair can be sent."""
    return b"data: " + json.dumps(chunk(delta, **more)).encode() + b"\n\n"


# Framer


def test_framer_that_begins_in_the_middle_of_a_block_reads_long_input_line_by_line(glmsse: ModuleType) -> None:
    data = b": note\n\nevent: a\n" + b"x" * 5000 + b"\n\ndata: 1\n\ndata: 2\n\n"
    events = glmsse.SSEFramer().feed(data)
    assert [(e.event, e.data, e.offset) for e in events] == [
        ("message", "1", data.index(b"data: 1")),
        ("message", "2", data.index(b"data: 2")),
    ]


def test_fault_before_the_first_plain_block_of_long_input_has_its_offset(glmsse: ModuleType) -> None:
    data = b": " + b"x" * 5000 + b"\xff\n\ndata: 1\n\ndata: 2\n\n"
    framer = glmsse.SSEFramer()
    with pytest.raises(glmsse.ProtocolError) as caught:
        framer.feed(data)
    assert (caught.value.code, caught.value.offset, caught.value.events) == ("invalid_utf8", 5002, [])


def test_long_input_without_a_whole_block_is_kept(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer()
    assert framer.feed(b"event: a\ndata: " + b"x" * 5000) == []
    assert framer.tail == len("event: a") + len("data: ") + 5000


class Feeding:
    """A stream that feeds from within, which is refused."""

    def __init__(self, framer: Any, verb: str) -> None:
        self._framer, self._verb = framer, verb

    def _receive(self, happened: Any) -> None:
        getattr(self._framer, self._verb)(*([b"x"] if self._verb == "feed" else []))


@pytest.mark.parametrize("verb", ["feed", "reset", "close"])
def test_framer_that_is_called_from_within_lost_its_place(glmsse: ModuleType, verb: str) -> None:
    framer = glmsse.SSEFramer()
    lane = glmsse.framing.ChatLane(glmsse.Limits(), deltas=True, aliases=False, enabled=True)
    with pytest.raises(glmsse.MisuseError, match=f"{verb} was called while the framer was at work"):
        framer._feed_to(b"data: x\n\n", lane, [], Feeding(framer, verb))
    with pytest.raises(glmsse.MisuseError, match="interrupted"):
        framer.feed(b"data: x\n\n")
    framer.reset()
    assert [happened.data for happened in framer.feed(b"data: x\n\n")] == ["x"]


def test_feed_of_a_stream_from_within_is_refused_by_name(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer()
    lane = glmsse.framing.ChatLane(glmsse.Limits(), deltas=True, aliases=False, enabled=True)
    said = []
    again = SimpleNamespace(_receive=lambda _: said.append(framer._feed_to(b"x", lane, [], again)))
    framer._feed_to(b"data: x\n\n", lane, [], again)
    assert [str(error) for error in said] == ["feed was called while the framer was at work: one stream, one thread"]


def test_pure_framer_that_was_interrupted_lost_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    package = BUILDS["pure"]
    framer = package.SSEFramer()
    with monkeypatch.context() as patch:
        patch.setattr(package.SSEFramer, "_read", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            framer.feed(b"data: x\n\n")
    with pytest.raises(package.MisuseError, match="interrupted"):
        framer.feed(b"data: x\n\n")


@pytest.mark.skipif("compiled" not in BUILDS, reason="the extension is not built")
def test_extension_serves_one_copy_of_the_package() -> None:
    extension = BUILDS["compiled"].framing._core
    assert extension.bind(*[object()] * 7) is False
    assert BUILDS["compiled"].SSEFramer().feed(b"data: x\n\n")[0].data == "x"


@pytest.mark.parametrize(
    "empty", [memoryview(b""), memoryview(bytearray(8)).cast("B", (2, 4)), memoryview(b"ab").cast("c")]
)
def test_views_of_any_shape_are_bytes(glmsse: ModuleType, empty: memoryview) -> None:
    assert glmsse.SSEFramer().feed(empty) == []


def test_view_with_a_shape_that_has_a_zero_is_no_bytes(glmsse: ModuleType) -> None:
    empty = memoryview(((ctypes.c_char * 3) * 0)())
    with pytest.raises(TypeError):
        empty.cast("B")
    framer = glmsse.SSEFramer()
    assert framer.feed(empty) == []
    assert framer.feed(b"data: x\n\n")[0].data == "x"


def test_reset_forgets_a_cr_at_the_end(glmsse: ModuleType) -> None:
    framer = glmsse.SSEFramer(glmsse.Limits(max_events=1))
    framer.feed(b"\r")
    framer.reset()
    with pytest.raises(glmsse.LimitError) as caught:
        framer.feed(b"\n\n")
    assert (caught.value.code, caught.value.offset) == ("too_many_events", 1)


# Fast lane


def test_more_texts_than_the_lane_learns_from_are_all_read() -> None:
    parts = b"".join(
        event(f'{{"id":"r","choices":[{{"index":{index},"delta":{{"content":"{word}"}}}}]}}')
        for word in "abc"
        for index in range(9)
    )
    outcome = assert_all_paths_agree(parts, choices=9)
    assert [choice["message"]["content"] for choice in outcome["snapshot"]["choices"]] == ["abc"] * 9


def test_string_that_only_looks_like_one_is_read_as_the_two_it_is() -> None:
    twice = START[: START.index(b"\n\n") + 2].replace(b'"content": "a"', b'"content": "x", "content": "y"')
    outcome = assert_all_paths_agree(START + twice + END)
    assert outcome["verdict"]["code"] == "duplicate_key"


def test_same_text_spelt_in_two_ways_is_no_template() -> None:
    def both(first: str, second: str) -> bytes:
        inner = f'"reasoning":"{first}","reasoning_details":[{{"text":"{second}"}}]'
        return event(f'{{"id":"r-1","choices":[{{"index":0,"delta":{{{inner}}}}}]}}')

    parts = both("A", "A") + both("\\u0042", "B") + both("C", "\\u0043") + both("D", "D")
    outcome = assert_all_paths_agree(parts + END, profile="router")
    assert outcome["snapshot"]["choices"][0]["message"]["reasoning_content"] == "ABCD"


def test_envelope_of_more_than_a_kilobyte_is_no_template() -> None:
    parts = b"".join(
        event(f'{{"id":"r-1","pad":"{"p" * 1100}","choices":[{{"index":0,"delta":{{"content":"{word}"}}}}]}}')
        for word in "abcd"
    )
    outcome = assert_all_paths_agree(parts + END)
    assert outcome["snapshot"]["choices"][0]["message"]["content"] == "abcd"


def test_key_makes_no_template() -> None:
    pure = BUILDS["pure"]
    make = pure.framing.ChatLane.take.__globals__["_make_template"]
    pieces = [pure.assembly.Piece(0, text, None, 0) for text in "ab"]
    assert make('{"a":1}', pieces[0], '{"b":1}', pieces[1]) is None
    assert make('{"x":"a"}', pieces[0], '{"x":"b"}', pieces[1]) is not None


def test_template_hits_are_counted(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    for word in "abcdef":
        stream.feed(event(f'{{"id":"r-1","choices":[{{"index":0,"delta":{{"content":"{word}"}}}}]}}'))
    assert 0 < stream._lane.template_hits <= stream._lane.hits < 6


PAYLOAD = (
    '{"id":"r-1","object":"chat.completion.chunk","n":[1.5e3,-2,true,false,null,{"k":"\\u00e9\\n"}],"choices":[{"index":0,'
    '"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"a"}}]},'
    '"finish_reason":null}],"usage":null}'
)


@pytest.mark.parametrize("ending", ["", "\\", "\\q", "\\u12", "\\u12zz", "-", "1.", "1e", '"'])
def test_payload_cut_anywhere_is_no_json_in_all_ways_to_read_it(ending: str) -> None:
    for at in range(1, len(PAYLOAD), 1 if not ending else 3):
        cut = PAYLOAD[:at] + ending
        outcome = assert_all_paths_agree(START + event(cut) + END)
        assert outcome["verdict"]["code"] == "bad_json", cut


@pytest.mark.parametrize("spelt", ["\\", "\\q", "\\u12", "\\u12zz", "\\ud800x", "\x01", "\\u00e9\\", "a\\x"])
def test_string_that_is_none_is_judged_as_without_the_lane(spelt: str) -> None:
    bad = START[: START.index(b"\n\n") + 2].replace(b'"a"', b'"' + spelt.encode() + b'"')
    code = "lone_surrogate" if "ud800" in spelt else "bad_json"
    assert assert_all_paths_agree(START + bad + END)["verdict"]["code"] == code


def test_byte_before_the_payload_is_not_passed_over() -> None:
    again = START[: START.index(b"\n\n") + 2]
    for before in (b"x", b"{", b'"'):
        pieces = [START, again.replace(b"data: ", b"data: " + before), END]
        cuts = [len(START), len(START) + len(pieces[1])]
        assert assert_all_paths_agree(b"".join(pieces), cuts)["verdict"]["code"] == "bad_json"


def test_escape_at_the_end_of_what_is_decoded_at_once_is_whole() -> None:
    start, stop = START[: START.index(b"\n\n") + 2].split(b'"a"')
    for size in range(246, 260):
        long = b'"' + b"x" * size + b'\\n\\u00e9\\u20ac"'
        outcome = assert_all_paths_agree(START + start + long + stop + END)
        text = outcome["snapshot"]["choices"][0]["message"]["content"]
        assert text == "abc" + "x" * size + "\n\u00e9\u20ac"


def test_envelopes_that_never_come_again_are_all_read() -> None:
    parts = b"".join(
        event(f'{{"id":"r-1","created":{number},"choices":[{{"index":0,"delta":{{"content":"{number},"}}}}]}}')
        for number in range(40)
    )
    outcome = assert_all_paths_agree(parts + END)
    assert outcome["snapshot"]["choices"][0]["message"]["content"] == "".join(f"{number}," for number in range(40))


def test_choice_and_call_with_a_large_index_are_read() -> None:
    parts = [content("a", index=number) for number in (0, 70_000) for _ in range(3)]
    calls = [tools(piece("x", index=70_000, id="c", name="f")) for _ in range(3)]
    data = body(*parts, *calls, done=False)
    outcome, *others = (
        outcome_of(glmsse, [data], fast, limits=glmsse.Limits(max_choices=None), allow=["multi_choice"])
        for glmsse in BUILDS.values()
        for fast in (True, False)
    )
    assert all(other == outcome for other in others)
    choices = outcome["snapshot"]["choices"]
    assert [choice["message"]["content"] for choice in choices] == ["aaa", "aaa"]


def test_other_delta_or_text_is_never_equal(glmsse: ModuleType) -> None:
    made = [glmsse.ContentDelta("a"), glmsse.ReasoningDelta("a"), glmsse.ArgumentsDelta(0, "a")]
    for one in made:
        assert [one == other for other in made].count(True) == 1
        assert one != "a"


# Chunks and assembly


def test_choice_index_is_ignored_by_tolerance(glmsse: ModuleType) -> None:
    data = body(content("a", index=3), content("b", index=1), content("c"), end(index=3))
    for choices in (1, 2):
        _, verdict, stream = read(glmsse, data, allow=["choice_index_ignore"], choices=choices)
        assert verdict.tolerated == ("choice_index_ignore",)
        assert stream.snapshot.choices[0].content == "abc"


def test_empty_part_of_content_is_nothing(glmsse: ModuleType) -> None:
    parts = chunk({"content": [{"type": "text", "text": ""}, {"type": "text", "text": "a"}]})
    events, verdict, _ = read(glmsse, body(parts, end()), allow=["content_parts"])
    assert types(events) == ["content.delta", "usage", "finish", "done"]
    assert verdict.accepted


@pytest.mark.parametrize("deltas", [True, False])
def test_half_of_a_pair_that_waits_at_the_end_is_replaced_by_tolerance(glmsse: ModuleType, deltas: bool) -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a":"' + HIGH}}
    data = b"".join(
        (
            halved({"reasoning_content": "r" + HIGH}),
            halved({"content": "c" + HIGH}),
            halved({"tool_calls": [call]}),
            body(end("tool_calls")),
        )
    )
    events, verdict, stream = read(glmsse, data, allow=["surrogate_replace"], deltas=deltas)
    choice = stream.snapshot.choices[0]
    assert (choice.reasoning_content, choice.content) == ("r\ufffd", "c\ufffd")
    assert choice.tool_calls[0].arguments == '{"a":"\ufffd'
    assert (verdict.code, verdict.tolerated) == ("arguments_not_json", ("surrogate_replace",))
    pieces = [happened.text for happened in events if happened.type in ("reasoning.delta", "content.delta")]
    assert pieces == (["r", "c", "\ufffd", "\ufffd"] if deltas else [])


def test_half_of_a_pair_in_content_with_markup_is_replaced_by_tolerance(glmsse: ModuleType) -> None:
    parser = glmsse.ToolCallParser()
    data = halved({"content": "c" + HIGH}) + body(end())
    _, verdict, _ = read(glmsse, data, content_parser=parser, allow=["surrogate_replace"])
    assert (verdict.accepted, verdict.tolerated) == (True, ("surrogate_replace",))


def test_call_in_content_makes_no_events_without_deltas(glmsse: ModuleType) -> None:
    call = "<tool_call>f<arg_key>a</arg_key><arg_value>b</arg_value></tool_call>"
    parser = glmsse.ToolCallParser()
    events, verdict, _ = read(glmsse, body(content(call), end()), content_parser=parser, deltas=False)
    assert types(events) == ["usage", "finish", "done"]
    assert [call.arguments for call in verdict.tool_calls] == ['{"a":"b"}']


def test_word_with_half_of_a_pair_is_replaced_by_tolerance(glmsse: ModuleType) -> None:
    call = {"index": 0, "id": "c", "type": "function", "function": {"name": "f" + HIGH, "arguments": "{}"}}
    data = halved({"tool_calls": [call]}) + body(end("tool_calls"))
    assert read(glmsse, data)[1].code == "lone_surrogate"
    verdict = read(glmsse, data, allow=["surrogate_replace"])[1]
    assert [call.name for call in verdict.tool_calls] == ["f\ufffd"]


def test_tail_with_a_number_beyond_a_double_is_no_event(glmsse: ModuleType) -> None:
    tail = b'data: {"id":"r-1","choices":[],"usage":{"prompt_tokens":1e999}}'
    assert read(glmsse, body(content("a"), done=False) + tail, allow=["flush_tail"])[1].code == "unterminated_event"


def spliced(glmsse: ModuleType, head: str, marks: int = 1, second: str = '{"id":"r-2"}') -> Any:
    return verdict_of(glmsse, event(head + "data: " * marks + second))


def test_splice_is_looked_for_a_few_times_only(glmsse: ModuleType) -> None:
    assert spliced(glmsse, '{"id":"r-1","x":"', marks=16).code == "spliced_frame"
    assert spliced(glmsse, '{"id":"r-1","x":"', marks=17).code == "bad_json"


@pytest.mark.parametrize("head", ['{"x":"', '{"id":', '{"id":7,"x":"', '{"id":"r-1'])
def test_id_of_the_cut_object_is_none_where_it_is_not_whole(glmsse: ModuleType, head: str) -> None:
    verdict = spliced(glmsse, head)
    assert verdict.code == "spliced_frame"
    assert verdict.error.id_digests[0] is None
    assert len(verdict.error.id_digests[1]) == 16


# Stream


def test_bytes_after_the_end_must_be_contiguous_as_before_it(glmsse: ModuleType) -> None:
    stream = glmsse.ChatStream()
    stream.feed(HELLO)
    with pytest.raises(glmsse.MisuseError):
        stream.feed(memoryview(b"abcd")[::2])
    assert stream.bytes_seen == len(HELLO)
    assert stream.feed(memoryview(b"abcd")) == []
    assert stream.bytes_seen == len(HELLO) + 4


def test_number_that_cannot_be_written_has_a_digest_all_the_same(glmsse: ModuleType) -> None:
    digests = set()
    for number in (10**5000, 10**5000 + 1):
        stream = glmsse.ChatStream(digest=True, allow=["done_optional"])
        stream.add({"choices": [], "usage": None, "x": number})
        digests.add(stream.close().digest)
    assert len(digests) == 1


def test_equal_snapshots_have_equal_hashes(glmsse: ModuleType) -> None:
    first, second = (read(glmsse, HELLO)[2].snapshot for _ in range(2))
    assert (first, hash(first)) == (second, hash(second))
    assert hash(first) != hash(read(glmsse, body(content("Bye"), end()))[2].snapshot)


def test_error_takes_no_fact_that_it_has_no_name_for(glmsse: ModuleType) -> None:
    with pytest.raises(TypeError, match="ProtocolError has no limit, tail"):
        glmsse.ProtocolError("bad_json", tail=1, limit="x")


# Raw text


def parsed(glmsse: ModuleType, text: str, most: int, start: str = "content") -> tuple[list[str], list[str]]:
    parser = glmsse.ToolCallParser(start=start, limits=glmsse.Limits(max_argument_bytes=most))
    events = parser.feed(text) + parser.close("stop")
    return codes(events), [name for name, _ in parser.flags]


def test_payload_too_large_in_reasoning_ends_the_reply(glmsse: ModuleType) -> None:
    text = '<tool_call>{"name":"f","arguments":{"a":1}}</think>'
    assert parsed(glmsse, text, 5, "reasoning")[0] == ["argument_too_large"]


def test_reply_that_failed_has_no_further_flags(glmsse: ModuleType) -> None:
    text = "<tool_call>xxxxxxxxxxx</arg_key><arg_key><|tool_call><arg_key><parameter=a>xxxxxxxxxxx"
    faults, flags = parsed(glmsse, text, 5)
    assert faults == ["argument_too_large"]
    assert parsed(glmsse, text + "<tool_call><arg_key>", 5) == (faults, flags)


def test_function_that_ended_says_nothing_of_the_next_call(glmsse: ModuleType) -> None:
    call = "<tool_call><function=f><parameter=a>x</parameter></function></tool_call>"
    parser = glmsse.ToolCallParser()
    events = parser.feed(call + call) + parser.close()
    assert [happened.arguments for happened in events if happened.type == "tool_call.arguments.delta"] == [
        '{"a":"x"}'
    ] * 2
    assert list(parser.flags) == []


def test_second_cap_that_is_passed_changes_nothing(glmsse: ModuleType) -> None:
    reply = glmsse.ToolCallParser()._reply
    reply.fail("max_argument_bytes", 1)
    reply.fail("max_content_bytes", 1)
    reply.flag("malformed", None)
    assert codes(reply.take()) == ["argument_too_large"]


# Around the core


class Bare:
    """A source that can be read, and nothing else."""

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    def __iter__(self) -> Bare:
        return self

    def __next__(self) -> bytes:
        if not self._pieces:
            raise StopIteration
        return self._pieces.pop(0)

    def __aiter__(self) -> Bare:
        return self

    async def __anext__(self) -> bytes:
        if not self._pieces:
            raise StopAsyncIteration
        return self._pieces.pop(0)


def test_source_that_has_no_close_is_read(glmsse: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = glmsse.ChatStream()
    assert types(glmsse.iter_events(Bare(HELLO), stream))[-1] == "done"
    assert stream.verdict.accepted

    async def read_it() -> list[Any]:
        return [happened async for happened in glmsse.aiter_events(Bare(HELLO), glmsse.ChatStream())]

    assert types(asyncio.run(read_it()))[-1] == "done"
    monkeypatch.setattr(Bare, "close", lambda self: None, raising=False)  # one that is not awaited
    assert types(asyncio.run(read_it()))[-1] == "done"


def test_timer_of_older_interpreters_breaks_a_read_off(glmsse: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython 3.10 has no asyncio.timeout."""
    reads = import_module(f"{glmsse.__name__}._async_reads")
    monkeypatch.setattr(reads, "_timer", reads._Timer)

    class Late(Exception):
        pass

    async def source(seconds: float, error: type[Exception] | None = None) -> Any:
        await asyncio.sleep(seconds)
        if error:
            raise error
        yield b"x"

    async def cancelled() -> str:
        task = asyncio.ensure_future(reads.next_within(source(30), 30, Late))
        await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            return "cancelled"
        return "not"

    async def on_time() -> bytes:
        data = await reads.next_within(source(0), 0.02, Late)
        await asyncio.sleep(0.04)  # the deadline of a read that is over cancels nothing
        return data

    assert asyncio.run(on_time()) == b"x"
    with pytest.raises(Late):
        asyncio.run(reads.next_within(source(30), 0.01, Late))
    assert asyncio.run(reads.next_within(source(0), 30, Late)) == b"x"
    with pytest.raises(TimeoutError):
        asyncio.run(reads.next_within(source(0, TimeoutError), 30, Late))
    assert asyncio.run(cancelled()) == "cancelled"

    said = []

    def outside_of_a_task() -> None:
        try:
            reads.next_within(source(0), 30, Late).send(None)
        except RuntimeError as error:
            said.append(str(error))

    loop = asyncio.new_event_loop()
    loop.call_soon(outside_of_a_task)
    loop.call_soon(loop.stop)
    loop.run_forever()
    loop.close()
    assert said == ["a deadline needs a running task"]


def test_loop_of_links_that_is_left_as_it_is_lies_nowhere(
    glmsse: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What `Path.resolve` does with a loop since CPython 3.13."""
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    monkeypatch.setattr(Path, "resolve", lambda self, strict=False: Path(os.path.abspath(self)))
    policy = glmsse.path_within("path", tmp_path)
    verdict = verdict_of(glmsse, tools(piece('{"path":"loop"}', id="c", name="f", type="function")), end("tool_calls"))
    gate = glmsse.ToolGate([glmsse.ToolRule("f", needs_approval=False, policies=[policy])])
    assert [refused.code for refused in gate.review(verdict, stream_id="s")] == ["policy"]


def test_extension_of_another_package_or_copy_is_not_used(glmsse: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    package = import_module(glmsse.__name__)  # whose attribute the copy under test looks at as well
    own = f"{package.__name__}._framer"

    def extension(module: str) -> SimpleNamespace:
        return SimpleNamespace(SSEFramer=type("SSEFramer", (), {"__module__": module}), bind=lambda *handed_over: False)

    monkeypatch.setenv("GLMSSE_PURE_PYTHON", "0")
    for module, reason in ((f"acme.{own}", "for another package name"), (own, "another copy of this package")):
        monkeypatch.setattr(package, "_framer", extension(module), raising=False)
        core, why = glmsse.framing._choose()
        assert core.SSEFramer.__module__.endswith("._framer_py")
        assert reason in why
