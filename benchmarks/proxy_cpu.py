"""What the proxy's tap adds in CPU, at one event a read: python benchmarks/proxy_cpu.py [--most 0.05]

Two workers are alive at once: `glmsse proxy` as it is, and the same with a tap that does nothing. This process is both
the upstream and the client of each: it sends one event to every stream of a worker and waits until all have come
through, so each read of the worker is one event, whatever else the machine does. The workers take turns in short
blocks, the order changing. CPU is the scheduler's own count of nanoseconds, of user and kernel. What else the machine
does only ever makes a block dearer, so the first deciles of both are compared; the median of pairs is shown beside it.
With --most it fails (exit 1) if the tap adds more than that share.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from glmsse.scenarios import DONE, finish, frame, text
from proxy import PATH, raise_file_limit, run_no_tap, run_tap, running

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
WARM_EVENTS = 200
PATIENCE = 300


class Worker:
    """A proxy with its streams, all in step."""

    def __init__(self, process: Any, url: str, upstream: socket.socket, streams: int) -> None:
        self._pid = process.pid
        self._sent = 0
        self._pairs = [self._open(url, upstream) for _ in range(streams)]

    def _open(self, url: str, upstream: socket.socket) -> tuple[socket.socket, socket.socket]:
        client = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), timeout=PATIENCE)
        body = json.dumps({"stream": True}).encode()
        client.sendall(
            b"POST %b HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (PATH.encode(), len(body), body)
        )
        server, _ = upstream.accept()
        for end in (client, server):
            end.settimeout(PATIENCE)
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        read_until(server, body)
        server.sendall(HEAD)
        read_until(client, b"\r\n\r\n")
        return server, client

    def pass_events(self, count: int) -> int:
        """So many events through each stream; the nanoseconds of CPU that the worker took."""
        before = self._cpu()
        for _ in range(count):
            self._sent += 1
            self._pass(frame(text(f" word{self._sent % 1000}")))
        return self._cpu() - before

    def end(self) -> None:
        """All streams must come to a normal end."""
        self._pass(frame(finish("stop", self._sent + 15)) + DONE)
        for pair in self._pairs:
            for end in pair:
                end.close()

    def _pass(self, data: bytes) -> None:
        piece = b"%x\r\n%b\r\n" % (len(data), data)
        for server, _ in self._pairs:
            server.sendall(piece)
        for _, client in self._pairs:
            read_until(client, data)

    def _cpu(self) -> int:
        return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{self._pid}/task").glob("*/schedstat"))


def read_until(connection: socket.socket, end: bytes) -> None:
    received = b""
    while end not in received:
        data = connection.recv(65536)
        assert data, "the proxy cut a stream"
        received += data


def measure(pairs: int, streams: int, events: int) -> list[tuple[float, float]]:
    """Microseconds an event, with the tap and without, a pair of blocks each."""
    targets: list[Callable[[str, socket.socket], None]] = [run_tap, run_no_tap]
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as upstream:
        url = f"http://127.0.0.1:{upstream.getsockname()[1]}"
        with running(targets[0], url) as first, running(targets[1], url) as second:
            workers = [Worker(*started, upstream, streams) for started in (first, second)]
            for worker in workers:
                worker.pass_events(WARM_EVENTS)
            measured = []
            for turn in range(pairs):
                order = (0, 1) if turn % 2 else (1, 0)
                taken = {at: workers[at].pass_events(events) / (streams * events) / 1000 for at in order}
                measured.append((taken[0], taken[1]))
            for worker in workers:
                worker.end()
    return measured


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=200, help="of blocks (default: 200)")
    parser.add_argument("--streams", type=int, default=20, help="of each worker, in step (default: 20)")
    parser.add_argument("--events", type=int, default=20, help="a stream and block (default: 20)")
    parser.add_argument("--most", type=float, metavar="SHARE", help="that the tap may add (default: only print)")
    args = parser.parse_args()
    multiprocessing.set_start_method("fork")
    raise_file_limit()
    measured = measure(args.pairs, args.streams, args.events)
    shares = [with_tap / without - 1 for with_tap, without in measured]
    with_tap, without = (statistics.quantiles(column, n=10)[0] for column in zip(*measured, strict=True))
    low, middle, high = statistics.quantiles(shares, n=4)
    added = with_tap / without - 1
    print(f"{args.pairs} pairs of blocks, {args.streams} streams of {args.events} events each")
    print(f"with the tap {with_tap:.1f} us an event, without {without:.1f} us")
    print(f"the tap adds {added:.1%} (median of pairs {middle:.1%}, half of them between {low:.1%} and {high:.1%})")
    return 1 if args.most is not None and added > args.most else 0


if __name__ == "__main__":
    sys.exit(main())
