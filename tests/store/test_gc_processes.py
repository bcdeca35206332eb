"""Collectors that are killed, and collectors that race with everybody else, as real processes."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from store import Store
from store.backend import open_backend
from store.errors import CollectorBusy
from store.gc import collect
from store.store import create_format
from tests.store.clocks import Clock, ClockedBackend
from tests.store.samples import codec, memory

ROOT = Path(__file__).parents[2]
NEEDED = codec()
OLD = [memory(number, requires=(NEEDED.version,)) for number in (1, 2)]
NEW = memory(3, requires=(NEEDED.version,))
CALLS = 15
"""Writes and deletions of an undisturbed collection; asserted below, so that no boundary is left out."""


class Scene:
    """A store at the end of a grace period: `dropped` may go, and the files of a build that was killed."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.clock = Clock()
        self.backend = ClockedBackend(open_backend(url), self.clock)
        create_format(self.backend)
        store = Store(self.backend)
        refs = store.publish([NEEDED], message="codec")
        old, new = store.publish(OLD, message="old"), store.publish([NEW], message="new")
        self.dropped = store.pin([*refs, *old], message="dropped").id
        store.tag("keep", store.pin([*refs, *new], message="keep").id)
        self.clock.forward_for_all(self.backend, days=31)
        assert collect(store, apply=True).condemned.packs == 1
        with store.build("killed", owner="nobody").writer("unit") as writer:
            writer.add(memory(4))
            writer.finish()
        self.clock.forward_for_all(self.backend, days=8)

    def run(self, at: int, when: str) -> subprocess.CompletedProcess[str]:
        arguments = [self.url, self.clock.to_json(), str(at), when]
        command = [sys.executable, "-m", "tests.store.killed_collector", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)

    def check(self) -> None:
        """What was to go is gone, what was to stay can be read, and it can all be made again."""
        store = Store(self.backend)
        assert store.verify(full=True).findings == ()
        assert len(list(store.snapshot("keep").stream())) == 2
        assert {row.version for row in store.catalog().rows()} == {NEEDED.version, NEW.version}
        assert not store.catalog().removals.dying
        assert [item.key for item in self.backend.list("builds/")] == []
        refs = store.publish([NEEDED, *OLD], message="again")
        assert store.pin(refs, message="again").id == self.dropped
        assert len(list(store.snapshot(self.dropped).stream())) == 3


def check_after_kill(url: str, at: int, when: str) -> None:
    scene = Scene(url)
    killed = scene.run(at, when)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert Store(scene.backend).verify(full=True).findings == ()
    if at > 1:
        with pytest.raises(CollectorBusy, match="may still be at work; run again in"):
            collect(Store(scene.backend), apply=True)

    scene.clock.forward_for_all(scene.backend, minutes=5)
    collect(Store(scene.backend), apply=True)

    scene.check()


RACER = """
import sys
from store import Store
from store.backend import open_backend
from store.errors import ConflictError, ElementNotFound, IntegrityError, SnapshotNotFound
from store.gc import collect
from tests.store.clocks import Clock, ClockedBackend
from tests.store.test_gc_processes import OLD
url, clock, role, dropped = sys.argv[1:]
store = Store(ClockedBackend(open_backend(url), Clock.from_json(clock)))
act = {
    "collect": lambda: collect(store, apply=True),
    "publish": lambda: store.publish(OLD, message="again"),
    "tag": lambda: store.tag("late", dropped),
}[role]
sys.stdout.write("ready\\n")
sys.stdout.flush()
sys.stdin.readline()
try:
    act()
except (ConflictError, ElementNotFound, SnapshotNotFound):
    sys.exit(77)
except IntegrityError as error:
    sys.exit(77 if "again" in str(error) else str(error))
"""
ROLES = ["collect", "publish", "tag", "collect"]
REFUSED = 77


def test_an_undisturbed_collection_makes_the_expected_calls(tmp_path: Path) -> None:
    scene = Scene(str(tmp_path))

    done = scene.run(-1, "before")

    assert done.stdout == f"{CALLS}\n", done.stderr
    scene.check()


@pytest.mark.parametrize("at", [5, 9])
def test_a_killed_collection_is_finished_in_a_folder(tmp_path: Path, at: int) -> None:
    check_after_kill(str(tmp_path), at, "before" if at % 2 else "after")


@pytest.mark.parametrize("store_url", ["s3"], indirect=True)
@pytest.mark.parametrize("at", [10])
def test_a_killed_collection_is_finished_in_a_bucket(store_url: str, at: int) -> None:
    check_after_kill(store_url, at, "before" if at % 2 else "after")


def test_processes_that_race_with_two_collectors_lose_nothing(store_url: str) -> None:
    scene = Scene(store_url)
    arguments = [scene.url, scene.clock.to_json()]
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, *arguments, role, scene.dropped],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for role in ROLES
    ]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()
    codes = [process.wait(60) for process in processes]

    assert set(codes) <= {0, REFUSED}
    done = [role for role, code in zip(ROLES, codes, strict=True) if code == 0]
    scene.clock.forward_for_all(scene.backend, days=8)
    collect(Store(scene.backend), apply=True)
    store = Store(scene.backend)
    assert store.verify(full=True).findings == ()
    assert len(list(store.snapshot("keep").stream())) == 2
    if "publish" in done:
        assert [store.read(element.ref) for element in OLD] == [element.payload for element in OLD]
    if "tag" in done:
        assert len(list(store.snapshot("late").stream())) == 3
    for process in processes:
        assert process.stdout is not None
        process.stdout.close()
