"""Sources of framing.jsonl: event-stream bytes and, by hand, the data of their events or the fault and its offset.

`fill.py` also holds every one of them against tests/framing_model.py, which shares no code with the package.
"""

from __future__ import annotations

from typing import Any

LF, CR, CRLF = b"\n", b"\r", b"\r\n"
BOM = b"\xef\xbb\xbf"


def y(name: str, reason: str, body: bytes, *data: str, **more: Any) -> dict[str, Any]:
    """Read to its end; `data` of each event, and where given names, ids and retry times."""
    claim = {key: more.pop(key) for key in ("names", "ids", "retries") if key in more}
    return _vector("y_" + name, reason, body, {"data": list(data), **claim}, more)


def n(name: str, reason: str, body: bytes, code: str, offset: int, *data: str, **more: Any) -> dict[str, Any]:
    """A fault at the offset, behind the events with this data."""
    return _vector("n_" + name, reason, body, {"code": code, "offset": offset, "data": list(data)}, more)


def tail(name: str, reason: str, body: bytes, size: int, *data: str, **more: Any) -> dict[str, Any]:
    """An event without its blank line at the end, of which `size` bytes came."""
    claim = {"code": "unterminated_event", "offset": len(body), "tail": size, "data": list(data)}
    return _vector("n_" + name, reason, body, claim, more)


def i(vector: dict[str, Any]) -> dict[str, Any]:
    """The same, where readers differ."""
    return {**vector, "name": "i_" + vector["name"][2:]}


def _vector(name: str, reason: str, body: bytes, claim: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "layer": "framing", "reason": reason, **more, "body": body, "claim": claim}


LINE_ENDS = "a line ends at LF, CR or CRLF, in any mix, wherever the bytes are cut"
SPLITLINES = "str.splitlines ends lines at ten characters, an event stream at LF and CR only"
FIELDS = "the field name is what stands before the first colon, compared byte for byte"
SPACE = "one space behind the colon is removed, never more, and nothing else"
COMMENTS = "a line that begins with a colon is a comment"
EMPTY = "an event without a data line is not dispatched"
BOM_RULE = "one byte order mark at offset 0 is dropped, also when it is cut"
NUL_RULE = "an id with NUL is ignored; elsewhere NUL is a character as any other"
ID_RULE = "the id persists until another one comes"
RETRY = "retry is 1 to 17 ASCII digits, anything else is ignored; it persists"
END = "what has no blank line at the end is not dispatched"
UTF8 = "UTF-8 is strict: the fault is at the first byte that cannot belong to a character"
UTF8_LINE = "the line at fault is judged when it ends, in ignored lines too"
CAP = "a cap trips at the first byte beyond it, and every line counts"
ORDER = "of two faults the one that is known at the earlier byte decides"
REPLACE = "errors=replace reads as browsers do: U+FFFD for each part that cannot belong to a character"


