"""What `repair` brings back is byte for byte what was there; what it cannot bring back it says."""

from __future__ import annotations

import os
import random
import shutil
import tarfile
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from store import Store
from store.backend import Body, open_backend
from store.backend.local import LocalBackend
from store.checkpoint import write_checkpoint
from store.errors import ConflictError
from store.format import FORMAT_KEY, index_key, pack_key, snapshot_key
from store.log import COLLECT, CONDEMN, REPAIR, Draft
from store.removals import Removal, write_removal
from store.repair import RepairReport, repair
from store.transfer import export_snapshot
from store.verify import verify
from tests.store.samples import codec, memory

MANY = 1100
"""More rows than an index file has without a directory."""
OLD = Path(__file__).parents[1] / "data" / "store_format_1.tar.gz"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store of several builds with checkpoints, snapshots, and an abandoned build's packs."""
    root = tmp_path_factory.mktemp("repair") / "store"
    store = Store.create(str(root))
    refs = store.publish(
        [codec(), *(memory(n, size=64, requires=(codec().version,)) for n in range(MANY))], message="all"
    )
    with store.build("abandoned", owner="a test").writer("unit") as writer:
        writer.add(memory(8000))
        writer.finish()
    for number in range(9):
        store.publish([memory(5000 + number, size=16)], message=str(number))
    several = store.build("several", owner="a test", target_bytes=100)
    for unit in ("a", "b", "c"):
        with several.writer(unit) as writer:
            for number in range(3):
                writer.add(memory(6000 + 10 * ord(unit) + number))
            writer.add(
                memory(7, size=64, requires=(codec().version,))
            )  # visible already, so the commit leaves it out
            writer.finish()
    several.commit(several.receipts(), message="three units")
    store.tag("few", store.pin(refs[:40], message="few").id)
    every = [row.ref for row in store.catalog().rows()]
    store.tag("every", store.pin(every, message="every").id)
    condemned = Removal(frozenset({"0" * 64}))
    digest = write_removal(store.backend, condemned)
    store.history.append(lambda: Draft(action=CONDEMN, message="condemn", run={}, removal=digest))
    for number in range(10):  # so that a checkpoint knows of that
        store.publish([memory(7000 + number, size=16)], message=f"more {number}")
    return root


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """Return a copy of that store to be damaged; what is written anew does not change the first one."""
    shutil.copytree(made, tmp_path / "store", copy_function=os.link)
    return tmp_path / "store"


def files(folder: Path, pattern: str) -> list[Path]:
    found = sorted(path for path in folder.glob(pattern) if path.is_file())
    assert found, pattern
    return found


