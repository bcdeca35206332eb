"""Garbage collection removes derived files that newer ones replaced, and nothing that the log names."""

from __future__ import annotations

import logging
import tarfile
from datetime import timedelta
from pathlib import Path

import pytest

from store import Store
from store.backend import Backend
from store.backend.local import LocalBackend
from store.checkpoint import objects_of, write_checkpoint
from store.format import index_key
from store.gc import collect
from store.index import IndexFile, encode_index, write_index
from store.log import REPAIR, Draft
from store.manifest import checkpoints
from store.rows import SCHEMA, decode_table
from tests.said import said
from tests.store.clocks import Clock, ClockedBackend
from tests.store.samples import memory

OLD_STORE = Path(__file__).parents[1] / "data" / "store_format_1.tar.gz"


@pytest.fixture
def backend(tmp_path: Path) -> ClockedBackend:
    Store.create(str(tmp_path / "store"))
    return ClockedBackend(LocalBackend(tmp_path / "store"), Clock())


def keys(backend: ClockedBackend, *prefixes: str) -> set[str]:
    return {item.key for prefix in prefixes for item in backend.list(prefix)}


def publish(backend: ClockedBackend, number: int) -> None:
    """Make one commit, and a checkpoint of everything so far."""
    store = Store(backend)
    store.publish([memory(number)], message=f"{number}")
    write_checkpoint(backend, store.history, store.catalog())


def forward(backend: ClockedBackend, **much: float) -> None:
    backend.clock.forward(backend, **much)


def test_a_checkpoint_goes_a_grace_period_after_the_next_one(backend: ClockedBackend) -> None:
    named = set()
    for number in range(6):
        publish(backend, number)
        named |= {index_key(digest) for commit in Store(backend).log() for digest in commit.indexes}
        forward(backend, days=3)
    before = list(checkpoints(backend))
    said = collect(Store(backend))

    done = collect(Store(backend), apply=True)

    after = list(checkpoints(backend))
    assert [checkpoint.sequence for checkpoint in after] == [6, 5, 4]  # the third was in use 9 days ago
    assert said.leftovers == done.leftovers
    assert done.leftovers.files > 3 + 4 * 2  # checkpoints, the files of four builds, and what they merged
    kept = set().union(*map(objects_of, after))
    assert named <= keys(backend, "index/")
    assert keys(backend, "index/", "log/history-") - named <= kept
    assert {key for checkpoint in before[3:] for key in objects_of(checkpoint)} - kept - named
    check_whole(backend, 6)
    assert collect(Store(backend), apply=True).leftovers.files == 0


def check_whole(backend: ClockedBackend, count: int) -> None:
    store = Store(backend)
    assert len(store.catalog()) == count
    assert [commit.sequence for commit in store.log()] == list(range(1, store.history.tip.sequence + 1))
    assert store.verify(full=True).findings == ()


def test_after_a_removal_no_segment_holds_a_row_of_it(backend: ClockedBackend) -> None:
    for number in range(3):
        publish(backend, number)
    store = Store(backend)
    store.tag("keep", store.pin([memory(0).ref], message="keep").id)
    forward(backend, days=31)
    collect(Store(backend), apply=True)
    forward(backend, days=8)

    assert collect(Store(backend), apply=True).collected.packs == 2

    newest = next(checkpoints(backend))
    tables = [decode_table(backend.read(index_key(s.index)), index_key(s.index))[0] for s in newest.segments]
    assert [name for table in tables for name in table["name"].to_pylist()] == [memory(0).full_name]
    assert newest.removals.dead == {}
    check_whole(backend, 1)
    assert len(list(Store(backend).log())) == 7


def test_files_of_the_first_format_go_and_its_history_stays(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with tarfile.open(OLD_STORE) as archive:
        archive.extractall(tmp_path, filter="data")
    backend = ClockedBackend(LocalBackend(tmp_path / "store"), Clock())
    forward(backend, days=31)
    store = Store(backend)
    commits, rows = list(store.log()), store.catalog().rows()
    named = {index_key(digest) for commit in commits for digest in commit.indexes}
    assert keys(backend, "index/") - named
    assert keys(backend, "log/checkpoint-")

    collect(store, apply=True, retain=timedelta(days=300 * 365 // 4))

    assert keys(backend, "index/") == named
    assert keys(backend, "log/checkpoint-") == set()
    with caplog.at_level(logging.WARNING):
        opened = Store(backend)
        assert list(opened.log()) == commits
        assert opened.catalog().rows() == rows
    assert said(caplog, "store") == []
    assert opened.verify(full=True).findings == ()


def test_an_index_that_a_killed_commit_left_stays_and_one_that_was_merged_goes(
    backend: ClockedBackend, tmp_path: Path
) -> None:
    publish(backend, 1)
    other = Store.create(str(tmp_path / "other"))
    other.publish([memory(2)], message="two")
    [killed] = [index_key(digest) for commit in other.log() for digest in commit.indexes]
    backend.put(killed, other.backend.read(killed))
    merged = numbered(other.backend, killed, 7)
    write_index(backend, merged)
    backend.put(index_key("a" * 64), b"damaged")
    forward(backend, days=8)

    collect(Store(backend), apply=True)

    left = keys(backend, "index/")
    assert killed in left
    assert left.isdisjoint({index_key(merged.digest), index_key("a" * 64)})
    check_whole(backend, 1)


def test_an_index_that_a_repair_replaced_goes_a_grace_period_later(backend: ClockedBackend) -> None:
    store = Store(backend)
    store.publish([memory(1)], message="one")
    [commit] = store.log()
    forward(backend, days=8)
    repaired = numbered(backend, index_key(commit.indexes[0]), 1)
    write_index(backend, repaired)
    draft = Draft(REPAIR, "repair", {}, indexes=(repaired.digest,), replaces=commit.indexes)
    store.history.append(lambda: draft)

    collect(Store(backend), apply=True)

    assert keys(backend, "index/") == {index_key(repaired.digest)}
    check_whole(backend, 1)


def numbered(backend: Backend, key: str, commit: int) -> IndexFile:
    """The index under `key` with rows that say which commit they are of, as merged ones do."""
    table, metadata = decode_table(backend.read(key), key)
    position, field = SCHEMA.get_field_index("commit"), SCHEMA.field("commit")
    table = table.replace_schema_metadata(None).set_column(position, field, [[commit] * len(table)])
    return encode_index(table, metadata["packs"])
