"""A provider on loopback, as far as clients must meet one: the model's name chooses what it sends."""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from glmsse.scenarios import DONE, SCENARIOS, frame, text, uneven_pieces

WHOLE = SCENARIOS["text"].body
ERROR_BODY = b'{"error":{"code":"1302","message":"too many"},"request_id":"req-1"}'


class Provider(ThreadingHTTPServer):
    """`left` is set once a client has closed a connection that this side kept open;
    `step` lets `one_by_one` go on, `go` all of `paced`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.left = threading.Event()
        self.step = threading.Semaphore(0)
        self.go = threading.Event()
        self.requests: list[dict[str, Any]] = []

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v4"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that leave early are what is tested."""


@contextmanager
def provider() -> Iterator[Provider]:
    server = Provider()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Provider

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(request)
        model = request["model"]
        send = getattr(self, f"send_{model}", None)
        if send is not None:
            send()
        else:
            self.send_pieces(uneven_pieces(SCENARIOS[model].body))

    def head(self, status: int = 200, media_type: str = "text/event-stream;charset=UTF-8", **headers: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def piece(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data))

    def send_pieces(self, pieces: Iterator[bytes]) -> None:
        self.head(Transfer_Encoding="chunked")
        for data in pieces:
            self.piece(data)
        self.wfile.write(b"0\r\n\r\n")

    def wait_until_left(self) -> None:
        """Send nothing more, and see the client close the connection."""
        self.connection.settimeout(20)
        try:
            gone = not self.connection.recv(1)
        except ConnectionResetError:
            gone = True
        if gone:
            self.server.left.set()
        self.close_connection = True

    def send_stays_open(self) -> None:
        self.head(Transfer_Encoding="chunked")
        self.piece(WHOLE)
        self.wait_until_left()

    def send_one_by_one(self) -> None:
        self.head(Transfer_Encoding="chunked")
        for block in WHOLE.removesuffix(b"\n\n").split(b"\n\n"):
            assert self.server.step.acquire(timeout=20)
            self.piece(block + b"\n\n")
        self.wfile.write(b"0\r\n\r\n")

    def send_paced(self) -> None:
        """One event, and the others when all may go on."""
        first, _, rest = WHOLE.partition(b"\n\n")
        self.head(Transfer_Encoding="chunked")
        self.piece(first + b"\n\n")
        assert self.server.go.wait(60)
        self.piece(rest)
        self.wfile.write(b"0\r\n\r\n")

    def send_until_close(self) -> None:
        """A body without length or chunks, which ends with the connection; and this one does not end."""
        self.head(Connection="close")
        self.wfile.write(WHOLE)
        self.wait_until_left()

    def send_stall(self) -> None:
        self.head(Transfer_Encoding="chunked")
        self.piece(frame(text("Ready")))
        self.wait_until_left()

    def send_silence(self) -> None:
        self.head(Transfer_Encoding="chunked")
        self.wait_until_left()

    def send_late(self) -> None:
        self.head(Transfer_Encoding="chunked")
        assert self.server.go.wait(60)
        self.piece(WHOLE)
        self.wfile.write(b"0\r\n\r\n")

    def send_comments(self) -> None:
        self.head(Transfer_Encoding="chunked")
        gone = threading.Event()
        try:
            while not gone.wait(0.01):
                self.piece(b": keep-alive\n\n")
        except OSError:
            self.server.left.set()
        self.close_connection = True

    def send_reset(self) -> None:
        self.head(Transfer_Encoding="chunked")
        self.piece(WHOLE[:-40])
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def send_cut_chunk(self) -> None:
        """The connection ends within a chunk, cleanly by TCP."""
        self.head(Transfer_Encoding="chunked")
        self.wfile.write(b"%x\r\n%b" % (len(WHOLE), WHOLE[:-40]))
        self.close_connection = True

    def send_rate(self) -> None:
        self.head(429, "application/json", Content_Length=str(len(ERROR_BODY)), Retry_After="3")
        self.wfile.write(ERROR_BODY)

    def send_html(self) -> None:
        body = b"<!doctype html><title>log in</title>"
        self.head(200, "text/html", Content_Length=str(len(body)))
        self.wfile.write(body)

    def send_trailing(self) -> None:
        """The end of the body comes a little after the sentinel, as it usually does."""
        self.send_pieces(iter((WHOLE.removesuffix(DONE), DONE, b": bye\n\n")))
