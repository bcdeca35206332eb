"""One form of tar is read, the one that is written; anything else is refused, and nothing is unpacked."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.backend import Backend, open_backend
from store.backend.tar import BLOCK, END, header, padding
from store.errors import (
    AccessDenied,
    CellarError,
    InputError,
    IntegrityError,
    KeyMissing,
    NotAStore,
    ReadOnly,
)

LONG = f"signatures/{'a' * 64}/{'b' * 64}.json"
CONTENT = {"format.json": b"{}", "packs/aa/one": bytes(range(256)) * 3, LONG: b"", "x": b"\0" * BLOCK}


def tar_of(members: Mapping[str, bytes]) -> bytes:
    return (
        b"".join(header(name, len(data)) + data + padding(len(data)) for name, data in members.items()) + END
    )


def read_all(backend: Backend) -> dict[str, bytes]:
    return {item.key: backend.read(item.key) for item in backend.list("")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "export.tar"
    path.write_bytes(tar_of(CONTENT))
    return path


@pytest.fixture
def archive(path: Path) -> Backend:
    return open_backend(str(path))


def test_objects_are_read_whole_in_ranges_and_listed(archive: Backend) -> None:
    assert read_all(archive) == CONTENT
    assert [item.key for item in archive.list("")] == sorted(CONTENT)
    assert [item.key for item in archive.list("p", after="format.json")] == ["packs/aa/one"]
    assert archive.read("packs/aa/one", offset=10, length=5) == bytes(range(10, 15))
    assert archive.read("packs/aa/one", offset=700, length=1000) == CONTENT["packs/aa/one"][700:]
    assert archive.read("packs/aa/one", offset=5000) == b""
    assert archive.read_with_token(LONG)[0] == b""
    assert (info := archive.info("x")) is not None
    assert info.size == BLOCK
    assert archive.info("y") is None
    with pytest.raises(KeyMissing, match="y does not exist in"):
        archive.read("y")


def test_other_programs_read_it(path: Path) -> None:
    with tarfile.open(path) as archive:
        assert archive.getnames() == list(CONTENT)
        assert {m.name: (m.mtime, m.mode, m.uid, m.uname) for m in archive} == dict.fromkeys(
            CONTENT, (0, 0o644, 0, "")
        )
        one = archive.extractfile("packs/aa/one")
        assert one is not None
        assert one.read() == CONTENT["packs/aa/one"]


@pytest.mark.parametrize(
    "write",
    [
        lambda archive: archive.put("k", b""),
        lambda archive: archive.create("k", b""),
        lambda archive: archive.replace("x", b"", token=""),
        lambda archive: archive.delete("x"),
    ],
)
def test_it_is_never_written(archive: Backend, path: Path, write: Callable[[Backend], None]) -> None:
    before = path.read_bytes()
    with pytest.raises(ReadOnly, match="is an export; copy it into a store"):
        write(archive)
    assert path.read_bytes() == before


@pytest.mark.parametrize("url", ["tar:{}", "file:{}", "file://{}", "{}"])
def test_an_archive_is_known_by_its_name(path: Path, url: str) -> None:
    assert read_all(open_backend(url.format(path))) == CONTENT


def test_any_name_can_be_opened_as_an_archive(path: Path) -> None:
    other = path.rename(path.with_name("unusual name"))
    assert read_all(open_backend(f"tar:{other}")) == CONTENT


def member(kind: bytes, **fields: object) -> bytes:
    """Return what Python's tarfile writes for one member of that kind and the end marks."""
    info = tarfile.TarInfo("packs/aa/x")
    info.type = kind
    for name, value in fields.items():
        setattr(info, name, value)
    form = {b"x": tarfile.PAX_FORMAT, b"L": tarfile.GNU_FORMAT}.get(kind, tarfile.USTAR_FORMAT)
    if kind in b"xL":
        info.type = tarfile.REGTYPE
    return info.tobuf(form) + END


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (member(tarfile.LNKTYPE, linkname="/etc/passwd"), "hard link"),
        (member(tarfile.SYMTYPE, linkname="/etc/passwd"), "symbolic link"),
        (member(tarfile.CHRTYPE), "device"),
        (member(tarfile.BLKTYPE), "device"),
        (member(tarfile.DIRTYPE), "folder"),
        (member(tarfile.FIFOTYPE), "FIFO"),
        (member(b"S"), "sparse"),
        (member(b"x", name="n" * 200), "pax header"),
        (member(b"x", size=8**11), "pax header"),
        (member(b"L", name="n" * 200), "GNU long name"),
        (member(b"0", mode=0o755), "not as `cellar` writes it"),
        (member(b"0", mtime=1), "not as `cellar` writes it"),
        (member(b"0", uname="root"), "not as `cellar` writes it"),
        (member(b"7"), "not as `cellar` writes it"),
        (header("/etc/passwd", 0) + END, "'/etc/passwd' is no name"),
        (header("../up", 0) + END, "'../up' is no name"),
        (header("packs/../../up", 0) + END, "is no name"),
        (header("packs//x", 0) + END, "is no name"),
        (header("packs/", 0) + END, "is no name"),
        (header(".hidden", 0) + END, "is no name"),
        (header("a\nb", 0) + END, r"'a\\nb' is no name"),
        (header("a\x1b[2J", 0) + END, "is no name"),
        (header("C:\\x", 0) + END, "is no name"),
        (header("caf\u00e9", 0) + END, "is no name"),
        (header("a", 0) * 2 + END, "two of a"),
        (header("a", 0) + header("A", 0) + END, "two of A"),
        (header("a", 8**11 - 1) + END, "a is cut short"),
        (header("a", 1) + b"x" + b"\1" * 511 + END, "hidden behind a"),
        (header("a", 0) + END + b"\0", "does not end as an export does"),
        (header("a", 0) + END + header("b", 0) + END, "does not end as an export does"),
        (header("a", 0) + END[:BLOCK], "does not end as an export does"),
        (header("a", 0) + END[:BLOCK] + header("b", 0), "does not end as an export does"),
        (END, "does not end as an export does"),
        (b"", "cut short"),
        (b"x" * 10_000, "no USTAR header"),
        (b"\1" * BLOCK + END, "no USTAR header"),
    ],
)
def test_what_an_export_never_holds_is_refused(tmp_path: Path, data: bytes, problem: str) -> None:
    (tmp_path / "x.tar").write_bytes(data)
    with pytest.raises(IntegrityError, match=problem) as caught:
        list(open_backend(f"{tmp_path}/x.tar").list(""))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("pack", "program"), [(gzip.compress, "gunzip"), (bz2.compress, "bunzip2"), (lzma.compress, "unxz")]
)
@pytest.mark.parametrize("name", ["export.tar.gz", "export.tar", "export.tgz"])
def test_a_compressed_archive_is_not_unpacked(
    path: Path, name: str, pack: Callable[[bytes], bytes], program: str
) -> None:
    data = pack(path.read_bytes())
    path.with_name(name).write_bytes(data)
    with pytest.raises(InputError, match=f"is compressed; unpack it with `{program}` first"):
        open_backend(str(path.with_name(name))).read("format.json")


