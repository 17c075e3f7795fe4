"""`glmsse tools`: raw GLM text in, its calls out."""

from __future__ import annotations

import argparse
import codecs
import json
import sys
from collections.abc import Iterator
from typing import Any

from ..completion import Choice
from ..errors import LimitError
from ..events import ChatEvent, Failed
from ..glm_text import ToolCallParser
from .outcome import ACCEPTED, LIMIT, NOT_ACCEPTED, Unreadable
from .show import show_json, show_line
from .source import read_pieces
from .terminal import quoted, safe


def add_to(commands: Any) -> None:
    parser = commands.add_parser("tools", help="read raw GLM text (<tool_call>...) into tool calls")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="raw model text (default: -, stdin)")
    parser.add_argument("--tools", metavar="TOOLS.json", help="the request's tools (default: any sane name)")
    parser.add_argument(
        "--start",
        default="content",
        choices=("content", "reasoning", "auto"),
        help="where the prompt left off (default: content)",
    )
    parser.add_argument(
        "--unoffered",
        default="text",
        choices=("text", "call", "drop"),
        help="what becomes of calls to other tools (default: text)",
    )
    parser.add_argument("--reason", default="stop", help="the finish reason of the reply (default: stop)")
    parser.add_argument("--stream", action="store_true", help="print events as they come (default: the result)")
    parser.add_argument("--json", action="store_true", help="print JSON objects (default: readable lines)")
    parser.add_argument("--reasoning", action="store_true", help="show reasoning too (default: hidden)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit code 1 if a call was cut, 4 if a limit was passed."""
    parser = ToolCallParser(_read_tools(args.tools), start=args.start, unoffered=args.unoffered)
    failed: Failed | None = None
    for event in _events(parser, args):
        failed = event if isinstance(event, Failed) else failed
        if args.stream:
            (show_json if args.json else show_line)(event, args.reasoning)
    choice = parser.snapshot.choices[0]
    if not args.stream:
        _show_result(choice, parser.flags, args)
    if failed is not None:
        print(f"glmsse: {failed.error}", file=sys.stderr)
        return LIMIT if isinstance(failed.error, LimitError) else NOT_ACCEPTED
    return ACCEPTED if all(call.complete for call in choice.tool_calls) else NOT_ACCEPTED


def _events(parser: ToolCallParser, args: argparse.Namespace) -> Iterator[ChatEvent]:
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for data in read_pieces(args.file):
            yield from parser.feed(decoder.decode(data))
        yield from parser.feed(decoder.decode(b"", True))
    except UnicodeDecodeError:
        raise Unreadable(f"{safe(args.file)}: not UTF-8") from None
    yield from parser.close(args.reason)


def _read_tools(path: str | None) -> Any:
    if path is None:
        return None
    try:
        with open(path, encoding="utf-8") as file:
            tools = json.load(file)
    except OSError as problem:
        raise Unreadable(f"{safe(path)}: {problem.strerror or 'cannot be read'}") from None
    except (ValueError, RecursionError):
        tools = None
    if not isinstance(tools, list):
        raise Unreadable(f"{safe(path)}: not a JSON list of tools")
    return tools


def _show_result(choice: Choice, flags: tuple[tuple[str, int | None], ...], args: argparse.Namespace) -> None:
    if args.json:
        result = {
            "content": choice.content,
            "reasoning_content": choice.reasoning_content if args.reasoning else None,
            "tool_calls": [{**call.to_dict(), "complete": call.complete} for call in choice.tool_calls],
            "flags": [list(flag) for flag in flags],
        }
        print(json.dumps(result))
        return
    if args.reasoning and choice.reasoning_content:
        print(f"reasoning  {quoted(choice.reasoning_content)}")
    if choice.content:
        print(f"content  {quoted(choice.content)}")
    for call in choice.tool_calls:
        cut = "" if call.complete else "  (cut: do not run)"
        print(f"call {call.index}  {safe(call.name or '')}  {safe(call.arguments)}{cut}")
    for flag, index in flags:
        print(f"flag  {flag}" + ("" if index is None else f"  call {index}"))
