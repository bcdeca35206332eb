"""A version is its bytes and a snapshot id is its set, whoever wrote the index in between."""

from __future__ import annotations

import os
import shutil
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from store import Element, Store
from store.backend import open_backend
from store.errors import IntegrityError, NotAStore, Unreachable
from store.format import ENTRY_PREFIX, log_key, snapshot_key, snapshot_rows_key, unseal
from store.snapshot import encode_snapshot
from tests.store.samples import memory


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"file:{tmp_path / 'store'}"


def test_a_row_that_lends_a_version_to_other_bytes_is_refused(url: str) -> None:
    store = Store.create(url)
    [good] = store.publish([memory(0)], message="good")
    [evil] = store.publish([memory(1)], message="evil")
    row = store.catalog().get(evil.version)
    assert row is not None
    with pytest.raises(IntegrityError, match="in a way that its version denies"):
        store.read(replace(row, name=good.name, version=good.version))


def test_a_snapshot_whose_head_names_other_rows_is_refused(url: str) -> None:
    store = Store.create(url)
    refs = store.publish([memory(number) for number in range(3)], message="three")
    pinned = store.pin(refs, message="all")
    other = [row for row in pinned.rows() if row.name != refs[0].name]
    head, table = encode_snapshot(other)
    record = unseal(head, "head")
    folder = Path(url.removeprefix("file:"))
    (folder / snapshot_rows_key(record["rows"])).write_bytes(table)
    from store.format import seal

    fields = {name: value for name, value in record.items() if name != "seal"}
    forged = folder / snapshot_key(pinned.id)
    forged.unlink()
    forged.write_bytes(seal({**fields, "id": pinned.id}))
    with pytest.raises(IntegrityError, match="not the set that its id names"):
        Store.open(url).snapshot(pinned.id).rows()


def test_nothing_is_committed_where_the_store_went_away_or_was_replaced(url: str) -> None:
    store = Store.create(url)
    store.publish([memory(0)], message="before")
    folder = Path(url.removeprefix("file:"))
    shutil.move(folder, folder.with_name("away"))
    with pytest.raises(NotAStore, match="gone or was replaced"):
        store.publish([memory(1)], message="into nothing")
    shutil.rmtree(folder, ignore_errors=True)
    fresh = Store.create(url)
    fresh.publish([memory(2)], message="another store")
    with pytest.raises(NotAStore, match="gone or was replaced"):
        store.publish([memory(3)], message="into another")
    assert [commit.message for commit in Store.open(url).log()] == ["another store"]


def test_an_opening_that_fails_half_way_can_be_tried_again(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Store.create(url)
    for number in range(65):
        writer.publish([memory(number)], message=str(number))
    backend = open_backend(url)
    listing = type(backend).list
    failures = [Unreachable("no answer")]

    def unreliable(self: object, prefix: str, **options: str) -> object:
        if prefix == ENTRY_PREFIX and failures:
            raise failures.pop()
        return listing(backend, prefix, **options)

    reader = Store(backend)
    monkeypatch.setattr(type(backend), "list", unreliable)
    with pytest.raises(Unreachable):
        reader.catalog()
    assert len(reader.catalog()) == 65


def test_foreign_files_beside_the_log_do_not_disturb_it(url: str) -> None:
    store = Store.create(url)
    store.publish([memory(0)], message="one")
    entry = Path(url.removeprefix("file:")) / log_key(1)
    shutil.copy(entry, entry.with_name(f"{entry.stem} (conflict).json"))
    again = Store.open(url)
    assert len(again.catalog()) == 1
    assert again.verify(full=True).ok


def test_what_is_pinned_while_verify_runs_is_no_damage(url: str) -> None:
    store = Store.create(url)
    refs = store.publish([memory(0), memory(1)], message="two")
    store.move_head("main", store.pin(refs[:1], message="one").id, expect=None)
    moved = []

    def meanwhile(done: int, total: int, **figures: float) -> None:
        if not moved:
            other = Store.open(url)
            moved.append(other.pin(refs, message="both").id)
            other.move_head("main", moved[0], expect=other.head("main"))

    assert store.verify(full=True, progress=meanwhile).findings == ()
    assert moved


def test_a_pack_can_be_sealed_again_after_an_upload_that_failed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.create(url)
    build = store.build("retried", owner="test")
    put = type(store.backend).put
    failures = [Unreachable("no answer")]

    def unreliable(self: object, key: str, body: bytes) -> None:
        if key.startswith("packs/") and failures:
            raise failures.pop()
        put(store.backend, key, body)

    with build.writer("unit") as writer:
        writer.add(memory(0))
        monkeypatch.setattr(type(store.backend), "put", unreliable)
        with pytest.raises(Unreachable):
            writer.finish()
        build.commit([writer.finish()], message="at last")
    assert store.verify(full=True).ok


def test_files_take_the_modes_that_the_umask_allows(url: str) -> None:
    before = os.umask(0o022)
    try:
        store = Store.create(url)
        store.publish([Element("skill", "x", b"{}", media="application/json")], message="shared")
    finally:
        os.umask(before)
    folder = Path(url.removeprefix("file:"))
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}
    assert modes <= {0o644}
