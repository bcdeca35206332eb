"""Checkpoints make opening and committing cheap, and their loss or damage costs time only."""

from __future__ import annotations

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from benchmarks.synthetic import synthetic_store
from store import Store
from store.checkpoint import objects_of, write_checkpoint
from store.errors import IntegrityError, Unreachable
from store.format import (
    CHECKPOINT_PREFIX,
    HISTORY_PREFIX,
    INDEX_PREFIX,
    bundle_key,
    directory_key,
    history_key,
    index_key,
    log_key,
    pack_key,
    seal,
    sha256,
    unseal,
)
from store.history import Block, encode_block, read_block
from store.log import PIN, PUBLISH
from store.manifest import checkpoints, decode_checkpoint, encode_checkpoint
from store.rows import encode_rows
from store.store import create_format
from tests.said import said
from tests.store.memory import MemoryBackend
from tests.store.samples import memory
from tests.store.test_removals import append, pack_of
from tests.store.test_store import count_reads


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let row groups, segments and the time between checkpoints be so small that few rows fill many."""
    for module in ("directory", "index", "source"):
        monkeypatch.setattr(f"store.{module}.GROUP_ROWS", 4)
    for module in ("index", "source"):
        monkeypatch.setattr(f"store.{module}.SMALL_ROWS", 4)
    monkeypatch.setattr("store.checkpoint.ROWS", 16)
    monkeypatch.setattr("store.checkpoint.BLOCK", 4)
    monkeypatch.setattr("store.checkpoint.FINAL_ROWS", 32)
    monkeypatch.setattr("store.checkpoint._FINAL_ENTRIES", 16)


@pytest.fixture
def quick_store() -> Store:
    """Return an empty store in memory."""
    backend = MemoryBackend()
    create_format(backend)
    return Store(backend)


def reopened(store: Store) -> Store:
    """Return the store as another process opens it."""
    return Store(store.backend)


def fill(store: Store, commits: int, *, per_commit: int = 3) -> None:
    for number in range(commits):
        first = number * per_commit
        store.publish([memory(n, size=16) for n in range(first, first + per_commit)], message=str(number))


def versions(store: Store) -> list[str]:
    return [row.version for row in store.catalog().rows()]


def test_opening_and_committing_read_little_of_a_long_history(store: Store, store_url: str) -> None:
    fill(store, 30)
    other = Store.open(store_url)
    keys = count_reads(other)

    other.publish([memory(999)], message="new")

    assert not any(key.startswith(HISTORY_PREFIX) for key in keys)
    assert len([key for key in keys if key.startswith("log/0")]) < 16
    assert not any(
        index_key(segment.index) in keys for segment in other._log.checkpoint.segments if segment.lead
    )
    assert len(keys) < 45
    assert len(other.catalog()) == 91
    assert [commit.sequence for commit in other.log()] == list(range(1, 32))
    assert any(key.startswith(HISTORY_PREFIX) for key in keys)


def test_a_refresh_without_news_is_one_request(store: Store, store_url: str) -> None:
    fill(store, 6)
    other = Store.open(store_url)
    other.catalog()
    keys = count_reads(other)

    other.catalog()

    assert keys == [log_key(7)]


def test_there_are_few_segments_whose_sizes_fall_by_halves(quick_store: Store) -> None:
    fill(quick_store, 40, per_commit=2)

    sizes = [segment.rows for segment in quick_store._log.checkpoint.segments]

    growing = [size for size in sizes if size < 32]
    assert sum(sizes) >= 80 - 16
    assert all(before > 2 * after for before, after in pairwise(growing))
    assert all(len(block) <= 32 for block in quick_store._log.checkpoint.history)
    assert len(quick_store._log.checkpoint.history) < 10


def test_what_is_superseded_is_not_referred_to(quick_store: Store) -> None:
    fill(quick_store, 20)
    checkpoint = quick_store._log.checkpoint
    named = {index_key(digest) for commit in quick_store.log() for digest in commit.indexes}
    for key in [item.key for item in quick_store.backend.list("")]:
        derived = key.startswith((INDEX_PREFIX, CHECKPOINT_PREFIX, HISTORY_PREFIX)) and key not in named
        if derived and key not in objects_of(checkpoint):
            quick_store.backend.delete(key)

    again = reopened(quick_store)

    assert len(versions(again)) == 60
    assert len(list(again.log())) == 20
    assert again._log.checkpoint.sequence == checkpoint.sequence


def test_committers_that_write_the_same_checkpoint_write_the_same_bytes(store: Store, store_url: str) -> None:
    fill(store, 15)
    stores = [Store.open(store_url) for _ in range(3)]
    for opened in stores:
        opened.catalog()
    before = {item.key for item in store.backend.list("")}

    with ThreadPoolExecutor(3) as pool:
        written = list(pool.map(lambda s: write_checkpoint(s.backend, s._log, s._catalog), stores))

    after = {item.key for item in store.backend.list("")}
    assert len({checkpoint.key for checkpoint in written}) == 1
    assert len([key for key in after - before if key.startswith(CHECKPOINT_PREFIX)]) <= 1
    assert versions(Store.open(store_url)) == versions(store)


@pytest.mark.parametrize("prefix", [INDEX_PREFIX, HISTORY_PREFIX, CHECKPOINT_PREFIX])
def test_a_checkpoint_that_fails_does_not_fail_the_commit(
    quick_store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, prefix: str
) -> None:
    put = type(quick_store.backend).put
    writing: list[bool] = []

    def failing(self: Any, key: str, body: bytes) -> None:
        if writing and key.startswith(prefix):
            raise Unreachable("no answer")
        put(self, key, body)

    def watched(*given: Any) -> None:
        writing.append(True)
        write_checkpoint(*given)

    monkeypatch.setattr(type(quick_store.backend), "put", failing)
    monkeypatch.setattr("store.checkpoint.write_checkpoint", watched)
    fill(quick_store, 3)
    monkeypatch.undo()

    assert "was not written, a later commit will" in caplog.text
    assert len(versions(reopened(quick_store))) == 9
    assert not list(quick_store.backend.list(CHECKPOINT_PREFIX))


def test_a_checkpoint_that_was_missed_is_made_up_for(
    quick_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.build.write_checkpoint_if_due", lambda *given: None)
    fill(quick_store, 20)
    monkeypatch.undo()
    assert not quick_store._log.checkpoint.key

    quick_store.publish([memory(500)], message="makes up")

    assert quick_store._log.checkpoint.sequence == 21
    assert reopened(quick_store)._log.checkpoint.key == ""
    assert len(versions(reopened(quick_store))) == 61


def test_a_checkpoint_of_another_log_is_left_out(
    quick_store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    """As after a restore of older entries: what was committed later must not come back from a checkpoint."""
    fill(quick_store, 8)
    assert quick_store._log.checkpoint.sequence == 6
    for number in (5, 6, 7, 8):
        quick_store.backend.delete(log_key(number))

    again = reopened(quick_store)
    assert len(versions(again)) == 12
    for number in (5, 6):
        again.publish([memory(700 + number)], message=f"another {number}")

    fresh = reopened(quick_store)
    assert [commit.message for commit in fresh.log()] == ["0", "1", "2", "3", "another 5", "another 6"]
    assert "is about another log" in caplog.text
    assert len(versions(fresh)) == 14


def delete_segments(store: Store) -> None:
    for segment in store._log.checkpoint.segments:
        if segment.lead:
            store.backend.delete(index_key(segment.index))
            store.backend.delete(directory_key(segment.index))


def damage_segments(store: Store) -> None:
    generator = random.Random(1)
    for segment in store._log.checkpoint.segments:
        if segment.lead:
            data = bytearray(store.backend.read(index_key(segment.index)))
            data[generator.randrange(len(data))] ^= 1
            store.backend.put(index_key(segment.index), data)
            store.backend.delete(directory_key(segment.index))


def damage_directories(store: Store) -> None:
    for segment in store._log.checkpoint.segments:
        if segment.lead:
            store.backend.put(directory_key(segment.index), b"no directory")


def damage_bundles(store: Store) -> None:
    assert store._log.checkpoint.bundles
    for bundle in store._log.checkpoint.bundles:
        store.backend.put(bundle_key(bundle.digest), b"no tables")


def delete_bundles(store: Store) -> None:
    for bundle in store._log.checkpoint.bundles:
        store.backend.delete(bundle_key(bundle.digest))


def delete_history(store: Store) -> None:
    for block in store._log.checkpoint.history:
        store.backend.delete(history_key(block.digest))


def damage_history(store: Store) -> None:
    for block in store._log.checkpoint.history:
        store.backend.put(history_key(block.digest), b"no block")


HARM = [
    delete_segments,
    damage_segments,
    damage_directories,
    damage_bundles,
    delete_bundles,
    delete_history,
    damage_history,
]


@pytest.mark.parametrize("harm", HARM, ids=lambda harm: harm.__name__)
def test_what_happens_to_derived_objects_costs_time_only(
    quick_store: Store, harm: Callable[[Store], None], caplog: pytest.LogCaptureFixture
) -> None:
    fill(quick_store, 24, per_commit=4)
    right = quick_store.catalog().rows()
    running = reopened(quick_store)
    running.catalog()
    harm(quick_store)

    for opened in (reopened(quick_store), running):
        row = right[17]
        assert opened.catalog().get(row.version) == opened.catalog().find(row.recipe) == row
        assert opened.catalog().known([row.version, "f" * 64]) == {row.version}
        assert opened.catalog().latest(row.name) == row
        assert opened.catalog().rows() == right
        assert len(list(opened.log())) == 24
    assert said(caplog, "store")
    fill(reopened(quick_store), 32, per_commit=4)
    caplog.clear()
    healed = reopened(quick_store)
    assert len(versions(healed)) == 128
    assert len(list(healed.log())) == 32
    if "history" not in harm.__name__:
        assert not said(caplog, "store")


def test_a_lost_index_that_no_checkpoint_replaces_is_an_error(quick_store: Store) -> None:
    fill(quick_store, 10)
    for key in [item.key for item in quick_store.backend.list(INDEX_PREFIX)]:
        quick_store.backend.delete(key)

    with pytest.raises(IntegrityError, match="an index file that the log names is missing"):
        reopened(quick_store).catalog().get("f" * 64)


@pytest.mark.parametrize(
    "changes",
    [
        {"sequence": 0},
        {"sequence": "1"},
        {"tip": "x"},
        {"segments": [["x", 1, 1, []]]},
        {"segments": [["a" * 64, -1, 1, []]]},
        {"segments": [["a" * 64, 2**70, 1, []]]},
        {"segments": [["a" * 64, 1, 0, []]]},
        {"segments": [["a" * 64, 1, 1, [[0, 2**40, "b" * 64], [0, 1, "b" * 64]]]]},
        {"segments": [["a" * 64, 1, 1, [1, 2]]]},
        {"segments": [{}]},
        {"segments": "x"},
        {"bundles": [["a" * 64, ["x"]]]},
        {"bundles": [[1, 2]]},
        {"history": []},
        {"history": [["a" * 64, 1, 2, 0, "!"]]},
        {"history": [["a" * 64, 1, 10**9, 10**9, ""]]},
        {"history": [[]]},
        {"removals": {}},
        {"plain": 1},
    ],
    ids=str,
)
def test_a_sealed_checkpoint_that_no_store_wrote_is_left_out(quick_store: Store, changes: Any) -> None:
    fill(quick_store, 8)
    key = quick_store._log.checkpoint.key
    record = unseal(quick_store.backend.read(key), key) | changes
    data = seal(record)
    number = key.removeprefix(CHECKPOINT_PREFIX)[:20]
    forged = f"{CHECKPOINT_PREFIX}{number}-{sha256(data)}.json"

    with pytest.raises(IntegrityError, match=forged):
        decode_checkpoint(data, forged)
    quick_store.backend.delete(key)
    quick_store.backend.put(forged, data)
    assert len(versions(reopened(quick_store))) == 24


def test_a_checkpoint_under_the_number_of_another_is_left_out(quick_store: Store) -> None:
    fill(quick_store, 8)
    key = quick_store._log.checkpoint.key
    forged = f"{CHECKPOINT_PREFIX}{0:020d}{key.removeprefix(CHECKPOINT_PREFIX)[20:]}"

    with pytest.raises(IntegrityError, match=forged):
        decode_checkpoint(quick_store.backend.read(key), forged)


def test_a_checkpoint_is_read_back(quick_store: Store) -> None:
    fill(quick_store, 30)
    [ref] = quick_store.publish([memory(900)], message="one")
    snapshot = quick_store.pin([ref], message="pin").id
    append(quick_store, "condemn", _removal([pack_of(quick_store, ref)], [snapshot]))
    append(quick_store, "collect", _removal([pack_of(quick_store, ref)], [snapshot]))
    written = write_checkpoint(quick_store.backend, quick_store._log, quick_store._catalog)

    again = decode_checkpoint(quick_store.backend.read(written.key), written.key)

    assert again == written
    assert (again.plain, dict(again.removals.gone), again.removals.dying.snapshots) == (
        False,
        {snapshot: 34},
        {snapshot},
    )
    assert encode_checkpoint(again)[0] == written.key
    assert next(checkpoints(quick_store.backend)) == written


def _removal(packs: list[str], snapshots: list[str]) -> Any:
    from store.removals import Removal

    return Removal(frozenset(packs), frozenset(snapshots))


def test_a_pin_of_long_ago_is_remembered(store: Store, store_url: str) -> None:
    refs = store.publish([memory(n) for n in range(3)], message="three")
    first = store.pin(refs, message="first").id
    fill(store, 20, per_commit=1)
    other = Store.open(store_url)
    keys = count_reads(other)

    assert other.pin(refs, message="again").id == first
    new = other.pin(refs[:2], message="another")

    assert [c.message for c in other.log() if c.action == PIN] == ["first", "another"]
    assert other._log.last_pin(first) == other._log.at(2)
    assert other._log.last_pin("0" * 64) is None
    assert new.count == 2
    assert keys


def test_a_commit_of_long_ago_is_the_answer_to_its_repetition(store: Store, store_url: str) -> None:
    build = store.build("b", owner="test")
    with build.writer("unit") as writer:
        writer.add(memory(1000))
        receipt = writer.finish()
    first = build.commit([receipt], message="first")
    fill(store, 30)

    again = Store.open(store_url).build("b", owner="x").commit([receipt], message="again")

    assert again == first
    assert len(list(store.log())) == 31


def test_a_log_follows_the_checkpoints_of_others(quick_store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.log.LOOK_AGAIN", 8)
    reader = reopened(quick_store)
    reader.catalog()

    fill(quick_store, 20)
    reader.catalog()

    assert reader._log.checkpoint.sequence > 8
    assert reader.catalog().rows() == quick_store.catalog().rows()
    assert [commit.message for commit in reader.log()] == [str(number) for number in range(20)]


def test_a_large_index_of_an_earlier_version_gets_a_directory(quick_store: Store) -> None:
    store = quick_store
    store.publish([memory(n) for n in range(40)], message="forty")
    [digest] = next(store.log()).indexes
    rows = [row.visible_since(0) for row in store.catalog().rows()]
    data = encode_rows(rows, {"packs": store.catalog().packs()})
    store.backend.put(index_key(sha256(data)), data)
    append(store, "repair", replaces=(digest,), indexes=(sha256(data),))
    for key in [item.key for item in store.backend.list(CHECKPOINT_PREFIX)]:
        store.backend.delete(key)

    fresh = reopened(store)
    assert len(versions(fresh)) == 40
    written = write_checkpoint(fresh.backend, fresh._log, fresh._catalog)

    assert [(segment.rows, segment.lead is not None) for segment in written.segments] == [(40, True)]
    assert len(versions(reopened(store))) == 40


def test_rows_that_were_collected_leave_the_segments_and_the_state(quick_store: Store) -> None:
    store = quick_store
    fill(store, 20)
    [dead] = store.publish([memory(800)], message="dies")
    pack = pack_of(store, dead)
    append(store, "condemn", _removal([pack], []))
    append(store, "collect", _removal([pack], []))
    store.backend.delete(pack_key(pack))
    append(store, "swept")
    write_checkpoint(store.backend, store._log, store._catalog)
    assert store.catalog().removals.dead

    written = write_checkpoint(store.backend, store._log, store._catalog, without_dead=True)

    assert not written.removals.dead
    assert sum(segment.rows for segment in written.segments) == 60
    for opened in (store, reopened(store)):
        assert dead.version not in opened.catalog()
        assert len(versions(opened)) == len(opened.catalog()) == 60
        assert pack not in opened.catalog().packs()
    assert store.verify(full=True).findings == ()


def test_an_index_that_is_named_again_counts_for_who_has_its_rows_in_memory(quick_store: Store) -> None:
    """After a collection the same elements make the same pack and the same index file, of a later commit."""
    elements = [memory(n, size=16) for n in range(20)]
    names = {element.version for element in elements}
    [*refs] = quick_store.publish(elements, message="first")
    assert len(quick_store.catalog().get_all(names)) == 20
    other = reopened(quick_store)
    pack = pack_of(other, refs[0])
    append(other, "condemn", _removal([pack], []))
    append(other, "collect", _removal([pack], []))
    other.backend.delete(pack_key(pack))
    append(other, "swept")
    assert not quick_store.catalog().get_all(names)

    other.publish(elements, message="again")

    first, *_, last = quick_store.log()
    assert first.indexes == last.indexes
    for opened in (quick_store, other, reopened(quick_store)):
        assert {row.commit for row in opened.catalog().get_all(names).values()} == {last.sequence}
        assert opened.catalog().known(names) == names
        assert [row.version for row in opened.catalog().versions(refs[0].name)] == [refs[0].version]
        assert len(versions(opened)) == 20
    assert quick_store.pin(refs, message="all of them").count == 20


def test_threads_share_a_store_while_checkpoints_are_written(store: Store) -> None:
    def work(number: int) -> bytes:
        [ref] = store.publish([memory(number)], message=str(number))
        assert store.catalog().known([ref.version]) == {ref.version}
        return store.read(ref)

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(work, range(30))) == [memory(number).payload for number in range(30)]
    assert len(versions(store)) == 30
    assert store._log.checkpoint.key
    assert store.verify(full=True).ok


def test_a_block_of_history_is_read_back_and_nothing_else(quick_store: Store) -> None:
    fill(quick_store, 5)
    entries = [quick_store.backend.read(log_key(number)) for number in range(1, 6)]
    block, data = encode_block(1, entries)
    quick_store.backend.put(history_key(block.digest), data)

    assert read_block(quick_store.backend, block) == entries
    assert Block.from_list(block.to_list()) == block
    with pytest.raises(IntegrityError, match="is not a block of log entries"):
        read_block(quick_store.backend, Block(block.digest, 2, 6, 0, block.pins))


def test_synthetic_stores_are_what_published_ones_are(tmp_path: Path) -> None:
    store = synthetic_store(str(tmp_path / "synthetic"), 100, per_commit=9)

    rows = Store.open(store.url).catalog().rows("memory")

    assert len(rows) == 100
    assert all(row.is_authentic() for row in rows)
    assert [commit.action for commit in store.log()] == [PUBLISH] * 13
