"""What `verify` says: whatever is damaged is found and named, with all that it touches, and nothing else."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from store import Ref, Store
from store.backend import open_backend
from store.backend.local import LocalBackend
from store.checkpoint import write_checkpoint
from store.errors import InputError, NotAStore, UnsupportedFormat
from store.format import (
    FORMAT_KEY,
    TURN_KEY,
    checkpoint_key,
    index_key,
    log_key,
    pack_key,
    seal,
    sha256,
    snapshot_key,
    unseal,
)
from store.index import encode_index, write_index
from store.log import COLLECT, CONDEMN, REPAIR, SWEPT, Draft, Log
from store.manifest import checkpoints, encode_checkpoint
from store.removals import Removal, write_removal
from store.rows import SCHEMA, decode_table
from store.signature import put_signature, sign
from store.verify import Cursor, VerifyReport, verify
from tests.store.samples import codec, memory

MANY = 1100
"""More rows than an index file has without a directory."""


def append(store: Store, action: str, removal: Removal | None = None, **fields: object) -> None:
    """Append an entry of maintenance, as collector and repair do."""
    digest = write_removal(store.backend, removal) if removal else ""
    draft = Draft(action=action, message=action, run={}, removal=digest, **fields)  # type: ignore[arg-type]
    store.history.append(lambda: draft)


def pack_of(store: Store, ref: Ref) -> str:
    row = store.catalog().get(ref.version)
    assert row is not None
    return row.pack


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with objects of every kind; some are condemned, some were collected and are gone."""
    root = tmp_path_factory.mktemp("verify") / "store"
    store = Store.create(str(root))
    refs = store.publish(
        [codec(), *(memory(n, size=64, requires=(codec().version,)) for n in range(MANY))], message="all"
    )
    for number in range(9):
        store.publish([memory(5000 + number, size=16)], message=str(number))
    few, every = store.pin(refs[:40], message="few"), store.pin(refs, message="every")
    store.tag("v1", few.id)
    store.tag("v2", every.id)
    store.move_head("main", every.id, expect=None)
    store.move_head("next", few.id, expect=None)
    store.hold("evaluation", few.id).take()
    for seed in (b"1", b"2"):
        put_signature(store.backend, sign(few.id, Ed25519PrivateKey.from_private_bytes(seed * 32)))
    [doomed, kept] = (store.publish([memory(9000 + n)], message="later")[0] for n in range(2))
    unnamed = store.pin([doomed], message="to be collected")
    packs = [pack_of(store, ref) for ref in (doomed, kept)]
    gone = Removal(frozenset(packs[:1]), frozenset({unnamed.id}))
    append(store, CONDEMN, gone)
    append(store, COLLECT, gone)
    for key in (snapshot_key(unnamed.id), pack_key(packs[0])):
        store.backend.delete(key)
    append(store, SWEPT)
    append(store, CONDEMN, Removal(frozenset(packs[1:])))
    write_checkpoint(store.backend, store.history, store.catalog())
    with store.build("unfinished", owner="a test").writer("unit") as writer:
        writer.add(memory(9002))
        writer.finish()
    return root


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """Return a copy of that store to be damaged; what is written anew does not change the first one."""
    shutil.copytree(made, tmp_path / "store", copy_function=os.link)
    return tmp_path / "store"


KINDS = [
    "packs/*/*",
    "index/*.parquet",
    "index/*.keys",
    "snapshots/*.json",
    "snapshots/*.parquet",
    "log/0*.json",
    "log/checkpoint-*",
    "log/history-*",
    "gc/*.json",
    "pins/*",
    "signatures/*/*",
    "refs/*/*",
    "builds/*/lease.json",
    "builds/*/parts/*",
    "format.json",
]


def files(folder: Path, pattern: str) -> list[Path]:
    found = sorted(path for path in folder.glob(pattern) if path.is_file())
    assert found, pattern
    return found


def check(folder: Path, **options: object) -> VerifyReport:
    return verify(open_backend(str(folder)), **options)  # type: ignore[arg-type]


def overwrite(path: Path, data: bytes) -> None:
    """Put a new file in the place of a linked one."""
    path.unlink()
    path.write_bytes(data)


def flipped(data: bytes, generator: random.Random) -> bytes:
    damaged = bytearray(data)
    position = generator.randrange(len(damaged) * 8)
    damaged[position // 8] ^= 1 << position % 8
    return bytes(damaged)


def found_keys(report: VerifyReport) -> set[str]:
    return {finding.key for finding in report.findings}


def keys_of(folder: Path, paths: Iterable[Path]) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in paths}


