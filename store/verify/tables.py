"""Index files and parts: every row describes an element whose version is the digest of what it says.

Files are read one after the other and decoded in small batches, so that memory does not grow with their
number or size. What is kept of a million rows are two numbers each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from store.errors import IntegrityError
from store.format import (
    BUILD_PREFIX,
    INDEX_PREFIX,
    RESTORE,
    check_digest,
    directory_key,
    index_key,
    is_digest,
)
from store.index import LISTED
from store.manifest import Checkpoint
from store.rows import SCHEMA, decode_batches, iter_rows
from store.verify.chain import History
from store.verify.derived import check_lone_directories, compare_directory
from store.verify.survey import Survey, Suspect
from store.visibility import living

_IDENTITY = tuple(name for name in SCHEMA.names if name != "commit")


class RowCheck:
    """Checks rows one by one, each distinct one once, however many files hold it."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def check(self, table: pa.Table, key: str) -> None:
        """Raise `IntegrityError` if a row of `table` describes no element, or another than its version."""
        columns = [table[name].to_pylist() for name in _IDENTITY]
        lists = [n for n, name in enumerate(_IDENTITY) if pa.types.is_list(SCHEMA.field(name).type)]
        for number in lists:
            columns[number] = list(map(tuple, columns[number]))
        # Python's hashes of text are salted, so nobody can make a row that passes for another.
        hashes = list(map(hash, zip(*columns, strict=True)))
        fresh = [position for position, value in enumerate(hashes) if value not in self._seen]
        for row in iter_rows(table.take(pa.array(fresh, pa.int64()))):
            if not row.is_authentic():
                raise IntegrityError(
                    f"{key} describes {row.name} in a way that its version denies; {RESTORE}"
                )
        self._seen.update(hashes)


