"""Files of CI jobs on disk, plain or gzip, read as a stream that never grows beyond a limit."""

import gzip
import hashlib
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from store.paths import existing_file
from tasks.replay.jobs import BadJobs

MOST_BYTES = 256 * 1024**2
"""Decompressed bytes of one file."""
MOST_FILES = 10_000
_GZIP = b"\x1f\x8b"
_SUFFIXES = (".json", ".jsonl", ".ndjson", ".csv")


def job_files(path: Path) -> list[tuple[str, Path]]:
    """The file at `path`, or all files of jobs below that folder, each with its name, ordered by name.

    Raises `BadJobs` when there is none, or more than 10,000, and for a pipe, a socket or a device.
    """
    remedy = "give a file of CI jobs, or a folder of such files"
    if not existing_file(path, BadJobs, remedy=remedy, or_folder=True).is_dir():
        return [(path.name, path)]
    found: list[tuple[str, Path]] = []
    for file in path.rglob("*"):
        if file.name.removesuffix(".gz").endswith(_SUFFIXES) and file.is_file():
            found.append((file.relative_to(path).as_posix(), file))
            if len(found) > MOST_FILES:
                raise BadJobs(f"{path} holds more than {MOST_FILES:,} files; give a part of them")
    if not found:
        raise BadJobs(f"{path} holds no {', '.join(_SUFFIXES)} file, plain or .gz; give another folder")
    return sorted(found)


def content_identity(files: Sequence[tuple[str, Path]]) -> str:
    """SHA-256 over the names and contents of files: equal exactly when they read the same."""
    whole = hashlib.sha256()
    for name, path in files:
        try:
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            raise BadJobs(f"{name} cannot be read ({error.strerror or error}); check it") from error
        whole.update(f"{name!r} {digest}\n".encode("utf-8", "backslashreplace"))
    return whole.hexdigest()


class BoundedReader:
    """Reads lines or all of a text, and refuses to hand out more than `most` bytes of it.

    What is not UTF-8, or holds a NUL byte, is refused as well, whatever the file is read as.
    """

    def __init__(self, stream: IO[bytes], name: str, most: int) -> None:
        self._stream = stream
        self._name = name
        self._left = most
        self._most = most

    def lines(self, longest: int) -> Iterator[str]:
        """The lines of a UTF-8 text with their ends; a longer line is refused."""
        number = 0
        while line := self._taken(self._stream.readline(longest + 1)):
            number += 1
            if len(line) > longest:
                raise BadJobs(
                    f"line {number} of {self._name} is longer than {longest:,} bytes; repair the file"
                )
            yield self._text(line, f" in line {number}").removeprefix("\ufeff" if number == 1 else "")

    def text(self) -> str:
        """All of a UTF-8 text."""
        parts = []
        while part := self._taken(self._stream.read(1 << 20)):
            parts.append(part)
        return self._text(b"".join(parts), "").removeprefix("\ufeff")

    def head(self, count: int) -> bytes:
        """The first bytes, for a guess at what they are."""
        return self._taken(self._stream.read(count))

    def _taken(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise BadJobs(
                f"{self._name} is larger than {self._most // 1024**2:,} MiB decompressed; give it in parts"
            )
        return data

    def _text(self, data: bytes, where: str) -> str:
        if b"\0" in data:  # a hole of a damaged file, or two bytes a letter
            raise BadJobs(f"{self._name} holds a NUL byte{where}; repair it, or convert it to UTF-8")
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise BadJobs(f"{self._name} is not UTF-8{where} (byte {error.start}); convert it") from error


@contextmanager
def opened(path: Path, name: str) -> Iterator[BoundedReader]:
    """The file's content, decompressed where it starts like gzip.

    Raises `BadJobs`, also while it is read, when the file cannot be read or its compression is damaged.
    """
    try:
        with path.open("rb") as file:
            compressed = file.peek(2)[:2] == _GZIP if hasattr(file, "peek") else False
            if not compressed:
                yield BoundedReader(file, name, MOST_BYTES)
                return
            with gzip.GzipFile(fileobj=file) as stream:
                yield BoundedReader(stream, name, MOST_BYTES)  # type: ignore[arg-type]
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise BadJobs(f"{name} is damaged ({error}); fetch it again") from error
    except OSError as error:
        raise BadJobs(f"{name} cannot be read ({error.strerror or error}); check it") from error
