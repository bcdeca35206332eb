"""Whatever happens between any two steps of a collector, or a collection between any two of anybody's steps:
what was done stays done, what was refused can be done afterwards, and the store is whole.

All orders of two are tried under the hypothesis profile `nightly`, a few otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings

from store import Element, Store
from store.backend import Backend
from store.errors import (
    CellarError,
    ConflictError,
    ElementNotFound,
    IntegrityError,
    SnapshotNotFound,
)
from store.gc import collect
from store.store import create_format
from tests.store.faulty import DAMAGE, Fault, FaultyBackend, ProcessKilled, scripted
from tests.store.memory import Memory, MemoryBackend
from tests.store.samples import codec, memory

START = datetime(2026, 1, 1, tzinfo=UTC)
OLD = [memory(number, requires=(codec().version,)) for number in (1, 2)]
NEW = memory(3, requires=(codec().version,))
PARKED = memory(4)
LONG = 300 * 24 * 3600
STRIDE = max(1, 4100 // settings().max_examples)


@dataclass
class World:
    """A store in memory whose clock the test sets, at the moment when something condemned may be removed."""

    memory: Memory
    time: datetime = START
    dropped: str = ""
    kept: str = ""

    @classmethod
    def at_the_end_of_a_grace_period(cls) -> World:
        """`dropped`, a snapshot of OLD, and the packs of OLD and of a killed build were condemned."""
        world = cls(Memory())
        world.memory.clock = lambda: world.time
        create_format(world.plain())
        store = world.open()
        with store.build("parked", owner="killed").writer("unit") as writer:
            writer.add(PARKED)
            writer.finish()
        shared = store.publish([codec()], message="codec")
        old = store.publish(OLD, message="old")
        new = store.publish([NEW], message="new")
        world.dropped = store.pin([*shared, *old], message="dropped").id
        world.kept = store.pin([*shared, *new], message="kept").id
        store.tag("keep", world.kept)
        store.move_head("main", world.kept, expect=None)
        world.time += timedelta(days=31)
        collect(store, apply=True)
        world.time += timedelta(days=8)
        with world.open().build("resumed", owner="killed").writer("unit") as writer:
            writer.add(memory(5))
            writer.finish()
        world.time += timedelta(days=8)
        return world

    def copy(self) -> World:
        """The same world, from here on on its own."""
        other = copy(self)
        other.memory = replace(self.memory, objects=dict(self.memory.objects))
        other.memory.clock = lambda: other.time
        return other

    def plain(self) -> Backend:
        return MemoryBackend(self.memory)

    def open(self) -> Store:
        return Store(self.plain())


Check = Callable[[Store], object]
Action = Callable[[World, Store], Check]
"""Does something through the given store; what it returns must hold from then on, in every later view."""


def readable(*elements: Element) -> Check:
    def check(store: Store) -> None:
        assert [store.read(element.ref) for element in elements] == [element.payload for element in elements]

    return check


def streams(spec: str, count: int) -> Check:
    def check(store: Store) -> None:
        assert len(list(store.snapshot(spec).stream())) == count

    return check


def publishes_what_is_condemned(world: World, store: Store) -> Check:
    store.publish([*OLD, PARKED], message="again")
    return readable(*OLD, PARKED)


def publishes_what_needs_the_condemned(world: World, store: Store) -> Check:
    needing = memory(6, requires=(OLD[0].version,))
    store.publish([needing], message="later")
    refs = [codec().ref, OLD[0].ref, needing.ref]
    store.tag("later", store.pin(refs, message="later").id)
    return streams("later", 3)


def pins_what_is_condemned(world: World, store: Store) -> Check:
    pinned = store.pin([codec().ref, *(element.ref for element in OLD)], message="again")
    assert pinned.id == world.dropped
    return streams(pinned.id, 3)


def tags_what_is_condemned(world: World, store: Store) -> Check:
    store.tag("late", world.dropped)
    return streams("tag:late", 3)


def moves_a_head_to_what_is_condemned(world: World, store: Store) -> Check:
    store.move_head("main", world.dropped, expect=world.kept)
    return streams("head:main", 3)


def makes_a_head_of_what_is_condemned(world: World, store: Store) -> Check:
    store.move_head("late", world.dropped, expect=None)
    return streams("head:late", 3)


def holds_what_is_condemned(world: World, store: Store) -> Check:
    store.hold("late", world.dropped, seconds=LONG).take()
    return streams(world.dropped, 3)


def resumes_a_build_that_is_over(world: World, store: Store) -> Check:
    build = store.build("resumed", owner="again")
    receipts = build.receipts()
    if not receipts:
        with build.writer("unit") as writer:
            writer.add(memory(5))
            receipts = {"unit": writer.finish()}
    build.commit(receipts, message="resumed")
    return readable(memory(5))


def collects_too(world: World, store: Store) -> Check:
    collect(store, apply=True)
    return lambda store: None


ACTIONS: list[Action] = [
    publishes_what_is_condemned,
    publishes_what_needs_the_condemned,
    pins_what_is_condemned,
    tags_what_is_condemned,
    moves_a_head_to_what_is_condemned,
    makes_a_head_of_what_is_condemned,
    holds_what_is_condemned,
    resumes_a_build_that_is_over,
    collects_too,
]
REFUSALS = (ConflictError, ElementNotFound, SnapshotNotFound)
"""What an action may meet; damage is none of it but where a build is told to run again."""


def attempt(world: World, action: Action, store: Store) -> Check | None:
    """Return what must hold if the action was done, None if it was refused for a good reason."""
    try:
        return action(world, store)
    except REFUSALS:
        return None
    except IntegrityError as error:
        if "run build resumed again" in str(error) or "run the build again" in str(error):
            return None
        raise


class Between:
    """Does something once, before call number `at` of a client; counts the calls."""

    def __init__(self, at: int, act: Callable[[], object]) -> None:
        self.calls = 0
        self._at = at
        self._act = act

    def __call__(self) -> None:
        self.calls += 1
        if self.calls == self._at:
            self._act()


def check_end(world: World, *checks: Check | None) -> None:
    """However it went, the store is whole, also after two more collections, and all can be done again."""
    must_hold = [streams("tag:keep", 2), *(check for check in checks if check)]
    assert world.open().verify(full=True).findings == ()
    for check in must_hold:
        check(world.open())
    for _ in range(2):
        world.time += timedelta(days=8)
        collect(world.open(), apply=True)
    store = world.open()
    for check in must_hold:
        check(store)
    store.publish([codec(), *OLD, PARKED, memory(5)], message="all of it again")
    pinned = store.pin([codec().ref, *(element.ref for element in OLD)], message="again")
    store.tag("again", pinned.id)
    streams("again", 3)(world.open())
    assert world.open().verify(full=True).findings == ()


@pytest.fixture(scope="module")
def world() -> World:
    return World.at_the_end_of_a_grace_period()


def calls(world: World, act: Action, offset: int, stride: int = STRIDE) -> range:
    """The numbers of the calls that an action makes, or some of them, others for each offset."""
    counted = Between(0, lambda: None)
    mine = world.copy()
    act(mine, Store(FaultyBackend(mine.plain(), pause=counted)))
    return range(1 + offset * 5 % stride, counted.calls + 1, stride)


@pytest.mark.parametrize("action", ACTIONS)
def test_anything_may_happen_between_two_steps_of_a_collector(world: World, action: Action) -> None:
    def run(at: int) -> None:
        mine = world.copy()
        other = mine.open()
        other.catalog()  # as it was before the collector began
        done: list[Check | None] = []
        between = Between(at, lambda: done.append(attempt(mine, action, other)))
        attempt(mine, collects_too, Store(FaultyBackend(mine.plain(), pause=between)))
        assert len(done) == 1
        check_end(mine, *done)

    for at in calls(world, collects_too, ACTIONS.index(action)):
        run(at)


@pytest.mark.parametrize("action", ACTIONS)
def test_a_collection_may_happen_between_any_two_steps(world: World, action: Action) -> None:
    def run(at: int) -> None:
        mine = world.copy()
        between = Between(at, lambda: attempt(mine, collects_too, mine.open()))
        check_end(mine, attempt(mine, action, Store(FaultyBackend(mine.plain(), pause=between))))

    for at in calls(world, action, ACTIONS.index(action)):
        run(at)


@pytest.mark.parametrize("fault", [fault for fault in Fault if fault not in DAMAGE])
def test_a_collector_that_fails_anywhere_is_finished_by_the_next(
    world: World, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.conditional._FIRST_PAUSE_S", 0.0)

    def run(at: int) -> None:
        mine = world.copy()
        faulty = FaultyBackend(mine.plain(), scripted({at: fault}))
        with suppress(CellarError, ProcessKilled):
            collect(Store(faulty), apply=True)
        for check in (streams("tag:keep", 2), lambda store: store.catalog()):
            check(mine.open())
        assert mine.open().verify(full=True).findings == ()
        while faulty.wire.under_way:  # no request is on its way for longer than a turn lasts
            faulty.wire.arrive()
        mine.time += timedelta(minutes=5)
        collect(mine.open(), apply=True)
        check_end(mine)

    for at in calls(world, collects_too, list(Fault).index(fault), 2 * STRIDE - 1):
        run(at)
