"""What somebody else put into a store's folder: pipes, sockets, links. None makes a command wait or loop."""

from __future__ import annotations

import os
import signal
import socket
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from store import Store
from store.backend.local import LocalBackend
from store.errors import CellarError, IntegrityError, KeyMissing, NotAStore, StorageUnavailable
from store.format import FORMAT_KEY, log_key
from tests.store.samples import memory


@pytest.fixture(autouse=True)
def hanging_fails() -> Iterator[None]:
    """Interrupt a test that waits for the other end of a pipe."""

    def interrupt(number: int, frame: object) -> None:
        raise AssertionError("the test hangs")

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.alarm(30)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def listen_at(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        handle = os.open(path.parent, os.O_PATH)  # a whole path may be too long for a socket
        server.bind(f"/proc/self/fd/{handle}/{path.name}")
        os.close(handle)


STRAYS = [os.mkfifo, listen_at, lambda path: path.symlink_to("/dev/null")]


@pytest.mark.parametrize("make", STRAYS)
def test_what_is_no_regular_file_is_no_object(tmp_path: Path, make: Callable[[Path], None]) -> None:
    backend = LocalBackend(tmp_path)
    make(tmp_path / "k")

    with pytest.raises(KeyMissing, match="k is no regular file"):
        backend.read("k")
    with pytest.raises(KeyMissing, match="k is no regular file"):
        backend.replace("k", b"x", token="0" * 64)
    assert backend.info("k") is None
    assert list(backend.list("")) == []


@pytest.mark.parametrize("make", [*STRAYS, Path.mkdir, lambda path: path.symlink_to("nowhere")])
def test_what_is_no_object_is_in_the_way_of_a_new_one(tmp_path: Path, make: Callable[[Path], None]) -> None:
    backend = LocalBackend(tmp_path)
    make(tmp_path / "k")

    with pytest.raises(IntegrityError, match=r"at k in .* is no regular file; remove it"):
        backend.create("k", b"x")
    assert os.path.lexists(tmp_path / "k")
    (tmp_path / "k").rmdir() if (tmp_path / "k").is_dir() else backend.delete("k")
    backend.create("k", b"x")
    assert backend.read("k") == b"x"


def test_a_pipe_as_lock_is_an_error(tmp_path: Path) -> None:
    backend = LocalBackend(tmp_path)
    backend.create("k", b"x")
    token = backend.read_with_token("k")[1]
    backend.replace("k", b"x", token=token)
    assert stat.S_IMODE((tmp_path / ".lock").stat().st_mode) == stat.S_IMODE((tmp_path / "k").stat().st_mode)
    (tmp_path / ".lock").unlink()
    os.mkfifo(tmp_path / ".lock")

    with pytest.raises(StorageUnavailable):
        backend.replace("k", b"y", token=token)


def test_a_pipe_in_the_log_stops_the_commit_of_its_number_only(tmp_path: Path) -> None:
    store = Store.create(str(tmp_path / "store"))
    store.publish([memory(0)], message="one")
    os.mkfifo(tmp_path / "store" / log_key(3))
    assert len(Store.open(str(tmp_path / "store")).catalog()) == 1
    store.publish([memory(1)], message="two")

    with pytest.raises(IntegrityError, match=f"{log_key(3)} .* is no regular file"):
        store.publish([memory(2)], message="three")
    assert len(Store.open(str(tmp_path / "store")).catalog()) == 2


def test_a_pipe_as_format_is_no_store(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / FORMAT_KEY)

    with pytest.raises(NotAStore):
        Store.open(str(tmp_path))
    with pytest.raises(CellarError, match="is no regular file"):
        Store.open_or_create(str(tmp_path))


@pytest.mark.parametrize("target", [".", "..", "../log"])
def test_links_to_folders_are_not_followed(tmp_path: Path, target: str) -> None:
    store = Store.create(str(tmp_path / "store"))
    store.publish([memory(0)], message="one")
    before = [item.key for item in store.backend.list("")]

    (tmp_path / "store" / "packs" / "a").symlink_to(target)

    assert [item.key for item in store.backend.list("")] == before
    assert store.verify(full=True).ok
