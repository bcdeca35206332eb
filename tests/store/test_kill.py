"""kill -9 of a writer at many writes: the store stays whole, and a rerun ends as an undisturbed run does."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from store import Store
from store.backend import open_backend
from store.errors import NotAStore
from tests.store.killed_writer import work
from tests.store.samples import codec, memory

ROOT = Path(__file__).parents[2]
WRITES = 29
"""Writes of an undisturbed run; asserted below, so that no boundary is left out unnoticed."""


def run(url: str, at: int, when: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.store.killed_writer", url, str(at), when]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> str:
    done = run(str(tmp_path_factory.mktemp("undisturbed") / "store"), -1, "before")
    assert done.returncode == 0, done.stderr
    identity, writes = done.stdout.split()
    assert int(writes) == WRITES
    return identity


def check_after_kill(url: str, at: int, when: str, undisturbed: str) -> None:
    dead = run(url, at, when)
    assert dead.returncode == -signal.SIGKILL, dead.stderr
    try:
        killed = Store.open(url)
    except NotAStore:
        assert (at, when) == (0, "before")
    else:
        assert killed.verify(full=True).findings == ()
        # 0, the codec alone, or everything: a build is never half visible
        assert len(killed.catalog()) in (0, 1, 25)

    assert work(open_backend(url)) == undisturbed

    store = Store.open(url)
    assert store.verify(full=True).findings == ()
    assert store.snapshot("done").id == store.snapshot("main").id == undisturbed
    assert store.read(memory(7, size=700, requires=(codec().version,)).ref) == memory(7, size=700).payload
    assert [commit.elements for commit in store.log()] == [1, 24, 0]


@pytest.mark.parametrize("at", range(0, WRITES, 3))
def test_a_killed_writer_is_continued_in_a_folder(tmp_path: Path, at: int, undisturbed: str) -> None:
    check_after_kill(f"file:{tmp_path / 'store'}", at, "before" if at % 4 else "after", undisturbed)


@pytest.mark.parametrize("store_url", ["s3"], indirect=True)
@pytest.mark.parametrize("at", [5, 12, 21, 22, 25])
def test_a_killed_writer_is_continued_in_a_bucket(store_url: str, at: int, undisturbed: str) -> None:
    check_after_kill(store_url, at, "before" if at % 2 else "after", undisturbed)
