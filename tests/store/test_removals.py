"""What is condemned counts for no writer, what is collected is gone, what was rescued or made again stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from store import Ref, Store
from store.errors import ConflictError, ElementNotFound, IntegrityError
from store.format import canonical_json, index_key, log_key, pack_key, removal_key, sha256, snapshot_key
from store.log import COLLECT, CONDEMN, PIN, PUBLISH, REPAIR, SWEPT, Commit, Draft, Log
from store.removals import Removal, Removals, decode_removal, read_removal, write_removal
from store.rows import encode_rows
from tests.store.samples import memory


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(str(tmp_path / "store"))


def append(store: Store, action: str, removal: Removal | None = None, **fields: object) -> Commit:
    """Append a maintenance entry, as collector and repair do."""
    store.catalog()
    draft = Draft(
        action=action,
        message=action,
        run={},
        removal=write_removal(store.backend, removal) if removal else "",
        **fields,  # type: ignore[arg-type]
    )
    return _log(store).append(lambda: draft)


def _log(store: Store) -> Log:
    return store._log


def pack_of(store: Store, ref: Ref) -> str:
    row = store.catalog().get(ref.version)
    assert row is not None
    return row.pack


def entry(sequence: int, action: str, snapshot: str = "") -> Commit:
    return Commit(sequence, "", "", action, "", "", snapshot=snapshot)


def test_the_state_follows_the_entries() -> None:
    p, q, s, t = ("1" * 64, "2" * 64, "3" * 64, "4" * 64)

    condemned = Removals().after(entry(3, CONDEMN), Removal(frozenset({p, q}), frozenset({s, t})))
    rescued = condemned.after(entry(4, PIN, snapshot=t)).after(entry(5, PUBLISH)).without([q, "5" * 64])
    collected = rescued.after(entry(6, COLLECT), Removal(frozenset({p}), frozenset({s})))
    swept = collected.after(entry(7, SWEPT))
    again = swept.after(entry(8, PIN, snapshot=s))

    assert (rescued.condemned, rescued.condemned_at) == (Removal(frozenset({p}), frozenset({s})), 3)
    assert not collected.condemned
    assert (collected.dying, collected.dying_since) == (Removal(frozenset({p}), frozenset({s})), 6)
    assert (collected.is_dead(p, 6), collected.is_dead(p, 7), collected.is_dead(q, 1)) == (True, False, False)
    assert not swept.dying
    assert (collected.changed_at, swept.changed_at) == (6, 7)
    assert (dict(swept.gone), dict(again.gone)) == ({s: 6}, {})


def test_a_removal_is_read_back(store: Store) -> None:
    removal = Removal(frozenset({"a" * 64, "b" * 64}), frozenset({"c" * 64}))

    digest = write_removal(store.backend, removal)

    assert read_removal(store.backend, digest) == removal
    assert sha256(store.backend.read(removal_key(digest))) == digest


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[" * 100_000,
        b"[]",
        b'{"packs":[],"snapshots":{}}',
        b'{"packs":["../x"],"snapshots":[]}',
        b'{"packs":[1],"snapshots":[]}',
        b'{"packs":[["x"]],"snapshots":[]}',
        canonical_json({"packs": ["b" * 64, "a" * 64], "snapshots": []}),
        canonical_json({"packs": [], "snapshots": [], "more": 1}),
    ],
    ids=lambda data: repr(data[:30]),
)
def test_a_removal_that_no_store_wrote_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError, match="is not the list of a removal"):
        decode_removal(data, sha256(data))


def test_a_missing_or_changed_removal_is_named(store: Store) -> None:
    digest = write_removal(store.backend, Removal(frozenset({"a" * 64})))
    store.backend.put(removal_key(digest), b"{}")

    with pytest.raises(IntegrityError, match=f"gc/{digest}.json is damaged"):
        read_removal(store.backend, digest)
    with pytest.raises(IntegrityError, match=f"gc/{'0' * 64}.json.* is missing"):
        read_removal(store.backend, "0" * 64)


def test_condemned_elements_stay_readable_and_count_for_no_writer(store: Store) -> None:
    [kept] = store.publish([memory(1)], message="kept")
    [ref] = store.publish([memory(2)], message="condemned")
    recipe = memory(2).provenance["recipe"]
    pack = pack_of(store, ref)

    append(store, CONDEMN, Removal(frozenset({pack})))
    catalog = store.catalog()

    assert catalog.known([kept.version, ref.version]) == {kept.version}
    assert catalog.find(recipe) is None
    assert catalog.find_all(recipe) == []
    assert list(catalog.find_many([recipe, memory(1).provenance["recipe"]])) == [
        memory(1).provenance["recipe"]
    ]
    assert ref.version in catalog
    assert catalog.get(ref.version) == catalog.latest(ref.name)
    assert len(catalog) == len(catalog.rows()) == 2
    assert store.read(ref) == memory(2).payload
    assert catalog.packs().keys() == {pack, pack_of(store, kept)}


def test_publishing_into_a_condemned_pack_rescues_it(store: Store, tmp_path: Path) -> None:
    [ref] = store.publish([memory(2)], message="first")
    pack = pack_of(store, ref)
    append(store, CONDEMN, Removal(frozenset({pack})))

    store.publish([memory(2)], message="first")  # finds the part of its first run, so names the same pack

    for opened in (store, Store.open(store.url)):
        catalog = opened.catalog()
        assert catalog.removals.condemned.packs == frozenset()
        assert catalog.known([ref.version]) == {ref.version}
        assert len(catalog) == len(catalog.rows()) == 1
    assert [commit.action for commit in store.log()] == [PUBLISH, CONDEMN, PUBLISH]
    assert store.verify(full=True).ok


def test_a_version_published_again_outlives_the_pack_it_was_in(store: Store) -> None:
    refs = store.publish([memory(1), memory(2)], message="two")
    old = pack_of(store, refs[0])
    append(store, CONDEMN, Removal(frozenset({old})))
    store.publish([memory(1)], message="again")
    new = pack_of(store, refs[0])
    append(store, COLLECT, Removal(frozenset({old})))
    store.backend.delete(pack_key(old))
    append(store, SWEPT)

    for opened in (store, Store.open(store.url)):
        catalog = opened.catalog()
        assert [row.version for row in catalog.rows()] == [refs[0].version]
        assert (len(catalog), catalog.packs().keys()) == (1, {new})
        assert [table.to_pylist() for table in catalog.scan(["version", "commit"])] == [
            [{"version": refs[0].version, "commit": 3}]
        ]
        assert opened.read(refs[0]) == memory(1).payload
        assert (refs[1].version in catalog, catalog.latest(refs[1].name)) == (False, None)
        with pytest.raises(ElementNotFound):
            opened.read(refs[1])
    assert new != old
    assert store.verify(full=True).findings == ()


def test_a_collected_pack_can_be_written_again(store: Store) -> None:
    [ref] = store.publish([memory(1)], message="first")
    pack = pack_of(store, ref)
    append(store, CONDEMN, Removal(frozenset({pack})))
    append(store, COLLECT, Removal(frozenset({pack})))

    with pytest.raises(ConflictError, match="is being removed at this moment") as caught:
        store.publish([memory(1)], message="while it is being removed")
    assert caught.value.exit_code == 7
    store.backend.delete(pack_key(pack))
    append(store, SWEPT)
    store.publish([memory(1)], message="again")

    for opened in (store, Store.open(store.url)):
        row = opened.catalog().get(ref.version)
        assert row is not None
        assert (row.pack, row.commit) == (pack, 5)
        assert len(opened.catalog()) == 1
    assert store.verify(full=True).findings == ()


def test_a_pack_that_was_collected_after_the_commit_looked_is_missed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    build = store.build("b", owner="test")
    with build.writer("unit") as writer:
        writer.add(memory(1))
        receipt = writer.finish()
    [(pack, _)] = receipt.packs
    other = Store.open(store.url)
    refresh, meanwhile = Log.refresh, [True]

    def collecting(log: Log) -> None:
        if log is _log(store) and meanwhile:
            meanwhile.clear()
            append(other, CONDEMN, Removal(frozenset({pack})))
            append(other, COLLECT, Removal(frozenset({pack})))
            other.backend.delete(pack_key(pack))
            append(other, SWEPT)
        refresh(log)

    monkeypatch.setattr(Log, "refresh", collecting)

    with pytest.raises(IntegrityError, match=f"{pack_key(pack)} is missing"):
        build.commit([receipt], message="too late")
    assert [commit.action for commit in store.log()] == [CONDEMN, COLLECT, SWEPT]


def test_pinning_rescues_a_condemned_snapshot(store: Store) -> None:
    refs = store.publish([memory(1)], message="one")
    snapshot = store.pin(refs, message="pin").id
    append(store, CONDEMN, Removal(frozenset({pack_of(store, refs[0])}), frozenset({snapshot})))

    assert store.pin(refs, message="rescue").id == snapshot
    assert store.catalog().removals.condemned.snapshots == frozenset()
    assert store.pin(refs, message="once is enough").id == snapshot
    assert [commit.action for commit in store.log()] == [PUBLISH, PIN, CONDEMN, PIN]


def test_a_collected_snapshot_is_made_again_once_it_is_swept(store: Store) -> None:
    refs = store.publish([memory(1)], message="one")
    snapshot = store.pin(refs, message="pin").id
    append(store, CONDEMN, Removal(snapshots=frozenset({snapshot})))
    append(store, COLLECT, Removal(snapshots=frozenset({snapshot})))

    with pytest.raises(ConflictError, match=snapshot[:12]):
        store.pin(refs, message="while it is being removed")
    store.backend.delete(snapshot_key(snapshot))
    append(store, SWEPT)
    assert store.verify().ok
    again = store.pin(refs, message="again")

    assert (again.id, again.count) == (snapshot, 1)
    assert [commit.action for commit in store.log()][-1] == PIN
    assert Store.open(store.url).catalog().removals.gone == {}
    assert store.verify(full=True).ok


def test_nothing_collected_can_be_pinned(store: Store) -> None:
    refs = store.publish([memory(1)], message="one")
    append(store, COLLECT, Removal(frozenset({pack_of(store, refs[0])})))

    with pytest.raises(ElementNotFound, match=r"memory/doc/00001"):
        store.pin(refs, message="too late")


def test_a_repair_stands_in_for_a_lost_index(store: Store) -> None:
    refs = store.publish([memory(1), memory(2)], message="two")
    store.publish([memory(3)], message="three")
    rows = [row for row in store.catalog().rows() if row.commit == 1]
    lost = next(store.log()).indexes[0]
    store.backend.delete(index_key(lost))
    with pytest.raises(IntegrityError, match=lost[:12]):
        Store.open(store.url).catalog()
    data = encode_rows(rows, {"packs": {rows[0].pack: store.catalog().packs()[rows[0].pack]}})
    store.backend.put(index_key(sha256(data)), data)

    append(store, REPAIR, indexes=(sha256(data),), replaces=(lost,))

    for opened in (store, Store.open(store.url)):
        assert [row.commit for row in opened.catalog().rows()] == [1, 1, 2]
        assert opened.read(refs[0]) == memory(1).payload
    assert store.verify(full=True).findings == ()


def test_rows_of_a_later_commit_than_the_one_that_names_them_are_refused(store: Store) -> None:
    store.publish([memory(1)], message="one")
    [row] = store.catalog().rows()
    good, bad = (encode_rows([row.visible_since(n)], {"packs": {row.pack: 1}}) for n in (2, 9))
    for data in (good, bad):
        store.backend.put(index_key(sha256(data)), data)

    append(store, REPAIR, indexes=(sha256(good),))
    assert len(store.catalog()) == 1
    append(store, REPAIR, indexes=(sha256(bad),))
    with pytest.raises(IntegrityError, match="rows of commits after the one that names it"):
        store.catalog()


def test_entries_of_maintenance_are_read_back_and_others_stay_as_they_were(store: Store) -> None:
    removal = Removal(frozenset({"a" * 64}))
    store.publish([memory(1)], message="one")
    append(store, CONDEMN, removal)
    append(store, REPAIR, replaces=("b" * 64,))

    plain, condemn, repair = Store.open(store.url).log()

    assert read_removal(store.backend, condemn.removal) == removal
    assert repair.replaces == ("b" * 64,)
    assert (plain.removal, plain.replaces) == ("", ())
    assert b"removal" not in store.backend.read(log_key(1))
    assert b"replaces" not in store.backend.read(log_key(1))
