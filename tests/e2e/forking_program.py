"""A program `cellar` for what calls it by name: this process forks the command, and it ends as that ends."""

from __future__ import annotations

import json
import socketserver
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.forked import forks

_LIMIT_S = 180.0
_ASKS = """#!{python} -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({address!r})
    asked.sendall(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode() + b"\\n")
    code, out, err = json.loads(asked.makefile().readline())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""


class _Answers(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        arguments, folder, environment = json.loads(self.rfile.readline())
        ended = forks().run(arguments, Path(folder), environment, limit_s=_LIMIT_S)
        self.wfile.write(json.dumps(ended).encode() + b"\n")


@contextmanager
def forking_program(file: Path) -> Iterator[None]:
    """Make the program, which works until the block ends; one command at a time."""
    address = str(file.with_suffix(".socket"))
    file.write_text(_ASKS.format(python=sys.executable, address=address))
    file.chmod(0o755)
    with socketserver.UnixStreamServer(address, _Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