def _line_ends() -> list[dict[str, Any]]:
    made = []
    for name, end in (("lf", LF), ("cr", CR), ("crlf", CRLF)):
        made.append(y(f"end_{name}", LINE_ENDS, b"data: a" + end + b"data: b" + end + end, "a\nb"))
        for other, second in (("lf", LF), ("cr", CR), ("crlf", CRLF)):
            # CR, then LF, is one line end: there is no blank line yet.
            if (end, second) == (CR, LF):
                made.append(tail("end_cr_then_lf_is_one", LINE_ENDS, b"data: a\r\n", 7))
                continue
            body = b"data: a" + end + second + b"data: b" + second + end
            if (second, end) == (CR, LF):
                made.append(tail("end_lf_then_cr_lf_leaves_a_tail", LINE_ENDS, body, 7, "a"))
                continue
            made.append(y(f"end_{name}_then_{other}", LINE_ENDS, body, "a", "b"))
    made += [
        y("end_crlf_crlf_crlf", LINE_ENDS, b"data: a\r\n\r\n\r\n\r\ndata: b\r\n\r\n", "a", "b"),
        y("end_cr_cr_lf", LINE_ENDS, b"data: a\r\r\ndata: b\r\r\n", "a", "b"),
        y("end_lf_crlf_between_fields", LINE_ENDS, b"event: x\ndata: a\r\ndata: b\r\n\n", "a\nb", names=["x"]),
        y("end_only_blank_lines", EMPTY, b"\n\r\n\r\n\n"),
        y("end_nothing_at_all", EMPTY, b""),
        y("end_lf_first", LINE_ENDS, b"\ndata: a\n\n", "a"),
        y("end_cr_first_then_lf", LINE_ENDS, b"\r\ndata: a\n\n", "a"),
        y("end_cr_in_a_comment", "a comment ends at a lone CR, so what follows is a field", b": c\rdata: a\n\n", "a"),
        y("end_cr_in_an_unknown_field", "a field ends at a lone CR", b"foo: c\rdata: a\n\n", "a"),
        y("end_newline_in_an_ignored_field", "no line end hides in an ignored field", b"x:\r\ny:\ndata: a\n\n", "a"),
        y("end_cr_in_an_event_name", "a name ends at a lone CR", b"event: a\rdata: b\n\n", "b", names=["a"]),
        y("end_escaped_newline", "backslash n is no line end", b"data: a\\ndata: b\n\n", "a\\ndata: b"),
    ]
    for name, char in (
        ("vertical_tab", "\x0b"),
        ("form_feed", "\x0c"),
        ("file_separator", "\x1c"),
        ("group_separator", "\x1d"),
        ("record_separator", "\x1e"),
        ("next_line", "\x85"),
        ("line_separator", "\u2028"),
        ("paragraph_separator", "\u2029"),
    ):
        text = f"a{char}data: b"
        made.append(y(f"splitlines_{name}_in_data", SPLITLINES, f"data: {text}\n\n".encode(), text))
        made.append(y(f"splitlines_{name}_in_a_comment", SPLITLINES, f": c{char}data: a\ndata: b\n\n".encode(), "b"))
        made.append(
            y(f"splitlines_{name}_is_no_blank_line", SPLITLINES, f"data: a\n{char}\ndata: b\n\n".encode(), "a\nb")
        )
    made.append(y("splitlines_unit_separator_in_data", SPLITLINES, b"data: a\x1fb\n\n", "a\x1fb"))
    made.append(y("splitlines_line_feed_ends", SPLITLINES, b"data: a\ndata: b\n\n", "a\nb"))
    made.append(y("splitlines_carriage_return_ends", SPLITLINES, b"data: a\rdata: b\r\r", "a\nb"))
    return made


