"""The server goes away and comes back in the middle of a job: the job ends as on a server that stayed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from store import Store
from store.backend import open_backend
from store.errors import CommitStateUnknown, ConflictError, StorageUnavailable
from store.store import create_format
from tests.seaweedfs import ServerProcess
from tests.store.faulty import FaultyBackend
from tests.store.killed_writer import work
from tests.store.memory import MemoryBackend

T = TypeVar("T")
CALLS = 72
"""Calls of the storage that the job makes, about."""
AT = [(25, "later")]
MORE = [(60, "at once"), *((at, back) for at in range(1, CALLS, 10) for back in ("later", "at once"))]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """Return a server of this module alone, with its credentials in the environment."""
    running = ServerProcess(tmp_path_factory.mktemp("restarted"))
    with pytest.MonkeyPatch.context() as patch:
        for name, value in running.server.environment().items():
            patch.setenv(name, value)
        try:
            running.start()
            yield running
        finally:
            running.stop()


@pytest.fixture(scope="module")
def undisturbed() -> str:
    return work(MemoryBackend())


def patiently(act: Callable[[], T]) -> T:
    """Repeat what the storage cannot serve: a server that came back needs a while to find all its data."""
    for _ in range(20):
        try:
            return act()
        except (StorageUnavailable, CommitStateUnknown):
            continue
    return act()


@pytest.mark.parametrize("number", [pytest.param(signal.SIGTERM, marks=pytest.mark.nightly), signal.SIGKILL])
def test_what_the_server_acknowledged_survives_its_end(process: ServerProcess, number: int) -> None:
    """SeaweedFS does not wait for the disk, so this holds for the end of the process, not of the machine."""
    url = process.server.url()
    written: list[str] = []
    enough = threading.Event()

    def write(worker: int) -> None:
        backend = open_backend(url)
        for count in range(10_000):
            key = f"log/{worker}-{count:05d}"
            try:
                backend.create(key, key.encode())
            except (StorageUnavailable, ConflictError):
                return
            written.append(key)
            if len(written) > 60:
                enough.set()

    with ThreadPoolExecutor(4) as pool:
        for worker in range(4):
            pool.submit(write, worker)
        assert enough.wait(60)
        process.stop(number)
    process.start()

    backend = open_backend(url)
    assert {item.key for item in patiently(lambda: list(backend.list("log/")))} >= set(written)
    for key in written:
        assert patiently(lambda key=key: backend.read(key)) == key.encode()  # type: ignore[misc]


@pytest.mark.parametrize(
    ("at", "back"), AT + [pytest.param(*case, marks=pytest.mark.nightly) for case in MORE]
)
def test_a_job_ends_as_ever_on_a_server_that_was_away(
    process: ServerProcess, undisturbed: str, at: int, back: str
) -> None:
    url = process.server.url()
    patiently(lambda: create_format(open_backend(url)))
    backend = FaultyBackend(open_backend(url))
    stopped: list[int] = []

    def stop() -> None:
        if backend.calls == at and not stopped:
            stopped.append(at)
            process.stop(signal.SIGKILL if at % 2 else signal.SIGTERM)
            if back == "at once":
                process.start()

    backend.pause = stop
    if back == "later":
        with pytest.raises((StorageUnavailable, CommitStateUnknown)):
            work(backend)
        process.start()

    assert patiently(lambda: work(backend)) == undisturbed
    assert stopped
    store = patiently(lambda: Store.open(url))
    assert patiently(lambda: store.verify(full=True)).findings == ()
    assert store.snapshot("done").id == store.snapshot("main").id == undisturbed
    assert [commit.elements for commit in store.log()] == [1, 24, 0]
