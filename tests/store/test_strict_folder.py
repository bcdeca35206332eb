"""A folder of unknown origin is read without following, waiting for or believing anything in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from store import Store
from store.backend.strict_folder import StrictFolder
from store.errors import IntegrityError, KeyMissing, NotAStore, ReadOnly
from store.transfer import check_archive, export_snapshot
from tests.store.samples import codec, memory


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return an exported folder."""
    store = Store.create(str(tmp_path / "store"))
    refs = store.publish([codec(), memory(1)], message="two")
    export_snapshot(store, store.pin(refs, message="pin"), tmp_path / "x")
    assert check_archive(str(tmp_path / "x"))
    return tmp_path / "x"


def pack(folder: Path) -> Path:
    [path] = folder.glob("packs/*/*")
    return path


def link_pack(folder: Path) -> None:
    path = pack(folder)
    path.rename(folder.parent / "elsewhere")
    path.symlink_to(folder.parent / "elsewhere")


def link_packs(folder: Path) -> None:
    (folder / "packs").rename(folder.parent / "elsewhere")
    (folder / "packs").symlink_to(folder.parent / "elsewhere")


def pipe_as_pack(folder: Path) -> None:
    path = pack(folder)
    path.unlink()
    os.mkfifo(path)


def device(folder: Path) -> None:
    try:
        os.mknod(folder / "log" / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("making a device needs root")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (link_pack, "neither a regular file nor"),
        (link_packs, "neither a regular file nor"),
        (pipe_as_pack, "neither a regular file nor"),
        (device, "neither a regular file nor"),
        (lambda folder: os.mkfifo(folder / "pipe"), "neither a regular file nor"),
        (lambda folder: (folder / ".hidden").touch(), "not a name"),
        (lambda folder: (folder / "a\x1b[2Jb").touch(), "not a name"),
        (lambda folder: (folder / "a\nb").touch(), "not a name"),
        (lambda folder: (folder / "caf\u00e9").touch(), "not a name"),
        (lambda folder: (folder / "FORMAT.json").touch(), "not a name"),
        (lambda folder: (folder / "notes.txt").touch(), "nothing that an export holds"),
        (lambda folder: (folder / "log" / "index").mkdir(), None),
        (lambda folder: (folder / "log" / "a" / "b" / "c").mkdir(parents=True), "neither a regular file nor"),
    ],
)
def test_what_an_export_never_holds_is_refused(
    folder: Path, change: Callable[[Path], None], problem: str | None
) -> None:
    change(folder)
    if problem is None:  # an empty folder is nothing
        assert check_archive(str(folder))
        return
    with pytest.raises(IntegrityError, match=problem) as caught:
        check_archive(str(folder))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("change", [link_pack, link_packs, pipe_as_pack])
def test_what_is_swapped_after_the_look_is_not_followed(folder: Path, change: Callable[[Path], None]) -> None:
    backend = StrictFolder(folder)
    [key] = [item.key for item in backend.list("packs/")]
    assert backend.read(key, offset=0, length=8) == b"CELLARP1"
    change(folder)

    with pytest.raises((IntegrityError, KeyMissing), match=r"link|regular|does not exist"):
        backend.read(key)


@pytest.mark.parametrize(
    "key", ["../store/format.json", "/etc/passwd", "packs/../format.json", "", ".", "a\0b"]
)
def test_no_key_leads_out_of_the_folder(folder: Path, key: str) -> None:
    with pytest.raises(KeyMissing):
        StrictFolder(folder).read(key)


def test_it_reads_like_any_backend_and_is_never_written(folder: Path) -> None:
    backend = StrictFolder(folder)
    keys = [item.key for item in backend.list("")]
    assert keys == sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    assert [item.key for item in backend.list("log/", after=f"log/{1:020d}.json")] == [f"log/{2:020d}.json"]
    assert backend.read_with_token("format.json")[0] == (folder / "format.json").read_bytes()
    assert (info := backend.info("format.json")) is not None
    assert info.size == (folder / "format.json").stat().st_size
    assert backend.read("format.json", length=2**50) == backend.read("format.json")
    assert backend.read("format.json", offset=2**61, length=2**50) == b""
    assert backend.info("none") is None
    with pytest.raises(KeyMissing, match="none does not exist"):
        backend.read("none")
    with pytest.raises(ReadOnly, match="is an export"):
        backend.put("none", b"")
    with pytest.raises(NotAStore, match="there is no folder"):
        StrictFolder(folder / "none").read("format.json")