def _fields() -> list[dict[str, Any]]:
    return [
        y("field_data_without_space", SPACE, b"data:a\n\n", "a"),
        y("field_data_two_spaces", SPACE, b"data:  a\n\n", " a"),
        y("field_data_tab", SPACE, b"data:\ta\n\n", "\ta"),
        y("field_data_no_break_space", SPACE, b"data:\xc2\xa0a\n\n", "\u00a0a"),
        y("field_data_trailing_space", SPACE, b"data: a \n\n", "a "),
        y("field_data_only_space", SPACE, b"data: \n\n", ""),
        y("field_data_only_two_spaces", SPACE, b"data:  \n\n", " "),
        y("field_data_without_colon", "a line without colon is a field with an empty value", b"data\n\n", ""),
        y("field_data_without_colon_twice", "empty data lines are joined with LF", b"data\ndata\n\n", "\n"),
        y("field_data_empty_then_text", "empty data lines are joined with LF", b"data:\ndata: a\n\n", "\na"),
        y("field_data_text_then_empty", "empty data lines are joined with LF", b"data: a\ndata:\n\n", "a\n"),
        y("field_data_with_colons", FIELDS, b"data: a:b:c\n\n", "a:b:c"),
        y("field_data_colon_only", FIELDS, b"data::\n\n", ":"),
        y(
            "field_data_apart",
            "data lines are joined in order, other fields between",
            b"data: a\nid: 1\n:\ndata: b\n\n",
            "a\nb",
        ),
        y("field_name_leading_space", FIELDS, b" data: a\ndata: b\n\n", "b"),
        y("field_name_trailing_space", FIELDS, b"data : a\ndata: b\n\n", "b"),
        y("field_name_trailing_tab", FIELDS, b"data\t: a\ndata: b\n\n", "b"),
        y("field_name_upper", FIELDS, b"DATA: a\nData: b\ndata: c\n\n", "c"),
        y("field_name_longer", FIELDS, b"datax: a\ndata: b\n\n", "b"),
        y("field_name_shorter", FIELDS, b"dat: a\nd: b\ndata: c\n\n", "c"),
        y("field_name_twice", FIELDS, b"datadata: a\ndata: b\n\n", "b"),
        y("field_name_with_nul", FIELDS, b"data\x00: a\n\x00data: b\ndata: c\n\n", "c"),
        y("field_name_wide_letters", FIELDS, "\uff44ata: a\ndata: b\n\n".encode(), "b"),
        y("field_name_long_s", FIELDS, "re\u017fry: 1\ndata: b\n\n".encode(), "b"),
        y("field_name_kelvin_sign", FIELDS, "\u212aey: a\ndata: b\n\n".encode(), "b"),
        y("field_name_dotless_i", FIELDS, "\u0131d: a\ndata: b\n\n".encode(), "b", ids=[""]),
        y(
            "field_name_by_regex",
            "no character of a name has a meaning of its own",
            b"da.a: a\n.*: b\ndata: c\n\n",
            "c",
        ),
        y("field_unknown_ignored", "unknown fields are ignored", b"foo: a\nbar\ndata: b\n\n", "b"),
        y("field_unknown_long", "unknown fields are ignored", b"x" * 99 + b": a\ndata: b\n\n", "b"),
        y("field_brace_line", "a line of JSON without data: is an unknown field", b'{"a":1}\ndata: b\n\n', "b"),
        y("event_name", "the name of an event is its event field", b"event: a\ndata: b\n\n", "b", names=["a"]),
        y(
            "event_name_last_wins",
            "the last event field of a block counts",
            b"event: a\nevent: b\ndata: c\n\n",
            "c",
            names=["b"],
        ),
        y(
            "event_name_emptied",
            "an empty name is the default",
            b"event: a\nevent\ndata: c\n\n",
            "c",
            names=["message"],
        ),
        y(
            "event_name_does_not_persist",
            "a name is for one event",
            b"event: a\ndata: b\n\ndata: c\n\n",
            "b",
            "c",
            names=["a", "message"],
        ),
        y("event_name_without_data", EMPTY, b"event: a\n\ndata: b\n\n", "b", names=["message"]),
        y("event_name_after_data", "the order of fields does not matter", b"data: b\nevent: a\n\n", "b", names=["a"]),
        y("event_name_two_spaces", SPACE, b"event:  a\ndata: b\n\n", "b", names=[" a"]),
        y("event_name_with_nul", NUL_RULE, b"event: a\x00b\ndata: c\n\n", "c", names=["a\x00b"]),
        y("event_name_non_ascii", "names are UTF-8", "event: \u00e9\ndata: c\n\n".encode(), "c", names=["\u00e9"]),
        y("comment_alone", COMMENTS, b": a\n\n"),
        y("comment_bare_colon", COMMENTS, b":\n:\n\n"),
        y("comment_between_data", COMMENTS, b"data: a\n: x\ndata: b\n\n", "a\nb"),
        y("comment_that_looks_like_data", COMMENTS, b":data: a\ndata: b\n\n", "b"),
        y(
            "comment_keep_alive_first",
            COMMENTS,
            b": OPENROUTER PROCESSING\n\n: OPENROUTER PROCESSING\n\ndata: a\n\n",
            "a",
        ),
        y("comment_space_before_colon", FIELDS, b" : a\ndata: b\n\n", "b"),
        y("comment_non_ascii", COMMENTS, ": \u00e9\u2028\ndata: b\n\n".encode(), "b"),
        y("empty_block_without_data", EMPTY, b"id: 1\nretry: 2\nfoo: 3\n\n"),
        y("empty_data_is_dispatched", "an event whose data is empty is dispatched", b"data:\n\n", ""),
        y("empty_many_blank_lines", EMPTY, b"\n\n\n\n\ndata: a\n\n\n\n\n\n", "a"),
    ]


