"""kill -9 of a writer at its writes: the store stays whole, and a rerun ends as an undisturbed run does.

The default run takes a sample of the moments, the nightly one all of them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from store import Store
from store.backend import open_backend
from store.errors import NotAStore
from store.format import DOCTOR_PREFIX
from tests.s3_proxy import S3Proxy, s3_proxy
from tests.seaweedfs import S3Server
from tests.store.faulty import Call, Fault, nothing
from tests.store.killed_writer import work
from tests.store.samples import codec, memory

ROOT = Path(__file__).parents[2]
WRITES = 29
"""Writes of an undisturbed run; asserted below, so that no boundary is left out unnoticed."""
MOMENTS = [(at, when) for at in range(WRITES) for when in ("before", "after")]


def sample(cases: Iterable[Any], every: int) -> list[Any]:
    """Leave all but some of the cases to the nightly run."""
    return [
        pytest.param(case, marks=[] if number % every == 0 else [pytest.mark.nightly])
        for number, case in enumerate(cases)
    ]


def command(url: str, at: int, when: str) -> list[str]:
    return [sys.executable, "-m", "tests.store.killed_writer", url, str(at), when]


def run(url: str, at: int, when: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(url, at, when), cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    done = run(str(tmp_path_factory.mktemp("undisturbed") / "store"), -1, "before")
    assert done.returncode == 0, done.stderr
    identity, writes = done.stdout.split()
    assert int(writes) == WRITES
    return identity


def check_as_killed(url: str) -> None:
    """Check what a killed writer left: a build is never half visible."""
    store = Store.open(url)
    assert store.verify(full=True).findings == ()
    assert len(store.catalog()) in (0, 1, 25)  # nothing, the codec alone, or everything


def check_as_undisturbed(url: str, undisturbed: str) -> None:
    store = Store.open(url)
    assert store.verify(full=True).findings == ()
    assert store.snapshot("done").id == store.snapshot("main").id == undisturbed
    assert store.read(memory(7, size=700, requires=(codec().version,)).ref) == memory(7, size=700).payload
    assert [commit.elements for commit in store.log()] == [1, 24, 0]


def check_after_kill(url: str, at: int, when: str, undisturbed: str) -> None:
    dead = run(url, at, when)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    try:
        check_as_killed(url)
    except NotAStore:
        assert (at, when) == (0, "before")

    assert work(open_backend(url)) == undisturbed

    check_as_undisturbed(url, undisturbed)


@pytest.mark.parametrize("moment", sample(MOMENTS, 11), ids=str)
def test_a_killed_writer_is_continued_in_a_folder(
    tmp_path: Path, moment: tuple[int, str], undisturbed: str
) -> None:
    check_after_kill(f"file:{tmp_path / 'store'}", *moment, undisturbed)


@pytest.mark.parametrize("store_url", ["s3"], indirect=True)
@pytest.mark.parametrize("moment", sample(MOMENTS, 17), ids=str)
def test_a_killed_writer_is_continued_in_a_bucket(
    store_url: str, moment: tuple[int, str], undisturbed: str
) -> None:
    check_after_kill(store_url, *moment, undisturbed)


@pytest.fixture(scope="module")
def proxy(s3_server: S3Server) -> Iterator[S3Proxy]:
    with s3_proxy(s3_server) as running:
        running.silent = True
        yield running


@pytest.mark.parametrize("store_url", ["s3"], indirect=True)
@pytest.mark.parametrize("arrives", ["before the rerun", "after the rerun"])
@pytest.mark.parametrize("at", sample(range(WRITES), 14))
def test_the_last_request_of_a_killed_writer_may_arrive_late(
    store_url: str, proxy: S3Proxy, at: int, arrives: str, undisturbed: str
) -> None:
    """The process is dead, but what it sent last waits in some buffer and is done when nobody expects it."""
    sent, writes = threading.Event(), iter(range(WRITES))

    def hold(call: Call) -> Fault | None:
        if call.kind not in ("put", "create", "replace") or call.key.startswith(DOCTOR_PREFIX):
            return None
        if next(writes, None) != at:
            return None
        sent.set()
        return Fault.LATE

    proxy.schedule = hold
    environment = {**os.environ, "AWS_ENDPOINT_URL_S3": proxy.endpoint}
    with subprocess.Popen(command(store_url, -1, "before"), cwd=ROOT, env=environment) as writer:
        assert sent.wait(60)
        writer.kill()
    proxy.schedule = nothing

    if arrives == "before the rerun":
        proxy.arrive()
        check_as_killed(store_url)
    assert work(open_backend(store_url)) == undisturbed
    proxy.arrive()

    check_as_undisturbed(store_url, undisturbed)
