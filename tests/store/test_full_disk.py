"""A disk that is full at any write: one clear error, nothing half visible, and all is well with room."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from store import Store, checkpoint
from store.backend.local import LocalBackend
from store.errors import DiskFull
from store.store import create_format
from tests.store.faulty import Call, FaultyBackend
from tests.store.killed_writer import work
from tests.store.memory import MemoryBackend

STAGES = (
    "builds/job/lease",
    "packs/",
    "builds/job/parts",
    "index/",
    "log/0",
    "log/checkpoint",
    "log/history",
)
STAGES += ("snapshots/", "refs/tags/", "refs/heads/")
WRITES = ("put", "create", "replace")


def fill(disk: Path) -> Path:
    """Leave not one free page on a file system."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(os.statvfs(disk).f_bsize))
        except OSError:
            return ballast


@pytest.fixture(autouse=True)
def checkpoints_are_due_after_every_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "BLOCK", 1)


def test_a_job_survives_a_disk_that_fills_up_at_any_of_its_writes(small_disk: Path) -> None:
    undisturbed = work(MemoryBackend())
    met: set[str] = set()
    for at in range(100):
        folder = small_disk / f"store-{at}"
        backend = FaultyBackend(LocalBackend(folder))
        create_format(backend)
        writes: list[str] = []

        def fill_at(call: Call, at: int = at, writes: list[str] = writes) -> None:
            if call.kind in WRITES:
                if len(writes) == at:
                    fill(small_disk)
                writes.append(call.key)

        backend.schedule = fill_at
        try:
            assert work(backend) == undisturbed
            said = ""
        except DiskFull as error:
            said = str(error)
        if len(writes) <= at:
            break
        met.update(stage for stage in STAGES if writes[at].startswith(stage))
        # Only a checkpoint may fail unnoticed, and then the next write does not.
        assert "no space left" in said or writes[at:] == [writes[at]]
        (small_disk / "ballast").unlink()

        store = Store(LocalBackend(folder))
        assert list((folder / ".tmp").iterdir()) == []
        assert store.verify(full=True).findings == ()
        assert len(store.catalog()) in (0, 1, 25)
        assert work(LocalBackend(folder)) == undisturbed
        assert store.verify(full=True).findings == ()
        assert [commit.elements for commit in store.log()] == [1, 24, 0]
        shutil.rmtree(folder)
    assert met == set(STAGES)