def _ids() -> list[dict[str, Any]]:
    made = [
        y("id_is_the_last_one", ID_RULE, b"id: 1\nid: 2\ndata: a\n\n", "a", ids=["2"]),
        y("id_persists", ID_RULE, b"id: 1\ndata: a\n\ndata: b\n\n", "a", "b", ids=["1", "1"]),
        y("id_persists_from_an_empty_block", ID_RULE, b"id: 1\n\ndata: a\n\n", "a", ids=["1"]),
        y("id_emptied", ID_RULE, b"id: 1\ndata: a\n\nid\ndata: b\n\n", "a", "b", ids=["1", ""]),
        y("id_emptied_by_colon", ID_RULE, b"id: 1\ndata: a\n\nid:\ndata: b\n\n", "a", "b", ids=["1", ""]),
        y("id_with_nul", NUL_RULE, b"id: 1\nid: 2\x003\ndata: a\n\n", "a", ids=["1"]),
        y("id_of_nul", NUL_RULE, b"id: \x00\ndata: a\n\n", "a", ids=[""]),
        y("id_with_spaces", SPACE, b"id:  1 \ndata: a\n\n", "a", ids=[" 1 "]),
        y("id_non_ascii", "ids are UTF-8", "id: \u00e9\u2028\ndata: a\n\n".encode(), "a", ids=["\u00e9\u2028"]),
        y("nul_in_data", NUL_RULE, b"data: a\x00b\n\n", "a\x00b"),
        y("nul_in_a_comment", NUL_RULE, b": \x00\ndata: a\n\n", "a"),
        y("nul_line", NUL_RULE, b"\x00\ndata: a\n\n", "a"),
        y("nul_bytes_are_no_blank_line", NUL_RULE, b"data: a\n\x00\x00\ndata: b\n\n", "a\nb"),
        y(
            "controls_in_data",
            "controls are characters as any other",
            b"data: \x01\x08\x1b[0m\x7f\n\n",
            "\x01\x08\x1b[0m\x7f",
        ),
        y("retry_digits", RETRY, b"retry: 1500\ndata: a\n\n", "a", retries=[1500]),
        y("retry_persists", RETRY, b"retry: 5\ndata: a\n\ndata: b\n\n", "a", "b", retries=[5, 5]),
        y("retry_from_an_empty_block", RETRY, b"retry: 5\n\ndata: a\n\n", "a", retries=[5]),
        y("retry_leading_zeros", RETRY, b"retry: 007\ndata: a\n\n", "a", retries=[7]),
        y("retry_17_digits", RETRY, b"retry: 99999999999999999\ndata: a\n\n", "a", retries=[99999999999999999]),
        y("retry_18_digits", RETRY, b"retry: 999999999999999999\ndata: a\n\n", "a", retries=[None]),
        y("retry_bad_keeps_the_last", RETRY, b"retry: 5\nretry: x\ndata: a\n\n", "a", retries=[5]),
    ]
    for name, value in (
        ("empty", b""),
        ("minus", b"-1"),
        ("plus", b"+1"),
        ("fraction", b"1.5"),
        ("exponent", b"1e3"),
        ("hex", b"0x10"),
        ("underscore", b"1_000"),
        ("letters", b"10s"),
        ("inner_space", b"1 0"),
        ("leading_space", b" 10"),
        ("trailing_space", b"10 "),
        ("nul", b"1\x000"),
        ("arabic_digits", "\u0661\u0662".encode()),
        ("wide_digits", "\uff11".encode()),
        ("superscript", "\u00b2".encode()),
        ("mathematical_digits", "\U0001d7cf".encode()),
    ):
        made.append(y(f"retry_{name}", RETRY, b"retry: " + value + b"\ndata: a\n\n", "a", retries=[None]))
    return made


