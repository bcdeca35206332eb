"""A real proxy in front of the S3 server of the tests that breaks chosen promises of S3.

It takes the requests of any client, leaves out headers, signs what is left again with the server's
credentials, and passes the answer on. So a client sees a server that accepts conditions without enforcing
them, as some do.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from email.utils import format_datetime, parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest, AWSResponse
from botocore.credentials import Credentials
from botocore.httpsession import URLLib3Session

from tests.seaweedfs import S3Server

_OF_THE_CONNECTION = {"authorization", "connection", "content-length", "date", "expect", "host", "x-amz-date"}


@dataclass(frozen=True)
class Lax:
    """What the proxy does wrong.

    `ignores` are headers that it drops; with `looks_first` it enforces conditions by looking at the object
    and then writing, which is right for one client and wrong in a race; `shift` moves its clock; requests
    that match `denies` (as "METHOD path") are denied, as a policy would.
    """

    ignores: frozenset[str] = frozenset()
    looks_first: bool = False
    shift: timedelta = timedelta(0)
    denies: str = ""


@contextmanager
def lax_proxy(server: S3Server, lax: Lax) -> Iterator[str]:
    """Run a proxy in front of `server` and yield its endpoint."""
    no_delay = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)]
    upstream = URLLib3Session(max_pool_connections=32, socket_options=no_delay)
    looked = threading.Barrier(2)
    credentials = Credentials(server.access_key, server.secret_key)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # or every answer waits 40 ms for an acknowledgement, as below

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            headers = {
                name: value for name, value in self.headers.items() if name.lower() not in _OF_THE_CONNECTION
            }
            headers = {name: value for name, value in headers.items() if name.lower() not in lax.ignores}
            if lax.denies and re.search(lax.denies, f"{self.command} {self.path}"):
                self._answer(403, {}, b"<Error><Code>AccessDenied</Code></Error>")
                return
            if lax.looks_first and self.command == "PUT":
                refusal = self._look(headers)
                if refusal:
                    self._answer(refusal, {}, b"")
                    return
            answer = self._send(self.command, headers, body)
            self._answer(answer.status_code, dict(answer.headers), answer.content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _pass_on

        def _look(self, headers: dict[str, str]) -> int:
            """Check the conditions before the write and take them out of it; return a status that refuses."""
            absent, token = (headers.pop(name, None) for name in ("If-None-Match", "If-Match"))
            if absent is None and token is None:
                return 0
            found = self._send("HEAD", {}, b"")
            if absent is not None:
                refusal = 412 if found.status_code == 200 else 0
            elif found.status_code == 404:
                refusal = 404
            else:
                refusal = 0 if found.headers["ETag"] == token else 412
            try:
                looked.wait(0.05)  # for somebody else who has looked and not yet written, if there is one
            except threading.BrokenBarrierError:
                looked.reset()
            return refusal

        def _send(self, method: str, headers: dict[str, str], body: bytes) -> AWSResponse:
            request = AWSRequest(method=method, url=server.endpoint + self.path, headers=headers, data=body)
            S3SigV4Auth(credentials, "s3", "us-east-1").add_auth(request)
            return upstream.send(request.prepare())

        def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() in ("date", "last-modified"):
                    value = format_datetime(parsedate_to_datetime(value) + lax.shift, usegmt=True)
                if name.lower() not in ("connection", "content-length", "transfer-encoding"):
                    self.send_header(name, value)
            length = headers.get("Content-Length", "0") if self.command == "HEAD" else str(len(body))
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *args: object) -> None:
            """Keep the test's output clean."""

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    proxy.daemon_threads = True
    thread = threading.Thread(target=proxy.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{proxy.server_port}"
    finally:
        proxy.shutdown()
        thread.join()
        proxy.server_close()
        upstream.close()
