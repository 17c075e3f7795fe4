"""`glmsse serve`: a stand-in provider on loopback."""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

from ..capture import UnfitRecording
from .extras import need
from .outcome import ACCEPTED, Unreadable
from .terminal import safe

EPILOG = """\
A request's model, glmsse-NAME or NAME, or the query ?scenario=NAME chooses the answer; a glm-* model gets what the
request's thinking, tools and tool_stream ask for. The query also takes pace=SECONDS and wait=SECONDS, and events=N for
the scenario long. Any bearer key will do. --list prints the names.
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "serve",
        help="answer as the provider does, well or badly, on loopback (extra: server)",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=_port, default=8765, help="port, 0 for a free one (default: 8765)")
    parser.add_argument(
        "--replay", metavar="FILE", help="answer with a recorded body, as and when its sidecar says if there is one"
    )
    parser.add_argument("--pace", type=_seconds, metavar="SECONDS", help="pause after each event (default: none)")
    parser.add_argument("--list", action="store_true", help="print the scenarios' names and stop")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Runs until it is interrupted, which is exit code 0."""
    need("glmsse serve", "server")
    # Only here, since these import what the extra brings.
    from ..server.answers import ANSWERS
    from ..server.app import PATHS, create_app
    from ..server.running import listen, server_for

    if args.list:
        print("\n".join(ANSWERS))
        return ACCEPTED
    app = create_app(_replay(args), pace=args.pace or 0.0)
    try:
        listener = listen(args.host, args.port)
    except OSError as problem:
        raise Unreadable(f"cannot listen there: {problem.strerror or 'no such address'}") from None
    with listener:
        host, port = listener.getsockname()[:2]
        if not ip_address(host).is_loopback:
            print("glmsse: not a loopback address: others can reach this server", file=sys.stderr)
        base = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        print(f"glmsse serve: {base}", *(f"{route:>8}  {base}{path}" for route, path in PATHS.items()), sep="\n")
        sys.stdout.flush()
        with suppress(KeyboardInterrupt):
            server_for(app).run(sockets=[listener])
    return ACCEPTED


def _replay(args: argparse.Namespace) -> Any:
    from ..server.recording import Replay

    if args.replay is None:
        return None
    try:
        return Replay.load(args.replay, pace=args.pace)
    except OSError as problem:
        raise Unreadable(f"{safe(args.replay)}: {problem.strerror or 'cannot be read'}") from None
    except UnfitRecording as problem:
        raise Unreadable(f"{safe(args.replay)}: {problem}") from None


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= 65535:
        raise argparse.ArgumentTypeError("takes 0 to 65535")
    return port


def _seconds(text: str) -> float:
    seconds = float(text)
    if not 0 <= seconds <= 60:
        raise argparse.ArgumentTypeError("takes 0 to 60 seconds")
    return seconds