def _marks_and_ends() -> list[dict[str, Any]]:
    return [
        y("bom_first", BOM_RULE, BOM + b"data: a\n\n", "a"),
        y("bom_alone", BOM_RULE, BOM),
        y("bom_before_a_blank_line", BOM_RULE, BOM + b"\ndata: a\n\n", "a"),
        y("bom_before_a_comment", BOM_RULE, BOM + b": c\ndata: a\n\n", "a"),
        y("bom_twice", "only the first mark is dropped", BOM + BOM + b"data: a\ndata: b\n\n", "b"),
        y("bom_in_data", "a mark elsewhere is text", b"data: " + BOM + b"a\n\n", "\ufeffa"),
        y("bom_later_line", "a mark elsewhere is text", b"data: a\n" + BOM + b"data: b\n\n", "a"),
        y("bom_after_a_blank_line", "a mark elsewhere is text", b"\n" + BOM + b"data: a\ndata: b\n\n", "b"),
        y("bom_begun_then_another_character", BOM_RULE, "\uff44: a\ndata: b\n\n".encode(), "b"),
        n("bom_one_byte", UTF8_LINE, b"\xef\ndata: a\n\n", "invalid_utf8", 0),
        n("bom_two_bytes", UTF8_LINE, b"\xef\xbb\ndata: a\n\n", "invalid_utf8", 0),
        n("bom_utf16", UTF8, b"\xff\xfed\x00\n\n", "invalid_utf8", 0),
        tail("end_of_data_without_line_end", END, b"data: a", 7),
        tail("end_of_data_without_blank_line", END, b"data: a\n", 7),
        tail("end_of_data_after_an_event", END, b"data: a\n\ndata: b\n", 7, "a"),
        tail("end_in_a_field_name", END, b"data: a\n\nda", 2, "a"),
        tail("end_in_a_character", END, b"data: \xe2\x82", 8),
        tail("end_of_done", END, b"data: [DONE]\n", 12),
        y("end_of_a_comment", "a comment without blank line holds no event", b"data: a\n\n: c\n", "a"),
        y("end_of_an_id", "fields without data hold no event", b"data: a\n\nid: 1\nevent: x\n", "a"),
        tail("end_in_a_comment", "an unfinished line may still become anything", b"data: a\n\n: c", 3, "a"),
        tail("end_in_an_id", "an unfinished line may still become anything", b"id: 1", 5),
        tail("end_of_a_lone_cr", LINE_ENDS, b"data: a\r", 7),
        y("end_of_two_cr", LINE_ENDS, b"data: a\r\r", "a"),
        y("end_of_cr_cr_lf", LINE_ENDS, b"data: a\r\r\n", "a"),
    ]


# What cannot be UTF-8, and how many bytes of it could still belong to a character.
ILL_FORMED = {
    "continuation_80": (b"\x80", 0),
    "continuation_bf": (b"\xbf", 0),
    "overlong_two_c0": (b"\xc0\x80", 0),
    "overlong_two_c1": (b"\xc1\xbf", 0),
    "overlong_three": (b"\xe0\x80\x80", 0),
    "overlong_three_last": (b"\xe0\x9f\xbf", 0),
    "overlong_four": (b"\xf0\x80\x80\x80", 0),
    "overlong_four_last": (b"\xf0\x8f\xbf\xbf", 0),
    "surrogate_first": (b"\xed\xa0\x80", 0),
    "surrogate_last": (b"\xed\xbf\xbf", 0),
    "surrogate_pair": (b"\xed\xa0\xbd\xed\xb8\x80", 0),
    "beyond_unicode": (b"\xf4\x90\x80\x80", 0),
    "beyond_unicode_f5": (b"\xf5\x80\x80\x80", 0),
    "five_bytes": (b"\xf8\x88\x80\x80\x80", 0),
    "six_bytes": (b"\xfc\x84\x80\x80\x80\x80", 0),
    "byte_fe": (b"\xfe", 0),
    "byte_ff": (b"\xff", 0),
    "two_then_letter": (b"\xc3x", 0),
    "three_then_letter": (b"\xe2x", 0),
    "three_cut_then_letter": (b"\xe2\x82x", 0),
    "four_cut_then_letter": (b"\xf0\x9f\x98x", 0),
    "three_cut_then_lead": (b"\xe2\x82\xe2\x82\xac", 0),
    "extra_continuation": (b"\xc3\xa9\xa9", 2),
    "latin1": (b"\xe9t\xe9", 0),
}


