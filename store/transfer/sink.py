"""Where an export is written: a tar file or a folder that appears under its name whole, or not at all."""

from __future__ import annotations

import errno
import fcntl
import glob
import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from store.backend import Body
from store.backend.local import LocalBackend, storage_error
from store.backend.tar import END, header, padding
from store.errors import CellarError, InputError

_COMPRESSED = re.compile(r".+\.(tar\.\w+|t[bgx]z2?|tzst|zip)", re.IGNORECASE)
_DIGITS = 16
"""Of the number in the name of an unfinished export: no file of anybody else is taken for one."""


class TarSink:
    """Writes the form of tar that `store.backend.tar` reads, objects in the order in which they come."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("xb")
        fcntl.flock(self._file, fcntl.LOCK_EX)  # tells the sweep of another process that we are alive
        self._digest = hashlib.sha256()

    def put(self, key: str, body: Body) -> None:
        """Write one object."""
        for part in (header(key, len(body)), body, padding(len(body))):
            self._write(part)

    def finish(self) -> str:
        """Write the end marks, wait for the disk, and return the SHA-256 of the whole file."""
        self._write(END)
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._digest.hexdigest()

    def close(self) -> None:
        """Let go of the file; what a full disk did not take is of no use any more."""
        with suppress(OSError):
            self._file.close()

    def _write(self, data: Body) -> None:
        self._digest.update(data)
        self._file.write(data)


class FolderSink:
    """Writes objects as files below a folder, as they lie in a store."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._folder, fcntl.LOCK_EX)
        self._backend = LocalBackend(path)

    def put(self, key: str, body: Body) -> None:
        """Write one object, flushed to the disk."""
        self._backend.put(key, body)

    def finish(self) -> str:
        """Leave nothing but the objects; a folder as a whole has no digest."""
        (self._backend.root / ".tmp").rmdir()
        return ""

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self._folder)


def check_destination(path: Path) -> None:
    """Raise what `sink_at` would raise at once: `InputError` for a name or place where no export can go."""
    if not path.name:
        raise InputError(f"{path} is no name for an export; give a new folder, or a file that ends in .tar")
    if _COMPRESSED.fullmatch(path.name):
        raise InputError(f"{path} names a compressed archive; export to a .tar, then compress that file")
    with _translated(path), _alone(path):
        pass


@contextmanager
def sink_at(path: Path) -> Iterator[TarSink | FolderSink]:
    """Give a sink for a tar file (`.tar`) or a folder that is at `path` once the block has ended well.

    Until then it lies beside it under a hidden name, which is removed if the block ends otherwise, and by a
    later export to the same name if this process is killed. Raises `InputError` if there is something at
    `path` already, which stays as it is, or `path` is no name; `StorageUnavailable` if the disk is full or
    read-only.
    """
    check_destination(path)
    hidden = _hidden(path)
    with _translated(path):
        with _alone(path):
            _sweep(path)
        sink = TarSink(hidden) if path.suffix == ".tar" else FolderSink(hidden)
        try:
            yield sink
            with _alone(path):
                hidden.rename(path)
        finally:
            sink.close()
            _remove(hidden)


@contextmanager
def folder_at(path: Path) -> Iterator[Path]:
    """Give a new folder that is at `path` once the block has ended well; its parents are made.

    As with `sink_at` nothing is at `path` before, and what a killed process left beside it is removed by the
    next one. Raises `InputError` as `check_folder_at` does, and `StorageUnavailable` as `sink_at`.
    """
    check_folder_at(path)
    hidden = _hidden(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _alone(path):
            _sweep(path)
            hidden.mkdir()
            handle = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(handle, fcntl.LOCK_EX)  # tells the sweep of another process that we are alive
        try:
            yield hidden
            with _alone(path):
                hidden.rename(path)
        finally:
            os.close(handle)
            if hidden.is_dir():
                _remove(hidden)
    except OSError as error:
        raise storage_error(error, "write", path.name, f"file:{path.parent}") from error


def check_folder_at(path: Path) -> None:
    """Raise what `folder_at` would at once: `InputError` where no new folder can be; nothing is made."""
    if path.name in ("", ".."):
        raise InputError(f"{path} is no name for a new folder; give one")
    if os.path.lexists(path):
        raise InputError(f"{path} is there already; give a folder that is not")
    there = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not there.is_dir():
        raise InputError(f"{there} is no folder, so that {path} cannot be made; give another folder")
    if not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"nothing can be written in {there}, so that {path} cannot be made; give another folder"
        )


def _hidden(path: Path) -> Path:
    return path.with_name(f".{path.name}.{secrets.token_hex(_DIGITS // 2)}.partial")


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other exports out of the folder of `path`, and make sure that nothing is at `path`."""
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        if os.path.lexists(path):
            raise InputError(f"{path} exists and is left as it is; remove it or export to another name")
        yield
        os.fsync(folder)
    finally:
        os.close(folder)


def _sweep(path: Path) -> None:
    """Remove what killed exports to the same name left behind."""
    for hidden in path.parent.glob(f".{glob.escape(path.name)}.{'[0-9a-f]' * _DIGITS}.partial"):
        with suppress(OSError):
            handle = os.open(hidden, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(hidden)
            finally:
                os.close(handle)


def _remove(hidden: Path) -> None:
    if hidden.is_dir():
        shutil.rmtree(hidden)
    else:
        hidden.unlink(missing_ok=True)


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except CellarError:
        raise
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"there is no folder {path.parent}; make it first, or export elsewhere") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{path.name[:120]}... is too long a name; export to a shorter one") from error
        raise storage_error(error, "write", path.name, f"file:{path.parent}") from error
