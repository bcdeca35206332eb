"""Holds keep a snapshot alive for a limited time, by the storage's clock."""

from __future__ import annotations

from datetime import timedelta

import pytest

from store import Store
from store.backend import Backend
from store.errors import (
    HoldExists,
    HoldNotFound,
    InputError,
    IntegrityError,
    InvalidName,
    SnapshotNotFound,
)
from store.format import seal
from store.holds import LONGEST_HOLD_SECONDS
from tests.store.clocks import Clock, ClockedBackend
from tests.store.samples import memory


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def held(store: Store, backend: Backend, clock: Clock) -> Store:
    """A store with two snapshots under a clock that the test moves."""
    refs = store.publish([memory(1), memory(2)], message="two")
    for count in (1, 2):
        store.pin(refs[:count], message=f"{count}")
    return Store(ClockedBackend(backend, clock))


def snapshots(store: Store) -> list[str]:
    return [commit.snapshot for commit in store.log() if commit.snapshot]


def test_a_hold_is_there_inside_its_context_only(held: Store) -> None:
    one, _ = snapshots(held)

    with held.hold("run-1", one, owner="me@here", seconds=60):
        [found] = held.holds()
        assert (found.name, found.snapshot, found.owner) == ("run-1", one, "me@here")
        assert timedelta(0) < found.expires - held.backend.now() <= timedelta(seconds=61)
    assert held.holds() == []

    with pytest.raises(ZeroDivisionError), held.hold("run-1", one):
        raise ZeroDivisionError
    assert held.holds() == []


def test_a_name_keeps_one_snapshot_until_it_expires(held: Store, clock: Clock) -> None:
    one, two = snapshots(held)
    first = held.hold("run", one, seconds=3600)
    first.take()

    with pytest.raises(HoldExists, match="cellar hold release run") as caught:
        held.hold("run", two).take()
    assert caught.value.exit_code == 7
    clock.forward(held.backend, hours=2)
    held.hold("run", two).take()

    assert [hold.snapshot for hold in held.holds()] == [two]
    first.release()  # it is no longer ours
    assert [hold.snapshot for hold in held.holds()] == [two]


def test_a_hold_is_renewed_when_a_quarter_of_its_time_is_over(
    held: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _ = snapshots(held)
    elapsed = 0.0
    monkeypatch.setattr("store.elapsed.seconds", lambda: elapsed)
    hold = held.hold("run", one, seconds=4000)
    hold.take()
    [before] = held.holds()

    clock.forward(held.backend, seconds=999)
    elapsed = 999.0
    hold.renew()
    assert held.holds() == [before]
    clock.forward(held.backend, seconds=1)
    elapsed = 1000.0
    hold.renew()

    [after] = held.holds()
    assert after.expires - before.expires >= timedelta(seconds=999)
    assert after.snapshot == one


def test_what_is_held_must_exist_and_names_and_times_be_possible(held: Store) -> None:
    one, _ = snapshots(held)

    with pytest.raises(SnapshotNotFound):
        held.hold("run", "a" * 64).take()
    with pytest.raises(InvalidName):
        held.hold("../run", one)
    for seconds in (0, -1, LONGEST_HOLD_SECONDS + 1):
        with pytest.raises(InputError, match="a tag to keep"):
            held.hold("run", one, seconds=seconds)
    assert held.holds() == []


def test_a_hold_is_released_by_name(held: Store) -> None:
    one, _ = snapshots(held)
    held.hold("run", one).take()

    held.release_hold("run")

    assert held.holds() == []
    with pytest.raises(HoldNotFound, match="cellar hold ls"):
        held.release_hold("run")
    held.hold("run", one).release()


@pytest.mark.parametrize("change", [{"snapshot": "x"}, {"seconds": "1"}, {"seconds": 0}, {"owner": 1}])
def test_a_hold_that_no_store_wrote_is_refused(held: Store, change: dict[str, object]) -> None:
    one, two = snapshots(held)
    record = {"id": "x", "name": "run", "owner": "", "seconds": 60, "snapshot": one}
    held.backend.put("pins/run.json", seal(record | change))

    with pytest.raises(IntegrityError, match=r"pins/run\.json"):
        held.holds()
    with pytest.raises(IntegrityError, match=r"pins/run\.json"):
        held.hold("run", two).take()
