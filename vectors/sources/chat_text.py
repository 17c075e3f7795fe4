"""Sources of chat.jsonl: Answers of text, the sentinel, and how a stream ends."""

from __future__ import annotations

from typing import Any

from wire import CALL, DONE, HELLO, USAGE, chunk, content, end, event, piece, reasoning

from .chat_build import (
    CALL_0,
    CUT,
    EVIDENCE,
    FIELDS,
    FINISH,
    ORDER,
    SENTINEL,
    STRICT,
    TEXT,
    TOOL_END,
    USAGE_RULE,
    n,
    raw,
    y,
)


def _text() -> list[dict[str, Any]]:
    hi = content("Hi")
    return [
        y("hello", TEXT, HELLO, done=False, content="Hello", types=["content.delta", "usage", "finish", "done"]),
        y("reasoning_then_content", TEXT, reasoning("Hm"), hi, end(), reasoning="Hm", content="Hi"),
        y(
            "content_around_reasoning",
            "no order of deltas may be assumed",
            content("\n"),
            reasoning("Hm"),
            hi,
            end(),
            reasoning="Hm",
            content="\nHi",
        ),
        y(
            "both_in_one_delta",
            ORDER,
            chunk({"content": "Hi", "reasoning_content": "Hm"}),
            end(),
            types=["reasoning.delta", "content.delta", "usage", "finish", "done"],
        ),
        y(
            "everything_in_one_chunk",
            ORDER,
            chunk(
                {"content": "Hi", "reasoning_content": "Hm", "tool_calls": [piece("{}", id="c", name="f")]},
                finish="tool_calls",
                usage=USAGE,
            ),
            finish_reason="tool_calls",
            types=[
                "usage",
                "reasoning.delta",
                "content.delta",
                "tool_call.start",
                "tool_call.arguments.delta",
                "tool_call.end",
                "finish",
                "done",
            ],
        ),
        y(
            "empty_pieces",
            TEXT,
            content(""),
            reasoning(""),
            content(None),
            chunk({}),
            chunk(None),
            end(),
            content="",
            types=["usage", "finish", "done"],
        ),
        y("empty_answer", "an empty answer is for the application to judge", end(), content=""),
        y(
            "reasoning_only",
            "an empty answer is for the application to judge",
            reasoning("Hm"),
            end(),
            content="",
            reasoning="Hm",
        ),
        y(
            "roles_repeat",
            "roles are not read",
            chunk({"role": "assistant", "content": "a"}),
            chunk({"role": "tool", "content": "b"}),
            end(),
            content="ab",
        ),
        y("many_pieces", TEXT, *[content(c) for c in "streaming"], end(), content="streaming"),
        y("equal_pieces", "equal pieces are pieces all the same", *[content("ha")] * 4, end(), content="hahahaha"),
        y("escapes_in_pieces", TEXT, raw('"delta":{"content":"\\u0048\\n\\"\\\\\\/"}'), end(), content='H\n"\\/'),
        y(
            "line_separators_in_content",
            "str.splitlines ends lines where an event stream does not",
            content("\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e"),
            end(),
            content="\u2028\u2029\x85\x0b\x0c\x1c\x1d\x1e",
        ),
        y(
            "raw_line_separators",
            "the same as raw UTF-8, not escaped",
            raw('"delta":{"content":"a\u2028b\u2029c\x85d\x7f"}'),
            end(),
            content="a\u2028b\u2029c\x85d\x7f",
        ),
        y(
            "nul_in_content",
            "an escaped NUL is a character",
            raw('"delta":{"content":"a\\u0000b"}'),
            end(),
            content="a\x00b",
        ),
        y(
            "emoji",
            "characters may be cut anywhere",
            content("\U0001f600\u20ac\u00e9"),
            end(),
            content="\U0001f600\u20ac\u00e9",
        ),
        y("bom_first", "a byte order mark before the first line is dropped", b"\xef\xbb\xbf", hi, end(), content="Hi"),
        n("bom_in_the_payload", STRICT, "bad_json", "data: \ufeff{}\n\n".encode(), at=0),
        y(
            "crlf_and_cr",
            "any line end will do",
            event(hi).replace(b"\n", b"\r\n"),
            event(end()).replace(b"\n", b"\r"),
            content="Hi",
        ),
        y("comments_between", "comments are not events", b": ping\n\n", hi, b":\n\n: x\n\n", end(), content="Hi"),
        y(
            "object_over_lines",
            "data lines are joined before they are parsed",
            b'data: {"choices":[{"delta":\ndata: {"content":"Hi"}}]}\n\n',
            end(),
            content="Hi",
        ),
        y("blank_payloads", "a blank payload is ignored", b"data:\n\ndata:  \n\ndata\n\n", hi, end(), content="Hi"),
        y(
            "objects_of_nothing",
            "an object without choices, usage and error is ignored",
            {},
            {"id": "x"},
            {"choices": []},
            {"choices": None, "usage": None},
            hi,
            end(),
            content="Hi",
        ),
        y(
            "event_names",
            "an event name other than error changes nothing",
            event(hi, "chunk"),
            event(end(), "Error"),
            content="Hi",
        ),
        y(
            "unknown_fields",
            FIELDS,
            {**hi, "object": 5, "created": "x", "model": [], "web_search": {}, "x_groq": None},
            end(),
            content="Hi",
        ),
        y(
            "alias_not_read",
            "reasoning is not read unless asked",
            chunk({"reasoning": "Hm", "content": "Hi"}),
            end(),
            content="Hi",
            reasoning="",
        ),
        y(
            "details_never_read",
            "reasoning_details repeat the text",
            chunk({"reasoning_content": "Hm", "reasoning": "Hm", "reasoning_details": [{"text": "Hm"}]}),
            end(),
            profile="gateway",
            reasoning="Hm",
        ),
        y(
            "digest",
            "the digest is over the events, not over the bytes",
            hi,
            end(),
            options={"digest": True},
            content="Hi",
        ),
        y(
            "tap",
            "without events and text the verdict is the same",
            hi,
            end(),
            options={"deltas": False, "collect": False},
            content="",
            types=["usage", "finish", "done"],
        ),
        n("unterminated", EVIDENCE, "unterminated_event", hi, b"data: {", done=False, at=-1, content="Hi"),
        n(
            "done_without_blank_line",
            "the sentinel counts when its event is dispatched",
            "unterminated_event",
            hi,
            end(),
            b"data: [DONE]\n",
            done=False,
            at=-1,
            finish_reason="stop",
        ),
        n(
            "done_without_line_end",
            "the sentinel counts when its event is dispatched",
            "unterminated_event",
            hi,
            end(),
            b"data: [DONE]",
            done=False,
            at=-1,
        ),
        n("nothing", EVIDENCE, "empty_stream", done=False, at=-1),
        n("comments_only", EVIDENCE, "empty_stream", b": a\n\n: b\n\n", done=False, at=-1),
        n("ignored_only", EVIDENCE, "empty_stream", {}, b"data:\n\n", done=False, at=-1),
    ]


