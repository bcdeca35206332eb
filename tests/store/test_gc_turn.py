"""Only one collector deletes at a time, and none that may have been overtaken."""

from __future__ import annotations

from pathlib import Path

import pytest

from store import Store
from store.backend.local import LocalBackend
from store.errors import AccessDenied, CollectorBusy, Unreachable
from store.format import TURN_KEY, seal
from store.gc import collect
from store.gc.turn import Turn
from tests.seaweedfs import S3Server
from tests.store.clocks import Clock, ClockedBackend
from tests.store.samples import memory


class Refusing(LocalBackend):
    """A folder whose deletions end in `error` after they were done."""

    error: BaseException | None = None

    def delete(self, key: str) -> None:
        super().delete(key)
        if self.error is not None:
            raise self.error


@pytest.fixture
def folder(tmp_path: Path) -> Refusing:
    return Refusing(tmp_path)


@pytest.fixture
def clocked(folder: Refusing) -> ClockedBackend:
    return ClockedBackend(folder, Clock())


def test_the_next_collector_waits_until_the_turn_is_given_back(clocked: ClockedBackend) -> None:
    busy = r"\(first\) may still be at work; run again in \d+ seconds"
    with Turn(clocked, "first"), pytest.raises(CollectorBusy, match=busy):
        Turn(clocked, "second").__enter__()
    with Turn(clocked, "second") as turn:
        turn.check()


def test_a_turn_ends_five_minutes_after_its_last_renewal(
    clocked: ClockedBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    elapsed = 0.0
    monkeypatch.setattr("store.elapsed.seconds", lambda: elapsed)
    first = Turn(clocked, "first")
    first.__enter__()
    clocked.clock.forward(clocked, minutes=4)
    elapsed = 61.0
    first.check()  # renewed by the storage's clock
    clocked.clock.forward(clocked, minutes=4)
    with pytest.raises(CollectorBusy):
        Turn(clocked, "second").__enter__()

    clocked.clock.forward(clocked, minutes=1)
    second = Turn(clocked, "second")
    second.__enter__()

    clocked.put("packs/aa/needed", b"x")
    with pytest.raises(CollectorBusy, match="took over"):
        first.delete("packs/aa/needed")
    elapsed = 10_000.0
    with pytest.raises(CollectorBusy, match="took over"):
        first.delete("packs/aa/needed")
    assert clocked.read("packs/aa/needed") == b"x"
    second.delete("packs/aa/needed")


@pytest.mark.parametrize("error", [Unreachable("no answer"), KeyboardInterrupt()])
def test_a_deletion_that_may_still_arrive_keeps_the_next_collector_waiting(
    folder: Refusing, error: BaseException
) -> None:
    folder.error = error
    with pytest.raises(type(error)), Turn(folder, "first") as turn:
        turn.delete("packs/aa/x")

    with pytest.raises(CollectorBusy):
        Turn(folder, "second").__enter__()


def test_an_error_that_leaves_nothing_under_way_gives_the_turn_back(folder: Refusing) -> None:
    folder.error = AccessDenied("not allowed")
    with pytest.raises(AccessDenied), Turn(folder, "first") as turn:
        turn.delete("packs/aa/x")
    with pytest.raises(ZeroDivisionError), Turn(folder, "second"):
        raise ZeroDivisionError

    with Turn(folder, "third"):
        pass


def test_a_damaged_turn_counts_as_long_as_any(clocked: ClockedBackend) -> None:
    clocked.put(TURN_KEY, b"damaged")

    with pytest.raises(CollectorBusy, match="unknown"):
        Turn(clocked, "first").__enter__()
    clocked.clock.forward(clocked, minutes=5)
    with Turn(clocked, "first") as turn:
        turn.check()


def test_a_turn_that_somebody_deleted_is_lost(folder: Refusing) -> None:
    turn = Turn(folder, "first")
    turn.__enter__()
    folder.delete(TURN_KEY)

    with pytest.raises(CollectorBusy, match="took over"):
        turn.delete("packs/aa/x")


def test_whoever_may_only_read_may_look(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    store = Store.create(s3_server.url())
    store.publish([memory(1)], message="one")
    for name, value in s3_server.environment(reader=True).items():
        monkeypatch.setenv(name, value)
    reader = Store.open(store.url)

    assert collect(reader).kept.packs == 1
    with pytest.raises(AccessDenied):
        collect(reader, apply=True)


@pytest.mark.parametrize("seconds", [10**30, -(10**30), -1])
def test_a_turn_of_an_impossible_length_counts_as_long_as_any(clocked: ClockedBackend, seconds: int) -> None:
    clocked.put(TURN_KEY, seal({"id": "x", "owner": "first", "seconds": seconds}))
    with pytest.raises(CollectorBusy):
        Turn(clocked, "second").__enter__()
    clocked.clock.forward(clocked, minutes=6)
    Turn(clocked, "second").__enter__()
