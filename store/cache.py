"""A folder on this machine that keeps what was read from a distant storage, bounded and verified.

An entry is named by the SHA-256 of its bytes and checked against it whenever it is used. So no entry is ever
stale, damage in the folder costs a request and nothing else, one folder serves several stores, and an element
that garbage collection moved to another pack is still found. Processes share the folder: whoever adds or
removes entries holds its lock, which makes the limit hold for all of them together.
"""

from __future__ import annotations

import fcntl
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from store.errors import StorageUnavailable
from store.format import is_digest, sha256

_LOCK = ".lock"
"""The lock file; its content is an upper bound of the bytes of all entries."""
_INCOMING = ".incoming"
"""The entry being written. There is one at most, and a killed process's is overwritten by the next."""
_KEPT_SHARE = 0.9
"""Eviction goes below the limit by a tenth, so that not every new entry has to look through the folder."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class CacheUsage:
    """What a cache holds: the number of entries, their bytes, and the limit of these bytes."""

    folder: str
    entries: int
    bytes: int
    limit: int


@dataclass(frozen=True, slots=True, order=True)
class _Entry:
    used_ns: int
    path: Path
    size: int


class ReadCache:
    """Byte strings in a folder, found by their SHA-256; the least recently used go first.

    A folder that cannot be used only costs speed: it is reported once, and left alone from there on.
    """

    def __init__(self, folder: Path, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self._usable = True

    def find(self, digests: Iterable[str]) -> dict[str, bytes]:
        """Return those of the byte strings named by `digests` that are here and intact."""
        found: dict[str, bytes] = {}
        for digest in digests if self._usable else ():
            path = self._path(digest)
            try:
                data = path.read_bytes()
            except FileNotFoundError:
                continue
            except OSError as error:
                self._give_up(error)
                break
            if sha256(data) == digest:
                found[digest] = data
                _touch(path)
            else:
                _log.warning("an entry of the read cache was damaged and is read again: %s", path)
                with suppress(OSError):
                    path.unlink()
        return found

    def add(self, entries: Mapping[str, bytes | memoryview]) -> None:
        """Keep byte strings, by their SHA-256, and make room for them."""
        if not self._usable:
            return
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._locked() as lock:
                for digest, data in entries.items():
                    self._add(lock, digest, data)
        except OSError as error:
            self._give_up(error)

    def usage(self) -> CacheUsage:
        """Count what is here; raises `StorageUnavailable` if the folder refuses that."""
        return self._count(remove=False)

    def clear(self) -> CacheUsage:
        """Remove all entries, but nothing else that may lie in the folder; return what they were.

        Raises `StorageUnavailable` if the folder refuses that.
        """
        return self._count(remove=True)

    def _count(self, *, remove: bool) -> CacheUsage:
        entries: list[_Entry] = []
        try:
            if self.folder.exists():
                with self._locked() as lock:
                    entries += self._entries()
                    for entry in entries if remove else ():
                        entry.path.unlink(missing_ok=True)
                    _write_bound(lock, 0 if remove else sum(entry.size for entry in entries))
        except OSError as error:
            raise StorageUnavailable(
                f"cannot use the read cache in {self.folder}: {_reason(error)}; check its owner and mode, or "
                "name another folder with CELLAR_CACHE_DIR"
            ) from error
        return CacheUsage(str(self.folder), len(entries), sum(entry.size for entry in entries), self.limit)

    def _add(self, lock: int, digest: str, data: bytes | memoryview) -> None:
        path = self._path(digest)
        if len(data) > self.limit or path.exists():
            return
        bound = _read_bound(lock)
        if bound is None or bound + len(data) > self.limit:
            bound = self._make_room(len(data))
        _write_bound(lock, bound + len(data))  # first, so that a kill leaves a bound that is too high
        path.parent.mkdir(mode=0o700, exist_ok=True)
        incoming = self.folder / _INCOMING
        try:
            with os.fdopen(_open(incoming, os.O_WRONLY | os.O_TRUNC), "wb") as file:
                file.write(data)
            incoming.replace(path)
        except OSError:
            incoming.unlink(missing_ok=True)
            raise

    def _make_room(self, size: int) -> int:
        """Remove entries, if need be, until `size` bytes more fit; return the bytes of those that stay."""
        entries = sorted(self._entries())
        total = sum(entry.size for entry in entries)
        if total + size > self.limit:
            for entry in entries:
                if total + size <= self.limit * _KEPT_SHARE:
                    break
                entry.path.unlink(missing_ok=True)
                total -= entry.size
        return total

    def _entries(self) -> Iterator[_Entry]:
        for folder in self.folder.glob("[0-9a-f][0-9a-f]"):
            for item in os.scandir(folder):
                if is_digest(item.name) and item.name.startswith(folder.name):
                    with suppress(FileNotFoundError):
                        status = item.stat(follow_symlinks=False)
                        yield _Entry(status.st_mtime_ns, Path(item.path), status.st_size)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Hold the lock of the folder; threads exclude each other too, since each opens it anew."""
        handle = _open(self.folder / _LOCK, os.O_RDWR)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield handle
        finally:
            os.close(handle)

    def _path(self, digest: str) -> Path:
        return self.folder / digest[:2] / digest

    def _give_up(self, error: OSError) -> None:
        if self._usable:
            self._usable = False
            _log.warning("the read cache in %s is left alone from here on: %s", self.folder, _reason(error))


def _reason(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else type(error).__name__


def _open(path: Path, flags: int) -> int:
    """Open a file for writing, made if need be; a link that somebody put there is refused."""
    return os.open(path, flags | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def _touch(path: Path) -> None:
    """Note that an entry was used; a folder that may only be read still serves."""
    with suppress(OSError):
        os.utime(path)


def _read_bound(lock: int) -> int | None:
    text = os.pread(lock, 32, 0)
    return int(text) if text.isdigit() else None


def _write_bound(lock: int, bound: int) -> None:
    os.pwrite(lock, b"%d" % bound, 0)
    os.ftruncate(lock, len(b"%d" % bound))