def _sentinel() -> list[dict[str, Any]]:
    hi = content("Hi")
    good = (hi, end())
    made = [
        y(f"sentinel_{name}", SENTINEL, *good, sent, done=False, content="Hi")
        for name, sent in {
            "plain": DONE,
            "without_space": b"data:[DONE]\n\n",
            "blanks": b"data:  [DONE]\t \n\n",
            "over_lines": b"data:\ndata: [DONE]\ndata:\n\n",
            "event_name": b"event: done\ndata: [DONE]\n\n",
            "twice": DONE + DONE,
            "then_text": DONE + event(hi),
            "then_bad_json": DONE + b"data: {\n\n",
            "then_bad_utf8": DONE + b"\xff\xff\n\n",
            "then_an_error": DONE + event({"error": {"code": "1302"}}),
            "then_a_tail": DONE + b"data: {",
            "then_another_response": DONE + event(content("x", id="r-2")),
        }.items()
    ]
    for name, sent in {
        "in_quotes": b'data: "[DONE]"\n\n',
        "lower_case": b"data: [done]\n\n",
        "blank_inside": b"data: [ DONE ]\n\n",
        "no_break_space": b"data: \xc2\xa0[DONE]\n\n",
        "form_feed": b"data: [DONE]\x0c\n\n",
        "nul": b"data: [DONE]\x00\n\n",
        "text_behind": b"data: [DONE] {}\n\n",
        "text_before": b"data: {}[DONE]\n\n",
        "twice_on_a_line": b"data: [DONE][DONE]\n\n",
        "two_lines": b"data: [DONE]\ndata: [DONE]\n\n",
    }.items():
        code = "event_not_object" if name == "in_quotes" else "bad_json"
        made.append(n(f"sentinel_{name}", SENTINEL, code, *good, sent, done=False, at=2))
    made += [
        n(
            "sentinel_as_event_name",
            SENTINEL,
            "incomplete_stream",
            *good,
            b"event: [DONE]\ndata:\n\n",
            done=False,
            at=-1,
            missing=["done"],
        ),
        n(
            "sentinel_as_comment",
            SENTINEL,
            "incomplete_stream",
            *good,
            b": [DONE]\n\n",
            done=False,
            at=-1,
            missing=["done"],
        ),
        n("sentinel_alone", EVIDENCE, "incomplete_stream", missing=["finish_reason", "usage"]),
        n(
            "sentinel_first",
            SENTINEL,
            "incomplete_stream",
            DONE,
            hi,
            end(),
            missing=["finish_reason", "usage"],
            content="",
        ),
        n(
            "sentinel_without_finish",
            EVIDENCE,
            "incomplete_stream",
            hi,
            {"choices": [], "usage": USAGE},
            missing=["finish_reason"],
        ),
        n(
            "sentinel_without_usage",
            EVIDENCE,
            "incomplete_stream",
            hi,
            end(usage=None),
            missing=["usage"],
            finish_reason="stop",
        ),
        n(
            "finish_without_sentinel",
            EVIDENCE,
            "incomplete_stream",
            hi,
            end(),
            done=False,
            at=-1,
            missing=["done"],
            replay="ambiguous",
        ),
        n(
            "cut_after_content",
            CUT,
            "incomplete_stream",
            hi,
            done=False,
            at=-1,
            missing=["done", "finish_reason", "usage"],
        ),
    ]
    for at in (1, 10, 40, len(CALL) - 15, len(CALL) - 14, len(CALL) - 1):
        code = "incomplete_stream" if CALL[:at].endswith(b"\n\n") else "unterminated_event"
        made.append(n(f"cut_call_at_{at}", CUT, code, CALL[:at], done=False, at=-1, calls=[], replay="ambiguous"))
    for code in ("deadline_first_byte", "deadline_idle", "deadline_total", "cancelled"):
        made.append(
            n(
                f"close_{code}",
                "the reader says why it gave up",
                code,
                hi,
                done=False,
                close=code,
                at=-1,
                outcome="incomplete",
                stage="connection_close",
            )
        )
        made.append(
            y(f"close_{code}_after_done", "after [DONE] the way it ended changes nothing", hi, end(), close=code)
        )
        made.append(
            n(
                f"close_{code}_after_a_fault",
                "the first fault decides",
                "bad_json",
                hi,
                b"data: {\n\n",
                done=False,
                close=code,
                at=1,
            )
        )
    made += [
        n(
            "close_error",
            "a connection that broke leaves the code to the evidence",
            "incomplete_stream",
            hi,
            end(),
            done=False,
            close="error",
            at=-1,
        ),
        n(
            "close_error_in_an_event",
            "a connection that broke leaves the code to the evidence",
            "unterminated_event",
            hi,
            b"data",
            done=False,
            close="error",
            at=-1,
        ),
        n(
            "close_error_is_no_clean_end",
            "done_optional and flush_tail need a clean end",
            "incomplete_stream",
            hi,
            end(),
            done=False,
            close="error",
            profile="gateway",
            missing=["done"],
        ),
        n(
            "close_error_keeps_the_tail",
            "done_optional and flush_tail need a clean end",
            "unterminated_event",
            HELLO[:-1],
            done=False,
            close="error",
            profile="gateway",
        ),
    ]
    return made


