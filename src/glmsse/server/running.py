"""The stand-in provider on a socket: in the foreground, or in a thread for as long as a `with` block lasts."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.http.h11_impl import H11Protocol

from .app import TRANSPORT, create_app

LOOPBACK = "127.0.0.1"
BACKLOG = 4096
STARTS_WITHIN = 10.0


class _Protocol(H11Protocol):
    """Hands the app its transport: some scenarios break the connection, which ASGI has no word for."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self.app_state = {**self.app_state, TRANSPORT: transport}
        super().connection_made(transport)


def listen(host: str = LOOPBACK, port: int = 0) -> socket.socket:
    """A listening socket; OSError if the address is not to be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def server_for(app: Starlette) -> uvicorn.Server:
    """A quiet server: no access log, so nothing of a request is written anywhere."""
    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=_Protocol,
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_level="critical",
            access_log=False,
            server_header=False,
            backlog=BACKLOG,
            timeout_graceful_shutdown=1,
        )
    )


@contextmanager
def stand_in(app: Starlette | None = None) -> Generator[str, None, None]:
    """A server on a free loopback port, in a thread; gives its base URL, such as http://127.0.0.1:54321."""
    server = server_for(create_app() if app is None else app)
    with listen() as listener:
        port = listener.getsockname()[1]
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            _wait_until_started(server, thread)
            yield f"http://{LOOPBACK}:{port}"
        finally:
            server.should_exit = True
            thread.join(STARTS_WITHIN)


def _wait_until_started(server: uvicorn.Server, thread: threading.Thread) -> None:
    end = time.monotonic() + STARTS_WITHIN
    while not server.started:
        if not thread.is_alive() or time.monotonic() > end:
            raise OSError("the stand-in provider did not start")
        time.sleep(0.005)
