"""Fills in what the pages take from the code: a line `<!-- table: NAME -->` becomes that table; and drawings.

A hook of MkDocs; tests/test_docs.py sees to it that nothing is left out.
"""

from __future__ import annotations

import ast
import inspect
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from glmsse import errors, limits
from glmsse.__main__ import COMMANDS, build_parser
from glmsse.answers import ANSWER_REFUSALS
from glmsse.audit import COLUMNS, ERRORS
from glmsse.profiles import FINISH_ALIASES, PROFILES, TOLERANCES
from glmsse.provider import AMBIGUOUS_CATEGORIES, CATEGORY_OF_CODE, CATEGORY_OF_STATUS, SAFE_CATEGORIES
from glmsse.scenarios import SCENARIOS
from glmsse.tools import REFUSALS

PICTURE = re.compile(r"^!\[[^]]+\]\(([\w.-]+\.svg)\)$", re.MULTILINE)
MARKER = re.compile(r"^<!-- table: ([a-z_]+) -->$", re.MULTILINE)

ADVICE = {
    "http_status": "Act by `category`; wait `retry_after` seconds if given.",
    "content_type": "Check the URL, and that the request has `stream` true; a gateway's error page comes this way too.",
    "content_encoding": "Send `Accept-Encoding: identity`, or feed what the client has decoded.",
    "invalid_utf8": "A proxy cut or re-encoded the bytes. Find it; record the body.",
    "bad_json": "Record the body and report it to whoever serves it. There is nothing to repair.",
    "spliced_frame": "Two responses were mixed on the way. Discard the answer, and tell the operator of the route.",
    "event_not_object": "Some gateways send such events: `ignore_non_object_events`.",
    "json_nonfinite": "`nonfinite_ok` if the sender is known for it.",
    "json_too_deep": "No known provider nests so deep. Raise `max_json_depth` only for one that does.",
    "json_number_too_long": "No known provider writes such numbers. Raise `max_number_chars` only for one that does.",
    "duplicate_key": "`dup_keys_last` if the sender is known for it; readers differ in which key they take.",
    "lone_surrogate": "`surrogate_replace` if a replacement character is good enough.",
    "unexpected_shape": "Record the body and compare it with the provider's own page; a profile may know the shape.",
    "stable_conflict": "Two calls share an index. `gateway` knows the usual ways; else discard the answer.",
    "arguments_type": "`args_object_serialize` for hosts that send an object.",
    "unexpected_choice": "Pass `choices=N` as `n` in the request.",
    "finish_conflict": "`finish_keep_tool_calls` for stop behind tool_calls; else discard the answer.",
    "delta_after_finish": "`finish_advisory` for hosts that finish early.",
    "response_id_changed": "`response_id_unstable` for gateways with an id for each chunk; else discard the answer.",
    "legacy_function_call": "`legacy_function_call` reads it.",
    "message_not_delta": "`message_as_delta` reads it.",
    "provider_error": "Act by `category` and `replay`; `provider_code` is for the provider's support.",
    "event_too_large": "Raise the limit only for a provider that really sends such events.",
    "too_many_event_lines": "Raise the limit only for a provider that really sends such events.",
    "too_many_events": "A runaway answer, or one of comments only. Raise it for very long answers.",
    "stream_too_large": "A runaway answer. Raise it for very long answers.",
    "content_too_large": "Ask for fewer tokens, or raise the limit.",
    "reasoning_too_large": "Ask for less thinking, or raise the limit.",
    "argument_too_large": "A runaway call. Raise it for tools that take whole files.",
    "too_many_tool_calls": "A model that repeats itself. Raise it for real fan-out.",
    "too_many_choices": "Raise it with `n`.",
    "unterminated_event": "The connection broke. `replay` is ambiguous: ask a person, or accept paying twice.",
    "incomplete_stream": "The answer was cut, or this host never sends it: `usage_optional`, `done_optional`.",
    "empty_stream": "A 200 with nothing in it. Look at the gateway's log.",
    "deadline_first_byte": "The provider queues or hangs. A longer deadline, or another route.",
    "deadline_idle": "The answer stalled. Discard it.",
    "deadline_total": "Ask for fewer tokens, or give more time.",
    "cancelled": "Your program stopped reading.",
    "tool_id_missing": "`id_synthesize` makes ids up.",
    "tool_name_missing": "Discard the answer. `name_concat` where a host cuts names into pieces.",
    "tool_not_offered": "The model made a tool up. Tell it which tools there are.",
    "tool_finish_without_calls": "Discard the answer, and ask again as another request.",
    "tools_without_tool_finish": "`stop_with_tools` for hosts that finish calls with stop.",
    "arguments_empty": "`args_empty_as_object` for tools without parameters.",
    "arguments_not_json": "Cut or malformed. Never repair it: ask the model for the call again.",
    "arguments_not_object": "`args_any_json` if your tool takes another value.",
}  # fmt: skip
"""What to do about each code."""

