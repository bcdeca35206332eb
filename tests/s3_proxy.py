"""A real proxy in front of the S3 server of the tests that does to requests what bad networks do.

It speaks HTTP with both sides and really drops connections, cuts bodies, flips bits and answers errors, by
the same schedules as `tests.store.faulty`. Requests pass with their signatures, which cover the `Host` that
the client sees.
"""

from __future__ import annotations

import http.client
import io
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

from tests.seaweedfs import S3Server
from tests.store.faulty import Call, Fault, Schedule, nothing

_ERRORS = {
    Fault.CONFLICT: (409, "ConditionalRequestConflict"),
    Fault.BUSY: (503, "SlowDown"),
    Fault.FAILED: (500, "InternalError"),
    Fault.FULL: (507, "InsufficientStorage"),
    Fault.DENIED: (403, "AccessDenied"),
}
_BROKEN = (Fault.REFUSED, Fault.DROPPED, Fault.LANDED, Fault.LATE)
_RESET = struct.pack("ii", 1, 0)
"""Socket option with which closing a connection resets it."""


@dataclass(frozen=True)
class Answer:
    """What the server said."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes


@dataclass
class S3Proxy:
    """A running proxy; `schedule` may be changed at any time, and `met` lists what happened."""

    server: S3Server
    endpoint: str = ""
    schedule: Schedule = nothing
    met: list[tuple[Call, Fault]] = field(default_factory=list)
    silent: bool = False
    """Whether what breaks a connection leaves the client waiting instead of resetting it."""
    late: list[tuple[threading.Event, threading.Thread]] = field(default_factory=list)
    calls: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def arrive(self) -> None:
        """Let all requests that are under way reach the server, and wait until it has answered them."""
        while self.late:
            arrived, thread = self.late.pop()
            arrived.set()
            thread.join()

    def meet(self, kind: str, key: str) -> Fault | None:
        """Count a request and return the fault that it meets."""
        with self.lock:
            call = Call(self.calls, kind, key)
            self.calls += 1
            fault = self.schedule(call)
            if fault is not None:
                self.met.append((call, fault))
            return fault

    def forward(self, method: str, path: str, headers: list[tuple[str, str]], body: bytes) -> Answer:
        """Send a request to the server as it came."""
        target = urlsplit(self.server.endpoint)
        upstream = http.client.HTTPConnection(str(target.hostname), target.port, timeout=60)
        try:
            upstream.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
            for name, value in headers:
                upstream.putheader(name, value)
            upstream.endheaders(body)
            answer = upstream.getresponse()
            return Answer(answer.status, answer.getheaders(), answer.read())
        finally:
            upstream.close()


@contextmanager
def s3_proxy(server: S3Server) -> Iterator[S3Proxy]:
    """Run a proxy in front of `server`."""
    proxy = S3Proxy(server)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            dropped = ("connection", "expect")
            headers = [(name, value) for name, value in self.headers.items() if name.lower() not in dropped]
            request = (self.command, self.path, headers, body)
            fault = proxy.meet(*_what(self.command, self.path, dict(headers), server.bucket))
            if fault is Fault.GARBLED:
                request = (self.command, self.path, headers, _flipped(body))
            if fault in (Fault.LANDED, Fault.FAILED_AFTER, Fault.REPEATED):
                proxy.forward(*request)
            if fault is Fault.LATE:
                self._send_later(*request)
            if fault in _BROKEN:
                self._break_off()
            elif fault is Fault.FAILED_AFTER:
                page = b"<html><body><h1>504 Gateway Time-out</h1></body></html>"
                self._answer(Answer(504, [("Content-Type", "text/html")], page))
            elif fault in _ERRORS:
                status, code = _ERRORS[fault]
                xml = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>proxy</Message></Error>"
                self._answer(Answer(status, [("Content-Type", "application/xml")], xml.encode()))
            else:
                self._answer(proxy.forward(*request), fault)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on

        def _send_later(self, *request: object) -> None:
            arrived = threading.Event()

            def send() -> None:
                arrived.wait()
                proxy.forward(*request)  # type: ignore[arg-type]

            thread = threading.Thread(target=send, daemon=True)
            thread.start()
            proxy.late.append((arrived, thread))

        def _break_off(self) -> None:
            if proxy.silent:
                self.rfile.read(1)  # returns when the client hangs up
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            self.close_connection = True
            self.rfile.close()
            self.wfile.close()
            self.connection.close()
            self.wfile = io.BytesIO()  # what the base class flushes and closes at the end

        def _answer(self, answer: Answer, fault: Fault | None = None) -> None:
            body = _flipped(answer.body) if fault is Fault.FLIPPED else answer.body
            length = str(len(body))
            self.send_response_only(answer.status)
            for name, value in answer.headers:
                if name.lower() == "content-length":
                    length = value
                elif name.lower() not in ("connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command == "HEAD":
                return
            if fault is Fault.SHORT:
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                self.close_connection = True
                with suppress(OSError):
                    self.connection.shutdown(socket.SHUT_RDWR)
            else:
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Keep the test's output clean."""

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    proxy.endpoint = f"http://127.0.0.1:{running.server_port}"
    try:
        yield proxy
    finally:
        proxy.arrive()
        running.shutdown()
        thread.join()
        running.server_close()


def _what(method: str, path: str, headers: dict[str, str], bucket: str) -> tuple[str, str]:
    """Return the kind of call and the key, both as `tests.store.faulty` names them."""
    parts = urlsplit(path)
    query = parse_qs(parts.query)
    if method == "GET" and "list-type" in query:
        return "list", query.get("prefix", [""])[0]
    kinds = {"GET": "read", "HEAD": "info", "DELETE": "delete", "PUT": "put"}
    names = {name.lower() for name in headers}
    kind = kinds.get(method, method)
    if kind == "put":
        kind = "create" if "if-none-match" in names else "replace" if "if-match" in names else "put"
    return kind, unquote(parts.path).removeprefix(f"/{bucket}/").partition("/")[2]


def _flipped(body: bytes) -> bytes:
    """Return `body` with one bit wrong, in its middle."""
    middle = len(body) // 2
    return body[:middle] + bytes([body[middle] ^ 1]) + body[middle + 1 :] if body else body
