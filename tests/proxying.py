"""A proxy on loopback, for tests: in a thread of this process, with its log at hand."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn
from glmsse.proxy.app import create_app
from glmsse.proxy.settings import Settings


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
