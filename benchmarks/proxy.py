"""What the proxy's tap costs, and what open streams cost: python benchmarks/proxy.py [--streams 2000]

Everything runs on loopback, in processes of its own: an upstream that sends one event a write, a proxy, this client.
Three proxies take turns: `tap` is `glmsse proxy`, `no tap` is the same with a tap that does nothing, and `plain` is the
shortest pass-through on the same stack (Starlette, httpx, uvicorn). Bounded in streams, events and time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import resource
import socket
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from glmsse.proxy import chat
from glmsse.proxy.app import create_app
from glmsse.proxy.passage import Passage
from glmsse.proxy.settings import Settings
from glmsse.scenarios import DONE, finish, frame, text
from glmsse.verdict import Verdict

PATH = "/v1/chat/completions"
SENT_AT = re.compile(rb'"content":"([0-9.]+)"')
MOST_SECONDS = 300
CONNECT_AT_ONCE = 100


# The three proxies and the upstream, each run in a process of its own


class NoTap(Passage):
    """A passage and its stream in one, which does nothing but what `Exchange` needs."""

    def __init__(self, *_: Any, **__: Any) -> None:
        super().__init__(self)  # type: ignore[arg-type]
        self.events_seen = self.fast_events_seen = self.pieces_seen = self.bytes_seen = 0
        self.done = False

    def start(self, *_: Any) -> bool:
        return True

    def close(self, _: Any = None) -> Verdict:
        return Verdict("accepted", done=True)

    def feed(self, data: bytes) -> bytes:
        self.events_seen = 1
        self.pieces_seen += 1
        return data

    def finish(self, _: Any = None) -> bytes:
        return b""


def run_tap(upstream: str, listening: socket.socket) -> None:
    serve(create_app(Settings(upstream=upstream, max_streams=20_000), lambda record: None), listening)


def run_no_tap(upstream: str, listening: socket.socket) -> None:
    chat.Tap = NoTap  # type: ignore[assignment,misc]
    run_tap(upstream, listening)


def run_plain(upstream: str, listening: socket.socket) -> None:
    limits = httpx.Limits(max_connections=20_000)
    client = httpx.AsyncClient(timeout=None, trust_env=False, limits=limits)

    async def forward(request: Request) -> StreamingResponse:
        outgoing = client.build_request("POST", upstream + "/chat/completions", content=await request.body())
        response = await client.send(outgoing, stream=True)
        return StreamingResponse(response.aiter_raw(), media_type="text/event-stream")

    serve(Starlette(routes=[Route(PATH, forward, methods=["POST"])]), listening)


def serve(app: Any, listening: socket.socket) -> None:
    raise_file_limit()
    uvicorn.Server(uvicorn.Config(app, log_level="error", access_log=False)).run(sockets=[listening])


def run_upstream(_: str, listening: socket.socket) -> None:
    raise_file_limit()
    asyncio.run(serve_events(listening))


async def serve_events(listening: socket.socket) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", request.lower())
        assert length
        wanted = json.loads(await reader.readexactly(int(length[1])))
        writer.write(head)
        due = time.monotonic() + wanted["interval"] * (hash(writer) % 997) / 997  # not all at the same moment
        for _ in range(wanted["events"]):
            due += wanted["interval"]
            await asyncio.sleep(max(0.0, due - time.monotonic()))
            write_piece(writer, frame(text(f"{time.monotonic():.6f}")))
            await writer.drain()
        write_piece(writer, frame(finish("stop", wanted["events"] + 15)) + DONE)
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, sock=listening, backlog=4096)
    await server.serve_forever()


def write_piece(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(b"%x\r\n%b\r\n" % (len(data), data))


PROXIES: dict[str, Callable[[str, socket.socket], None]] = {"plain": run_plain, "no tap": run_no_tap, "tap": run_tap}


@contextmanager
def running(target: Callable[[str, socket.socket], None], upstream: str = "") -> Any:
    """The process and its URL."""
    context = multiprocessing.get_context("fork")
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as listening:
        process = context.Process(target=target, args=(upstream, listening), daemon=True)
        process.start()
        try:
            yield process, f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            process.terminate()
            process.join(10)
            if process.is_alive():
                process.kill()


# The client


class Load:
    """Streams read at once, and what was seen of them."""

    def __init__(self, url: str, streams: int, events: int, interval: float) -> None:
        self._port = int(url.rpartition(":")[2])
        self._streams = streams
        self._request = json.dumps({"stream": True, "events": events, "interval": interval}).encode()
        self._gate = asyncio.Semaphore(CONNECT_AT_ONCE)
        self.open = self.most_open = 0
        self.whole = 0
        self.latencies: list[float] = []

    async def run(self) -> None:
        await asyncio.wait_for(asyncio.gather(*(self._read() for _ in range(self._streams))), MOST_SECONDS)

    async def _read(self) -> None:
        async with self._gate:
            reader, writer = await asyncio.open_connection("127.0.0.1", self._port)
            head = (
                f"POST {PATH} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(self._request)}\r\nConnection: close\r\n\r\n"
            )
            writer.write(head.encode() + self._request)
            await reader.readuntil(b"\r\n\r\n")
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        last = b""
        while data := await reader.read(65536):
            now = time.monotonic()
            self.latencies += (now - float(sent) for sent in SENT_AT.findall(data))
            last = (last + data)[-64:]
        self.open -= 1
        self.whole += DONE in last
        writer.close()


def cpu_seconds(process: Any) -> float:
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def rss_bytes(process: Any) -> int:
    pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def raise_file_limit() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def measure_cost(rounds: int, streams: int, events: int, interval: float) -> None:
    """CPU and latency of the three, in turns."""
    cpu: dict[str, list[float]] = {name: [] for name in PROXIES}
    latencies: dict[str, list[float]] = {name: [] for name in PROXIES}
    for _ in range(rounds):
        for name, target in PROXIES.items():
            with running(run_upstream) as (_, upstream), running(target, upstream) as (process, url):
                asyncio.run(Load(url, streams, 5, 0.01).run())  # warm
                before = cpu_seconds(process)
                load = Load(url, streams, events, interval)
                asyncio.run(load.run())
                assert load.whole == streams
                cpu[name].append((cpu_seconds(process) - before) / (streams * events) * 1e6)
                latencies[name] += load.latencies
    print(f"\n{streams} streams of {events} events, one event each {interval * 1000:.0f} ms, {rounds} rounds in turns")
    print(f"{'':8} {'CPU us/event':>13} {'p50 ms':>8} {'p99 ms':>8}")
    for name in PROXIES:
        cuts = statistics.quantiles(latencies[name], n=100)
        print(f"{name:8} {statistics.median(cpu[name]):13.1f} {cuts[49] * 1000:8.2f} {cuts[98] * 1000:8.2f}")
    pairs = [with_tap / without - 1 for with_tap, without in zip(cpu["tap"], cpu["no tap"], strict=True)]
    print(f"the tap adds {statistics.median(pairs):.1%} CPU (median of rounds)")


def measure_held(streams: int, seconds: int) -> None:
    """Memory of many open streams, an event a second each, and whether all come through."""
    for name in ("plain", "tap"):
        with running(run_upstream) as (_, upstream), running(PROXIES[name], upstream) as (process, url):
            asyncio.run(Load(url, 20, 2, 0.01).run())
            empty = rss_bytes(process)
            busy = cpu_seconds(process)
            began = time.monotonic()
            load, most = asyncio.run(hold(process, url, streams, seconds))
            elapsed = time.monotonic() - began
            busy = cpu_seconds(process) - busy
            rate = len(load.latencies) / elapsed
            print(f"\n{name}: {load.most_open} streams at once, {load.whole} whole, {rate:.0f} events/s")
            print(f"  memory {empty / 2**20:.0f} MiB empty, {most / 2**20:.0f} MiB at most", end="")
            print(f" ({(most - empty) / load.most_open / 1024:.1f} KiB a stream), CPU {busy / elapsed:.0%}")
            cuts = statistics.quantiles(load.latencies, n=100)
            print(f"  latency p50 {cuts[49] * 1000:.1f} ms, p99 {cuts[98] * 1000:.1f} ms")
            assert load.whole == streams


async def hold(process: Any, url: str, streams: int, seconds: int) -> tuple[Load, int]:
    load = Load(url, streams, seconds, 1.0)
    most = 0

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, rss_bytes(process))
            await asyncio.sleep(0.2)

    watching = asyncio.create_task(watch())
    await load.run()
    watching.cancel()
    return load, most


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=2000, help="held open at once (default: 2000, 0 skips this)")
    parser.add_argument("--seconds", type=int, default=20, help="that they are held (default: 20)")
    parser.add_argument("--rounds", type=int, default=5, help="of the cost measurement (default: 5, 0 skips it)")
    args = parser.parse_args()
    raise_file_limit()
    if args.rounds:
        measure_cost(args.rounds, streams=20, events=300, interval=0.01)
    if args.streams:
        measure_held(args.streams, args.seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