def test_every_cut_is_noticed(path: Path) -> None:
    data = path.read_bytes()
    for length in range(0, len(data), 7):
        path.write_bytes(data[:length])
        with pytest.raises(IntegrityError):
            open_backend(str(path)).read("x")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.mkdir()], ids=["pipe", "folder"])
def test_only_a_regular_file_is_an_archive(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x.tar")
    with pytest.raises(InputError, match="not a regular file"):
        open_backend(f"tar:{tmp_path}/x.tar").read("x")


def test_an_archive_that_is_not_there_or_not_readable_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotAStore, match=r"there is no file .*x\.tar"):
        open_backend(f"{tmp_path}/x.tar").read("format.json")
    if os.geteuid() != 0:
        (tmp_path / "x.tar").touch(mode=0)
        with pytest.raises(AccessDenied):
            open_backend(f"{tmp_path}/x.tar").read("format.json")


def test_a_file_that_shrinks_while_it_is_read_gives_no_bytes(path: Path, archive: Backend) -> None:
    archive.read("x")
    os.truncate(path, 3 * BLOCK)
    with pytest.raises(IntegrityError, match="became shorter"):
        archive.read("x")


def assert_refused_or_as_written(path: Path) -> None:
    """What was read, written again, accounts for every byte of the file."""
    try:
        content = read_all(open_backend(str(path)))
    except CellarError:
        return
    data = path.read_bytes()
    assert len(tar_of(content)) == len(data)
    assert all(tar_of({name: body})[: -len(END)] in data for name, body in content.items())


NAMES = st.text("abcA._/\n", min_size=1, max_size=8)
PIECES = st.one_of(
    st.builds(
        lambda name, data: header(name, len(data)) + data + padding(len(data)), NAMES, st.binary(max_size=9)
    ),
    st.sampled_from([END, END[:BLOCK], b"\0", tar_of({"a": b"1"})]),
    st.binary(max_size=BLOCK),
)
CHANGES = st.lists(st.tuples(st.integers(0, 6000), st.integers(0, 255)), max_size=3)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pieces=st.lists(PIECES, max_size=5), changes=CHANGES)
def test_whatever_is_read_is_what_would_be_written(
    tmp_path: Path, pieces: list[bytes], changes: list[tuple[int, int]]
) -> None:
    data = bytearray(b"".join(pieces) + END)
    for position, value in changes:
        data[position % len(data)] = value
    (tmp_path / "any.tar").write_bytes(data)
    assert_refused_or_as_written(tmp_path / "any.tar")


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_mutated_archive_is_refused_or_one_that_could_have_been_written(
    tmp_path: Path, data: st.DataObject
) -> None:
    whole = tar_of(CONTENT)
    blocks = [whole[start : start + BLOCK] for start in range(0, len(whole), BLOCK)]
    places = st.integers(0, len(blocks) - 1)
    match data.draw(st.sampled_from(["flip", "drop", "double", "swap", "cut"])):
        case "flip":
            block = bytearray(blocks[place := data.draw(places)])
            block[data.draw(st.integers(0, BLOCK - 1))] ^= 1 << data.draw(st.integers(0, 7))
            blocks[place] = bytes(block)
        case "drop":
            del blocks[data.draw(places)]
        case "double":
            blocks.insert(data.draw(places), blocks[data.draw(places)])
        case "swap":
            one, two = data.draw(places), data.draw(places)
            blocks[one], blocks[two] = blocks[two], blocks[one]
        case "cut":
            blocks = [b"".join(blocks)[: data.draw(st.integers(0, len(whole)))]]
    (tmp_path / "mutated.tar").write_bytes(b"".join(blocks))
    assert_refused_or_as_written(tmp_path / "mutated.tar")


def test_names_and_sizes_that_do_not_fit_are_not_written() -> None:
    for name, size in (("n" * 101, 0), (f"{'f' * 156}/n", 0), ("n", 8**11), ("n", -1)):
        with pytest.raises(InputError, match="export to a folder"):
            header(name, size)
    assert io.BytesIO(header("n", 8**11 - 1)).read(1) == b"n"
