"""A proxy on loopback, for tests: in a thread of this process, with its log at hand."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from glmsse.proxy.app import create_app
from glmsse.proxy.settings import Settings
from loopback import WHOLE


class Running:
    """`log` holds the records so far; `answered` waits for one more to come."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.log: list[dict[str, Any]] = []
        self._logged = threading.Semaphore(0)

    def write(self, record: dict[str, Any]) -> None:
        self.log.append(record)
        self._logged.release()

    def answered(self) -> dict[str, Any]:
        assert self._logged.acquire(timeout=20)
        return self.log[-1]


@contextmanager
def proxy(upstream: str, **settings: Any) -> Iterator[Running]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(512)
        running = Running(listening.getsockname()[1])
        app = create_app(Settings(upstream=upstream, **settings), running.write)
        config = uvicorn.Config(app, log_level="critical", access_log=False, timeout_graceful_shutdown=2)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            yield running
        finally:
            server.should_exit = True
            thread.join(20)


class Recorder:
    """An upstream that keeps the last request and answers with whatever bytes it was given."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.headers: dict[str, str] = {}
        self.body = b""
        self.answer = b""
        self.serve(WHOLE)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def serve(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
        self.answer = head + body

    def close(self) -> None:
        self._listening.close()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with connection:
                connection.settimeout(20)
                try:
                    self._answer(connection)
                except OSError:
                    continue  # the proxy has left, as some tests want it to

    def _answer(self, connection: socket.socket) -> None:
        received = b""
        while b"\r\n\r\n" not in received:
            received += connection.recv(65536)
        head, _, body = received.partition(b"\r\n\r\n")
        lines = [line.partition(": ") for line in head.decode().split("\r\n")[1:]]
        self.headers = {name.lower(): value for name, _, value in lines}
        while len(body) < int(self.headers["content-length"]):
            body += connection.recv(65536)
        self.body = body
        connection.sendall(self.answer)


def start_command(upstream: str, *options: str) -> subprocess.Popen[str]:
    """`glmsse proxy` in a process of its own, on a free port."""
    command = [sys.executable, "-m", "glmsse", "proxy", "--upstream", upstream, "--port", "0", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def port_of(process: subprocess.Popen[str]) -> int:
    assert process.stderr is not None
    for line in process.stderr:
        found = re.search(r"listening on port (\d+)", line)
        if found:
            return int(found[1])
    raise AssertionError("the proxy did not start")


def stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for stream in (process.stdout, process.stderr):
        if stream is not None:
            stream.close()
