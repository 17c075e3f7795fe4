"""Limits: what they take, and each cap of the chat layer at its value and one beyond."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import pytest

from wire import DONE, body, chunk, content, end, event, piece, read, reasoning, tools, types

DEFAULTS = {
    "max_event_bytes": 1048576,
    "max_event_lines": 4096,
    "max_stream_bytes": 268435456,
    "max_events": 1000000,
    "max_content_bytes": 16777216,
    "max_reasoning_bytes": 16777216,
    "max_tool_calls": 64,
    "max_argument_bytes": 1048576,
    "max_choices": 16,
    "max_json_depth": 64,
    "max_number_chars": 64,
}
HARD = {"max_json_depth": 256, "max_number_chars": 4000}


def test_defaults_are_the_pinned_ones(glmsse: Any) -> None:
    assert dataclasses.asdict(glmsse.Limits()) == DEFAULTS


@pytest.mark.parametrize("name", DEFAULTS)
@pytest.mark.parametrize(
    "value", [0, -1, True, False, 1.0, "5", b"5", [], 10**30 * 1.0, float("nan"), float("inf")], ids=repr
)
def test_value_that_is_no_positive_int_is_misuse(glmsse: Any, name: str, value: Any) -> None:
    with pytest.raises(glmsse.MisuseError, match=name):
        glmsse.Limits(**{name: value})


@pytest.mark.parametrize("name", DEFAULTS)
def test_int_subclass_is_misuse(glmsse: Any, name: str) -> None:
    class Odd(int):
        pass

    with pytest.raises(glmsse.MisuseError):
        glmsse.Limits(**{name: Odd(5)})


@pytest.mark.parametrize("name", DEFAULTS)
def test_none_is_unlimited_but_for_the_json_caps(glmsse: Any, name: str) -> None:
    if name in HARD:
        with pytest.raises(glmsse.MisuseError, match=name):
            glmsse.Limits(**{name: None})
    else:
        assert getattr(glmsse.Limits(**{name: None}), name) is None


@pytest.mark.parametrize("name", [name for name in DEFAULTS if name not in HARD])
@pytest.mark.parametrize("value", [1, 2**31, 2**63 - 1, 2**63, 2**64, 10**30])
def test_any_positive_int_is_taken_however_large(glmsse: Any, name: str, value: int) -> None:
    limits = glmsse.Limits(**{name: value})
    assert getattr(limits, name) == value
    stream = glmsse.ChatStream(limits=limits)
    stream.feed(body(content("a"), end()))
    assert stream.close() is not None


@pytest.mark.parametrize(("name", "most"), HARD.items())
def test_json_caps_have_a_highest_value(glmsse: Any, name: str, most: int) -> None:
    assert getattr(glmsse.Limits(**{name: most}), name) == most
    with pytest.raises(glmsse.MisuseError, match=str(most)):
        glmsse.Limits(**{name: most + 1})


def test_limits_take_names_only(glmsse: Any) -> None:
    with pytest.raises(TypeError):
        glmsse.Limits(5)
    with pytest.raises(TypeError):
        glmsse.Limits(max_nothing=5)


def test_limits_are_immutable_values(glmsse: Any) -> None:
    limits = glmsse.Limits(max_events=5)
    with pytest.raises(AttributeError):
        limits.max_events = 6
    assert limits == glmsse.Limits(max_events=5) != glmsse.Limits()
    assert hash(limits) == hash(glmsse.Limits(max_events=5))
    assert limits.__reduce_ex__(4)
    assert dataclasses.replace(limits, max_events=None).max_events is None


def test_replacing_a_field_checks_it_again(glmsse: Any) -> None:
    with pytest.raises(glmsse.MisuseError):
        dataclasses.replace(glmsse.Limits(), max_events=0)


# Each cap, at its value and one beyond


def _cap(glmsse: Any, name: str, value: int, *parts: Any, **options: Any) -> tuple[Any, list[Any]]:
    events, verdict, _ = read(glmsse, body(*parts, end("stop")), limits=glmsse.Limits(**{name: value}), **options)
    return verdict, events


@pytest.mark.parametrize("collect", [True, False])
@pytest.mark.parametrize(
    ("name", "code", "make"),
    [("max_content_bytes", "content_too_large", content), ("max_reasoning_bytes", "reasoning_too_large", reasoning)],
)
@pytest.mark.parametrize(
    "pieces", [["abcd"], ["ab", "cd"], ["é€"[:1], "ab"], ["a", "b", "c", "d"], ["\U0001f600"], ["\ud83d", "\ude00"]]
)
def test_text_is_capped_in_decoded_bytes(
    glmsse: Any, name: str, code: str, make: Any, pieces: list[str], collect: bool
) -> None:
    """All of these are four bytes of UTF-8."""

    def sent(text: str) -> bytes:
        return event(make("@")).replace(
            b"@",
            text.encode("utf-16-le", "surrogatepass")
            .decode("utf-16-le", "surrogatepass")
            .encode("ascii", "backslashreplace")
            .replace(b"\\x", b"\\u00")
            .replace(b"\\U0001f600", b"\\ud83d\\ude00"),
        )

    parts = [sent(text) for text in pieces]

    assert _cap(glmsse, name, 4, *parts, collect=collect)[0].accepted
    verdict, events = _cap(glmsse, name, 3, *parts, collect=collect)
    assert (verdict.outcome, verdict.code) == ("limit_exceeded", code)
    assert (verdict.error.limit, verdict.error.maximum, verdict.error.seen) == (name, 3, 4)
    assert types(events)[-1] == "failed"
    assert _cap(glmsse, name, 4, *parts, sent("x"))[0].code == code


def test_text_is_capped_per_choice(glmsse: Any) -> None:
    parts = [content("abcd"), content("abcd", index=1), end(index=1, usage=None)]
    assert _cap(glmsse, "max_content_bytes", 4, *parts, choices=2)[0].accepted
    assert (
        _cap(glmsse, "max_content_bytes", 4, *parts[:1], content("abcde", index=1), choices=2)[0].code
        == "content_too_large"
    )


def test_content_and_reasoning_have_buffers_of_their_own(glmsse: Any) -> None:
    limits = glmsse.Limits(max_content_bytes=4, max_reasoning_bytes=4, max_argument_bytes=4)
    parts = [reasoning("abcd"), content("abcd"), tools(piece("{  }", id="c", name="f")), end("tool_calls")]
    assert read(glmsse, body(*parts), limits=limits)[1].accepted


@pytest.mark.parametrize(
    "options", [{}, {"collect": False}, {"deltas": False}, {"deltas": False, "collect": False}], ids=str
)
def test_arguments_are_capped_per_call(glmsse: Any, options: Any) -> None:
    def judged(*pieces: Any) -> Any:
        data = body(*(tools(item) for item in pieces), end("tool_calls"))
        return read(glmsse, data, limits=glmsse.Limits(max_argument_bytes=4), **options)[1]

    first, second = piece("{", id="c1", name="f"), piece("{  }", index=1, id="c2", name="g")
    assert judged(first, second, piece(" }")).accepted
    assert judged(first, second, piece(" } ")).accepted
    verdict = judged(first, second, piece(" } "), piece(" "))
    assert (verdict.code, verdict.error.limit, verdict.error.maximum, verdict.error.seen) == (
        "argument_too_large",
        "max_argument_bytes",
        4,
        5,
    )


def test_piece_beyond_a_cap_adds_nothing(glmsse: Any) -> None:
    _, _, stream = read(glmsse, body(content("abc"), content("de")), limits=glmsse.Limits(max_content_bytes=4))
    assert stream.snapshot.choices[0].content == "abc"


@pytest.mark.parametrize("together", [True, False])
def test_calls_are_capped_per_choice(glmsse: Any, together: bool) -> None:
    def judged(count: int, **more: Any) -> Any:
        pieces = [piece("{}", index=7 * index, id=f"c{index}", name="f") for index in range(count)]
        parts = [tools(*pieces, **more)] if together else [tools(item, **more) for item in pieces]
        return read(glmsse, body(*parts, end("tool_calls")), limits=glmsse.Limits(max_tool_calls=3), choices=2)

    events, verdict, stream = judged(3)
    assert verdict.code == "incomplete_stream"  # the second choice never came
    assert len(stream.snapshot.choices[0].tool_calls) == 3
    events, verdict, stream = judged(4)
    assert (verdict.code, verdict.error.limit, verdict.error.maximum, verdict.error.seen) == (
        "too_many_tool_calls",
        "max_tool_calls",
        3,
        4,
    )
    assert len(stream.snapshot.choices[0].tool_calls) == 3
    assert types(events)[-1] == "failed"


def test_default_takes_64_calls_and_not_65(glmsse: Any) -> None:
    def judged(count: int) -> Any:
        return read(
            glmsse, body(*(tools(piece("{}", index=i, id=f"c{i}", name="f")) for i in range(count)), end("tool_calls"))
        )[1]

    assert len(judged(64).tool_calls) == 64
    assert judged(65).code == "too_many_tool_calls"


def test_tool_index_may_be_any_size_and_costs_nothing(glmsse: Any) -> None:
    parts = [tools(piece("{}", index=(2**61 - 1) * step, id=f"c{step}", name="f")) for step in range(8)]
    verdict = read(glmsse, body(*parts, end("tool_calls")))[1]
    assert [call.index for call in verdict.tool_calls] == [(2**61 - 1) * step for step in range(8)]


def test_choices_beyond_the_cap_can_neither_be_promised_nor_taken(glmsse: Any) -> None:
    limits = glmsse.Limits(max_choices=2)
    assert len(glmsse.ChatStream(choices=2, limits=limits).snapshot.choices) == 2
    with pytest.raises(glmsse.MisuseError):
        glmsse.ChatStream(choices=3, limits=limits)
    verdict = read(glmsse, body(content("c", index=2)), limits=limits, allow=["multi_choice"])[1]
    assert (verdict.code, verdict.error.limit, verdict.error.maximum, verdict.error.seen) == (
        "too_many_choices",
        "max_choices",
        2,
        3,
    )


@pytest.mark.parametrize("extra", [b"\n", b": ping\n\n", b"event: x\n\n", b"data: {}\n\n", b"data:\n\n"])
def test_every_blank_line_counts_into_max_events(glmsse: Any, extra: bytes) -> None:
    data = body(content("Hi"), extra, end())
    assert read(glmsse, data, limits=glmsse.Limits(max_events=4))[1].accepted
    verdict = read(glmsse, data, limits=glmsse.Limits(max_events=3))[1]
    assert (verdict.code, verdict.error.limit, verdict.error.maximum, verdict.error.seen) == (
        "too_many_events",
        "max_events",
        3,
        4,
    )


def test_added_chunks_count_into_max_events(glmsse: Any) -> None:
    stream = glmsse.ChatStream(limits=glmsse.Limits(max_events=2), allow=["done_optional"])
    assert types(stream.add(content("a"))) == ["content.delta"]
    assert types(stream.add(content("b"))) == ["content.delta"]
    assert types(stream.add(content("c"))) == ["failed"]
    assert stream.verdict.code == "too_many_events"


def test_stream_is_capped_in_bytes_of_the_body(glmsse: Any) -> None:
    data = body(content("Hi"), end())
    assert read(glmsse, data, limits=glmsse.Limits(max_stream_bytes=len(data)))[1].accepted
    verdict = read(glmsse, data, limits=glmsse.Limits(max_stream_bytes=len(data) - 1))[1]
    assert (verdict.code, verdict.error.limit, verdict.error.maximum) == (
        "stream_too_large",
        "max_stream_bytes",
        len(data) - 1,
    )
    assert verdict.error.offset == len(data) - 1


def test_bytes_after_the_sentinel_do_not_count_into_any_cap(glmsse: Any) -> None:
    data = body(content("Hi"), end())
    limits = glmsse.Limits(max_stream_bytes=len(data), max_events=3, max_event_bytes=200, max_event_lines=1)
    together = read(glmsse, data + DONE * 5 + b"x" * 500, limits=limits)[1]
    assert together.accepted


def test_unlimited_means_unlimited(glmsse: Any) -> None:
    limits = glmsse.Limits(**{name: None for name in DEFAULTS if name not in HARD})
    big = [content("x" * 20_000_000), *(tools(piece("{}", index=i, id=f"c{i}", name="f")) for i in range(100))]
    verdict = read(glmsse, body(*big, end("tool_calls")), limits=limits)[1]
    assert (verdict.accepted, len(verdict.tool_calls)) == (True, 100)


def test_limits_survive_pickling(glmsse: Any) -> None:
    import glmsse as importable

    limits = importable.Limits(max_events=5)
    assert pickle.loads(pickle.dumps(limits)) == limits


def test_cap_of_one_is_kept_exactly(glmsse: Any) -> None:
    verdict = read(glmsse, body(content("a"), content("b")), limits=glmsse.Limits(max_content_bytes=1))[1]
    assert verdict.code == "content_too_large"
    assert read(glmsse, body(chunk({"content": "a"}), end()), limits=glmsse.Limits(max_content_bytes=1))[1].accepted
