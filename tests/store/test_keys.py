"""Making a key pair leaves both files or none, so that the same command can be given again."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store.errors import DiskFull, InputError, StorageUnavailable
from store.keys import read_private_key, read_public_key, write_key_pair


def made_at_last(path: Path) -> None:
    """Make the pair that failed before."""
    assert list(path.parent.iterdir()) == []
    beside, public = write_key_pair(path)
    assert read_public_key(beside) == public == read_private_key(path, bytes).public_key()


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_what_the_disk_does_not_keep_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, failure: BaseException
) -> None:
    flushed = []

    def failing(handle: int) -> None:
        flushed.append(handle)
        if len(flushed) == number:
            raise failure

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", failing)
        with pytest.raises((DiskFull, KeyboardInterrupt)) as caught:
            write_key_pair(tmp_path / "key")

    assert len(flushed) == number
    if isinstance(failure, OSError):
        name = ["key", "key.pub"][number - 1]
        assert str(caught.value).startswith(f"cannot write {name}: no space left for file:{tmp_path};")
    made_at_last(tmp_path / "key")


@contextmanager
def files_of_at_most(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_half_a_private_key_is_removed(tmp_path: Path) -> None:
    with files_of_at_most(50), pytest.raises(StorageUnavailable, match="cannot write key in"):
        write_key_pair(tmp_path / "key")

    made_at_last(tmp_path / "key")


def test_half_a_public_key_is_removed_with_the_private_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.fdopen

    def limited(handle: int, mode: str) -> object:
        if Path(f"/proc/self/fd/{handle}").readlink().suffix == ".pub":
            raise OSError(errno.ENOSPC, "full")
        return opened(handle, mode)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fdopen", limited)
        with pytest.raises(DiskFull, match=r"cannot write key\.pub"):
            write_key_pair(tmp_path / "key")

    made_at_last(tmp_path / "key")


@pytest.mark.parametrize("taken", ["key", "key.pub"])
def test_a_file_that_was_there_stays_and_stays_alone(tmp_path: Path, taken: str) -> None:
    (tmp_path / taken).write_bytes(b"precious")

    with pytest.raises(InputError, match="exists and keys are never overwritten"):
        write_key_pair(tmp_path / "key")

    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(taken, b"precious")]


@pytest.mark.parametrize("name", ["", ".", "/"])
def test_a_key_needs_a_name(name: str) -> None:
    with pytest.raises(InputError, match="is no name for a key"):
        write_key_pair(Path(name))
