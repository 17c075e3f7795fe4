"""`glmsse proxy`: forward streams to one upstream, with a verdict on each."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Any

from ..deadlines import Deadlines
from ..proxy.settings import MARKUPS, MODES, Settings
from .extras import need
from .outcome import ACCEPTED, Unreadable
from .source import add_reading_options, limits_from


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "proxy",
        help="forward chat completions to an upstream and judge them in flight (extra: proxy)",
        description="Forwards /v1/chat/completions byte for byte and /v1/messages translated, with a verdict on each "
        "answer in the log, in /metrics and, on request, in the stream. Needs the extra `proxy`.",
    )
    option = parser.add_argument
    option("--upstream", required=True, metavar="URL", help="base URL such as https://api.z.ai/api/paas/v4")
    option("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    option("--port", type=int, default=8642, help="port to listen on, 0 for a free one (default: 8642)")
    option("--workers", type=int, default=1, metavar="N", help="processes that share the port (default: 1)")
    option("--http2", action="store_true", help="speak HTTP/2 without TLS too (extra: http2; default: no)")
    option("--mode", choices=MODES, default="enforce", help="end bad streams, or report only (default: enforce)")
    option("--key-env", metavar="NAME", help="variable with the upstream's key (default: the client's own is sent)")
    option("--client-key-env", metavar="NAME", help="variable with the key clients must send (default: none needed)")
    option("--model", metavar="NAME", help="model that /v1/messages asks for (default: the request's)")
    option("--content-markup", choices=MARKUPS, default="none", help="raw model text in content (default: none)")
    option("--verdict-comment", action="store_true", help="write the verdict before [DONE] (default: no)")
    option("--record", metavar="DIR", help="record answers there, without keys (default: none is recorded)")
    option("--max-recordings", type=int, default=1000, metavar="N", help="recordings in DIR (default: 1000)")
    option("--max-record-bytes", type=int, default=4 * 1024 * 1024, metavar="N", help="of one (default: 4194304)")
    option("--max-streams", type=int, default=4000, metavar="N", help="answers open per worker (default: 4000)")
    option("--max-body-bytes", type=int, default=8 * 1024 * 1024, metavar="N", help="of a request (default: 8388608)")
    option("--max-header-bytes", type=int, default=32 * 1024, metavar="N", help="of a request (default: 32768)")
    option("--request", type=float, default=30, metavar="S", help="seconds for a request's body (default: 30)")
    option("--connect", type=float, default=10, metavar="S", help="seconds to reach the upstream (default: 10)")
    option("--first-byte", type=float, default=300, metavar="S", help="seconds to the first byte (default: 300)")
    option("--idle", type=float, default=120, metavar="S", help="seconds without progress (default: 120)")
    option("--total", type=float, default=3600, metavar="S", help="seconds for an answer (default: 3600)")
    option("--send", type=float, default=30, metavar="S", help="seconds a write to a client may wait (default: 30)")
    option(
        "--ping",
        type=float,
        default=15,
        metavar="S",
        help="seconds to a ping to Anthropic clients, 0: none (default: 15)",
    )
    option("--drain", type=int, default=60, metavar="S", help="seconds open answers get at shutdown (default: 60)")
    add_reading_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    settings = settings_from(args)
    if settings.record is not None and not os.path.isdir(settings.record):
        raise Unreadable("--record takes a directory that is there")
    if args.workers < 1:
        raise Unreadable("--workers takes a number from 1 up")
    need("proxy", "proxy")
    if args.http2:
        need("proxy --http2", "http2")
    from ..proxy.server import serve  # needs the extra

    print(f"glmsse: proxy for {settings.upstream} ({settings.mode})", file=sys.stderr)
    serve(settings, args.host, args.port, workers=args.workers, drain_seconds=args.drain, http2=args.http2)
    return ACCEPTED


def settings_from(args: argparse.Namespace) -> Settings:
    return Settings(
        upstream=args.upstream,
        mode=args.mode,
        profile=args.profile,
        allow=tuple(args.allow),
        deny=tuple(args.deny),
        limits=limits_from(args.limit),
        key=_from_environment(args.key_env, "--key-env"),
        client_key=_from_environment(args.client_key_env, "--client-key-env"),
        model=args.model,
        content_markup=args.content_markup,
        verdict_comment=args.verdict_comment,
        deadlines=Deadlines(first_byte=args.first_byte, idle=args.idle, total=args.total),
        connect_seconds=args.connect,
        request_seconds=args.request,
        send_seconds=args.send,
        ping_seconds=args.ping or None,
        record=args.record,
        max_recordings=args.max_recordings,
        max_record_bytes=args.max_record_bytes,
        max_streams=args.max_streams,
        max_body_bytes=args.max_body_bytes,
        max_header_bytes=args.max_header_bytes,
    )


def _from_environment(name: str | None, option: str) -> str | None:
    if name is None:
        return None
    value = os.environ.get(name)
    if not value or not value.isascii() or not value.isprintable():
        raise Unreadable(f"{option}: the variable is not set to a key")
    return value
