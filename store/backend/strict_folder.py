"""A folder of unknown origin as a read-only backend: regular files under plain names, and nothing else.

Unlike a store's own folder, it is looked through once, and anything that no export holds is refused: links
lead elsewhere, pipes make a reader wait, devices do worse. Files are opened step by step without following
links, so that what was looked at is what is read.
"""

from __future__ import annotations

import errno
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from store.backend import ObjectInfo
from store.backend.local import read_range, storage_error
from store.backend.read_only import Unwritable
from store.backend.tar import PART
from store.errors import IntegrityError, KeyMissing, NotAStore

_DEEPEST = 3
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class StrictFolder(Unwritable):
    """The files of one exported folder; usable from several threads."""

    def __init__(self, root: Path) -> None:
        self.url = f"file:{root}"
        self._root = root
        self._lock = threading.Lock()
        self._table: dict[str, ObjectInfo] | None = None

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        with self._translated(key), self._opened(key) as file, os.fdopen(file, "rb", closefd=False) as data:
            status = os.fstat(file)
            if not stat.S_ISREG(status.st_mode):
                raise self._refused(key, "is no longer a regular file")
            return read_range(data, status.st_size, offset, length)

    def read_with_token(self, key: str) -> tuple[bytes, str]:
        return self.read(key), ""

    def info(self, key: str) -> ObjectInfo | None:
        return self._members().get(key)

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        for key, info in sorted(self._members().items()):
            if key.startswith(prefix) and key > after:
                yield info

    def _members(self) -> dict[str, ObjectInfo]:
        with self._lock:
            if self._table is None:
                with self._translated(""):
                    self._table = {info.key: info for info in self._walk(self._root, "", _DEEPEST)}
            return self._table

    def _walk(self, folder: Path, prefix: str, depth: int) -> Iterator[ObjectInfo]:
        folded: set[str] = set()
        for entry in os.scandir(folder):
            key, status = prefix + entry.name, entry.stat(follow_symlinks=False)
            if PART.fullmatch(entry.name) is None or entry.name.casefold() in folded:
                raise self._refused(key, "is not a name that an export has")
            folded.add(entry.name.casefold())
            if stat.S_ISDIR(status.st_mode) and depth > 1:
                yield from self._walk(folder / entry.name, f"{key}/", depth - 1)
            elif stat.S_ISREG(status.st_mode):
                modified = datetime.fromtimestamp(status.st_mtime, UTC)
                yield ObjectInfo(key=key, size=status.st_size, modified=modified)
            else:
                raise self._refused(key, "is neither a regular file nor one of an export's folders")

    @contextmanager
    def _opened(self, key: str) -> Iterator[int]:
        """Open a file by walking down to it, so that no part of its path can be a link."""
        handle = os.open(self._root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in key.split("/"):
                if PART.fullmatch(part) is None:
                    raise KeyMissing(f"{key!r} is not a key of an export")
                inner = os.open(part, _FLAGS, dir_fd=handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)

    def _refused(self, key: str, problem: str) -> IntegrityError:
        return IntegrityError(
            f"{key!r} in {self._root} {problem}; get the export again from where it was made"
        )

    @contextmanager
    def _translated(self, key: str) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as error:
            if not self._root.is_dir():
                raise NotAStore(f"there is no folder {self._root}; check the name of the export") from error
            raise KeyMissing(f"{key} does not exist in {self.url}; an export holds one snapshot") from error
        except OSError as error:
            if error.errno == errno.ELOOP:
                raise self._refused(key, "is a link") from error
            raise storage_error(error, "read", key or "the export", self.url) from error
