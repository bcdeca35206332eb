"""A folder on this machine as a backend, safe against crashes and against other processes.

Writes go to a temporary file in `.tmp/`, are flushed to disk, and then appear under their key in one step:
`link` for create-only (the kernel lets exactly one process win), `rename` otherwise. Directory entries are
flushed as well, so that what was reported as written survives a power cut. Replacement compares and swaps
under an advisory lock on `.lock`.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import secrets
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from store.backend import Body, ObjectInfo
from store.errors import (
    AccessDenied,
    CellarError,
    ConfigurationError,
    DiskFull,
    IntegrityError,
    InvalidName,
    KeyExists,
    KeyMissing,
    NotAStore,
    ReadOnly,
    StorageUnavailable,
    TokenMismatch,
)
from store.format import FORMAT_KEY

_TEMPORARY = ".tmp"
_LOCK = ".lock"
_NO_LINKS = frozenset({errno.EPERM, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP})
"""What `link` fails with on a file system that has none; the first also means that somebody forbade it."""
_ABANDONED_AFTER_S = 3600.0
"""Age from which a temporary file that nobody holds open is litter of a killed process."""


class LocalBackend:
    """Objects as files below `root`; usable from several threads and processes at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.url = f"file:{root}"
        self._opened = False
        self._swept = False
        self._sweep_lock = threading.Lock()

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        path = self._path(key)
        with self._translated("read", key), open(path, "rb", opener=_open_without_waiting) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise self._missing(key, "is no regular file")
            data = read_range(file, status.st_size, offset, length)
        self._opened = self._opened or key == FORMAT_KEY
        return data

    def read_with_token(self, key: str) -> tuple[bytes, str]:
        data = self.read(key)
        return data, _token(data)

    def info(self, key: str) -> ObjectInfo | None:
        try:
            with self._translated("look at", key):
                status = self._path(key).stat()
        except KeyMissing:
            return None
        return _info(key, status) if stat.S_ISREG(status.st_mode) else None

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        folder = prefix.rpartition("/")[0]
        with self._translated("list", prefix):
            keys = sorted(_walk(self.root / folder, f"{folder}/" if folder else "", prefix, after))
        for key in keys:
            info = self.info(key)
            if info is not None:
                yield info

    def put(self, key: str, body: Body) -> None:
        with self._translated("write", key), self._temporary(key, body) as (temporary, path):
            temporary.replace(path)
            _flush_directory(path.parent)

    def create(self, key: str, body: Body) -> None:
        path = self._path(key)
        with self._translated("look at", key):
            if path.exists():  # spares writing a body that is bound to lose; the link below decides races
                raise self._taken(key, path)
        with self._translated("write", key), self._temporary(key, body) as (temporary, path):
            try:
                path.hardlink_to(temporary)
            except FileExistsError as error:
                raise self._taken(key, path) from error
            except OSError as error:
                if error.errno in _NO_LINKS and not _can_link(temporary):
                    raise ConfigurationError(
                        f"the file system of {self.url} has no hard links, by which a store makes sure "
                        "that one writer wins; choose a place on another file system, or a bucket"
                    ) from error
                raise
            _flush_directory(path.parent)

    def replace(self, key: str, body: Body, *, token: str) -> None:
        with self._translated("write", key), self._exclusive():
            if self.read_with_token(key)[1] != token:
                raise TokenMismatch(f"{key} in {self.url} was changed by somebody else")
            self.put(key, body)

    def delete(self, key: str) -> None:
        with suppress(KeyMissing), self._translated("delete", key):
            path = self._path(key)
            path.unlink()
            _flush_directory(path.parent)

    def now(self) -> datetime:
        """Return the time of a file that was just written: on a network share the server's clock sets it."""
        with (
            self._translated("read the clock with", "a temporary file"),
            # Without a name where the file system can do that; a leading dot keeps any other out of listings.
            tempfile.TemporaryFile(dir=self.root, prefix=".clock-") as file,
        ):
            file.write(b"now")
            file.flush()
            os.fsync(file.fileno())
            return _modified(os.fstat(file.fileno()))

    def _path(self, key: str) -> Path:
        parts = key.split("/")
        if any(part in ("", ".", "..") or part.startswith(".") or "\0" in part for part in parts):
            raise InvalidName(f"{key!r} is not a key of a store")
        return self.root.joinpath(*parts)

    @contextmanager
    def _temporary(self, key: str, body: Body) -> Iterator[tuple[Path, Path]]:
        """Write `body` to a flushed temporary file on the same file system; it is gone afterwards."""
        path = self._path(key)
        folder = self.root / _TEMPORARY
        self._prepare(folder, path.parent)
        temporary = folder / secrets.token_hex(16)
        # Unlike mkstemp, with the modes that the umask allows: others may read a store that they share.
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o666)
        try:
            with os.fdopen(handle, "wb") as file:
                fcntl.flock(file, fcntl.LOCK_EX)  # tells the sweep of another process that we are alive
                self._sweep(folder, now=os.fstat(file.fileno()).st_mtime)
                file.write(body)
                file.flush()
                os.fsync(file.fileno())
                yield temporary, path
        finally:
            temporary.unlink(missing_ok=True)

    def _prepare(self, *folders: Path) -> None:
        """Make folders to write into; where a store was opened, only if it is still there.

        An unmounted disk leaves an empty folder or none: what was written there would be found by nobody.
        """
        if self._opened and not (self.root / FORMAT_KEY).is_file():
            raise _gone(self.root)
        for folder in folders:
            _make_directory(folder, below=self.root if self._opened else None)

    def _sweep(self, folder: Path, *, now: float) -> None:
        """Remove, once per backend, temporary files that killed processes left behind.

        `now` is the file system's clock: that of this process may be wrong by years.
        """
        with self._sweep_lock:
            if self._swept:
                return
            self._swept = True
        for path in folder.iterdir():
            with suppress(OSError), os.fdopen(_open_regular(path), "rb") as file:
                if now - os.fstat(file.fileno()).st_mtime > _ABANDONED_AFTER_S:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    path.unlink()

    @contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Hold the folder's lock; each entry opens its own description, so threads exclude each other too."""
        self._prepare()
        with open(self.root / _LOCK, "ab", opener=_open_without_waiting) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                # A process forked meanwhile holds the same description; closing ours would not release it.
                fcntl.flock(file, fcntl.LOCK_UN)

    @contextmanager
    def _translated(self, verb: str, key: str) -> Iterator[None]:
        try:
            yield
        except CellarError:
            raise
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise self._missing(key, "does not exist") from error
        except OSError as error:
            if verb == "read" and error.errno == errno.ENXIO:  # what a socket says
                raise self._missing(key, "is no regular file") from error
            raise storage_error(error, verb, key, self.url) from error

    def _missing(self, key: str, what: str) -> KeyMissing:
        return KeyMissing(f"{key} {what} in {self.url}; check the store with `cellar verify`")

    def _taken(self, key: str, path: Path) -> CellarError:
        """Return the error for a key that cannot be created.

        What is no object for readers would let a writer look for who won, find nobody, and try forever.
        """
        if path.is_file() or not os.path.lexists(path):  # or it was removed again meanwhile
            return KeyExists(f"{key} already exists in {self.url}")
        return IntegrityError(f"what lies at {key} in {self.url} is no regular file; remove it and run again")


