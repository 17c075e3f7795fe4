"""`glmsse probe`: small live requests, and what their answers measure."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from .._version import __version__
from ..capture import Reading, Recorder, Recording
from ..capture.recording import SIDECAR_SUFFIX, sidecar_path
from ..capture.tape import now
from ..chat import ChatStream
from ..events import ChatEvent, ContentDelta, Failed, ReasoningDelta
from ..offered_tools import offered_names
from .evidence import terminal_evidence
from .extras import need
from .outcome import Unreadable, exit_code
from .secret import Mask, key_from, masked
from .show import describe
from .terminal import States, safe, table

if TYPE_CHECKING:
    from .live import Case, Probe, Probed

HEAD = ("case", "JSON events", "first relevant delta", "total", "terminal evidence", "verdict")
CASE_NAMES = ("text", "thinking", "tool", "tool-stream")

_STATE_OF_EVENT = {"reasoning.delta": "reasoning", "content.delta": "answering", "tool_call.start": "calling"}
"""One feed brings many events; the stream's phase is that of the last."""

EPILOG = """\
The key comes from ZAI_API_KEY and is never shown or kept. Each case is one billed request; nothing is sent twice.
--record keeps the body's exact bytes in FILE, such as answer.sse, and in answer.json when they came and what came of
them, for glmsse serve --replay, redact and gate; with --case all the case's name is put before the suffix. Should the
answer contain the key, it is overwritten there.
"""


