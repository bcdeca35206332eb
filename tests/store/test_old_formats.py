"""Stores that earlier versions wrote, kept as they were, open and can be continued.

`tests/data/store_format_1.tar.gz` was written before directories of index files, condemnation and JSON
checkpoints existed: 70 commits, a Parquet checkpoint, two snapshots, a tag and a head that moved.
`store_format_1.json` says what it held.
"""

from __future__ import annotations

import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from store import Ref, Store
from store.format import sha256
from store.positions import Note
from tests.store.samples import memory

DATA = Path(__file__).parents[1] / "data"
EXPECTED: dict[str, Any] = json.loads((DATA / "store_format_1.json").read_text())


@pytest.fixture
def old_store(tmp_path: Path) -> Store:
    """Return the kept store, unpacked."""
    with tarfile.open(DATA / "store_format_1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    return Store.open(str(tmp_path / "store"))


def test_every_element_of_an_old_store_is_there_with_its_bytes(old_store: Store) -> None:
    rows = old_store.catalog().rows()

    assert {str(row.ref): row.commit for row in rows} == {
        ref: entry["commit"] for ref, entry in EXPECTED["elements"].items()
    }
    for row in rows:
        entry = EXPECTED["elements"][str(row.ref)]
        assert sha256(old_store.read(row)) == entry["payload"]
        assert row.facts == entry["facts"]
        assert old_store.catalog().find(row.recipe) == row


def test_history_names_and_snapshots_of_an_old_store_are_there(old_store: Store) -> None:
    assert [commit.digest for commit in old_store.log()] == EXPECTED["commits"]
    assert old_store.tags() == EXPECTED["tags"]
    assert old_store.heads() == EXPECTED["heads"]
    for identity, count in EXPECTED["snapshots"].items():
        snapshot = old_store.snapshot(identity)
        assert snapshot.count == len(snapshot.rows()) == count
        assert {row.name for row, _ in snapshot.stream()} == {row.name for row in snapshot.rows()}
    assert old_store.verify(full=True).findings == ()


def test_an_old_store_is_continued(old_store: Store) -> None:
    before = len(old_store.catalog())
    held = old_store.snapshot("v1").rows("memory")

    for number in range(200, 270):  # past the next checkpoint
        old_store.publish([memory(number), memory(100)], message=f"publish {number}")
    pinned = old_store.pin([Ref(row.name, row.version) for row in old_store.catalog().rows()], message="all")

    again = Store.open(old_store.url)
    assert len(again.catalog()) == before + 70
    assert again.snapshot(pinned.id).count == before + 70
    assert again.snapshot("v1").rows("memory") == held
    assert again.verify(full=True).findings == ()


def test_an_old_head_is_moved_on_and_says_why_from_then_on(old_store: Store) -> None:
    [name] = EXPECTED["heads"]
    known = old_store.head_log(name)
    target = next(iter(set(EXPECTED["snapshots"]) - {known[-1].snapshot}))

    old_store.move_head(name, target, expect=known[-1].snapshot, why="moved on")

    after = Store.open(old_store.url).head_log(name)
    assert after[:-1] == known
    assert {position.note for position in known} == {Note()}
    assert (after[-1].snapshot, after[-1].note.why) == (target, "moved on")
    assert old_store.verify(full=True).findings == ()
