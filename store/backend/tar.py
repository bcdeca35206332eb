"""One tar file as a read-only backend, and the only form of tar that is written and read here.

An archive is a chain of 512-byte blocks: for each object one USTAR header and its bytes, padded with zeros;
at the end two blocks of zeros and nothing more. Every field of a header but name and size is fixed, so a
header is read by writing it again and comparing: links, devices, folders, extended headers, odd modes and
encodings are not handled, they are refused. Nothing is unpacked; objects are read where they lie.
"""

from __future__ import annotations

import os
import re
import stat
import threading
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from store.backend import ObjectInfo
from store.backend.read_only import Unwritable
from store.errors import AccessDenied, InputError, IntegrityError, KeyMissing, NotAStore, StorageUnavailable

BLOCK = 512
END = bytes(2 * BLOCK)
MAX_SIZE = 8**11 - 1
"""What eleven octal digits hold: 8 GiB, more than any object of a store has."""

_NAME_BYTES, _PREFIX_BYTES = 100, 155
PART = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]*")
"""What the parts between slashes of a key look like."""

_OCTAL = re.compile(rb"[0-7]{11}\0")
_MAGIC = b"ustar\x0000"
_MOST_AT_ONCE = 2**30
"""Linux returns at most 2 GiB from one read."""

_KINDS = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a folder",
    b"6": "a FIFO",
    b"S": "a sparse file",
    b"x": "a pax header",
    b"g": "a pax header",
    b"L": "a GNU long name",
    b"K": "a GNU long name",
}
_COMPRESSED = {
    b"\x1f\x8b": "gunzip",
    b"\x28\xb5\x2f\xfd": "unzstd",
    b"\xfd7zXZ\0": "unxz",
    b"BZh": "bunzip2",
    b"PK\x03\x04": "unzip",
    b"\x04\x22\x4d\x18": "unlz4",
}


@dataclass(frozen=True, slots=True)
class Member:
    """Where the bytes of one object lie in the file."""

    offset: int
    size: int


def header(name: str, size: int) -> bytes:
    """Return the one header that an object of this name and size has.

    Raises `InputError` if the name is longer than a USTAR header can hold.
    """
    folder, base = ("", name) if len(name) <= _NAME_BYTES else name.rpartition("/")[::2]
    if len(base) > _NAME_BYTES or len(folder) > _PREFIX_BYTES or not 0 <= size <= MAX_SIZE:
        raise InputError(f"{name[:120]} is too long a name, or too large, for a tar file; export to a folder")
    fields = (
        base.encode().ljust(_NAME_BYTES, b"\0"),
        b"0000644\0" + b"0000000\0" * 2,  # mode, user, group
        b"%011o\0" % size,
        b"00000000000\0",  # time
        b" " * 8,  # checksum, as it counts itself
        b"0" + bytes(100),  # a regular file, linked to nothing
        _MAGIC,
        bytes(64),  # names of user and group
        b"0000000\0" * 2,  # device
        folder.encode().ljust(_PREFIX_BYTES, b"\0"),
        bytes(12),
    )
    block = b"".join(fields)
    return block[:148] + b"%06o\0 " % sum(block) + block[156:]


def padding(size: int) -> bytes:
    """Return the zeros that follow an object of `size` bytes."""
    return bytes(-size % BLOCK)


