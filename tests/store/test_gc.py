"""Garbage collection condemns what nothing reaches, waits, and removes it; all else stays as it was."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from benchmarks.synthetic import synthetic_store
from store import Element, Ref, Snapshot, Store
from store.backend import Backend
from store.errors import ElementNotFound, InputError, IntegrityError, SnapshotNotFound
from store.format import hold_key, lease_key, log_key, pack_key, seal, snapshot_key
from store.gc import Amount, Summary, collect
from tests.store.clocks import Clock, ClockedBackend
from tests.store.samples import codec, memory


class Aging:
    """A store under a clock that the test moves on."""

    def __init__(self, backend: Backend) -> None:
        self.clock = Clock()
        self.backend = ClockedBackend(backend, self.clock)
        self.store = Store(self.backend)

    def forward(self, **much: float) -> None:
        self.clock.forward(self.backend, **much)

    def collect(self, **options: timedelta) -> Summary:
        """Run once on a view that nothing else has warmed up, and check that the preview said the same."""
        said = collect(Store(self.backend), **options).to_dict()
        done = collect(Store(self.backend), apply=True, **options)
        moving = ("applied", "time", "until")
        assert {k: v for k, v in said.items() if k not in moving} == {
            k: v for k, v in done.to_dict().items() if k not in moving
        }
        return done

    def through(self, **options: timedelta) -> Summary:
        """Condemn, wait, and collect."""
        self.collect(**options)
        self.forward(days=8)
        return self.collect(**options)

    def publish(self, *elements: Element) -> list[Ref]:
        return self.store.publish(elements, message=f"{len(elements)} elements")

    def pin(self, refs: list[Ref]) -> Snapshot:
        return self.store.pin(refs, message="pin")

    def keys(self, prefix: str = "") -> set[str]:
        return {item.key for item in self.backend.list(prefix)}


@pytest.fixture
def aging(tmp_path: Path) -> Aging:
    """A store in a folder, where most of the rules are tested."""
    return Aging(Store.create(str(tmp_path)).backend)


@pytest.fixture
def anywhere(store: Store, backend: Backend) -> Aging:
    """A store on each kind of storage."""
    return Aging(backend)


def check_whole(store: Store, *snapshots: Snapshot) -> None:
    """Whoever opens the store anew can read the snapshots to the last byte, and nothing is amiss."""
    fresh = Store(store.backend)
    for snapshot in snapshots:
        assert len(list(fresh.snapshot(snapshot.id).stream())) == snapshot.count
    assert fresh.verify(full=True).findings == ()


def needing(number: int) -> Element:
    return memory(number, requires=(codec().version,))


def test_what_no_name_reaches_is_condemned_and_a_grace_period_later_removed(anywhere: Aging) -> None:
    shared = anywhere.publish(codec())
    old, new = (anywhere.publish(*map(needing, numbers)) for numbers in (range(5), range(5, 10)))
    kept, dropped = anywhere.pin([*shared, *new]), anywhere.pin([*shared, *old])
    anywhere.store.tag("kept", kept.id)
    anywhere.forward(days=31)
    packs = {anywhere.store.catalog().get(ref.version).pack for ref in old}  # type: ignore[union-attr]

    announced = anywhere.collect()

    assert announced.condemned == Amount(packs=1, snapshots=1, bytes=announced.condemned.bytes)
    assert anywhere.store.read(old[0]) == needing(0).payload
    assert anywhere.store.snapshot(dropped.id).count == 6
    assert anywhere.store.catalog().find(needing(0).provenance["recipe"]) is None  # nobody shall rely on it

    anywhere.forward(days=6, hours=23)
    waiting = anywhere.collect()
    assert (waiting.condemned, waiting.collected) == (Amount(), Amount())
    assert waiting.waiting == announced.condemned
    assert waiting.until == announced.until
    check_whole(anywhere.store, kept, dropped)

    anywhere.forward(hours=2)
    done = anywhere.collect()
    assert done.collected == announced.condemned
    assert done.until is None
    assert anywhere.keys("packs/").isdisjoint(map(pack_key, packs))
    check_whole(anywhere.store, kept)
    with pytest.raises(ElementNotFound):
        anywhere.store.read(old[0])
    with pytest.raises(SnapshotNotFound):
        anywhere.store.snapshot(dropped.id)
    assert [commit.action for commit in anywhere.store.log()][-3:] == ["condemn", "collect", "swept"]
    assert not any(amount for amount in anywhere.collect().to_dict().values() if isinstance(amount, Amount))


def test_a_preview_writes_nothing(anywhere: Aging) -> None:
    anywhere.publish(memory(1))
    anywhere.store.build("abandoned", owner="nobody")
    for days in (31, 8):
        anywhere.forward(days=days)
        before = {(item.key, item.size, item.modified) for item in anywhere.backend.list("")}

        summary = collect(anywhere.store)

        assert {(item.key, item.size, item.modified) for item in anywhere.backend.list("")} == before
        assert not summary.applied
        assert summary.condemned.packs + summary.collected.packs == 1
        collect(anywhere.store, apply=True)


@pytest.mark.parametrize("grace", [timedelta(hours=24), timedelta(0), timedelta(days=-1)])
def test_a_grace_period_within_a_lease_is_refused(aging: Aging, grace: timedelta) -> None:
    with pytest.raises(InputError, match="too short"):
        collect(aging.store, apply=True, grace=grace)
    for retain in (timedelta(days=-1), timedelta(days=40_000)):
        with pytest.raises(InputError, match="0 to 36,500 days"):
            collect(aging.store, apply=True, retain=retain)

    assert aging.keys("gc/") == set()


def name_by_tag(aging: Aging, snapshot: Snapshot) -> None:
    aging.store.tag("v1", snapshot.id)


def name_by_head(aging: Aging, snapshot: Snapshot) -> None:
    aging.store.move_head("main", snapshot.id, expect=None)


def name_by_hold(aging: Aging, snapshot: Snapshot) -> None:
    aging.store.hold("run", snapshot.id, seconds=100 * 24 * 3600).take()


NAMES = (name_by_tag, name_by_head, name_by_hold)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_keeps_a_snapshot_and_all_its_packs(
    aging: Aging, name: Callable[[Aging, Snapshot], None]
) -> None:
    refs = [*aging.publish(codec()), *aging.publish(needing(1)), *aging.publish(needing(2))]
    snapshot = aging.pin(refs)
    name(aging, snapshot)
    aging.publish(memory(3))
    aging.forward(days=31)

    done = aging.through()

    assert done.collected.packs == 1
    assert done.kept.packs == 3
    check_whole(aging.store, snapshot)


def test_a_hold_keeps_nothing_once_it_expired(aging: Aging) -> None:
    snapshot = aging.pin(aging.publish(memory(1)))
    aging.store.hold("run", snapshot.id, seconds=32 * 24 * 3600).take()
    aging.forward(days=31)
    assert aging.collect().condemned == Amount()

    aging.forward(days=2)

    assert aging.through().collected.snapshots == 1


def test_what_is_recent_is_kept_with_what_it_requires(aging: Aging) -> None:
    aging.publish(codec())
    lone = aging.publish(memory(9))
    aging.forward(days=20)
    aging.publish(needing(1))
    aging.pin(lone)
    aging.forward(days=20)

    assert aging.through().collected == Amount()  # 28 days
    assert aging.through(retain=timedelta(days=37)).collected == Amount()  # 36 days
    condemned = aging.collect(retain=timedelta(days=36)).condemned
    assert (condemned.packs, condemned.snapshots) == (3, 1)


def test_a_pack_with_one_element_that_is_reached_stays_whole_and_complete(aging: Aging) -> None:
    aging.publish(codec())
    refs = aging.publish(memory(1), needing(2))  # only the second needs the codec
    snapshot = aging.pin(refs[:1])
    aging.store.tag("v1", snapshot.id)
    aging.forward(days=31)

    assert aging.through().collected == Amount()

    fresh = Store(aging.backend)
    fresh.pin([*refs, codec().ref], message="the unnamed element is still complete")
    check_whole(fresh, snapshot)


def test_a_live_build_keeps_what_it_has_written_and_what_that_requires(anywhere: Aging) -> None:
    anywhere.publish(codec())
    with anywhere.store.build("long", owner="test").writer("unit") as writer:
        writer.add(needing(1))
        receipt = writer.finish()
    anywhere.forward(days=31)
    build = Store(anywhere.backend).build("long", owner="resumed")
    anywhere.forward(hours=23)

    assert anywhere.collect().condemned == Amount()
    build.commit([receipt], message="after a month")

    check_whole(anywhere.store, anywhere.pin([codec().ref, needing(1).ref]))


@pytest.mark.parametrize("seconds", [24 * 3600, 10**12, -(10**30), "damaged"])
def test_a_build_that_is_over_loses_its_files_and_its_packs(aging: Aging, seconds: int | str) -> None:
    with aging.store.build("killed", owner="test").writer("unit") as writer:
        writer.add(memory(1))
        writer.finish()
    lease = {"build": "killed", "id": "x", "owner": "test", "seconds": seconds}
    aging.backend.put(lease_key("killed"), seal(lease))
    aging.forward(hours=23)
    assert aging.collect().leftovers == Amount()
    aging.forward(days=6)
    assert aging.collect().leftovers == Amount()
    aging.forward(hours=2)

    first = aging.collect()

    assert (first.leftovers.files, first.condemned.packs) == (2, 1)
    assert aging.keys("builds/") == set()
    aging.forward(days=7)
    assert aging.collect().collected.packs == 1
    assert aging.keys("packs/") == set()
    check_whole(aging.store)


def test_a_build_that_resumes_keeps_its_files(aging: Aging) -> None:
    with aging.store.build("killed", owner="test").writer("unit") as writer:
        writer.add(memory(1))
        receipt = writer.finish()
    aging.forward(days=31)
    resumed = Store(aging.backend).build("killed", owner="again")

    summary = aging.collect()

    assert (summary.leftovers, summary.condemned, summary.roots["live_builds"]) == (Amount(), Amount(), 1)
    assert resumed.receipts() == {"unit": receipt}


def pin_again(aging: Aging, snapshot: Snapshot) -> None:
    aging.pin([row.ref for row in snapshot.rows()])


def publish_again(aging: Aging, snapshot: Snapshot) -> None:
    aging.publish(memory(1))


@pytest.mark.parametrize("rescue", [*NAMES, pin_again])
def test_a_condemned_snapshot_can_be_taken_back(
    aging: Aging, rescue: Callable[[Aging, Snapshot], None]
) -> None:
    snapshot = aging.pin(aging.publish(memory(1)))
    aging.forward(days=31)
    aging.collect()
    assert aging.store.catalog().removals.condemned.snapshots == {snapshot.id}
    aging.forward(days=6)

    rescue(aging, snapshot)

    assert aging.store.catalog().removals.condemned.snapshots == set()
    aging.forward(days=2)
    done = aging.collect()
    assert (done.collected, done.rescued.packs) == (Amount(), 1)
    check_whole(aging.store, snapshot)
    assert aging.store.catalog().find(memory(1).provenance["recipe"]) is not None


def test_a_condemned_version_that_is_published_again_stays(anywhere: Aging) -> None:
    [ref] = anywhere.publish(memory(1))
    anywhere.forward(days=31)
    anywhere.collect()

    anywhere.publish(memory(1))

    anywhere.forward(days=8)
    done = anywhere.collect()
    assert (done.collected, done.condemned) == (Amount(), Amount())  # it is recent again
    assert anywhere.store.read(ref) == memory(1).payload
    check_whole(anywhere.store, anywhere.pin([ref]))


def test_nothing_that_came_after_the_condemnation_is_broken(aging: Aging) -> None:
    now = timedelta(0)
    [needed] = aging.publish(codec())
    [lone] = aging.publish(memory(1))
    aging.forward(days=1)
    assert aging.collect(retain=now).condemned.packs == 2
    aging.pin([lone])  # a new snapshot in a condemned pack
    [later] = aging.publish(needing(2))  # a new element that requires a condemned one
    aging.forward(days=8)

    done = aging.collect(retain=now)

    assert (done.collected, done.rescued.packs) == (Amount(), 2)
    assert (done.condemned.packs, done.condemned.snapshots) == (3, 1)  # but nothing keeps them for longer
    check_whole(aging.store, aging.pin([needed, later]), aging.pin([lone]))


def test_what_was_removed_can_be_published_and_pinned_again(aging: Aging) -> None:
    refs = aging.publish(memory(1), memory(2))
    snapshot = aging.pin(refs)
    aging.forward(days=31)
    assert aging.through().collected.snapshots == 1
    with pytest.raises(SnapshotNotFound):
        aging.store.tag("v1", snapshot.id)

    again = aging.pin(aging.publish(memory(1), memory(2)))

    assert again.id == snapshot.id
    aging.store.tag("v1", again.id)
    aging.forward(days=31)
    assert aging.through().collected == Amount()
    check_whole(aging.store, again)


def test_garbage_that_appears_during_a_grace_period_has_its_own(aging: Aging) -> None:
    aging.publish(memory(1))
    aging.forward(days=31)
    aging.publish(memory(2))
    aging.collect()
    aging.forward(days=6)
    assert aging.collect(retain=timedelta(0)).queued.packs == 1
    aging.forward(days=2)

    second = aging.collect(retain=timedelta(0))

    assert (second.collected.packs, second.condemned.packs) == (1, 1)
    aging.forward(days=8)
    assert aging.collect(retain=timedelta(0)).collected.packs == 1
    check_whole(aging.store)


def test_rows_that_a_killed_pin_left_go_with_the_snapshot_they_would_have_made(anywhere: Aging) -> None:
    refs = anywhere.publish(memory(1), memory(2))
    anywhere.store.tag("v1", anywhere.pin(refs).id)
    snapshot = anywhere.pin(refs[:1])
    anywhere.backend.delete(snapshot_key(snapshot.id))  # as if the pin had been killed before its head
    assert len(anywhere.keys("snapshots/")) == 3
    anywhere.forward(days=31)

    assert anywhere.through().collected.snapshots == 1

    assert len(anywhere.keys("snapshots/")) == 2
    check_whole(anywhere.store, anywhere.store.snapshot("v1"))


def test_signatures_go_with_their_snapshot(aging: Aging) -> None:
    snapshot = aging.pin(aging.publish(memory(1)))
    aging.backend.put(f"signatures/{snapshot.id}/x.json", seal({"any": "signature"}))
    aging.forward(days=31)

    aging.through()

    assert aging.keys("signatures/") == set()


@pytest.mark.parametrize("key", ["refs/tags/v1", "refs/heads/main", hold_key("run")])
def test_a_damaged_name_stops_everything(aging: Aging, key: str) -> None:
    aging.publish(memory(1))
    aging.forward(days=31)
    aging.backend.put(key, b"damaged")

    for apply in (False, True):
        with pytest.raises(IntegrityError, match=key):
            collect(aging.store, apply=apply)
    assert [commit.action for commit in aging.store.log()] == ["publish"]


def test_a_named_snapshot_that_is_missing_stops_everything(aging: Aging) -> None:
    snapshot = aging.pin(aging.publish(memory(1)))
    aging.store.tag("v1", snapshot.id)
    aging.forward(days=31)
    aging.backend.delete(snapshot_key(snapshot.id))

    with pytest.raises(IntegrityError, match=f"{snapshot.id}, which tag v1 names, is missing"):
        collect(aging.store, apply=True)


def test_a_name_of_a_snapshot_that_was_removed_is_reported_and_stops_nothing(aging: Aging) -> None:
    snapshot = aging.pin(aging.publish(memory(1)))
    aging.forward(days=31)
    aging.through()
    aging.backend.put("refs/tags/late", seal({"snapshot": snapshot.id}))

    assert aging.collect().dangling == ("tag late",)


def test_an_entry_that_was_restored_from_a_copy_counts_as_young(aging: Aging) -> None:
    aging.publish(memory(1))
    aging.forward(days=31)
    aging.backend.put(log_key(1), aging.backend.read(log_key(1)))

    assert aging.collect().condemned == Amount()


def test_marking_holds_no_object_per_element(tmp_path: Path) -> None:
    store = synthetic_store(str(tmp_path), 6_000, per_commit=3_000)
    tracemalloc.start()

    assert collect(store).kept.packs == 1

    _, peak = tracemalloc.get_traced_memory()
    rows = store.catalog().rows()
    _, peak_of_objects = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(rows) == 6_001
    assert peak < peak_of_objects / 4