def flip(paths: Iterable[Path]) -> None:
    generator = random.Random(1)
    for path in paths:
        data = bytearray(path.read_bytes())
        position = generator.randrange(len(data) * 8)
        data[position // 8] ^= 1 << position % 8
        path.unlink()
        path.write_bytes(data)


def delete(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink()


def mended(folder: Path, **options: object) -> RepairReport:
    return repair(open_backend(str(folder)), **options)  # type: ignore[arg-type]


def contents(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files(folder, "**/*")}


def elements(folder: Path) -> dict[str, tuple[int, bytes]]:
    store = Store.open(str(folder))
    return {str(row.ref): (row.commit, store.read(row)) for row in store.catalog().rows()}


DERIVED = [
    "index/*.keys",
    "log/history-*",
    "log/checkpoint-*",
    "snapshots/*.json",
    "snapshots/*.parquet",
    "gc/*",
]
"""What can be made again from other files; the default run damages half of them and deletes the others."""
DAMAGES = pytest.mark.parametrize("damage", [flip, pytest.param(delete, marks=pytest.mark.nightly)])


@DAMAGES
def test_all_index_files_at_once_are_made_again_byte_by_byte(
    made: Path, folder: Path, damage: Callable[[Iterable[Path]], None]
) -> None:
    damage(files(folder, "index/*"))

    report = mended(folder)

    assert report.ok
    assert report.commit == 0
    assert contents(folder) == contents(made)
    assert elements(folder) == elements(made)


@DAMAGES
def test_all_index_files_and_checkpoints_at_once_are_made_again_without_those_that_nobody_needs(
    made: Path, folder: Path, damage: Callable[[Iterable[Path]], None]
) -> None:
    damage([*files(folder, "index/*"), *files(folder, "log/checkpoint-*"), *files(folder, "log/history-*")])

    report = mended(folder)

    assert report.after.findings == ()
    assert {
        index_key(digest) for commit in Store.open(str(folder)).log() for digest in commit.indexes
    } <= set(contents(folder))
    assert elements(folder) == elements(made)


def test_without_parts_the_frames_of_packs_are_enough(made: Path, folder: Path) -> None:
    delete(
        [*files(folder, "index/*"), *files(folder, "log/checkpoint-*"), *files(folder, "builds/*/parts/*")]
    )

    report = mended(folder)

    assert report.ok
    assert report.commit == 0
    assert elements(folder) == elements(made)  # the abandoned build's element is not among them
    assert any("frames of packs" in done.how for done in report.repaired)


def test_where_bytes_cannot_be_made_again_a_commit_stands_in(
    made: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.repair.indexes._ENCODINGS", ())  # as if another version had written them
    before = elements(folder)
    delete(
        [*files(folder, "index/*"), *files(folder, "log/checkpoint-*"), *files(folder, "builds/*/parts/*")]
    )

    report = mended(folder, run={"command": "repair"})

    assert report.ok
    assert elements(folder) == before
    commit = list(Store.open(str(folder)).log())[-1]
    assert (commit.action, commit.sequence, commit.run) == (REPAIR, report.commit, {"command": "repair"})
    assert mended(folder).repaired == ()
    store = Store.open(str(folder))
    store.publish([memory(1), memory(9900)], message="goes on")
    assert store.verify(full=True).findings == ()


def test_what_was_never_published_does_not_become_visible(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One element is missing, three packs that no table names hold more: nobody can tell which it was."""
    monkeypatch.setattr("store.repair.indexes._ENCODINGS", ())
    store = Store.open(str(folder))
    for number in range(3):
        with store.build("abandoned", owner="a test").writer(f"more {number}") as writer:
            writer.add(memory(8100 + number, size=300 + number))
            writer.finish()
    lost = next(commit for commit in store.log() if commit.message == "3")
    row = store.catalog().latest("memory/doc/05003")
    assert row is not None
    delete([folder / pack_key(row.pack), *files(folder, "log/checkpoint-*"), *files(folder, "index/*")])
    delete([*files(folder, "builds/*/parts/*"), *files(folder, "snapshots/*")])

    report = mended(folder)

    assert not report.ok
    assert index_key(lost.indexes[0]) in {finding.key for finding in report.after.findings}
    assert not any("memory/doc/08" in element for f in report.after.findings for element in f.elements)


def test_what_was_collected_stays_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("store.repair.indexes._ENCODINGS", ())
    store = Store.open(str(folder))
    row = store.catalog().latest("memory/doc/07003")
    assert row is not None
    digest = write_removal(store.backend, Removal(frozenset({row.pack})))
    store.history.append(lambda: Draft(action=COLLECT, message="collect", run={}, removal=digest))
    delete([*files(folder, "index/*"), *files(folder, "log/checkpoint-*")])

    report = mended(folder)

    assert report.after.findings == ()
    assert Store.open(str(folder)).catalog().latest("memory/doc/07003") is None
    assert Store.open(str(folder)).catalog().latest("memory/doc/07004") is not None


def test_a_collection_at_the_same_time_stops_a_repair_before_it_brings_rows_back(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.repair.indexes._ENCODINGS", ())
    store = Store.open(str(folder))
    row = store.catalog().latest("memory/doc/07003")
    assert row is not None
    removal = write_removal(store.backend, Removal(frozenset({row.pack})))

    class Collecting(LocalBackend):
        def put(self, key: str, body: Body) -> None:
            super().put(key, body)
            if key.startswith("index/"):
                draft = Draft(action=COLLECT, message="collect", run={}, removal=removal)
                store.history.append(lambda: draft)

    delete([*files(folder, "index/*"), *files(folder, "log/checkpoint-*")])

    with pytest.raises(ConflictError, match="run it again"):
        repair(Collecting(folder))
    assert mended(folder).ok
    assert Store.open(str(folder)).catalog().latest("memory/doc/07003") is None


@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        pytest.param(kind, damage, marks=[] if number % 2 == other else [pytest.mark.nightly])
        for number, kind in enumerate(DERIVED)
        for other, damage in enumerate([flip, delete])
    ],
)
def test_what_follows_from_other_files_is_made_again(
    made: Path, folder: Path, kind: str, damage: Callable[[Iterable[Path]], None]
) -> None:
    damage(files(folder, kind))

    report = mended(folder)

    assert report.ok
    assert contents(folder).keys() <= contents(made).keys()
    assert contents(folder).items() <= contents(made).items()
    assert {store.tags()["every"] for store in (Store.open(str(made)), Store.open(str(folder)))}
    opened = Store.open(str(folder))
    for tag in ("few", "every"):
        assert opened.snapshot(tag).count == len(list(opened.snapshot(tag).stream()))


@DAMAGES
def test_bundles_of_key_tables_are_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: Callable[[Iterable[Path]], None]
) -> None:
    monkeypatch.setattr("store.checkpoint.FINAL_ROWS", 1025)
    folder = tmp_path / "store"
    store = Store.create(str(folder))
    for start in (0, 2000):
        store.publish([memory(start + number, size=16) for number in range(1025)], message="many")
        write_checkpoint(store.backend, store.history, store.catalog())
    before = contents(folder)
    damage(files(folder, "index/*.bundle"))
    assert len(mended(folder).repaired) == 1
    damage([*files(folder, "index/*.bundle"), *files(folder, "index/*.keys")])

    assert mended(folder).ok
    assert contents(folder) == before


@DAMAGES
def test_entries_of_the_log_are_copied_from_its_history(
    made: Path, folder: Path, damage: Callable[[Iterable[Path]], None]
) -> None:
    damage(files(folder, "log/0*")[:8])

    assert mended(folder).ok
    assert contents(folder) == contents(made)


@DAMAGES
def test_everything_that_proves_itself_is_taken_from_another_store(
    made: Path, folder: Path, damage: Callable[[Iterable[Path]], None]
) -> None:
    damage([*files(folder, "packs/*/*"), *files(folder, "log/0*")[:-1], folder / FORMAT_KEY])
    damage([*files(folder, "snapshots/*"), *files(folder, "index/*"), *files(folder, "gc/*")])

    report = mended(folder, source=open_backend(str(made)), full=True)

    assert report.ok
    assert contents(folder).items() <= contents(made).items()
    assert elements(folder) == elements(made)


def test_a_copy_that_is_damaged_or_of_another_store_is_not_believed(folder: Path, tmp_path: Path) -> None:
    other = Store.create(str(tmp_path / "other"))
    other.publish([memory(1)], message="other")
    row = Store.open(str(folder)).catalog().latest("memory/doc/05003")
    assert row is not None
    shutil.copytree(folder, tmp_path / "damaged")
    data = bytearray((folder / pack_key(row.pack)).read_bytes())
    data[row.offset] ^= 1
    (tmp_path / "damaged" / pack_key(row.pack)).write_bytes(data)
    delete([folder / pack_key(row.pack)])
    for place in ("other", "damaged"):
        report = mended(folder, source=open_backend(str(tmp_path / place)), full=True)
        assert {finding.key for finding in report.after.findings} == {pack_key(row.pack)}
        assert report.repaired == ()


@pytest.mark.parametrize("count", [1, 2])
def test_the_newest_entries_are_taken_from_a_copy_of_the_same_store(
    made: Path, folder: Path, count: int
) -> None:
    """Nothing names the digest of the newest entry, but it names that of the entry before it."""
    newest = files(folder, "log/0*")[-count:]
    delete([*files(folder, "log/checkpoint-*"), *files(folder, "log/history-*")])
    flip(newest)
    assert not mended(folder).ok

    report = mended(folder, source=open_backend(str(made)))

    assert report.ok
    assert sorted(done.key for done in report.repaired if done.key.startswith("log/0")) == [
        path.relative_to(folder).as_posix() for path in newest
    ]
    assert contents(folder).items() <= contents(made).items()


def test_a_lone_first_entry_is_taken_from_a_copy_of_the_same_store(tmp_path: Path) -> None:
    Store.create(str(tmp_path / "store")).publish([memory(1)], message="first")
    shutil.copytree(tmp_path / "store", tmp_path / "copy")
    flip(files(tmp_path / "store", "log/0*"))

    assert mended(tmp_path / "store", source=open_backend(str(tmp_path / "copy"))).ok
    assert contents(tmp_path / "store") == contents(tmp_path / "copy")


def test_the_newest_entry_is_proven_by_a_checkpoint_of_it(folder: Path, tmp_path: Path) -> None:
    store = Store.open(str(folder))
    write_checkpoint(store.backend, store.history, store.catalog())
    delete(files(folder, "log/history-*"))  # which have it too
    shutil.copytree(folder, tmp_path / "copy")
    newest = files(folder, "log/0*")[-1]
    delete([tmp_path / "copy" / FORMAT_KEY])  # so it does not say that it is a copy
    right = newest.read_bytes()
    flip([newest])

    mended(folder, source=open_backend(str(tmp_path / "copy")))

    assert newest.read_bytes() == right


@pytest.mark.parametrize("which", ["one before", "other store", "other history", "not sealed", "intact"])
def test_a_newest_entry_that_does_not_follow_is_refused(folder: Path, tmp_path: Path, which: str) -> None:
    before, newest = files(folder, "log/0*")[-2:]
    source = tmp_path / "source"
    delete([*files(folder, "log/checkpoint-*"), *files(folder, "log/history-*")])
    shutil.copytree(folder, source)
    copied = source / newest.relative_to(folder)
    if which == "one before":
        shutil.copy(before, copied)
    elif which == "other store":
        Store.create(str(tmp_path / "other"))
        shutil.copy(tmp_path / "other" / FORMAT_KEY, source / FORMAT_KEY)
    elif which == "not sealed":
        flip([copied])
    else:
        delete([copied, source / before.relative_to(folder)])
        for number in range(2):
            Store.open(str(source)).publish([memory(9100 + number)], message="another one")
    if which == "intact":  # the entry before it is a wrong one, and the source has one that follows that
        before.unlink()
        shutil.copy(source / before.relative_to(folder), before)
    else:
        flip([newest])
    damaged = newest.read_bytes()

    report = mended(folder, source=open_backend(str(source)))

    assert newest.relative_to(folder).as_posix() in {finding.key for finding in report.after.findings}
    assert newest.read_bytes() == damaged


def test_one_repair_is_enough_for_a_log_of_which_only_the_newest_entry_is_left(
    made: Path, folder: Path
) -> None:
    """Entries missing in a row are one finding, and each is known by the one after it only."""
    entries = files(folder, "log/0*")
    delete([folder / FORMAT_KEY, *files(folder, "log/checkpoint-*"), *files(folder, "log/history-*")])
    delete([*entries[:4], *entries[5:11], *entries[12:-1]])
    flip([entries[4], entries[11]])
    delete([*files(folder, "index/*"), *files(folder, "snapshots/*"), *files(folder, "gc/*")])

    report = mended(folder, source=open_backend(str(made)))

    assert report.ok
    assert contents(folder).items() <= contents(made).items()
    assert mended(folder, source=open_backend(str(made))).repaired == ()


def test_a_pack_is_made_again_with_the_elements_of_an_export(
    made: Path, folder: Path, tmp_path: Path
) -> None:
    """The export packed them anew: no pack of it has the digest of the lost one."""
    store = Store.open(str(made))
    row = store.catalog().latest("memory/doc/00007")
    assert row is not None
    export_snapshot(store, store.snapshot("few"), tmp_path / "few.tar")
    path = folder / pack_key(row.pack)
    data = bytearray(path.read_bytes())
    for held in store.snapshot("few").rows()[:5]:
        data[held.offset] ^= 1
    path.unlink()
    path.write_bytes(data)
    source = open_backend(str(tmp_path / "few.tar"))
    assert not mended(folder, full=True).ok

    report = mended(folder, source=source, full=True)

    assert report.ok
    assert contents(folder) == contents(made)
    assert source.info(pack_key(row.pack)) is None


def test_nothing_is_written_where_nothing_is_damaged(made: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in files(made, "**/*")}

    report = mended(made, full=True)

    assert report.ok
    assert report.repaired == ()
    assert {path: path.stat().st_mtime_ns for path in files(made, "**/*")} == before


def test_names_are_left_alone_and_still_reported(folder: Path) -> None:
    flip([folder / "refs" / "tags" / "few"])
    data = (folder / "refs" / "tags" / "few").read_bytes()

    report = mended(folder)

    assert not report.ok
    assert {finding.key for finding in report.after.findings} == {"refs/tags/few"}
    assert (folder / "refs" / "tags" / "few").read_bytes() == data


def test_index_files_and_snapshots_of_an_earlier_version_are_made_again_as_they_were(tmp_path: Path) -> None:
    with tarfile.open(OLD) as archive:
        archive.extractall(tmp_path, filter="data")
    folder = tmp_path / "store"
    before = contents(folder)
    named = {index_key(digest) for commit in Store.open(str(folder)).log() for digest in commit.indexes}
    delete(folder / key for key in sorted(named))
    delete([files(folder, "snapshots/*.json")[0]])

    report = mended(folder)

    assert report.ok
    assert {key: contents(folder)[key] for key in named} == {key: before[key] for key in named}


def test_a_store_is_repaired_on_every_kind_of_storage(store: Store) -> None:
    refs = store.publish([memory(number) for number in range(3)], message="three")
    snapshot = store.pin(refs, message="pin")
    entry = next(store.log())
    for key in (index_key(entry.indexes[0]), snapshot_key(snapshot.id)):
        store.backend.delete(key)
    assert not verify(store.backend).ok

    report = repair(store.backend)

    assert report.ok
    assert sorted(done.key for done in report.repaired) == sorted(
        [index_key(entry.indexes[0]), snapshot_key(snapshot.id)]
    )
    assert [row.ref for row in Store(store.backend).snapshot(snapshot.id).rows()] == refs
