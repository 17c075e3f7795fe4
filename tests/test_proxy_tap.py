"""The tap of the proxy: which bytes go on, for every scenario and every cutting."""

from __future__ import annotations

import pytest

from glmsse import ChatStream, Limits
from glmsse.proxy.errors import openai_event
from glmsse.proxy.tap import Tap
from glmsse.scenarios import DONE, FAILING, MEASURED, SCENARIOS, body, finish, frame, text, tool_piece, uneven_pieces


def through(
    data: bytes, size: int | None = None, *, limits: Limits | None = None, **options: bool
) -> tuple[bytes, Tap]:
    tap = Tap(ChatStream(limits=limits, deltas=False, collect=False), openai_event, **options)
    pieces = uneven_pieces(data) if size is None else (data[at : at + size] for at in range(0, len(data), size))
    out = b"".join([*map(tap.feed, pieces), tap.finish()])
    return out, tap


@pytest.mark.parametrize("scenario", MEASURED, ids=lambda scenario: scenario.name)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10**6, None])
def test_an_accepted_stream_passes_byte_for_byte(scenario: object, size: int | None) -> None:
    data: bytes = scenario.body  # type: ignore[attr-defined]

    out, tap = through(data, size)

    assert out == data
    assert tap.verdict.accepted


@pytest.mark.parametrize("scenario", FAILING, ids=lambda scenario: scenario.name)
def test_what_passes_of_a_failing_stream_does_not_depend_on_the_cutting(scenario: object) -> None:
    data: bytes = scenario.body  # type: ignore[attr-defined]
    limits: Limits = scenario.limits  # type: ignore[attr-defined]

    outs = {through(data, size, limits=limits)[0] for size in (1, 2, 3, 5, 64, 1000, 10**6)}

    assert len(outs) == 1


@pytest.mark.parametrize("blank", [b"\n\n", b"\n\n\n", b"\r\n\r\n", b"\r\n\r\n\n\r\n", b"\r\r", b"\r\n\n\r"])
@pytest.mark.parametrize("bad", [b"data: {", b"data: \xff", b'data: {"error":{"code":"1302"}}'])
def test_of_blank_lines_before_a_fault_the_same_pass_at_every_cut(blank: bytes, bad: bytes) -> None:
    data = blank + b"".join(frame(text(word)).rstrip() + blank for word in "ab") + bad + blank

    outs = {through(data, size)[0] for size in (*range(1, len(data)), 10**6)}

    assert len(outs) == 1
    assert outs.pop().startswith(data.partition(bad)[0])


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("comment", [False, True])
def test_an_accepted_stream_passes_at_every_cut_whatever_its_line_ends(end: bytes, comment: bool) -> None:
    data = body([text("Hi"), finish("stop", 16)]).replace(b"\n", end)

    outs = {through(data, size, comment=comment)[0] for size in (*range(1, len(data)), 10**6)}

    assert len(outs) == 1
    assert comment or outs == {data}


CUT = ("length", "sensitive", "network_error")


@pytest.mark.parametrize("scenario", FAILING, ids=lambda scenario: scenario.name)
def test_a_failing_stream_ends_with_an_error_event_behind_whole_events_of_it(scenario: object) -> None:
    name, data, limits = scenario.name, scenario.body, scenario.limits  # type: ignore[attr-defined]

    out, tap = through(data, limits=limits)

    if name in CUT:  # the finish reason says it, in the provider's own words
        assert out == data
        return
    error = openai_event(tap.verdict)
    assert out.endswith(error)
    passed = out.removesuffix(error)
    assert data.startswith(passed)
    assert passed == b"" or passed.endswith(b"\n\n")
    assert DONE not in out
    again = ChatStream()
    again.feed(out)
    assert again.close().outcome == "provider_error"


def test_the_event_at_fault_is_withheld_and_all_before_it_passes() -> None:
    good = frame(text("Ready"))
    bad = b'data: {"choices":[}\n\n'

    out, tap = through(good + bad + frame(text("late")) + DONE)

    assert tap.verdict.code == "bad_json"
    assert out == good + openai_event(tap.verdict)


def test_a_framing_fault_withholds_the_whole_pending_event() -> None:
    good = frame(text("Ready"))
    pending = b"data: {}\ndata: " + b"x" * 3000

    out, tap = through(good + pending, limits=Limits(max_event_bytes=2048))

    assert tap.verdict.code == "event_too_large"
    assert out == good + openai_event(tap.verdict)


def test_bad_utf8_is_withheld() -> None:
    good = frame(text("Ready"))

    out, tap = through(good + b": \xff\n\n" + DONE)

    assert tap.verdict.code == "invalid_utf8"
    assert out == good + openai_event(tap.verdict)


@pytest.mark.parametrize("line_end", [b"\r\n", b"\r", b"\n"])
@pytest.mark.parametrize("size", [1, 2, 3, 11, 10**6])
def test_any_line_ends_pass_byte_for_byte(line_end: bytes, size: int) -> None:
    data = SCENARIOS["text"].body.replace(b"\n", line_end)

    out, tap = through(data, size)

    assert tap.verdict.accepted
    # Behind the sentinel's blank line nothing is waited for, not even the other half of its last line end.
    assert out in (data, data.removesuffix(b"\n"))


def test_a_providers_error_event_passes_before_ours() -> None:
    data = SCENARIOS["provider_error"].body
    theirs = data.removesuffix(DONE)

    out, tap = through(data)

    assert out == theirs + openai_event(tap.verdict)


def test_calls_that_may_not_run_have_no_sentinel() -> None:
    events = body([tool_piece('{"city":', call_id="call_1", name="look"), finish("tool_calls", 23)], done=False)

    out, tap = through(events + DONE)

    assert tap.verdict.code == "arguments_not_json"
    assert out == events + openai_event(tap.verdict)


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_nothing_passes_behind_the_sentinel(size: int) -> None:
    data = SCENARIOS["text"].body

    assert through(data + frame(text("[DONE]")) + DONE, size)[0] == data


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_the_comment_stands_before_the_sentinel_and_changes_no_event(size: int) -> None:
    data = body([text("data: [DONE]"), finish("stop", 23)])

    out, _ = through(data, size, comment=True)

    comment = b": glmsse outcome=accepted code=- replay=pointless\n\n"
    assert out == data.removesuffix(DONE) + comment + DONE


@pytest.mark.parametrize("name", SCENARIOS)
def test_observing_changes_nothing(name: str) -> None:
    scenario = SCENARIOS[name]

    out, tap = through(scenario.body + b"more", limits=scenario.limits, withhold=False)

    assert out == scenario.body + b"more"
    assert tap.verdict.accepted == (scenario in MEASURED)


def test_a_deadline_ends_with_an_error_event() -> None:
    tap = Tap(ChatStream(deltas=False, collect=False), openai_event)
    passed = tap.feed(frame(text("Ready")) + b'data: {"cho')

    assert passed == frame(text("Ready"))
    assert b"deadline_idle" in tap.finish("deadline_idle")
    assert tap.feed(b"more") == b""


def test_holding_is_linear_in_one_byte_pieces() -> None:
    data = b": " + b"x" * 200_000 + b"\n\n"
    tap = Tap(ChatStream(deltas=False, collect=False), openai_event)

    out = b"".join(tap.feed(data[at : at + 1]) for at in range(len(data)))

    assert out == data
