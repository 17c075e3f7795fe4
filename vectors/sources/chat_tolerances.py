"""Sources of chat.jsonl: Each tolerance with and without, and what none may do."""

from __future__ import annotations

from typing import Any

from wire import HELLO, USAGE, chunk, content, end, event, piece, tools

from .chat_build import CALL_0, TOLERANCE, TOOL_END, F, i, n, raw, y


def vectors() -> list[dict[str, Any]]:
    """Each tolerance: the stream, the code without it, and what the verdict shows with it."""
    hi = content("Hi")
    tool = {"finish_reason": "tool_calls"}
    made: list[dict[str, Any]] = []

    def pair(name: str, code: str | None, *parts: Any, done: bool = True, **claim: Any) -> None:
        settings = {key: claim.pop(key) for key in ("start",) if key in claim}
        made.append(
            y(
                f"tolerance_{name}",
                TOLERANCE,
                *parts,
                done=done,
                allow=[name],
                **settings,
                **{"tolerated": [name], **claim},
            )
        )
        if code is None:
            made.append(y(f"without_{name}", TOLERANCE, *parts, done=done, **settings, reasoning=""))
        else:
            made.append(n(f"without_{name}", TOLERANCE, code, *parts, done=done, **settings))
            made.append(
                n(
                    f"denied_{name}",
                    "deny wins over allow",
                    code,
                    *parts,
                    done=done,
                    allow=[name],
                    deny=[name],
                    **settings,
                )
            )

    pair("reasoning_alias", None, chunk({"reasoning": "Hm"}), end(), reasoning="Hm")
    pair(
        "args_empty_as_object",
        "arguments_empty",
        tools(piece(" ", id="c1", name="f")),
        TOOL_END,
        calls=[("c1", "f", "{}")],
        **tool,
    )
    pair("usage_optional", "incomplete_stream", hi, end(usage=None), missing=["usage"])
    pair(
        "id_keep_first",
        "stable_conflict",
        CALL_0,
        tools(piece(" ", id="c2", name="f")),
        TOOL_END,
        calls=[("c1", "f", '{"a":1} ')],
        **tool,
    )
    pair(
        "content_parts",
        "unexpected_shape",
        content([{"type": "thinking", "thinking": "Hm"}, {"type": "text", "text": "Hi"}]),
        end(),
        content="Hi",
        reasoning="Hm",
    )
    pair(
        "id_synthesize",
        "tool_id_missing",
        tools(piece("{}", index=2, name="f")),
        TOOL_END,
        calls=[("local-2", "f", "{}")],
        **tool,
    )
    pair("stop_with_tools", "tools_without_tool_finish", CALL_0, end("stop"), calls=[F], **tool)
    pair("done_optional", "incomplete_stream", hi, end(), done=False, missing=["done"])
    pair("flush_tail", "unterminated_event", HELLO[:-1], done=False, content="Hello")
    pair(
        "index_by_id",
        "stable_conflict",
        tools(piece('{"a":', index=None, id="c1", name="f")),
        tools(piece("{}", index=None, id="c2", name="g")),
        tools(piece("1}", index=None, id="c1")),
        TOOL_END,
        calls=[F, ("c2", "g", "{}")],
        **tool,
    )
    pair(
        "index_reuse_split",
        "stable_conflict",
        CALL_0,
        tools(piece("{", id="c2", name="g")),
        tools(piece("}")),
        TOOL_END,
        calls=[F, ("c2", "g", "{}")],
        **tool,
    )
    pair("response_id_unstable", "response_id_changed", hi, {**end(), "id": "r-2"})
    pair("finish_null_string", "delta_after_finish", content("Hi", finish="null"), content("!"), end(), content="Hi!")
    pair("finish_aliases", "finish_end_turn", hi, end("end_turn"))
    pair("ignore_non_object_events", "event_not_object", hi, event('"ping"'), end())
    pair("ignore_comment_data", "bad_json", hi, event(" : ping {"), end())
    pair(
        "name_concat",
        "stable_conflict",
        tools(piece(id="c1", name="get_")),
        tools(piece("{}", name="time")),
        TOOL_END,
        calls=[("c1", "get_time", "{}")],
        **tool,
    )
    pair(
        "args_object_serialize",
        "arguments_type",
        tools(piece({"b": [1, "\u00e9"], "a": {}}, id="c1", name="f")),
        TOOL_END,
        calls=[("c1", "f", '{"b":[1,"\u00e9"],"a":{}}')],
        **tool,
    )
    pair(
        "args_leading_empty_object",
        "arguments_not_json",
        tools(piece("{}", id="c1", name="f")),
        tools(piece('{"a":')),
        tools(piece("1}")),
        TOOL_END,
        calls=[F],
        **tool,
    )
    pair(
        "args_any_json",
        "arguments_not_object",
        tools(piece("[1]", id="c1", name="f")),
        TOOL_END,
        calls=[("c1", "f", "[1]")],
        **tool,
    )
    pair("split_adjacent_json_lines", "bad_json", b"data: " + event(hi)[6:-1] + event(end()), content="Hi")
    pair("dup_keys_last", "duplicate_key", raw('"delta":{"content":"no","content":"Hi"}'), end(), content="Hi")
    pair(
        "nonfinite_ok", "json_nonfinite", raw('"delta":{"content":"Hi"},"x":[NaN,-Infinity,1e999]'), end(), content="Hi"
    )
    pair("surrogate_replace", "lone_surrogate", raw('"delta":{"content":"a\\ud800b"}'), end(), content="a\ufffdb")
    pair("finish_keep_tool_calls", "finish_conflict", CALL_0, TOOL_END, end("stop"), calls=[F], **tool)
    pair("finish_advisory", "delta_after_finish", hi, end(), content("!"), content="Hi!")
    pair("multi_choice", "unexpected_choice", hi, content("b", index=3), end(), end(index=3, usage=None))
    pair("choice_index_ignore", "unexpected_choice", hi, content("!", index=3), end(index=9), content="Hi!")
    pair(
        "legacy_function_call",
        "legacy_function_call",
        chunk({"function_call": {"name": "f", "arguments": '{"a"'}}),
        chunk({"function_call": {"arguments": ":1}"}}),
        end("function_call"),
        calls=[("legacy-0", "f", '{"a":1}')],
        **tool,
    )
    pair(
        "message_as_delta",
        "message_not_delta",
        {"choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}], "usage": USAGE},
        content="Hi",
    )
    pair("content_type_optional", "content_type", hi, end(), start={"status": 200, "headers": {}}, content="Hi")

    made += [
        n(
            "never_arguments_repaired",
            "no tolerance repairs arguments",
            "arguments_not_json",
            tools(piece('{"a":', id="c1", name="f")),
            TOOL_END,
            profile="gateway",
            calls=[],
        ),
        n(
            "never_bad_json_skipped",
            "no tolerance goes on after bad JSON",
            "bad_json",
            hi,
            b"data: {\n\n",
            end(),
            profile="gateway",
            at=1,
        ),
        n(
            "never_two_documents_split",
            "no tolerance splits arguments",
            "arguments_not_json",
            tools(piece("{}{}", id="c1", name="f")),
            TOOL_END,
            profile="gateway",
        ),
        n(
            "never_length_accepted",
            "no tolerance maps a bad reason to stop",
            "finish_length",
            hi,
            end("length"),
            profile="gateway",
        ),
        n(
            "never_error_hidden",
            "no tolerance hides an error",
            "provider_error",
            hi,
            {"error": {}},
            end(),
            profile="gateway",
            at=1,
        ),
        n(
            "flush_tail_of_a_cut_object",
            "flush_tail takes a whole object or the sentinel only",
            "unterminated_event",
            hi,
            end(),
            b'data: {"a"',
            done=False,
            profile="gateway",
        ),
        n(
            "content_type_optional_wrong_type",
            "a wrong media type never passes",
            "content_type",
            hi,
            end(),
            allow=["content_type_optional"],
            start={"status": 200, "headers": {"content-type": "text/html"}},
        ),
    ]
    for profile in ("router", "hosted", "gateway"):
        made.append(
            i(
                y(
                    f"profile_{profile}_needs_nothing",
                    "a profile leaves a strict stream alone",
                    HELLO,
                    done=False,
                    profile=profile,
                    content="Hello",
                )
            )
        )
    made.append(
        i(
            y(
                "profile_router_alias",
                "what a profile turns on",
                chunk({"reasoning": "Hm"}),
                end(),
                profile="router",
                reasoning="Hm",
                tolerated=["reasoning_alias"],
            )
        )
    )
    made.append(
        i(
            y(
                "profile_hosted_usage",
                "what a profile turns on",
                hi,
                end(usage=None),
                profile="hosted",
                missing=["usage"],
                tolerated=["usage_optional"],
            )
        )
    )
    made.append(
        i(
            y(
                "profile_gateway_done",
                "what a profile turns on",
                hi,
                end(),
                done=False,
                profile="gateway",
                missing=["done"],
                tolerated=["done_optional"],
            )
        )
    )
    made.append(
        i(
            n(
                "profile_router_usage",
                "what a profile leaves off",
                "incomplete_stream",
                hi,
                end(usage=None),
                profile="router",
                missing=["usage"],
            )
        )
    )
    made.append(
        i(
            n(
                "profile_hosted_done",
                "what a profile leaves off",
                "incomplete_stream",
                hi,
                end(),
                done=False,
                profile="hosted",
                missing=["done"],
            )
        )
    )
    return made
