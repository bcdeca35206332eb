"""The files behind a corpus: a stable order for them, and the digest that says whether they changed."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from store.paths import existing_file
from tasks.corpus.document import Skipped
from tasks.errors import BadCorpus

_READ_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file to read; `name` is its stable name within the source (never an absolute path)."""

    name: str
    path: Path

    def stamp(self) -> tuple[int, int]:
        """Size in bytes and modification time in nanoseconds, to notice a change while reading."""
        try:
            status = self.path.stat()
        except OSError:
            return -1, -1
        return status.st_size, status.st_mtime_ns

    def unreadable(self, error: OSError) -> Skipped:
        """What a reader reports when the file cannot be read."""
        return Skipped(self.name, f"unreadable ({error.strerror})")


def list_files(path: Path, patterns: Sequence[str]) -> list[SourceFile]:
    """The file at `path`, or the files below that folder which match a pattern, sorted by name.

    Raises BadCorpus when the path does not exist, or is a pipe, a socket or a device. Symbolic links to
    folders are not followed.
    """
    remedy = "give the path of a file or folder to read"
    if not existing_file(path, BadCorpus, remedy=remedy, or_folder=True).is_dir():
        return [SourceFile(path.name, path)]
    found = {match for pattern in patterns for match in path.glob(pattern) if match.is_file()}
    return sorted((SourceFile(p.relative_to(path).as_posix(), p) for p in found), key=lambda f: f.name)


def content_identity(files: Iterable[SourceFile]) -> str:
    """SHA-256 over every file's name, size and SHA-256: equal exactly when the source reads the same.

    Neither the folder's location nor any time enters it: a moved or freshly checked out source is recognised.
    A file that cannot be read counts as such; its reader reports it.
    """
    whole = hashlib.sha256()
    for file in files:
        whole.update(f"{file.name!r} {_fingerprint(file.path)}\n".encode("utf-8", "backslashreplace"))
    return whole.hexdigest()


def _fingerprint(path: Path) -> str:
    digest, size = hashlib.sha256(), 0
    try:
        with path.open("rb") as stream:
            while chunk := stream.read(_READ_BYTES):
                digest.update(chunk)
                size += len(chunk)
    except OSError:
        return "unreadable"
    return f"{size} {digest.hexdigest()}"
