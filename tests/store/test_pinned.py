"""A list of snapshots comes from the log and a listing, and opens a snapshot only where the log is silent."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from store import Store
from store.entry import decode_commit, encode_entry
from store.errors import IntegrityError
from store.format import snapshot_key
from store.log import PIN, Draft
from tests.store.memory import MemoryBackend
from tests.store.samples import memory

DATA = Path(__file__).parents[1] / "data"


def test_snapshots_come_in_the_order_of_their_pins_with_what_they_hold(store: Store) -> None:
    refs = store.publish([memory(number) for number in range(5)], message="five")
    first = store.pin(refs[:2], message="two")
    second = store.pin(refs, message="five")
    store.pin(refs[:2], message="two again: no commit")

    listed = Store.open(store.url).snapshots()

    assert [(one.id, one.elements, one.bytes) for one in listed] == [
        (snapshot.id, snapshot.count, snapshot.bytes) for snapshot in (first, second)
    ]
    assert [one.commit.message for one in listed] == ["two", "five"]


def test_no_snapshot_is_opened_for_the_list() -> None:
    from store.store import create_format

    backend = MemoryBackend()
    create_format(backend)
    store = Store(backend)
    refs = store.publish([memory(number) for number in range(20)], message="twenty")
    for number in range(1, 20):
        store.pin(refs[:number], message=f"pin {number}")
    reads: list[str] = []
    original = backend.read

    def counted(key: str) -> bytes:
        reads.append(key)
        return original(key)

    backend.read = counted  # type: ignore[method-assign]
    assert len(Store(backend).snapshots()) == 19
    assert not [key for key in reads if key.startswith("snapshots/")]


def test_a_snapshot_whose_head_record_is_gone_is_not_listed(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path))
    refs = store.publish([memory(number) for number in range(3)], message="three")
    kept, lost = store.pin(refs, message="three"), store.pin(refs[:1], message="one")
    (tmp_path / snapshot_key(lost.id)).unlink()

    assert [one.id for one in store.snapshots()] == [kept.id]


def test_pins_that_do_not_say_what_they_hold_are_looked_up(tmp_path: Path) -> None:
    with tarfile.open(DATA / "store_format_1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    store = Store.open(str(tmp_path / "store"))

    listed = store.snapshots()

    assert {one.commit.holds for one in listed} == {None}
    assert [one.elements for one in listed] == [store.snapshot(one.id).count for one in listed]
    assert len(listed) == 2


@pytest.mark.parametrize("value", [[1], [1, 2, 3], [-1, 5], [1, "2"], [[1], 2], [None, None]])
def test_an_entry_that_holds_nonsense_is_damaged(tmp_path: Path, value: list[object]) -> None:
    origin = Store.create(str(tmp_path)).tip()
    forged = Draft(PIN, "a pin", {}, snapshot="5" * 64, holds=tuple(value))  # type: ignore[arg-type]
    entry = encode_entry(forged, sequence=1, previous=origin.digest, unique="u", time="t")

    with pytest.raises(IntegrityError, match="does not say what its snapshot holds"):
        decode_commit(entry, previous=origin)


def test_what_a_pin_holds_survives_the_log(tmp_path: Path) -> None:
    origin = Store.create(str(tmp_path)).tip()
    draft = Draft(PIN, "a pin", {}, snapshot="5" * 64, holds=(3, 600))
    entry = encode_entry(draft, sequence=1, previous=origin.digest, unique="u", time="t")

    assert decode_commit(entry, previous=origin).holds == (3, 600)