def _ends() -> list[dict[str, Any]]:
    hi = content("Hi")
    made = [
        y(
            "finish_repeats",
            FINISH,
            hi,
            end(),
            end(),
            content="Hi",
            types=["content.delta", "usage", "finish", "usage", "done"],
        ),
        y("finish_then_null", "null does not clear a reason", hi, end(), chunk({}), content="Hi"),
        y(
            "finish_then_usage",
            "usage may come after the finish reason",
            hi,
            end(usage=None),
            {"choices": [], "usage": USAGE},
            content="Hi",
        ),
        y(
            "finish_with_text",
            "text beside the reason comes before it",
            content("Hi", finish="stop", usage=USAGE),
            content="Hi",
        ),
        y("finish_empty", "an empty reason is absent", content("Hi", finish=""), end(), content="Hi"),
        n("finish_conflict", FINISH, "finish_conflict", hi, end(), end("length"), at=2, finish_reason="stop"),
        n("finish_conflict_stop_after_tools", FINISH, "finish_conflict", CALL_0, TOOL_END, end("stop"), at=2),
        n("finish_then_content", FINISH, "delta_after_finish", hi, end(), hi, at=2, content="Hi"),
        n("finish_then_reasoning", FINISH, "delta_after_finish", hi, end(), reasoning("Hm"), at=2),
        n("finish_tools_then_content", FINISH, "delta_after_finish", CALL_0, TOOL_END, hi, at=2),
        y("finish_then_empty_content", "an empty piece is nothing", hi, end(), content(""), content="Hi"),
    ]
    for reason in ("length", "sensitive", "content_filter", "model_context_window_exceeded"):
        made.append(
            n(
                f"finish_{reason}",
                "the reason says that the answer is cut or withheld",
                f"finish_{reason}",
                hi,
                end(reason),
                finish_reason=reason,
                replay="pointless",
                stage="generation",
            )
        )
    for reason in (
        "network_error",
        "insufficient_system_resource",
        "error",
        "abort",
        "function_call",
        "end_turn",
        "x" * 40,
    ):
        made.append(
            n(
                f"finish_{reason}",
                "every reason but stop and tool_calls is no acceptance",
                f"finish_{reason}",
                hi,
                end(reason),
                finish_reason=reason,
                replay="ambiguous",
                stage="generation",
            )
        )
    for name, reason in {
        "upper": "STOP",
        "blank": " stop",
        "digit": "stop1",
        "long": "a" * 41,
        "escape": "\x1b[0m",
        "newline": "stop\n",
        "non_ascii": "st\u00f6p",
    }.items():
        made.append(
            n(
                f"finish_other_{name}",
                "a code never carries text of the stream",
                "finish_other",
                hi,
                end(reason),
                finish_reason=reason,
            )
        )
    made.append(n("finish_none", EVIDENCE, "incomplete_stream", hi, end(None), missing=["finish_reason"]))

    def usage(**members: Any) -> dict[str, Any]:
        return {"choices": [], "usage": {**USAGE, **members}}

    made += [
        y(
            "usage_last_wins",
            USAGE_RULE,
            hi,
            usage(prompt_tokens=1),
            usage(prompt_tokens=7),
            end(usage=None),
            usage=[7, 5, 15, None],
        ),
        y(
            "usage_sums_not_checked",
            USAGE_RULE,
            hi,
            end(usage={"prompt_tokens": 1, "completion_tokens": 0, "total_tokens": 99}),
            usage=[1, 0, 99, None],
        ),
        y("usage_zeros", USAGE_RULE, hi, end(usage=dict.fromkeys(USAGE, 0)), usage=[0, 0, 0, None]),
        y("usage_big", USAGE_RULE, hi, end(usage=dict.fromkeys(USAGE, 2**53 + 1)), usage=[2**53 + 1] * 3 + [None]),
        y(
            "usage_cached_in_details",
            USAGE_RULE,
            hi,
            end(usage={**USAGE, "prompt_tokens_details": {"cached_tokens": 4}, "cached_tokens": 9}),
            usage=[10, 5, 15, 4],
        ),
        y(
            "usage_cached_flat",
            USAGE_RULE,
            hi,
            end(usage={**USAGE, "prompt_tokens_details": None, "cached_tokens": 4}),
            usage=[10, 5, 15, 4],
        ),
        y(
            "usage_cached_hit_tokens",
            USAGE_RULE,
            hi,
            end(usage={**USAGE, "prompt_cache_hit_tokens": 4}),
            usage=[10, 5, 15, 4],
        ),
        y(
            "usage_odd_extras",
            "what is not read is never judged",
            hi,
            end(usage={**USAGE, "cost": 0.5, "completion_tokens_details": "x"}),
            usage=[10, 5, 15, None],
        ),
        y("usage_before_everything", USAGE_RULE, usage(), hi, end(usage=None), usage=[10, 5, 15, None]),
    ]
    for name, value in {"true": True, "fraction": 10.0, "negative": -1, "text": "10", "null": None, "list": []}.items():
        made.append(
            n(
                f"usage_{name}",
                "a usage whose totals are no integers from 0 up is none",
                "incomplete_stream",
                hi,
                end(usage={**USAGE, "prompt_tokens": value}),
                missing=["usage"],
            )
        )
    made.append(
        n(
            "usage_one_missing",
            "a usage whose totals are no integers from 0 up is none",
            "incomplete_stream",
            hi,
            end(usage={"prompt_tokens": 1, "completion_tokens": 1}),
            missing=["usage"],
        )
    )
    made.append(
        n(
            "usage_empty",
            "a usage whose totals are no integers from 0 up is none",
            "incomplete_stream",
            hi,
            end(usage={}),
            missing=["usage"],
        )
    )
    return made


def vectors() -> list[dict[str, Any]]:
    return [*_text(), *_sentinel(), *_ends()]
