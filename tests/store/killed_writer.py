"""A process that builds, commits, pins and tags, and kills itself around its k-th write to the storage.

    python -m tests.store.killed_writer URL K before|after

With K = -1 it runs to the end and prints the snapshot id and the number of writes it made.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable

from store import Store
from store.backend import Backend, Body, open_backend
from store.format import DOCTOR_PREFIX
from store.store import create_format
from tests.store.samples import codec, memory

UNITS = 3


class Killer:
    """Counts writes and kills the process, with no chance to clean up, before or after one of them."""

    def __init__(self, at: int, when: str) -> None:
        self.count = 0
        self._at = at
        self._when = when
        self._lock = threading.RLock()
        self._inside = False

    def around(self, key: str, write: Callable[[], None]) -> None:
        """Do one write, or die; packs are written by several threads, and probing a bucket counts not."""
        if key.startswith(DOCTOR_PREFIX):
            write()
            return
        with self._lock:
            if self._inside:  # a folder replaces by putting
                write()
                return
            self._inside = True
            if (self.count, self._when) == (self._at, "before"):
                os.kill(os.getpid(), signal.SIGKILL)
            try:
                write()
            finally:
                self._inside = False
            if (self.count, self._when) == (self._at, "after"):
                os.kill(os.getpid(), signal.SIGKILL)
            self.count += 1


def deadly(backend: Backend, killer: Killer) -> Backend:
    """Return the same backend with every write passing through `killer`."""
    put, create, replace = backend.put, backend.create, backend.replace

    def killed_put(key: str, body: Body) -> None:
        killer.around(key, lambda: put(key, body))

    def killed_create(key: str, body: Body) -> None:
        killer.around(key, lambda: create(key, body))

    def killed_replace(key: str, body: Body, *, token: str) -> None:
        killer.around(key, lambda: replace(key, body, token=token))

    backend.put = killed_put  # type: ignore[method-assign]
    backend.create = killed_create  # type: ignore[method-assign]
    backend.replace = killed_replace  # type: ignore[method-assign]
    return backend


def work(backend: Backend) -> str:
    """Run the whole job, continuing whatever an earlier run left; return the snapshot id."""
    create_format(backend)
    store = Store(backend)
    [needed] = store.publish([codec()], message="codec")
    build = store.build("job", owner="test", target_bytes=2048)
    receipts = build.receipts()
    for unit in range(UNITS):
        name = f"unit/{unit}"
        if name not in receipts:
            with build.writer(name) as writer:
                for number in range(8):
                    writer.add(memory(unit * 10 + number, size=700, requires=(needed.version,)))
                receipts[name] = writer.finish()
    build.commit(receipts, message="job")
    snapshot = store.pin([row.ref for row in store.catalog().rows()], message="job")
    store.tag("done", snapshot.id)
    if store.head("main") != snapshot.id:
        store.move_head("main", snapshot.id, expect=store.head("main"))
    return snapshot.id


if __name__ == "__main__":
    killer = Killer(int(sys.argv[2]), sys.argv[3])
    identity = work(deadly(open_backend(sys.argv[1]), killer))
    sys.stdout.write(f"{identity} {killer.count}\n")