CATEGORY_ADVICE = {
    "auth": "The key is missing or wrong.",
    "account": "The account is locked or not set up.",
    "balance": "No money left.",
    "entitlement": "The plan does not include this model or endpoint.",
    "quota": "The plan's quota is used up; wait for its reset.",
    "rate": "Too many requests at once. Wait, then send it again.",
    "overload": "The provider is overloaded. Wait longer, then send it again.",
    "request": "A parameter is wrong.",
    "context": "The prompt is too long.",
    "content": "The provider's content rules refused it.",
    "server": "An error on their side; it may have cost a generation.",
    "duplicate": "A request of this id was sent already.",
    "unknown": "A code or status that no table has.",
}

OUTCOME_ADVICE = {
    "accepted": "Use it. `tool_calls` holds what may be run.",
    "http_error": "No stream began. Look at `category`.",
    "protocol_error": "The bytes break a rule. Discard the answer; look the code up.",
    "provider_error": "The provider said so in the stream. Look at `category`.",
    "limit_exceeded": "A cap was passed; `error.limit` names it.",
    "incomplete": "The answer was cut. What came may be shown, but not acted on.",
    "not_accepted": "A whole stream, but the answer was cut, withheld, or has a call that may not be run.",
}


def on_page_markdown(markdown: str, **_: Any) -> str:
    return filled_in(markdown)


def filled_in(markdown: str) -> str:
    markdown = PICTURE.sub(lambda picture: f'<div class="picture-frame">\n{_picture(picture[1])}</div>', markdown)
    return MARKER.sub(lambda marker: TABLES[marker[1]](), markdown)


def _picture(name: str) -> str:
    """A drawing as part of the page, so that it takes the page's colours."""
    return (Path(__file__).parents[1] / name).read_text(encoding="utf-8")


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _limits() -> str:
    defaults = limits.Limits()
    rows = []
    for field in fields(limits.Limits):
        default = getattr(defaults, field.name)
        code = errors.LIMIT_CODES.get(field.name) or _JSON_CAP_CODES[field.name]
        rows.append((f"`{field.name}`", _number(default), attribute_docs(limits.Limits)[field.name], f"`{code}`"))
    return _table(("limit", "default", "what it counts", "code"), rows)


_JSON_CAP_CODES = {"max_json_depth": "json_too_deep", "max_number_chars": "json_number_too_long"}


def _number(value: int) -> str:
    for unit, size in (("MiB", 2**20), ("KiB", 2**10)):
        if value % size == 0 and value > 4096:
            return f"{value // size:,} {unit}"
    return f"{value:,}"


def attribute_docs(cls: type) -> dict[str, str]:
    """The docstring behind each field of a class."""
    body = ast.parse(inspect.getsource(cls)).body[0]
    assert isinstance(body, ast.ClassDef)
    docs = {}
    for field, after in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(after, ast.Expr):
            docs[field.target.id] = " ".join(ast.literal_eval(after.value).split())
    return docs


def _codes() -> str:
    parts = []
    for cls, stage in dict.fromkeys((cls, stage) for cls, stage, _ in errors.CODES.values()):
        rows = [
            (f"`{code}`", sentence[0].upper() + sentence[1:] + ".", ADVICE[code])
            for code, (its_class, its_stage, sentence) in errors.CODES.items()
            if (its_class, its_stage) == (cls, stage)
        ]
        head = f"## {cls.__name__}\n\nOutcome `{cls.outcome}`, stage `{stage}`.\n\n"
        parts.append(head + _table(("code", "what it means", "what to do"), rows))
    return "\n\n".join(parts)


