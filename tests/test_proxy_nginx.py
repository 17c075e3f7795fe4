"""Two proxies behind nginx, one killed while streams are open: no cut stream looks whole, no other is touched."""

from __future__ import annotations

import shutil
import socket
import subprocess
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

SHIPPED = Path(__file__).resolve().parents[1] / "deploy" / "nginx.conf"
PORTS = ("8642", "8643", "8080")

AROUND_IT = """
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


@pytest.fixture
def server() -> Iterator[Provider]:
    with provider() as running:
        yield running


def nginx_command(directory: Path, ports: tuple[int, int, int]) -> list[str]:
    """The file that is shipped, with other ports: two instances' and nginx's own."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    assert program, "nginx is needed: apt-get install nginx-light"
    directory.chmod(0o755)
    shipped = SHIPPED.read_text()
    for theirs, ours in zip(PORTS, ports, strict=True):
        assert shipped.count(f"127.0.0.1:{theirs};") == 1
        shipped = shipped.replace(f"127.0.0.1:{theirs};", f"127.0.0.1:{ours};")
    (directory / "glmsse.conf").write_text(shipped)
    config = directory / "nginx.conf"
    config.write_text(AROUND_IT.format(directory=directory))
    return [program, "-p", str(directory), "-c", str(config), "-e", str(directory / "error.log")]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def nginx(directory: Path, first: int, second: int) -> Iterator[str]:
    port = free_port()
    process = subprocess.Popen(nginx_command(directory, (first, second, port)))
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(200):
            try:
                httpx.get(url + "/healthz", trust_env=False)
                break
            except httpx.ConnectError:
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


def test_nginx_finds_nothing_wrong_with_the_file(tmp_path: Path) -> None:
    command = nginx_command(tmp_path, (free_port(), free_port(), free_port()))

    ran = subprocess.run([*command, "-t"], capture_output=True, text=True, timeout=30)

    assert ran.returncode == 0, ran.stderr
    assert "[warn]" not in ran.stderr


def test_a_killed_instance_cuts_its_own_streams_only(server: Provider, tmp_path: Path) -> None:
    processes = [start_command(server.base_url) for _ in range(2)]
    try:
        first, second = map(port_of, processes)
        with nginx(tmp_path, first, second) as url:
            clients = [Client(url + "/v1/chat/completions") for _ in range(STREAMS)]
            for client in clients:
                client.start()
                assert client.begun.wait(20)
            processes[0].kill()
            processes[0].wait(20)
            server.go.set()
            for client in clients:
                client.join(30)
                assert not client.is_alive()

            hidden = httpx.get(url + "/metrics", trust_env=False)
            after = httpx.post(
                url + "/v1/chat/completions", json={"model": "text", "stream": True}, timeout=30, trust_env=False
            )
    finally:
        server.go.set()
        for process in processes:
            stop(process)

    whole = [client for client in clients if client.received == WHOLE]
    cut = [client for client in clients if client.received != WHOLE]
    assert len(whole) == len(cut) == STREAMS // 2
    assert hidden.status_code == 404
    assert all(client.verdict for client in whole)
    assert {client.verdict.outcome for client in cut if client.verdict is not None} == {"incomplete"}
    assert all(WHOLE.startswith(client.received) for client in cut)
    assert after.content == SCENARIOS["text"].body