def _utf8() -> list[dict[str, Any]]:
    good = "\u007f\u0080\u07ff\u0800\ud7ff\ue000\ufffd\uffff\U00010000\U0010ffff"
    made = [
        y("utf8_boundaries", "the first and last character of each length", f"data: {good}\n\n".encode(), good),
        y(
            "utf8_emoji",
            "characters may be cut anywhere",
            "data: \U0001f600\u20ac\u00e9\n\n".encode(),
            "\U0001f600\u20ac\u00e9",
        ),
        y("utf8_replacement_character", "U+FFFD itself is a character", "data: \ufffd\n\n".encode(), "\ufffd"),
        y("utf8_noncharacters", "noncharacters are characters", "data: \ufdd0\ufffe\n\n".encode(), "\ufdd0\ufffe"),
        n("utf8_in_a_comment", UTF8_LINE, b": \xff\ndata: a\n\n", "invalid_utf8", 2),
        n("utf8_in_an_unknown_field", UTF8_LINE, b"foo: \xff\ndata: a\n\n", "invalid_utf8", 5),
        n("utf8_in_a_field_name", UTF8_LINE, b"da\xffta: a\n\n", "invalid_utf8", 2),
        n("utf8_in_an_id", UTF8_LINE, b"id: \xff\ndata: a\n\n", "invalid_utf8", 4),
        n("utf8_in_an_id_with_nul", UTF8_LINE, b"id: \x00\xff\ndata: a\n\n", "invalid_utf8", 5),
        n("utf8_in_an_event_name", UTF8_LINE, b"event: \xff\ndata: a\n\n", "invalid_utf8", 7),
        n("utf8_in_a_retry", UTF8_LINE, b"retry: \xff\ndata: a\n\n", "invalid_utf8", 7),
        n("utf8_cut_at_the_line_end", UTF8_LINE, b"data: \xe2\x82\n\n", "invalid_utf8", 6),
        n("utf8_cut_at_a_cr", UTF8_LINE, b"data: \xf0\x9f\x98\r\r", "invalid_utf8", 6),
        n("utf8_joined_over_two_lines", UTF8_LINE, b"data: \xe2\x82\ndata: \xac\n\n", "invalid_utf8", 6),
        n(
            "utf8_after_an_event",
            "what came before a fault stays",
            b"data: a\n\ndata: b\xff\n\n",
            "invalid_utf8",
            16,
            "a",
        ),
        n(
            "utf8_after_two_events",
            "what came before a fault stays",
            b"data: a\n\ndata: b\n\n\xff\n",
            "invalid_utf8",
            18,
            "a",
            "b",
        ),
        n(
            "utf8_of_an_unfinished_event",
            "the line is at fault, its event is not dispatched",
            b"data: a\n\xff\n\n",
            "invalid_utf8",
            8,
        ),
        n("utf8_first_of_two_faults", ORDER, b"data: \xfe\ndata: \xff\n\n", "invalid_utf8", 6),
        tail("utf8_line_that_never_ends", "a line is judged when it ends; this one does not", b"data: \xff", 7),
        y("utf8_replaced", REPLACE, b"data: a\xffb\n\n", "a\ufffdb", errors="replace"),
        y("utf8_replaced_cut", REPLACE, b"data: \xe2\x82\n\n", "\ufffd", errors="replace"),
        y("utf8_replaced_surrogate", REPLACE, b"data: \xed\xa0\x80\n\n", "\ufffd" * 3, errors="replace"),
        y("utf8_replaced_in_an_id", REPLACE, b"id: \xff\ndata: a\n\n", "a", ids=["\ufffd"], errors="replace"),
        y("utf8_replaced_in_a_name", REPLACE, b"event: \xff\ndata: a\n\n", "a", names=["\ufffd"], errors="replace"),
        y("utf8_replaced_field", REPLACE, b"da\xffta: a\ndata: b\n\n", "b", errors="replace"),
    ]
    for name, (bad, before) in ILL_FORMED.items():
        made.append(n(f"utf8_{name}", UTF8, b"data: " + bad + b"\n\n", "invalid_utf8", 6 + before))
    return made


