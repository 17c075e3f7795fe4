"""`glmsse convert`: a recorded body, written again in another protocol."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ..completion import Completion
from ..encode import AnthropicEncoder, OpenAIEncoder
from .mistaken import Pieces
from .outcome import Unreadable, exit_code
from .show import describe
from .source import add_stream_options, stream_for

NAMELESS = "glmsse"


def add_to(commands: Any) -> None:
    parser = commands.add_parser("convert", help="write a stream in another protocol; the verdict goes to stderr")
    parser.add_argument("file", nargs="?", default="-", metavar="FILE", help="a recorded body (default: -, stdin)")
    parser.add_argument("--to", required=True, choices=("anthropic", "openai"), help="the protocol to write")
    parser.add_argument("--model", metavar="NAME", help="the model's name to write (default: the stream's own)")
    add_stream_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """The exit code is the verdict's; a stream that is not accepted is written too, up to its error."""
    if args.to == "anthropic" and (args.choices > 1 or "multi_choice" in args.allow):
        raise Unreadable("an Anthropic message has one choice: --to anthropic goes with --choices 1 only")
    stream = stream_for(args)
    encoder: AnthropicEncoder | OpenAIEncoder | None = None
    pieces = Pieces(args.file)
    for data in pieces:
        events = stream.feed(data)
        if events:
            encoder = encoder or _encoder(args, stream.snapshot)
            _write(encoder.encode(events))
    verdict = stream.close()
    encoder = encoder or _encoder(args, stream.snapshot)
    _write(encoder.encode(stream.closing_events) + encoder.finish(verdict))
    print(f"glmsse: {describe(verdict)}", file=sys.stderr)
    pieces.hint(stream)
    return exit_code(verdict)


def _encoder(args: argparse.Namespace, snapshot: Completion) -> AnthropicEncoder | OpenAIEncoder:
    model = args.model or snapshot.model or NAMELESS
    response_id = snapshot.id or NAMELESS
    if args.to == "anthropic":
        return AnthropicEncoder(model, message_id=f"msg_{response_id}")
    return OpenAIEncoder(model, id=response_id, created=max(snapshot.created or 0, 0))


def _write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()