def _profiles() -> str:
    rows = []
    for name, tolerances in PROFILES.items():
        inner = max((other for other in PROFILES if set(PROFILES[other]) < set(tolerances)), key=_size, default=None)
        added = [tolerance for tolerance in tolerances if inner is None or tolerance not in PROFILES[inner]]
        words = ", ".join(f"`{tolerance}`" for tolerance in added) or "none: the strict contract"
        rows.append((f"`{name}`", f"those of `{inner}`, and {words}" if inner and PROFILES[inner] else words))
    return _table(("profile", "tolerances"), rows)


def _size(profile: str) -> int:
    return len(PROFILES[profile])


def _tolerances() -> str:
    def on_in(name: str) -> str:
        return ", ".join(f"`{profile}`" for profile, names in PROFILES.items() if name in names) or "`allow=` only"

    rows = [(f"`{name}`", on_in(name), what[0].upper() + what[1:] + ".") for name, what in TOLERANCES.items()]
    return _table(("tolerance", "on in", "what it changes"), rows)


def _aliases() -> str:
    return _table(
        ("word on the wire", "read as"), [(f"`{word}`", f"`{reason}`") for word, reason in FINISH_ALIASES.items()]
    )


def _outcomes() -> str:
    return _table(("outcome", "what to do"), [(f"`{name}`", advice) for name, advice in OUTCOME_ADVICE.items()])


def _categories() -> str:
    rows = []
    for name, advice in CATEGORY_ADVICE.items():
        statuses = [str(status) for status, category in CATEGORY_OF_STATUS.items() if category == name]
        codes = [code for code, category in CATEGORY_OF_CODE.items() if category == name]
        if name == "server":
            statuses.append("5xx")
        replay = "safe" if name in SAFE_CATEGORIES else "ambiguous" if name in AMBIGUOUS_CATEGORIES else "pointless"
        rows.append((f"`{name}`", ", ".join(statuses) or "-", ", ".join(codes) or "-", advice, replay))
    return _table(("category", "HTTP status", "Z.ai code", "what it means", "replay"), rows)


def _refusals() -> str:
    return _table(("code", "what the model is told"), [(f"`{code}`", words) for code, words in REFUSALS.items()])


def _answer_refusals() -> str:
    return _table(("code", "what the model is told"), [(f"`{code}`", words) for code, words in ANSWER_REFUSALS.items()])


def _scenarios() -> str:
    return _table(("file", "what it is"), [(f"`{name}.sse`", one.title) for name, one in SCENARIOS.items()])


def _audit_columns() -> str:
    rows = [(f"`{name}`", kind.__name__, meaning) for name, kind, meaning in COLUMNS]
    return _table(("column", "type", "meaning"), rows)


def _audit_errors() -> str:
    return _table(("error", "meaning"), [(f"`{error}`", meaning) for error, meaning in ERRORS.items()])


def _commands() -> str:
    """The help text of each command, at a fixed width."""
    return "\n\n".join(f"## glmsse {name}\n\n```text\n{text}```" for name, text in command_helps())


def command_helps() -> Iterator[tuple[str, str]]:
    (commands,) = (action for action in build_parser()._actions if action.dest == "==SUPPRESS==" or action.choices)
    assert isinstance(commands.choices, dict)
    assert len(commands.choices) >= len(COMMANDS)
    for name, parser in commands.choices.items():
        formatter = parser.formatter_class
        parser.formatter_class = lambda prog, formatter=formatter: formatter(prog, width=78)
        out = io.StringIO()
        parser.print_help(out)
        yield name, out.getvalue()


TABLES: dict[str, Callable[[], str]] = {
    "limits": _limits,
    "codes": _codes,
    "profiles": _profiles,
    "tolerances": _tolerances,
    "aliases": _aliases,
    "outcomes": _outcomes,
    "categories": _categories,
    "refusals": _refusals,
    "answer_refusals": _answer_refusals,
    "scenarios": _scenarios,
    "commands": _commands,
    "audit_columns": _audit_columns,
    "audit_errors": _audit_errors,
}