def _caps() -> list[dict[str, Any]]:
    ten: dict[str, Any] = {"limits": {"max_event_bytes": 10}}
    lines: dict[str, Any] = {"limits": {"max_event_lines": 2}}
    events: dict[str, Any] = {"limits": {"max_events": 2}}
    stream: dict[str, Any] = {"limits": {"max_stream_bytes": 20}}
    large, many, count, whole = "event_too_large", "too_many_event_lines", "too_many_events", "stream_too_large"
    return [
        y("cap_event_bytes_at", CAP, b"data: abcd\n\n", "abcd", **ten),
        n("cap_event_bytes_over", CAP, b"data: abcde\n\n", large, 10, **ten),
        n("cap_event_bytes_over_without_line_end", CAP, b"data: abcde", large, 10, **ten),
        n("cap_event_bytes_comment", CAP, b": abcdefghi\n\n", large, 10, **ten),
        y("cap_event_bytes_comment_at", CAP, b": abcdefgh\n\ndata: a\n\n", "a", **ten),
        n("cap_event_bytes_unknown_field", CAP, b"foo: abcdef\n\n", large, 10, **ten),
        n("cap_event_bytes_field_name", CAP, b"abcdefghijk\n\n", large, 10, **ten),
        n("cap_event_bytes_id", CAP, b"id: abcdefg\n\n", large, 10, **ten),
        n("cap_event_bytes_retry", CAP, b"retry: 1234\n\n", large, 10, **ten),
        n("cap_event_bytes_over_lines", CAP, b"data:a\ndata:b\n\n", large, 11, **ten),
        y("cap_event_bytes_lines_at", CAP, b"data:\ndata:\n\n", "\n", **ten),
        y("cap_event_bytes_line_ends_do_not_count", CAP, b"data:\r\ndata:\r\n\r\n", "\n", **ten),
        n("cap_event_bytes_comments_add_up", CAP, b":abcd\n:efgh\n:\n\n", large, 12, **ten),
        y("cap_event_bytes_begin_anew", CAP, b"data: a\n\ndata: b\n\ndata: c\n\n", "a", "b", "c", **ten),
        y("cap_event_bytes_bom_does_not_count", CAP, BOM + b"data: abcd\n\n", "abcd", **ten),
        n(
            "cap_event_bytes_after_events",
            "events before the fault stay",
            b"data: a\n\ndata: abcde\n\n",
            large,
            19,
            "a",
            **ten,
        ),
        n("cap_event_bytes_characters_are_bytes", CAP, "data: \u20ac\u20ac\n\n".encode(), large, 10, **ten),
        y("cap_event_lines_at", CAP, b"data:a\ndata:b\n\n", "a\nb", **lines),
        n("cap_event_lines_over", CAP, b"data:a\ndata:b\ndata:c\n\n", many, 14, **lines),
        n("cap_event_lines_comments", CAP, b":\n:\n:\n\n", many, 4, **lines),
        n("cap_event_lines_unknown", CAP, b"a\nb\nc\n\n", many, 4, **lines),
        n("cap_event_lines_mixed", CAP, b"data:a\n:\nid:1\n\n", many, 9, **lines),
        n("cap_event_lines_cr", CAP, b":\r:\r:\r\r", many, 4, **lines),
        n("cap_event_lines_crlf", CAP, b":\r\n:\r\n:\r\n\r\n", many, 6, **lines),
        y("cap_event_lines_begin_anew", CAP, b":\n:\n\n:\n:\n\ndata:a\n\n", "a", **lines),
        y("cap_events_at", "every blank line counts", b"data:a\n\ndata:b\n\n", "a", "b", **events),
        n(
            "cap_events_over",
            "every blank line counts",
            b"data:a\n\ndata:b\n\ndata:c\n\n",
            count,
            23,
            "a",
            "b",
            **events,
        ),
        n("cap_events_blank_lines", "work without output is charged too", b"\n\n\n", count, 2, **events),
        n("cap_events_comments", "work without output is charged too", b":\n\n:\n\n:\n\n", count, 8, **events),
        n("cap_events_cr", "every blank line counts", b"\r\r\r", count, 2, **events),
        n("cap_events_crlf", "every blank line counts", b"\r\n\r\n\r\n", count, 4, **events),
        y("cap_events_unfinished_does_not_count", "every blank line counts", b"\n\n: c\n", **events),
        y("cap_stream_bytes_at", CAP, b"data: a\n\ndata: bcd\n\n", "a", "bcd", **stream),
        n("cap_stream_bytes_over", CAP, b"data: a\n\ndata: bcde\n\n", whole, 20, "a", **stream),
        n("cap_stream_bytes_comments", CAP, b": aaaa\n\n: bbbb\n\n: cc\n\n", whole, 20, **stream),
        n("cap_stream_bytes_blank_lines", CAP, b"\n" * 21, whole, 20, **stream),
        n(
            "cap_stream_bytes_event_before_it",
            "events before the fault stay",
            b"data: a\n\ndata: bcd\n\nx",
            whole,
            20,
            "a",
            "bcd",
            **stream,
        ),
        n(
            "cap_order_lines_before_bytes",
            ORDER,
            b":\n:\n:aaaaaaaaaa",
            many,
            4,
            limits={"max_event_lines": 2, "max_event_bytes": 5},
        ),
        n(
            "cap_order_bytes_before_lines",
            ORDER,
            b":\n:aaaaaaaaaa\n:",
            large,
            6,
            limits={"max_event_lines": 2, "max_event_bytes": 5},
        ),
        n("cap_order_bytes_before_utf8", ORDER, b"data: \xffabcdef\n", large, 10, **ten),
        n("cap_order_utf8_before_bytes", ORDER, b"\xff\ndata: abcdef\n", "invalid_utf8", 0, **ten),
        n(
            "cap_order_stream_before_event",
            ORDER,
            b"data: abcdefghijklmnop",
            whole,
            8,
            limits={"max_stream_bytes": 8, "max_event_bytes": 10},
        ),
        y("cap_of_one_event_byte", CAP, b":\n\n\n:\n\n", limits={"max_event_bytes": 1}),
        n("cap_of_one_event_byte_over", CAP, b":\n\n::\n\n", large, 4, limits={"max_event_bytes": 1}),
        y(
            "cap_none",
            "None is no cap",
            b"data: abcdefghijklmnop\n\n",
            "abcdefghijklmnop",
            limits={"max_event_bytes": None, "max_stream_bytes": None, "max_events": None, "max_event_lines": None},
        ),
    ]


def vectors() -> list[dict[str, Any]]:
    differing = {"y_retry_18_digits", "y_cap_events_unfinished_does_not_count", "n_end_of_a_lone_cr"}
    made = [*_line_ends(), *_fields(), *_ids(), *_marks_and_ends(), *_utf8(), *_caps()]
    return [i(vector) if vector["name"] in differing else vector for vector in made]
