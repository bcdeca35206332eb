"""An export holds one snapshot, opens as a store that is never written, and is the same every time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from store import Ref, Snapshot, Store
from store.backend import open_backend
from store.backend.tar import header
from store.errors import (
    DiskFull,
    InputError,
    IntegrityError,
    InvalidName,
    MissingRequirement,
    ReadOnly,
    SnapshotNotFound,
    UnsupportedFormat,
)
from store.format import encode_format, pack_key, sha256
from store.keys import read_private_key, write_key_pair
from store.transfer import Choice, export_snapshot
from store.transfer.sink import check_folder_at, folder_at, sink_at
from store.trust import sign_snapshot, verify_snapshot
from tests.e2e.workplace import mounted
from tests.seaweedfs import S3Server
from tests.store.samples import codec, memory
from tests.store.test_copy import content, fill

ROOT = Path(__file__).parents[2]
FORMS = pytest.mark.parametrize("name", ["x.tar", "x"])


@pytest.fixture
def source(tmp_path: Path) -> Store:
    return Store.create(f"file:{tmp_path / 'source'}")


@pytest.fixture
def snapshot(source: Store) -> Snapshot:
    return fill(source)


@FORMS
def test_an_export_opens_as_a_store(store: Store, tmp_path: Path, name: str) -> None:
    snapshot = fill(store)
    store.publish([memory(500)], message="not in the snapshot")

    report = export_snapshot(store, snapshot, tmp_path / name, tag="v1")

    opened = Store.open(str(tmp_path / name))
    assert report.snapshot == snapshot.id == opened.snapshot("v1").id == opened.snapshot(snapshot.id[:8]).id
    assert content(opened, snapshot.id) == content(store, snapshot.id)
    assert opened.read(codec().ref) == codec().payload
    assert opened.catalog().find(memory(3).provenance["recipe"]) is not None
    assert len(opened.catalog()) == report.elements == 41
    assert [commit.action for commit in opened.log()] == ["publish", "pin"]
    assert (opened.tags(), opened.heads()) == ({"v1": snapshot.id}, {})
    assert opened.verify(full=True).findings == ()
    assert verify_snapshot(opened, opened.snapshot("v1")).ok


@FORMS
def test_an_export_is_never_written(source: Store, snapshot: Snapshot, tmp_path: Path, name: str) -> None:
    export_snapshot(source, snapshot, tmp_path / name)
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()}
    opened = Store.open(str(tmp_path / name))
    row = opened.snapshot(snapshot.id).rows("memory")[0]

    for write in (
        lambda: opened.publish([memory(900)], message="new"),
        lambda: opened.pin([Ref("codec/c", codec().version)], message="new"),
        lambda: opened.tag("v2", snapshot.id),
        lambda: opened.move_head("main", snapshot.id, expect=None),
        lambda: opened.build("b", owner="test"),
        lambda: opened.backend.delete(pack_key(row.pack)),
    ):
        with pytest.raises(
            ReadOnly, match=r"is an export; copy it into a store with `cellar snapshot import`"
        ):
            write()

    assert opened.pin([row.ref for row in opened.catalog().rows()], message="the same").id == snapshot.id
    assert opened.publish([codec()], message="the same") == [codec().ref]
    opened.backend.now()
    assert {path: path.read_bytes() for path in sorted(tmp_path.rglob("*")) if path.is_file()} == before


def test_equal_snapshots_give_equal_files(source: Store, snapshot: Snapshot, tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from store import Store;"
        "from store.transfer import export_snapshot; s = Store.open(sys.argv[1]);"
        "print(export_snapshot(s, s.snapshot(sys.argv[2]), Path(sys.argv[3]), tag='v1').digest)"
    )
    first = export_snapshot(source, snapshot, tmp_path / "one.tar", tag="v1")
    printed = subprocess.run(
        [sys.executable, "-c", program, source.url, snapshot.id, str(tmp_path / "two.tar")],
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    third = export_snapshot(Store.open(str(tmp_path / "one.tar")), snapshot, tmp_path / "three.tar", tag="v1")

    assert first.digest == printed.strip() == third.digest
    assert sha256((tmp_path / "one.tar").read_bytes()) == first.digest
    assert (tmp_path / "two.tar").read_bytes() == (tmp_path / "one.tar").read_bytes()


def test_a_folder_holds_what_the_tar_file_holds(source: Store, snapshot: Snapshot, tmp_path: Path) -> None:
    export_snapshot(source, snapshot, tmp_path / "x")
    export_snapshot(source, snapshot, tmp_path / "x.tar")
    (tmp_path / "unpacked").mkdir()
    subprocess.run(["tar", "xf", "x.tar", "-C", "unpacked"], cwd=tmp_path, check=True)

    def files(folder: Path) -> dict[str, bytes]:
        found = folder.rglob("*")
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found if path.is_file()}

    assert files(tmp_path / "x") == files(tmp_path / "unpacked")
    assert content(Store.open(str(tmp_path / "unpacked")), snapshot.id) == content(source, snapshot.id)


@FORMS
def test_a_choice_is_a_snapshot_of_its_own(
    source: Store, snapshot: Snapshot, tmp_path: Path, name: str
) -> None:
    report = export_snapshot(source, snapshot, tmp_path / name, choice=Choice(names=("*/0001?", "codec/*")))

    opened = Store.open(str(tmp_path / name))
    held = [row.name for row in opened.catalog().rows()]
    assert held == ["codec/c", *(f"memory/doc/{n:05d}" for n in range(10, 20))]
    assert held == [row.name for row in opened.snapshot(report.snapshot).rows()]
    with pytest.raises(SnapshotNotFound):
        opened.snapshot(snapshot.id)
    only = Choice(kinds=("memory",), requirements=False)
    with pytest.raises(MissingRequirement):
        export_snapshot(source, snapshot, tmp_path / "other", choice=only)
    assert not (tmp_path / "other").exists()


def test_signatures_travel_along(source: Store, snapshot: Snapshot, tmp_path: Path) -> None:
    _, public = write_key_pair(tmp_path / "key")
    sign_snapshot(source, snapshot, read_private_key(tmp_path / "key", lambda: b""))

    assert export_snapshot(source, snapshot, tmp_path / "x.tar").signatures == 1

    opened = Store.open(str(tmp_path / "x.tar"))
    assert verify_snapshot(opened, opened.snapshot(snapshot.id), keys=[public]).ok


@FORMS
def test_what_is_there_already_is_left_as_it_is(
    source: Store, snapshot: Snapshot, tmp_path: Path, name: str
) -> None:
    for make in (Path.touch, Path.mkdir, lambda path: path.symlink_to("nowhere")):
        make(tmp_path / name)
        before = (tmp_path / name).lstat()
        with pytest.raises(InputError, match="exists and is left as it is"):
            export_snapshot(source, snapshot, tmp_path / name)
        assert (tmp_path / name).lstat() == before
        (tmp_path / name).rmdir() if make is Path.mkdir else (tmp_path / name).unlink()
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize(
    ("name", "tag", "error", "phrase"),
    [
        ("x.tar.gz", None, InputError, "names a compressed archive"),
        ("x.tgz", None, InputError, "names a compressed archive"),
        ("nowhere/x.tar", None, InputError, "there is no folder .*nowhere"),
        ("x.tar", "a/b", InvalidName, "tag name 'a/b' is not valid"),
        ("x.tar", "a" * 128, InputError, "too long a name"),
    ],
)
def test_a_place_or_a_tag_that_cannot_be_is_refused(
    source: Store, snapshot: Snapshot, tmp_path: Path, name: str, tag: str | None, error: type, phrase: str
) -> None:
    with pytest.raises(error, match=phrase):
        export_snapshot(source, snapshot, tmp_path / name, tag=tag)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@FORMS
def test_damage_in_the_source_leaves_no_export(
    source: Store, snapshot: Snapshot, tmp_path: Path, name: str
) -> None:
    path = tmp_path / "source" / pack_key(snapshot.rows("memory")[-1].pack)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)

    with pytest.raises(IntegrityError, match=path.name):
        export_snapshot(source, snapshot, tmp_path / name)

    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_an_interrupt_leaves_no_export(source: Store, snapshot: Snapshot, tmp_path: Path) -> None:
    def interrupt(done: int, total: int, **figures: float) -> None:
        raise KeyboardInterrupt

    for name in ("x.tar", "x"):
        with pytest.raises(KeyboardInterrupt):
            export_snapshot(source, snapshot, tmp_path / name, progress=interrupt)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_a_folder_that_was_uploaded_to_a_bucket_opens_read_only(
    source: Store, snapshot: Snapshot, tmp_path: Path, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in s3_server.environment().items():
        monkeypatch.setenv(name, value)
    export_snapshot(source, snapshot, tmp_path / "x")
    url = s3_server.url()
    for path in (tmp_path / "x").rglob("*"):
        if path.is_file():
            open_backend(url).put(path.relative_to(tmp_path / "x").as_posix(), path.read_bytes())

    opened = Store.open(url)

    assert content(opened, snapshot.id) == content(source, snapshot.id)
    with pytest.raises(ReadOnly, match="is an export"):
        opened.tag("v1", snapshot.id)


KILLED = """
import os, signal, sys
from pathlib import Path
from store import Store
from store.transfer import export_snapshot, sink
kind = getattr(sink, sys.argv[4])
put, finish, count = kind.put, kind.finish, 0
def counted(self, key, body):
    global count
    if count == int(sys.argv[5]):
        os.kill(os.getpid(), signal.SIGKILL)
    count += 1
    put(self, key, body)