class Tables:
    """The rows of all intact index files: which versions are visible, and which packs they need.

    `intact` are the digests of index files that can be relied on. `sizes` and `members` are, for each pack
    with a visible row, its size and how many such rows there are at least.
    """

    def __init__(self, survey: Survey, history: History, newest: Checkpoint, rows: RowCheck) -> None:
        self._survey = survey
        self._history = history
        self._newest = newest
        self._rows = rows
        self._segments = {segment.index: segment for segment in newest.segments}
        self._directories: set[str] = set()
        self._by_log: set[int] = set()
        self._since: set[int] = set()
        self._by_checkpoint: set[int] = set()
        self.intact: set[str] = set()
        self.sizes: dict[str, int] = {}
        self.members: Counter[str] = Counter()

    def check(self) -> None:
        """Check all index files with their directories, and see that all that are needed are there."""
        survey = self._survey
        named = ((key, _digest(key)) for key in survey.keys(INDEX_PREFIX, ".parquet"))
        keys = [key for key, digest in named if is_digest(digest) and not self._is_replaced(digest)]
        survey.examine(keys, self._check_index, lambda key: self._suspect(_digest(key)))
        lone = [key for key in survey.keys(INDEX_PREFIX, ".keys") if key not in self._directories]
        check_lone_directories(survey, lone)
        for digest in self.needed():
            key = index_key(digest)
            if key not in survey.sizes:
                self._look_again(key, digest)
        self._compare()

    def needed(self) -> list[str]:
        """Return the digests of the index files that the log and the newest checkpoint rely on."""
        return sorted(
            digest for digest in {*self._history.indexes, *self._segments} if self.numbers_of(digest)
        )

    def lacking(self) -> list[str]:
        """Return those of `needed` that are missing or damaged."""
        return [digest for digest in self.needed() if digest not in self.intact]

    def holds(self, version: str) -> bool:
        """Whether a visible row has that version."""
        value = hash(version)
        return value in self._by_log or value in self._since or value in self._by_checkpoint

    def count(self) -> int:
        """Return the number of visible versions."""
        return len(self._by_log | self._since | self._by_checkpoint)

    def numbers_of(self, digest: str) -> list[int]:
        """Return the commits that rows of an index file without a number of their own belong to.

        None if nothing but commits before a repair that stands in for the file named it.
        """
        numbers = list(self._history.indexes.get(digest, ()))
        if digest in self._segments and not numbers:
            numbers = [self._segments[digest].commit]
        replaced = self._history.replaced.get(digest, 0)
        return [number for number in numbers if number > replaced]

    def living(self, digest: str, data: bytes) -> Iterator[pa.Table]:
        """Yield the rows of an intact index file that were not collected, with their commits' numbers."""
        _, batches = decode_batches(data, index_key(digest))
        for batch in batches:
            for number in self.numbers_of(digest):
                yield living(_numbered(batch, number), self._history.removals)

    def _is_replaced(self, digest: str) -> bool:
        """Whether a repair stands in for an index file, so that it may be damaged and nobody reads it."""
        return digest in self._history.replaced and not self.numbers_of(digest)

    def _check_index(self, key: str, data: bytes) -> None:
        digest = _digest(key)
        check_digest(data, digest, key, holds="index of a commit")
        metadata, batches = decode_batches(data, key)
        listed: list[pa.Table] = []
        for batch in batches:
            self._rows.check(batch, key)
            listed.append(batch.select(LISTED))
        table = pa.concat_tables([SCHEMA.empty_table().select(LISTED), *listed])
        self._check_sizes(key, table, metadata["packs"])
        self._check_directory(digest, data, table, metadata["packs"])
        self.intact.add(digest)
        for number in self.numbers_of(digest):
            self._admit(digest, number, table, metadata["packs"])

    def _check_sizes(self, key: str, table: pa.Table, sizes: dict[str, int]) -> None:
        if not set(table["pack"].unique().to_pylist()) <= sizes.keys():
            raise IntegrityError(f"{key} does not say how large its packs are; {RESTORE}")
        for number in self._history.indexes.get(_digest(key), ()):
            commit = self._history.commits[number]
            if commit.build and len(table) != commit.elements:
                raise IntegrityError(
                    f"{key} has {len(table)} rows, and commit {number}, which names it, {commit.elements}; "
                    f"{RESTORE}"
                )

    def _check_directory(self, digest: str, data: bytes, table: pa.Table, sizes: dict[str, int]) -> None:
        key = directory_key(digest)
        if key not in self._survey.sizes:
            return
        self._directories.add(key)

        def check(key: str, directory: bytes) -> None:
            compare_directory(directory, digest, data, table, sizes)

        self._survey.examine([key], check)

    def _admit(self, digest: str, number: int, table: pa.Table, sizes: dict[str, int]) -> None:
        """Count the visible rows of an index file."""
        rows = living(_numbered(table, number), self._history.removals)
        hashes = map(hash, rows["version"].to_pylist())
        if digest in self._segments:
            self._by_checkpoint.update(hashes)
        elif number <= self._newest.sequence:
            self._by_log.update(hashes)
        else:
            self._since.update(hashes)
        for entry in pc.value_counts(rows["pack"]).to_pylist():
            pack, count = entry["values"], entry["counts"]
            self.sizes[pack] = sizes[pack]
            self.members[pack] = max(self.members[pack], count)

    def _look_again(self, key: str, digest: str) -> None:
        """Check an index file that came since the listing, or say that it is missing."""
        survey = self._survey
        if survey.backend.info(key) is not None:
            survey.sizes[key] = 0
            survey.examine([key], self._check_index, lambda key: self._suspect(digest))
            return
        numbers = self._history.indexes.get(digest, [])
        who = f"the index of commit {numbers[0]}" if numbers else f"which {self._newest.key} names"
        survey.suspect(key, f"{key}, {who}, is missing; {RESTORE}", commits=numbers)

    def _suspect(self, digest: str) -> Suspect:
        return Suspect(index_key(digest), "", commits=self._history.indexes.get(digest, ()))

    def _compare(self) -> None:
        """See that the newest checkpoint hides nothing that the log makes visible."""
        if self._newest.key and not self.lacking() and not self._history.lost:
            hidden = len(self._by_log - self._by_checkpoint)
            if hidden:
                self._survey.suspect(
                    self._newest.key,
                    f"{self._newest.key} hides {hidden} elements that the log makes visible",
                )


def check_parts(survey: Survey, rows: RowCheck) -> None:
    """Check the parts of builds, of whose rows those without a commit are visible to nobody."""

    def check(key: str, data: bytes) -> None:
        check_digest(data, _digest(key), key, holds="part of a build")
        metadata, batches = decode_batches(data, key)
        for batch in batches:
            rows.check(batch, key)
            if not set(batch["pack"].unique().to_pylist()) <= metadata["packs"].keys():
                raise IntegrityError(f"{key} does not say how large its packs are; run the build again")

    survey.examine(survey.keys(BUILD_PREFIX, ".parquet"), check)


def _numbered(table: pa.Table, number: int) -> pa.Table:
    """Return `table` with the commit `number` where a row has none."""
    commits: Any = pc.if_else(pc.equal(table["commit"], 0), number, table["commit"])
    return table.set_column(table.schema.get_field_index("commit"), "commit", commits)


def _digest(key: str) -> str:
    return key.rpartition("/")[2].rpartition(".")[0]
