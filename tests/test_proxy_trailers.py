"""The verdict as a trailer: by the servers that can write one, read by curl."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import hypercorn.asyncio
import hypercorn.config
import pytest

from glmsse.proxy.app import create_app
from glmsse.proxy.settings import Settings
from glmsse.scenarios import SCENARIOS
from loopback import ERROR_BODY, Provider, provider
from proxying import port_of, start_command, stop

VERDICTS = {
    "tool": "outcome=accepted code=- replay=pointless",
    "conflict": "outcome=protocol_error code=stable_conflict replay=ambiguous",
    "length": "outcome=not_accepted code=finish_length replay=pointless",
}


@contextmanager
def by_uvicorn(upstream: str) -> Iterator[int]:
    if sys.version_info < (3, 11):
        pytest.skip("zttp needs Python 3.11")
    process = start_command(upstream, "--http2")
    try:
        yield port_of(process)
    finally:
        stop(process)


@contextmanager
def by_hypercorn(upstream: str) -> Iterator[int]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    config = hypercorn.config.Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.errorlog = None
    loop, ending = asyncio.new_event_loop(), asyncio.Event()

    async def run() -> None:
        app: Any = create_app(Settings(upstream=upstream), lambda record: None)
        await hypercorn.asyncio.serve(app, config, shutdown_trigger=ending.wait)

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield port
    finally:
        loop.call_soon_threadsafe(ending.set)
        thread.join(20)
        loop.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


@pytest.fixture(scope="module", params=[by_uvicorn, by_hypercorn], ids=lambda start: start.__name__)
def port(request: pytest.FixtureRequest, server: Provider) -> Iterator[int]:
    with request.param(server.base_url) as started:
        yield started


def curl(port: int, model: str, *options: str, stream: str = "true") -> tuple[str, bytes]:
    """Head and trailers, and the body between them."""
    program = shutil.which("curl")
    assert program, "curl is needed: apt-get install curl"
    body = f'{{"model":"{model}","stream":{stream}}}'
    command = [program, "-sN", "--noproxy", "*", "--max-time", "20", "-D", "/dev/stderr", "-d", body, *options]
    ran = subprocess.run([*command, f"http://127.0.0.1:{port}/v1/chat/completions"], capture_output=True, timeout=30)
    assert ran.returncode == 0
    head = ran.stderr.decode()
    trailer = head.rpartition("\r\n\r\n")[2].encode()
    return head, ran.stdout.removesuffix(trailer)


HTTP2 = ("--http2-prior-knowledge", "-H", "TE: trailers")


@pytest.mark.parametrize("model", VERDICTS)
def test_the_verdict_is_a_trailer_over_http2(port: int, model: str) -> None:
    head, body = curl(port, model, *HTTP2)

    assert head.startswith("HTTP/2 200")
    assert "\r\ntrailer: glmsse-verdict\r\n" in head
    assert head.endswith(f"\r\n\r\nglmsse-verdict: {VERDICTS[model]}\r\n")
    if model != "conflict":
        assert body == SCENARIOS[model].body


@pytest.mark.parametrize("options", [("--http1.1", "-H", "TE: trailers"), ("--http2-prior-knowledge",)])
def test_there_is_no_trailer_for_others(port: int, options: tuple[str, ...]) -> None:
    head, body = curl(port, "tool", *options)

    assert "glmsse-verdict" not in head
    assert body == SCENARIOS["tool"].body


def test_what_passes_as_it_is_ends_without_a_trailer(port: int) -> None:
    head, body = curl(port, "rate", *HTTP2)
    assert (head.split()[1], body) == ("429", ERROR_BODY)
    assert "glmsse-verdict" not in head

    head, body = curl(port, "html", *HTTP2, stream="false")
    assert (head.split()[1], body) == ("200", b"<!doctype html><title>log in</title>")
    assert "glmsse-verdict" not in head


def test_a_client_that_leaves_over_http2_cancels_the_upstream(port: int, server: Provider) -> None:
    server.left.clear()
    program = shutil.which("curl")
    assert program
    command = [program, "-sN", "--noproxy", "*", *HTTP2, "-d", '{"model":"stall","stream":true}']
    url = f"http://127.0.0.1:{port}/v1/chat/completions"
    with subprocess.Popen([*command, url], stdout=subprocess.PIPE) as client:
        assert client.stdout is not None
        assert client.stdout.readline().startswith(b"data: ")
        client.kill()

    assert server.left.wait(10)