def last(self):
    finish(self)
    os.kill(os.getpid(), signal.SIGKILL)
kind.put, kind.finish = counted, last
source = Store.open(sys.argv[1])
export_snapshot(source, source.snapshot(sys.argv[2]), Path(sys.argv[3]))
"""


@pytest.mark.parametrize(
    ("name", "kind", "at"), [("x.tar", "TarSink", 4), ("x.tar", "TarSink", 99), ("x", "FolderSink", 99)]
)
def test_a_killed_export_leaves_nothing_under_its_name(
    source: Store, snapshot: Snapshot, tmp_path: Path, name: str, kind: str, at: int
) -> None:
    arguments = [source.url, snapshot.id, str(tmp_path / name), kind, str(at)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    dead = subprocess.run([sys.executable, "-c", KILLED, *arguments], env=environment, check=False)
    assert dead.returncode == -signal.SIGKILL
    assert not os.path.lexists(tmp_path / name)
    assert len(list(tmp_path.glob(f".{name}.*.partial"))) == 1

    export_snapshot(source, snapshot, tmp_path / name)

    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["source", name])
    assert Store.open(str(tmp_path / name)).verify(full=True).findings == ()


def test_a_file_that_only_resembles_an_unfinished_export_is_not_swept(
    source: Store, snapshot: Snapshot, tmp_path: Path
) -> None:
    theirs = tmp_path / ".x.tar.notes.partial"
    theirs.write_text("mine")
    export_snapshot(source, snapshot, tmp_path / "x.tar")
    assert theirs.read_text() == "mine"


def test_an_export_that_is_being_written_is_not_swept_by_another(
    source: Store, snapshot: Snapshot, tmp_path: Path
) -> None:
    with sink_at(tmp_path / "x.tar") as slow:
        export_snapshot(source, snapshot, tmp_path / "x.tar")
        slow.put("format.json", b"")
        with pytest.raises(InputError, match="exists"):
            export_snapshot(source, snapshot, tmp_path / "x.tar")
        whole = (tmp_path / "x.tar").read_bytes()
        with pytest.raises(InputError, match="exists"), sink_at(tmp_path / "x.tar"):
            pass
        (tmp_path / "x.tar").unlink()
        slow.finish()
    assert (tmp_path / "x.tar").read_bytes() != whole
    assert (tmp_path / "x.tar").read_bytes().startswith(header("format.json", 0))


def test_a_new_folder_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "made" / "model"
    theirs = tmp_path / "made" / f".model.{'a' * 16}.partial"
    with folder_at(out) as first:
        (first / "one").write_text("1")
        with pytest.raises(InputError, match="exists"), folder_at(out):
            out.symlink_to("nowhere")
        out.unlink()
        assert list(out.parent.iterdir()) == [first], "who is at work is not swept"
        theirs.mkdir()
        (theirs / "rest").write_text("of a killed process")
    assert [path.name for path in out.iterdir()] == ["one"]
    with pytest.raises(KeyboardInterrupt), folder_at(tmp_path / "made" / "other"):
        raise KeyboardInterrupt
    out.rename(tmp_path / "kept")
    with folder_at(out):
        pass
    assert [path.name for path in (tmp_path / "made").iterdir()] == ["model"]


def test_where_no_new_folder_can_be_is_said_and_nothing_is_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "link").symlink_to("nowhere")
    for name, said in (
        ("file", "is there already"),
        ("link", "is there already"),
        ("file/a/b", "file is no folder"),
        ("link/a", "link is no folder"),
        ("new/..", "no name for a new folder"),
        (".", "is there already"),
    ):
        with pytest.raises(InputError, match=said):
            check_folder_at(tmp_path / name)
    check_folder_at(tmp_path / "new" / "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_a_full_disk_leaves_no_export(source: Store, snapshot: Snapshot, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    with mounted(disk, "-t", "tmpfs", "-o", "size=20k", "tmpfs"):
        for name in ("x.tar", "x"):
            with pytest.raises(DiskFull, match="no space left"):
                export_snapshot(source, snapshot, disk / name)
            assert list(disk.iterdir()) == []


def test_other_features_are_refused(tmp_path: Path) -> None:
    for features in (["export", "more"], ["more"], ["export", "export"]):
        (tmp_path / "format.json").write_bytes(encode_format(store="s", created="c", features=features))
        with pytest.raises(UnsupportedFormat):
            Store.open(str(tmp_path))
