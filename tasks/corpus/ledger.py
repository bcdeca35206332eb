"""Names and contents seen so far, on disk, so that any corpus is deduplicated in constant memory."""

import sqlite3
from pathlib import Path
from types import TracebackType
from typing import Self

from tasks.corpus.document import Document

_INSERT = {
    "names": "INSERT OR IGNORE INTO names VALUES (?)",
    "digests": "INSERT OR IGNORE INTO digests VALUES (?)",
}


class Ledger:
    """Decides, in reading order, which documents are new and under which names they enter a corpus."""

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        # A scratch file: an interrupted run starts it anew, so durability would only cost time.
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("PRAGMA synchronous = OFF")
        self._database.execute("CREATE TABLE names (entry BLOB PRIMARY KEY) WITHOUT ROWID")
        self._database.execute("CREATE TABLE digests (entry BLOB PRIMARY KEY) WITHOUT ROWID")
        self._database.execute("BEGIN")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._database.close()

    def admit(self, document: Document) -> Document | None:
        """The document under a free name, or None when its text is already there.

        The first of several equal names keeps it; each later one gets eight digits of its content's digest,
        so its name does not depend on how many came before.
        """
        digest = document.digest
        if not self._add("digests", bytes.fromhex(digest)):
            return None
        for suffix in ("", f"-{digest[:8]}", f"-{digest}"):
            name = document.name + suffix
            if self._add("names", name.encode("utf-8")):
                return Document(name, document.text, document.source)
        raise AssertionError(f"two different texts share the digest {digest}")

    def _add(self, table: str, entry: bytes) -> bool:
        """Record an entry; False when it was there."""
        return self._database.execute(_INSERT[table], (entry,)).rowcount == 1