class TarBackend(Unwritable):
    """The objects of one archive; usable from several threads. The file is opened at the first use."""

    def __init__(self, path: Path) -> None:
        self.url = f"tar:{path}"
        self._path = path
        self._lock = threading.Lock()
        self._file = -1
        self._modified = datetime.fromtimestamp(0, UTC)
        self._table: dict[str, Member] | None = None
        self._names: list[str] = []

    def __del__(self) -> None:
        if self._file >= 0:
            os.close(self._file)

    def read(self, key: str, *, offset: int = 0, length: int | None = None) -> bytes:
        member = self._members().get(key)
        if member is None:
            raise KeyMissing(
                f"{key} does not exist in {self.url}; the archive holds nothing but one snapshot"
            )
        wanted = max(0, member.size - offset)
        return self._bytes(member.offset + offset, wanted if length is None else min(length, wanted))

    def read_with_token(self, key: str) -> tuple[bytes, str]:
        return self.read(key), ""

    def info(self, key: str) -> ObjectInfo | None:
        member = self._members().get(key)
        return ObjectInfo(key=key, size=member.size, modified=self._modified) if member else None

    def list(self, prefix: str, *, after: str = "") -> Iterator[ObjectInfo]:
        members = self._members()
        for name in self._names[bisect_right(self._names, after) :]:
            if name.startswith(prefix):
                yield ObjectInfo(key=name, size=members[name].size, modified=self._modified)

    def _members(self) -> dict[str, Member]:
        with self._lock:
            if self._table is None:
                if self._file < 0:
                    self._file = self._open()
                status = os.fstat(self._file)
                table = self._scan(status.st_size)
                self._modified = datetime.fromtimestamp(status.st_mtime, UTC)
                self._names, self._table = sorted(table), table
            return self._table

    def _open(self) -> int:
        """Open the file without waiting for anything that is none, such as a pipe that nobody writes to."""
        with self._translated():
            file = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        if not stat.S_ISREG(os.fstat(file).st_mode):
            os.close(file)
            raise InputError(f"{self._path} is not a regular file; name a tar file that `cellar` exported")
        return file

    def _scan(self, end: int) -> dict[str, Member]:
        """Read all headers and check that they and the objects fill the file exactly."""
        table: dict[str, Member] = {}
        folded: set[str] = set()
        position = 0
        while (block := self._bytes(position, min(BLOCK, end - position))) != END[:BLOCK]:
            if position == 0:
                self._check_is_tar(block)
            if len(block) < BLOCK:
                raise self._damaged(position, "it ends before its end marks: it was cut short")
            name, size = self._parse(block, position)
            if name.casefold() in folded:
                raise self._damaged(position, f"there are two of {name}, for some file systems at least")
            start = position + BLOCK
            position = start + size + len(padding(size))
            if position > end:
                raise self._damaged(start, f"{name} is cut short")
            if self._bytes(start + size, len(padding(size))).strip(b"\0"):
                raise self._damaged(start + size, f"something is hidden behind {name}")
            folded.add(name.casefold())
            table[name] = Member(start, size)
        if self._bytes(position, min(end - position, len(END) + 1)) != END or not table:
            raise self._damaged(position, "it does not end as an export does")
        return table

    def _parse(self, block: bytes, position: int) -> tuple[str, int]:
        """Return name and size in a header that holds nothing else but what `header` writes."""
        if block[257:262] != _MAGIC[:5]:
            raise self._damaged(position, "there is no USTAR header")
        kind = _KINDS.get(block[156:157])
        if kind is not None:
            raise self._damaged(position, f"it holds {kind}, and an export holds regular files only")
        base, folder = block[:100].rstrip(b"\0"), block[345:500].rstrip(b"\0")
        name = (folder + b"/" + base if folder else base).decode("latin-1")
        if not all(map(PART.fullmatch, name.split("/"))):
            raise self._damaged(position, f"{name[:120]!r} is no name that an export has")
        octal = block[124:136]
        size = int(octal[:11], 8) if _OCTAL.fullmatch(octal) else -1
        with suppress(InputError):
            if header(name, size) == block:
                return name, size
        raise self._damaged(position, f"the header of {name} is not as `cellar` writes it")

    def _check_is_tar(self, start: bytes) -> None:
        for magic, program in _COMPRESSED.items():
            if start.startswith(magic):
                raise InputError(
                    f"{self._path} is compressed; unpack it with `{program}` first, then name the .tar itself"
                )

    def _bytes(self, offset: int, length: int) -> bytes:
        parts: list[bytes] = []
        with self._translated():
            while length:
                part = os.pread(self._file, min(length, _MOST_AT_ONCE), offset)
                if not part:
                    raise self._damaged(offset, "it became shorter while it was read")
                parts.append(part)
                offset, length = offset + len(part), length - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _damaged(self, position: int, problem: str) -> IntegrityError:
        return IntegrityError(
            f"{self._path} is damaged or no export, at byte {position}: {problem}; get it again from where "
            "it was made"
        )

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (FileNotFoundError, NotADirectoryError) as error:
            raise NotAStore(
                f"there is no file {self._path}; check the name: `cellar snapshot export` and `cellar eval "
                "package` make such files"
            ) from error
        except PermissionError as error:
            raise AccessDenied(
                f"cannot read {self._path}: permission denied; check the file's owner and mode"
            ) from error
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            raise StorageUnavailable(
                f"cannot read {self._path}: {reason}; repair the file system and run again"
            ) from error