def read_range(file: BinaryIO, size: int, offset: int, length: int | None) -> bytes:
    """Return a part of an open file of `size` bytes, fewer at its end.

    Memory for those that it lacks is not taken.
    """
    rest = size - offset
    if rest <= 0:
        return b""
    file.seek(offset)
    return file.read(-1 if length is None else min(length, rest))


def storage_error(error: OSError, verb: str, key: str, url: str) -> StorageUnavailable:
    """Return the store's error for what the operating system said when we tried to `verb` an object."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return DiskFull(f"cannot {verb} {key}: no space left for {url}; free some and run again")
    if error.errno == errno.EROFS:
        return ReadOnly(f"cannot {verb} {key}: {url} is read-only; make it writable or use another store")
    if error.errno in (errno.EACCES, errno.EPERM):
        return AccessDenied(
            f"cannot {verb} {key}: permission denied in {url}; check the folder's owner and mode"
        )
    reason = os.strerror(error.errno) if error.errno else type(error).__name__
    return StorageUnavailable(f"cannot {verb} {key} in {url}: {reason}; repair the file system and run again")


def _can_link(temporary: Path) -> bool:
    """Whether a temporary file can have a second name where it is, so that its file system has links."""
    other = temporary.with_suffix(".link")
    try:
        other.hardlink_to(temporary)
    except OSError:
        return False
    other.unlink()
    return True


def _token(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _info(key: str, status: os.stat_result) -> ObjectInfo:
    return ObjectInfo(key=key, size=status.st_size, modified=_modified(status))


def _modified(status: os.stat_result) -> datetime:
    return datetime.fromtimestamp(status.st_mtime, UTC)


def _walk(folder: Path, base: str, prefix: str, after: str) -> Iterator[str]:
    """Yield the keys in `folder` and below, all of which begin with `base`, that belong into a listing.

    Links to folders are not followed: one that leads upwards would have no end.
    """
    try:
        entries = os.scandir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    with entries:
        for entry in entries:
            key = base + entry.name
            # What lies in a folder comes before its name with "0", which follows "/".
            if not key.startswith(prefix) or f"{key}0" <= after or entry.name.startswith("."):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(folder / entry.name, f"{key}/", prefix, after)
            elif key > after:
                yield key


def _make_directory(folder: Path, *, below: Path | None) -> None:
    """Create a folder and its parents, only `below` a given one, and flush the entries that now name them."""
    if folder.is_dir():
        return
    if folder == below:
        raise _gone(folder)
    _make_directory(folder.parent, below=below)
    try:
        folder.mkdir()
    except FileExistsError:
        if not folder.is_dir():
            raise NotAStore(f"{folder} is a file, a store needs a folder; choose another place") from None
    except FileNotFoundError as error:
        raise StorageUnavailable(f"no folder can be made at {folder}; choose another place") from error
    _flush_directory(folder.parent)


def _gone(root: Path) -> NotAStore:
    return NotAStore(
        f"the store at file:{root} is gone or was replaced since it was opened; make sure that the right "
        "place is mounted, and run again"
    )


def _open_without_waiting(path: str, flags: int) -> int:
    """Open a file for `open`; a pipe that somebody put there must not make it wait for another end."""
    return os.open(path, flags | os.O_NONBLOCK, 0o666)


def _open_regular(path: Path) -> int:
    """Open a file for the sweep; a pipe that somebody put there must not make it wait."""
    return os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)


def _flush_directory(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
