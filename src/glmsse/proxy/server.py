"""Runs the application under uvicorn, in one process or several."""

from __future__ import annotations

import os
import shutil
import socket as tcp
import sys
import tempfile
from functools import partial

import uvicorn
from uvicorn.supervisors import Multiprocess

from .app import create_app
from .metrics import SHARED_DIRECTORY  # fails first where the extra is missing
from .settings import Settings

_BACKLOG = 2048
_CONNECTIONS_BESIDE_STREAMS = 256
"""For health checks, metrics and connections that wait for their next request."""


def serve(
    settings: Settings, host: str, port: int, *, workers: int = 1, drain_seconds: int = 60, http2: bool = False
) -> None:
    """Returns when a signal has ended it and the open answers are through, or their time is over.

    http2  HTTP/2 by prior knowledge beside HTTP/1.1, by an implementation that uvicorn calls experimental
    """
    config = uvicorn.Config(
        partial(create_app, settings),
        factory=True,
        host=host,
        port=port,
        workers=workers,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        http="zttp" if http2 else "h11",  # the one that holds the limit of headers
        http2=http2,
        limit_concurrency=settings.max_streams + _CONNECTIONS_BESIDE_STREAMS,
        timeout_graceful_shutdown=drain_seconds,
        h11_max_incomplete_event_size=max(settings.max_header_bytes, 16 * 1024),
        backlog=_BACKLOG,
    )
    socket = config.bind_socket()
    if hasattr(tcp, "TCP_USER_TIMEOUT"):  # connections inherit it: a client that takes nothing any more loses its own
        socket.setsockopt(tcp.IPPROTO_TCP, tcp.TCP_USER_TIMEOUT, max(1000, round(settings.send_seconds * 1000)))
    socket.listen(_BACKLOG)  # from here on clients wait instead of being refused
    print(f"glmsse: listening on port {socket.getsockname()[1]}", file=sys.stderr, flush=True)
    if workers == 1:
        uvicorn.Server(config).run(sockets=[socket])
        return
    directory = os.environ.get(SHARED_DIRECTORY)
    own = None if directory else tempfile.mkdtemp(prefix="glmsse-metrics-")
    if own:
        os.environ[SHARED_DIRECTORY] = own  # the workers inherit it
    try:
        Multiprocess(config, sockets=[socket]).run()
    finally:
        if own:
            shutil.rmtree(own, ignore_errors=True)