def test_nothing_is_found_where_nothing_is_damaged(made: Path) -> None:
    report = check(made, full=True)

    assert report.findings == ()
    assert report.complete
    assert (report.elements, report.snapshots) == (1 + MANY + 9 + 1, 2)
    assert report.commits == 19
    # The pack of the unfinished build; the rows of the collected snapshot.
    assert report.leftovers["packs"] == report.leftovers["snapshots"] == report.leftovers["builds"] == 1
    assert report.bytes_read >= sum(path.stat().st_size for path in files(made, "packs/*/*"))


def test_progress_comes_with_every_object_and_ends_with_the_last(made: Path) -> None:
    seen: list[tuple[int, int]] = []
    rates: list[float] = []

    def progress(done: int, total: int, **figures: float) -> None:
        seen.append((done, total))
        rates.append(figures["MiB/s"])

    report = check(made, full=True, progress=progress)

    assert seen[-1] == (report.objects, report.objects)
    assert seen == sorted(seen)
    assert len({done for done, _ in seen}) > 80
    assert rates[-1] > 0


@pytest.mark.parametrize("kind", KINDS)
def test_every_flipped_bit_is_found(folder: Path, kind: str) -> None:
    """Each round damages about half of the objects of a kind at once: damage must not hide other damage."""
    generator = random.Random(kind)
    for _ in range(2):
        chosen = [path for path in files(folder, kind) if generator.random() < 0.5] or files(folder, kind)[:1]
        whole = {path: path.read_bytes() for path in chosen}
        for path, data in whole.items():
            overwrite(path, flipped(data, generator))

        report = check(folder, full=kind.startswith("packs"))

        for path, data in whole.items():
            overwrite(path, data)
        assert keys_of(folder, chosen) <= found_keys(report)


