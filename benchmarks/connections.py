"""Many streams at once from `glmsse serve` to one client process: `python benchmarks/connections.py [--client httpx]`.

The server is a process of its own. Every stream waits behind its first event until all have begun, so all are open
together. Rows: events a stream, verdicts accepted, seconds, events a second, and the client's peak memory, each row in
a client process of its own. Exit 1 unless every verdict is accepted, or if memory grows with the streams' length. Give
lengths beyond what is buffered for a stream that waits: 400 events with aiohttp, 2000 with httpx.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from glmsse import ChatStream, Deadlines, aiter_events

HEADERS = {"Authorization": "Bearer benchmark", "Accept-Encoding": "identity"}
REQUEST = {"model": "long", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
DEADLINES = Deadlines(total=300)
GROWTH_ALLOWED = 1.25
"""Peak memory of the longest streams to that of the shortest."""


@asynccontextmanager
async def opener(client: str) -> AsyncIterator[Any]:
    """A function from a URL to an async context of (status, headers, source)."""
    if client == "aiohttp":
        import aiohttp

        @asynccontextmanager
        async def with_aiohttp(url: str) -> AsyncIterator[Any]:
            async with session.post(url, headers=HEADERS, json=REQUEST) as response:
                yield response.status, response.headers, response.content.iter_any()

        timeout = aiohttp.ClientTimeout(total=None)
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout) as session:
            yield with_aiohttp
    else:
        import httpx

        @asynccontextmanager
        async def with_httpx(url: str) -> AsyncIterator[Any]:
            async with http.stream("POST", url, headers=HEADERS, json=REQUEST) as response:
                yield response.status_code, response.headers, response.aiter_raw()

        limits = httpx.Limits(max_connections=None, max_keepalive_connections=0)
        async with httpx.AsyncClient(limits=limits, timeout=None, trust_env=False) as http:
            yield with_httpx


async def read_all(client: str, url: str, streams: int) -> tuple[int, int]:
    """Accepted verdicts, and events read."""
    begun = 0
    all_begun = asyncio.Event()

    async def read_one(open_response: Any) -> tuple[bool, int]:
        nonlocal begun
        stream = ChatStream(collect=False)
        async with open_response(url) as (status, headers, source):
            stream.start(status, headers)
            waits = True
            async for _ in aiter_events(source, stream, DEADLINES):
                if waits:
                    waits = False
                    begun += 1
                    if begun == streams:
                        all_begun.set()
                    await all_begun.wait()
        return stream.close().accepted, stream.events_seen

    async with opener(client) as open_response:
        results = await asyncio.gather(*(read_one(open_response) for _ in range(streams)))
    return sum(accepted for accepted, _ in results), sum(events for _, events in results)


def measure(client: str, url: str, streams: int) -> dict[str, float]:
    start = time.perf_counter()
    accepted, events = asyncio.run(asyncio.wait_for(read_all(client, url, streams), 300))
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"accepted": accepted, "events": events, "seconds": seconds, "peak_mib": peak}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--client", choices=("aiohttp", "httpx"), default="aiohttp", help="default: aiohttp")
    parser.add_argument("--streams", type=int, default=1000, help="streams at once (default: 1000)")
    parser.add_argument("--events", type=int, nargs="+", default=[400, 1200], help="default: 400 1200")
    parser.add_argument("--measure", metavar="URL", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.measure:
        print(json.dumps(measure(args.client, args.measure, args.streams)))
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < args.streams + 500:
        resource.setrlimit(resource.RLIMIT_NOFILE, (args.streams + 500, hard))  # for the children
    rows = []
    command = [sys.executable, "-m", "glmsse", "serve", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = server.stdout.readline().split()[-1] + "/api/paas/v4/chat/completions"
            print(f"{args.client}, {args.streams} streams at once")
            print(f"{'events each':>11} {'accepted':>9} {'seconds':>8} {'events/s':>9} {'peak MiB':>9}")
            for events in args.events:
                own = [sys.executable, __file__, "--client", args.client, "--streams", str(args.streams)]
                done = subprocess.run(
                    [*own, "--measure", f"{url}?events={events}"], stdout=subprocess.PIPE, timeout=360, check=True
                )
                row = json.loads(done.stdout)
                rows.append(row)
                rate = row["events"] / row["seconds"]
                print(
                    f"{events:>11} {row['accepted']:>9} {row['seconds']:>8.2f} {rate:>9.0f} {row['peak_mib']:>9.0f}",
                    flush=True,
                )
        finally:
            server.kill()
    flat = rows[-1]["peak_mib"] <= rows[0]["peak_mib"] * GROWTH_ALLOWED
    if not flat:
        print("memory grows with the length of the streams")
    return 0 if flat and all(row["accepted"] == args.streams for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