def add_to(commands: Any) -> None:
    parser = commands.add_parser(
        "probe",
        help="send small requests to a live provider and measure the answers (extra: http)",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--route", choices=("paas", "coding"), default="paas", help="the route (default: paas)")
    parser.add_argument("--base-url", metavar="URL", help="what stands before the route (default: https://api.z.ai)")
    parser.add_argument("--model", default="glm-5.2", metavar="NAME", help="the model (default: glm-5.2)")
    parser.add_argument("--case", choices=(*CASE_NAMES, "all"), default="text", help="what to ask (default: text)")
    parser.add_argument("--record", metavar="FILE", help="keep the body, in a new file (default: nothing is kept)")
    parser.add_argument("--connect", type=_seconds, default=10.0, metavar="S", help="to connect (default: 10)")
    parser.add_argument("--first-byte", type=_seconds, default=120.0, metavar="S", help="to a byte (default: 120)")
    parser.add_argument("--idle", type=_seconds, default=60.0, metavar="S", help="without progress (default: 60)")
    parser.add_argument("--total", type=_seconds, default=300.0, metavar="S", help="for an answer (default: 300)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print one JSON object a case (default: a table)")
    form.add_argument("--stream", action="store_true", help="print the answer as it comes; the table goes to stderr")
    parser.add_argument("--reasoning", action="store_true", help="with --stream, show reasoning too (default: hidden)")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """The exit code is the highest one of the single verdicts, as for `check`."""
    need("glmsse probe", "http")
    key = key_from()
    base_url = _checked_url(args.base_url)
    names = CASE_NAMES if args.case == "all" else (args.case,)
    rows: list[tuple[str, ...]] = []
    codes = []
    try:
        for name in names:
            probed = _probe(name, base_url, key, args)
            codes.append(exit_code(probed.verdict))
            if args.json:
                print(masked(json.dumps(_fields(probed)), key), flush=True)
            else:
                rows.append(_row(probed))
            for line in _remarks(probed, recorded=args.record is not None):
                print(f"glmsse: {masked(line, key)}", file=sys.stderr)
            if probed.verdict.stage == "before_sse" or not probed.sent:
                break  # the next case would meet the same
    except KeyboardInterrupt:
        print("glmsse: interrupted: the request may have been answered and billed [replay: ambiguous]", file=sys.stderr)
        raise
    finally:
        if rows:
            print(masked(table(HEAD, rows), key), file=sys.stderr if args.stream else sys.stdout)
    if len(codes) < len(names):
        print(f"glmsse: not asked after that: {', '.join(names[len(codes) :])}", file=sys.stderr)
    return max(codes)


def _probe(name: str, base_url: str | None, key: str, args: argparse.Namespace) -> Probed:
    from . import live  # only here, since it imports what the extra brings

    base = live.BASE_URL if base_url is None else base_url
    path = None if args.record is None else _record_path(args.record, name if args.case == "all" else None)
    shown = _Shown(key, reasoning=args.reasoning) if args.stream else None
    with ExitStack() as stack:
        write = None if path is None else stack.enter_context(_reserved(path))
        if shown is not None:
            stack.callback(shown.end)
        probe = live.Probe(
            url=base + live.PATHS[args.route],
            key=key,
            model=args.model,
            timing=live.Timing(args.connect, args.first_byte, args.idle, args.total),
            on_event=shown.show if shown else _ignore,
            recorder=None if write is None else _recorder(live.PATHS[args.route], live.CASES[name], key, args.model),
            use_proxies=not _is_loopback(base),
        )
        try:
            return asyncio.run(probe.ask(live.CASES[name]))
        finally:
            if write is not None and probe.recording is not None and probe.recording.body:
                _keep(probe, write)


def _recorder(route: str, case: Case, key: str, model: str) -> Recorder:
    tools = case.options.get("tools")
    return Recorder(
        model=model,
        route=route,
        request_template=f"glmsse probe {case.name} 1",
        reading=Reading(tools=None if tools is None else tuple(offered_names(tools) or ())),
        recorded_at=now(),
        recorded_by=f"glmsse probe {__version__}",
        secrets=(key,),
    )


def _keep(probe: Probe, write: Callable[[Recording], None]) -> None:
    assert probe.recording is not None
    try:
        write(probe.recording)
    except OSError as problem:
        print(f"glmsse: not recorded: {problem.strerror or 'it cannot be written'}", file=sys.stderr)
    if probe.recorder is not None and probe.recorder.found_secret:
        print("glmsse: the answer contains the key; it is overwritten in the recording", file=sys.stderr)


def _ignore(*_: object) -> None:
    """Nobody wants it."""


class _Shown:
    """The answer on stdout as it comes, and what the model is doing on a terminal's stderr."""

    def __init__(self, key: str, *, reasoning: bool) -> None:
        self._mask = Mask(key)
        self._shown = (ContentDelta, ReasoningDelta) if reasoning else (ContentDelta,)
        self._states = States()
        self._last = "\n"
        self._state("waiting")

    def show(self, stream: ChatStream, event: ChatEvent) -> None:
        self._state(stream.phase if isinstance(event, Failed) else _STATE_OF_EVENT.get(event.type, stream.phase))
        if isinstance(event, self._shown):
            self._print(self._mask.feed(event.text.encode(errors="surrogatepass")))

    def end(self) -> None:
        self._print(self._mask.close())
        self._states.clear()
        if self._last != "\n":
            print(flush=True)

    def _state(self, state: str) -> None:
        # On one terminal the state would overwrite the line that the answer has begun.
        if self._last == "\n" or not sys.stdout.isatty():
            self._states.show(state)

    def _print(self, data: bytes) -> None:
        if not data:
            return
        if sys.stdout.isatty():
            self._states.clear()
        text = data.decode(errors="surrogatepass")
        self._last = text[-1]
        print(safe(text), end="", flush=True)


@contextmanager
def _reserved(path: str) -> Generator[Callable[[Recording], None], None, None]:
    """Both names of a recording, which nobody has yet; if nothing is written, they are free again.

    A paid answer is not replaced.
    """
    beside = sidecar_path(path)
    if beside is None:
        raise Unreadable(f"--record takes a name that does not end in {SIDECAR_SUFFIX}, as that of the sidecar does")
    with _new_file(path), _new_file(str(beside)):
        yield lambda recording: recording.write(path)


@contextmanager
def _new_file(path: str) -> Generator[None, None, None]:
    try:
        open(path, "xb").close()
    except OSError as problem:
        raise Unreadable(f"{safe(path)}: {problem.strerror or 'cannot be written'}; nothing was sent") from None
    try:
        yield
    finally:
        if os.path.exists(path) and os.path.getsize(path) == 0:
            os.remove(path)


def _record_path(path: str, case: str | None) -> str:
    if case is None:
        return path
    stem, suffix = os.path.splitext(path)
    return f"{stem}-{case}{suffix}"


def _row(probed: Probed) -> tuple[str, ...]:
    evidence = terminal_evidence(probed.verdict, probed.choice, probed.argument_pieces)
    first = "-" if probed.first_relevant is None else _time(probed.first_relevant)
    return probed.case, str(probed.json_events), first, _time(probed.total), evidence, probed.verdict.outcome


def _fields(probed: Probed) -> dict[str, Any]:
    return {
        "case": probed.case,
        "sent": probed.sent,
        "sent_request_id": probed.request_id,
        "events": probed.json_events,
        "first_relevant_seconds": None if probed.first_relevant is None else round(probed.first_relevant, 6),
        "total_seconds": round(probed.total, 6),
        "trouble": probed.trouble,
        **probed.verdict.to_dict(),
    }


def _remarks(probed: Probed, *, recorded: bool) -> Iterator[str]:
    verdict = probed.verdict
    yield f"{probed.case}: {describe(verdict)} (request_id {probed.request_id})"
    if verdict.category:
        yield f"{probed.case}: the provider says: {verdict.category}, code {verdict.provider_code or 'none'}"
    if probed.trouble:
        yield f"{probed.case}: the connection ended with {probed.trouble}"
    if probed.coded and recorded:
        yield f"{probed.case}: not recorded, since the body has a content coding that was not asked for"
    if not probed.sent:
        yield f"{probed.case}: no connection, so nothing was sent [replay: safe]"
    elif verdict.replay == "ambiguous":
        yield f"{probed.case}: it may have been answered and billed, so it is not sent again [replay: ambiguous]"


def _time(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 10 else f"{seconds:.1f} s"


def _parts(url: str) -> SplitResult | None:
    """The parts of a web URL that names a host; None if it is none."""
    try:
        parts = urlsplit(url)
        return parts if parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 else None
    except ValueError:  # a port that is no number, or half of an IPv6 address
        return None


def _checked_url(url: str | None) -> str | None:
    """The key goes over TLS, or to this machine; and a URL with a password would show up in lists of processes."""
    if url is None:
        return None
    parts = _parts(url) if url.isascii() and url.isprintable() and " " not in url else None
    if parts is None or parts.query or parts.fragment:
        raise Unreadable("--base-url takes a URL such as https://api.z.ai")
    if parts.username is not None or parts.password is not None:
        raise Unreadable("--base-url takes no user name or password")
    if parts.scheme == "http" and not _is_loopback(url):
        raise Unreadable("--base-url takes http:// for loopback only: the key would be readable on the way")
    from .live import usable  # as in _probe

    if not usable(url):
        raise Unreadable("--base-url names no host that can be asked")
    return url.rstrip("/")


def _is_loopback(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _seconds(text: str) -> float | None:
    if text == "none":
        return None
    seconds = float(text)
    if not 0 < seconds <= 86400:
        raise argparse.ArgumentTypeError("takes seconds above 0, or none")
    return seconds