@pytest.mark.parametrize("kind", KINDS)
def test_every_cut_is_found(folder: Path, kind: str) -> None:
    paths = files(folder, kind)[:3]
    for number, path in enumerate(paths):
        data = path.read_bytes()
        overwrite(path, data[: (0, len(data) // 2, len(data) - 1)[-1 - number]])

    assert keys_of(folder, paths) <= found_keys(check(folder))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("format.json", "index/*.keys")])
def test_two_objects_that_changed_places_are_found(folder: Path, kind: str) -> None:
    for group in [f"refs/{noun}/*" for noun in ("tags", "heads")] if kind == "refs/*/*" else [kind]:
        first, second = (*files(folder, group), *files(folder, "format.json"))[:2]
        one, other = first.read_bytes(), second.read_bytes()
        overwrite(first, other)
        overwrite(second, one)

        assert keys_of(folder, [first, second]) <= found_keys(check(folder, full=kind.startswith("packs")))
        overwrite(first, one)
        overwrite(second, other)


@pytest.mark.parametrize(
    "kind",
    ["packs/*/*", "index/*.parquet", "index/*.keys", "snapshots/*", "log/0*", "log/history-*", "gc/*.json"],
)
def test_what_is_missing_and_needed_is_found(folder: Path, kind: str) -> None:
    """What nothing needs may be missing: then it was among the leftovers."""
    leftovers = check(folder).leftovers
    paths = files(folder, kind)[:-1] if kind == "log/0*" else files(folder, kind)
    for path in paths[:3]:
        data = path.read_bytes()
        path.unlink()
        report = check(folder)
        path.write_bytes(data)

        key = path.relative_to(folder).as_posix()
        named = any(key in (finding.key, *finding.problem.split(", ")) for finding in report.findings)
        assert named or sum(report.leftovers.values()) == sum(leftovers.values()) - 1, key


def test_a_damaged_payload_is_named_with_the_element_its_snapshots_and_their_names(folder: Path) -> None:
    store = Store.open(str(folder))
    row = store.snapshot("v1").get("memory/doc/00007")
    path = folder / pack_key(row.pack)
    data = bytearray(path.read_bytes())
    data[row.offset + 5] ^= 1
    overwrite(path, data)

    [finding] = check(folder, full=True).findings

    assert finding.key == pack_key(row.pack)
    assert "1 of 1101 payloads" in finding.problem
    assert finding.elements == (str(row.ref),)
    assert finding.snapshots == tuple(sorted((store.tags()["v1"], store.tags()["v2"])))
    assert finding.names == ("head:main", "head:next", "hold:evaluation", "tag:v1", "tag:v2")
    assert check(folder).ok  # without `full` only sizes are looked at


@pytest.mark.parametrize("cut", [True, False])
def test_a_pack_that_is_cut_or_missing_is_named_with_all_that_it_holds(folder: Path, cut: bool) -> None:
    store = Store.open(str(folder))
    row = store.catalog().latest("memory/doc/05003")
    assert row is not None
    path = folder / pack_key(row.pack)
    data = path.read_bytes()
    path.unlink()
    if cut:
        path.write_bytes(data[:-1])

    [finding] = check(folder).findings

    assert finding.elements == (str(row.ref),)
    assert finding.snapshots == finding.names == ()
    assert (f"has {len(data) - 1} bytes instead of {len(data)}" if cut else "is missing") in finding.problem


def test_a_condemned_pack_is_still_needed_and_a_collected_one_is_not(folder: Path) -> None:
    removals = Store.open(str(folder)).catalog().removals
    [condemned] = removals.condemned.packs
    assert len(removals.dead) == 1  # it is gone, and nothing is found without it
    (folder / pack_key(condemned)).unlink()

    [finding] = check(folder).findings

    assert finding.key == pack_key(condemned)
    assert [element.partition("@")[0] for element in finding.elements] == ["memory/doc/09001"]


@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_a_lost_index_is_named_with_the_elements_of_its_commit(folder: Path, damage: str) -> None:
    """Also where no checkpoint, no snapshot and only the part of the build still has its rows."""
    store = Store.open(str(folder))
    ref = store.catalog().latest("memory/doc/05003").ref  # type: ignore[union-attr]
    commit = next(commit for commit in store.log() if commit.message == "3")
    for path in [*files(folder, "log/checkpoint-*"), folder / index_key(commit.indexes[0])]:
        data = path.read_bytes()
        path.unlink()
        if damage == "flipped" and path.name.endswith(".parquet"):
            path.write_bytes(flipped(data, random.Random(1)))

    [finding] = [f for f in check(folder).findings if f.key == index_key(commit.indexes[0])]

    assert finding.elements == (str(ref),)


def test_a_lost_entry_is_named_and_what_it_said_is_still_known(folder: Path) -> None:
    (folder / log_key(1)).unlink()

    [finding] = check(folder).findings

    assert finding.key == log_key(1)
    assert len(finding.elements) == MANY + 1
    assert len(finding.snapshots) == 2


def test_an_index_that_a_repair_stands_in_for_may_be_missing(folder: Path) -> None:
    store = Store.open(str(folder))
    commit = next(commit for commit in store.log() if commit.message == "3")
    data = (folder / index_key(commit.indexes[0])).read_bytes()
    table = decode_table(data, "index/x")[0].to_pylist()
    rows = pa.Table.from_pylist([{**row, "commit": commit.sequence} for row in table], schema=SCHEMA)
    index = encode_index(rows, {rows["pack"][0].as_py(): len(data)})
    for path in [*files(folder, "log/checkpoint-*"), folder / index_key(commit.indexes[0])]:
        path.unlink()
    assert not check(folder).ok

    sizes = {rows["pack"][0].as_py(): (folder / pack_key(rows["pack"][0].as_py())).stat().st_size}
    index = encode_index(rows, sizes)
    write_index(store.backend, index)
    fresh = Log(store.backend, store.history.at(0))
    fresh.append(
        lambda: Draft(
            action=REPAIR, message="stand in", run={}, indexes=(index.digest,), replaces=commit.indexes
        )
    )

    assert check(folder).findings == ()


def test_a_checkpoint_that_hides_elements_is_found(folder: Path) -> None:
    backend = open_backend(str(folder))
    [newest, *_] = checkpoints(backend)
    key, data = encode_checkpoint(replace(newest, segments=newest.segments[1:]))
    backend.put(key, data)
    backend.delete(newest.key)

    [finding] = check(folder).findings

    assert finding.key == key
    assert "hides" in finding.problem


def test_forged_records_are_findings_and_never_an_error(folder: Path) -> None:
    backend = open_backend(str(folder))
    for record in (
        {},
        {"id": 1},
        {"action": [], "previous": 1, "sequence": "1"},
        {"name": {}, "snapshot": 3},
    ):
        for key in (log_key(3), "refs/tags/v1", "refs/heads/main", "pins/evaluation.json", TURN_KEY):
            backend.put(key, seal(record))
        backend.put("builds/unfinished/lease.json", seal(record))
        backend.put(snapshot_key("a" * 64), seal(record))
        backend.put(checkpoint_key(3, sha256(seal(record))), seal(record))
        keys = {log_key(3), "refs/tags/v1", "refs/heads/main", "pins/evaluation.json", TURN_KEY}
        keys |= {"builds/unfinished/lease.json", snapshot_key("a" * 64)}
        assert keys <= found_keys(check(folder))


def test_a_pass_in_pieces_reads_every_pack_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.verify.packs._THREADS", 1)  # others would read ahead in vain
    backend = CountingBackend(folder)
    packs = sorted(path.name for path in files(folder, "packs/*/*"))
    cursor, pieces = None, []
    while cursor is not None or not pieces:
        report = verify(backend, full=True, max_seconds=0.0, resume=cursor)
        assert report.packs_read == 1
        assert report.packs_before == len(pieces)
        assert report.packs_chosen == len(packs)
        cursor = report.cursor
        pieces.append(cursor.after if cursor else packs[-1])

    assert pieces == packs
    assert sorted(backend.packs_read) == packs
    assert report.complete
    assert report.full


def test_damage_found_in_an_earlier_piece_is_reported_until_it_is_repaired(folder: Path) -> None:
    whole = min(files(folder, "packs/*/*"), key=lambda path: path.name)
    data = whole.read_bytes()
    overwrite(whole, flipped(data, random.Random(1)))
    report = check(folder, full=True, max_seconds=0.0)
    assert found_keys(report) == keys_of(folder, [whole])
    assert report.cursor is not None

    assert found_keys(check(folder, resume=report.cursor)) == keys_of(folder, [whole])
    overwrite(whole, data)
    assert check(folder, resume=report.cursor).ok


def test_the_same_seed_chooses_the_same_packs_whatever_else_is_there(folder: Path) -> None:
    def read(seed: int) -> set[str]:
        backend = CountingBackend(folder)
        report = verify(backend, sample=0.5, seed=seed)
        assert report.packs_read == report.packs_chosen == len(backend.packs_read)
        return set(backend.packs_read)

    before, other = read(1), read(2)
    Store.open(str(folder)).publish([memory(7000)], message="one more")

    assert 0 < len(before) < len(files(folder, "packs/*/*")) - 1
    assert read(1) - before <= {path.name for path in files(folder, "packs/*/*")}
    assert before <= read(1)
    assert before != other


def test_a_cursor_of_another_store_or_pass_is_refused(folder: Path, tmp_path: Path) -> None:
    cursor = check(folder, full=True, max_seconds=0.0).cursor
    assert cursor is not None
    assert Cursor.from_dict(cursor.to_dict()) == cursor
    other = Store.create(str(tmp_path / "other"))

    with pytest.raises(InputError, match="another store"):
        verify(other.backend, resume=cursor)
    with pytest.raises(InputError, match="continue it as it was begun"):
        check(folder, sample=0.5, resume=cursor)
    for values in ({}, [], {**cursor.to_dict(), "sample": 3.0}, {**cursor.to_dict(), "damaged": ["../x"]}):
        with pytest.raises(InputError, match="start a new pass"):
            Cursor.from_dict(values)


def test_what_a_collection_removes_meanwhile_is_no_damage(folder: Path) -> None:
    store = Store.open(str(folder))
    [pack] = store.catalog().removals.condemned.packs
    taken: list[str] = []

    def collect(done: int, total: int, **figures: float) -> None:
        if not taken:
            taken.append(pack)
            append(store, COLLECT, Removal(frozenset({pack})))
            store.backend.delete(pack_key(pack))

    assert check(folder, full=True, progress=collect).findings == ()
    assert taken


def test_a_store_of_a_newer_version_and_no_store_are_told_apart_from_damage(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    record = unseal(store.backend.read(FORMAT_KEY), FORMAT_KEY)
    store.backend.put(FORMAT_KEY, seal({**record, "format": 9}))

    with pytest.raises(UnsupportedFormat, match="use the version"):
        verify(store.backend)
    with pytest.raises(NotAStore):
        verify(open_backend(str(tmp_path / "nothing")))


def test_damage_is_found_on_every_kind_of_storage(store: Store) -> None:
    refs = store.publish([memory(number) for number in range(3)], message="three")
    snapshot = store.pin(refs, message="pin")
    store.tag("v1", snapshot.id)
    assert store.verify(full=True).findings == ()
    [pack] = snapshot.packs()
    data = bytearray(store.backend.read(pack_key(pack)))
    data[snapshot.get(refs[1].name).offset] ^= 1
    store.backend.put(pack_key(pack), data)
    store.backend.delete(index_key(next(store.log()).indexes[0]))

    first, second = sorted(store.verify(full=True).findings, key=lambda finding: finding.key)

    assert (first.key, len(first.elements)) == (index_key(next(store.log()).indexes[0]), 3)
    assert (second.key, second.elements) == (pack_key(pack), (str(refs[1]),))
    assert first.names == second.names == ("tag:v1",)


class CountingBackend(LocalBackend):
    """A folder that remembers which packs were read to their first byte."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.packs_read: list[str] = []

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        if key.startswith("packs/") and not offset:
            self.packs_read.append(key.rpartition("/")[2])
        return super().read(key, offset=offset, length=length)
