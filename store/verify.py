"""Verification: log chain, checkpoints, indexes, snapshots, refs, builds, and packs by size or by content.

Everything is read from the storage itself, past any cache, and a finding never stops the search. Without
`full`, packs are checked by size only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol

from store.backend import Backend
from store.directory import check_directory
from store.errors import IntegrityError, KeyMissing
from store.format import (
    BUILD_PREFIX,
    CHECKPOINT_PREFIX,
    FORMAT_KEY,
    HEAD_PREFIX,
    HISTORY_PREFIX,
    INDEX_PREFIX,
    PACK_PREFIX,
    RESTORE,
    SNAPSHOT_PREFIX,
    TAG_PREFIX,
    check_digest,
    history_key,
    index_key,
    log_key,
    pack_key,
    sha256,
    snapshot_key,
    snapshot_rows_key,
    unseal,
)
from store.log import Commit, decode_commit, is_entry
from store.manifest import decode_checkpoint
from store.removals import Removals, read_removal
from store.report import Finding, VerifyReport
from store.rows import Row, decode_table, rows_of
from store.scrub import damaged_rows, pack_is_intact
from store.snapshot import snapshot_id

__all__ = ["Finding", "Progress", "VerifyReport", "silent", "verify"]


class Progress(Protocol):
    """Called after every object with the number checked and to check, and running figures."""

    def __call__(self, done: int, total: int, **figures: float) -> None: ...


def silent(done: int, total: int, **figures: float) -> None:
    """Report nothing."""


def verify(backend: Backend, *, full: bool, progress: Progress = silent) -> VerifyReport:
    """Check the whole store and return what is wrong with it.

    Raises `StorageUnavailable` if the storage stops answering; damage is reported, never raised.
    """
    return _Verification(backend, full=full, progress=progress).run()


class _Verification:
    """One verification. What a finding touches is worked out at the end, when all rows are known."""

    def __init__(self, backend: Backend, *, full: bool, progress: Progress) -> None:
        self._backend = backend
        self._full = full
        self._progress = progress
        self._sizes = {item.key: item.size for item in backend.list("")}
        self._found: list[tuple[str, str, Callable[[], Iterable[Row]]]] = []
        self._done = 0
        self._read = 0
        self._indexes: dict[str, list[Row]] = {}
        self._commit_of: dict[str, int] = {}
        self._visible: dict[str, Row] = {}
        self._pack_sizes: dict[str, int] = {}
        self._pinned: dict[str, list[Row]] = {}
        self._entries: dict[int, bytes] = {}
        self._named_indexes: dict[str, int] = {}
        self._pins: dict[str, int] = {}
        self._replaced: set[str] = set()
        self._removals = Removals()

    def run(self) -> VerifyReport:
        """Check every object; later checks build on what earlier ones read."""
        self._check_each(INDEX_PREFIX, self._check_index, suffix=".parquet")
        self._check_each(INDEX_PREFIX, self._check_directory, suffix=".keys")
        self._check_log()
        self._check_each(HISTORY_PREFIX, self._check_history)
        self._check_each(CHECKPOINT_PREFIX, self._check_checkpoint)
        self._check_pins()
        for digest in sorted((self._named_indexes.keys() & self._indexes.keys()) - self._replaced):
            for row in self._indexes[digest]:
                if self._is_visible(row, digest):
                    self._visible.setdefault(row.version, row)
        self._check_each(SNAPSHOT_PREFIX, self._check_snapshot_rows, suffix=".parquet")
        self._check_each(SNAPSHOT_PREFIX, self._check_snapshot, suffix=".json")
        self._check_each(TAG_PREFIX, self._check_ref)
        self._check_each(HEAD_PREFIX, self._check_ref)
        self._check_each(BUILD_PREFIX, self._check_lease, suffix=".json")
        self._check_each(BUILD_PREFIX, self._check_part, suffix=".parquet")
        unreferenced = self._check_packs()
        return VerifyReport(
            full=self._full,
            objects=len(self._sizes),
            bytes_read=self._read,
            commits=len(self._entries),
            elements=len(self._visible),
            snapshots=sum(self._is_snapshot(key) for key in self._sizes),
            unreferenced_packs=unreferenced,
            findings=tuple(self._findings()),
        )

    def _check_each(self, prefix: str, check: Callable[[str], None], *, suffix: str = "") -> None:
        """Run a check over the objects under a prefix; what it raises about the content becomes a finding."""
        for key in [key for key in self._sizes if key.startswith(prefix) and key.endswith(suffix)]:
            try:
                check(key)
            except (IntegrityError, KeyMissing) as error:
                self._add(key, str(error), partial(self._rows_behind, key))
            self._tick()

    def _tick(self) -> None:
        self._done += 1
        self._progress(self._done, len(self._sizes), findings=len(self._found), bytes_read=self._read)

    def _add(self, key: str, problem: str, touched: Callable[[], Iterable[Row]] = tuple) -> None:
        self._found.append((key, problem, touched))

    def _get(self, key: str) -> bytes:
        data = self._backend.read(key)
        self._read += len(data)
        return data

    def _table(self, key: str, *, holds: str) -> tuple[list[Row], dict[str, Any]]:
        digest = key.rpartition("/")[2].removesuffix(".parquet")
        table, metadata = decode_table(check_digest(self._get(key), digest, key, holds=holds), key)
        return rows_of(table), metadata

    def _check_index(self, key: str) -> None:
        rows, metadata = self._table(key, holds="index of a commit")
        self._pack_sizes.update(metadata["packs"])
        self._indexes[key.removeprefix(INDEX_PREFIX).removesuffix(".parquet")] = rows
        self._commit_of.update((row.version, row.commit) for row in rows if row.commit)
        self._check_rows(key, rows)

    def _check_rows(self, key: str, rows: list[Row]) -> None:
        wrong = [row for row in rows if not row.is_authentic()]
        if wrong:
            self._add(
                key, f"{key} describes {wrong[0].name} in a way that its version denies", partial(list, wrong)
            )

    def _check_log(self) -> None:
        keys = [key for key in self._sizes if is_entry(key)]
        previous: str | None = None
        try:
            data = self._get(FORMAT_KEY)
            unseal(data, FORMAT_KEY)
            previous = sha256(data)
        except (IntegrityError, KeyMissing) as error:
            self._add(FORMAT_KEY, str(error))
        self._tick()
        for number, key in enumerate(sorted(keys), start=1):
            try:
                if key != log_key(number):
                    self._add(log_key(number), f"{log_key(number)} is missing: {key} follows; {RESTORE}")
                    return
                data = self._get(key)
                claimed = unseal(data, key, {"previous": str})["previous"]
                before = Commit(number - 1, claimed if previous is None else previous, "", "", "", "")
                commit = decode_commit(data, previous=before)
                self._entries[number] = data
                previous = commit.digest
                self._check_entry(commit)
            except IntegrityError as error:
                previous = None  # what the next entry names can no longer be compared
                self._add(key, str(error), partial(self._rows_of_commit, number))
            self._tick()

    def _check_entry(self, commit: Commit) -> None:
        number = commit.sequence
        removal = read_removal(self._backend, commit.removal) if commit.removal else None
        self._removals = self._removals.after(commit, removal)
        self._replaced.update(commit.replaces)
        for digest in commit.indexes:
            self._named_indexes[digest] = number
            if index_key(digest) not in self._sizes and self._backend.info(index_key(digest)) is not None:
                self._check_index(index_key(digest))
            self._commit_of.update((row.version, number) for row in self._indexes.get(digest, ()))
            self._check_exists(
                index_key(digest), f"the index of commit {number}", partial(self._rows_of_commit, number)
            )
        if commit.snapshot:
            self._pins[commit.snapshot] = number

    def _check_pins(self) -> None:
        """Check that what was pinned and not collected since is there."""
        for snapshot, number in self._pins.items():
            if snapshot not in self._removals.gone:
                self._check_exists(snapshot_key(snapshot), f"the snapshot that commit {number} pinned")

    def _is_visible(self, row: Row, digest: str) -> bool:
        """Tell whether a row of the index `digest` was not collected since its commit."""
        return not self._removals.is_dead(row.pack, row.commit or self._named_indexes[digest])

    def _check_exists(self, key: str, what: str, touched: Callable[[], Iterable[Row]] = tuple) -> None:
        # What was written since the listing is no damage: look again before saying so.
        if key not in self._sizes and self._backend.info(key) is None:
            self._add(key, f"{key}, {what}, is missing; {RESTORE}", touched)

    def _check_directory(self, key: str) -> None:
        index = key.removeprefix(INDEX_PREFIX).removesuffix(".keys")
        check_directory(self._get(key), index)

    def _check_history(self, key: str) -> None:
        digest = key.removeprefix(HISTORY_PREFIX).removesuffix(".parquet")
        check_digest(self._get(key), digest, key, holds="block of log entries")

    def _check_checkpoint(self, key: str) -> None:
        data = self._get(key)
        if not key.endswith(".json"):  # of an earlier version; nobody reads it any more
            digest = key.removesuffix(".parquet").rpartition("-")[2]
            check_digest(data, digest, key, holds="log checkpoint")
            return
        checkpoint = decode_checkpoint(data, key)
        for block in checkpoint.history:
            self._check_exists(history_key(block.digest), f"a block of log entries that {key} names")
        entry = self._entries.get(checkpoint.sequence)
        if entry is not None and sha256(entry) != checkpoint.tip:
            self._add(key, f"{key} differs from the log at commit {checkpoint.sequence}; delete that object")
        for segment in checkpoint.segments:
            self._named_indexes.setdefault(segment.index, 0)
            self._check_exists(index_key(segment.index), f"an index that {key} names")

    def _check_snapshot_rows(self, key: str) -> None:
        rows, _ = self._table(key, holds="rows of a snapshot")
        self._pinned[key.removeprefix(SNAPSHOT_PREFIX).removesuffix(".parquet")] = rows
        for row in rows:
            self._commit_of.setdefault(row.version, row.commit)
        self._check_rows(key, rows)

    def _check_snapshot(self, key: str) -> None:
        identity = key.removeprefix(SNAPSHOT_PREFIX).removesuffix(".json")
        record = unseal(self._get(key), key)
        if identity in self._removals.gone:
            return  # being deleted, or left of a pin that a removal overtook: nobody may rely on it
        rows = self._pinned.get(record["rows"])
        if rows is None:
            where = snapshot_rows_key(record["rows"])
            raise IntegrityError(f"{where}, the rows of {key}, is missing or damaged; {RESTORE}")
        self._pinned[identity] = rows
        if not identity == record["id"] == snapshot_id((row.name, row.version) for row in rows):
            self._add(
                key,
                f"the rows of snapshot {identity[:12]} do not make its id; {RESTORE}",
                partial(list, rows),
            )
        unknown = [row for row in rows if row.version not in self._visible]
        if unknown:
            what = f"snapshot {identity[:12]} holds {unknown[0].name}, which no commit published"
            self._add(key, f"{what}; {RESTORE}", partial(list, unknown))

    def _check_ref(self, key: str) -> None:
        snapshot = unseal(self._get(key), key)["snapshot"]
        self._check_exists(snapshot_key(snapshot), f"the snapshot that {key} names")

    def _check_lease(self, key: str) -> None:
        unseal(self._get(key), key)

    def _check_part(self, key: str) -> None:
        self._table(key, holds="part of a build")

    def _check_packs(self) -> int:
        """Check the packs of all visible rows and, if `full`, the bytes of all packs; count the others."""
        members: dict[str, list[Row]] = defaultdict(list)
        for row in self._visible.values():
            members[row.pack].append(row)
        for digest, rows in members.items():
            key, size = pack_key(digest), self._pack_sizes.get(digest)
            self._check_exists(key, f"which holds {len(rows)} elements", partial(list, rows))
            if key in self._sizes and size is not None and self._sizes[key] != size:
                problem = f"{key} has {self._sizes[key]} bytes instead of {size}; {RESTORE}"
                self._add(key, problem, partial(list, rows))
        unreferenced = 0
        for key in [key for key in self._sizes if key.startswith(PACK_PREFIX)]:
            digest = key.rpartition("/")[2]
            unreferenced += digest not in members
            if self._full:
                self._check_pack(key, digest, members[digest])
            self._tick()
        return unreferenced

    def _check_pack(self, key: str, digest: str, rows: list[Row]) -> None:
        self._read += self._sizes[key]
        if not pack_is_intact(self._backend, digest, self._sizes[key]):
            damaged = damaged_rows(self._backend, rows)
            what = f"{len(damaged)} of {len(rows)} payloads" if damaged else "its framing, but no payload"
            self._add(key, f"{key} is damaged: {what}; {RESTORE}", partial(list, damaged))

    def _rows_of_commit(self, number: int) -> list[Row]:
        """Return the rows that commit `number` made visible, as far as any intact file still tells."""
        known = {
            row.version: row for rows in [*self._indexes.values(), *self._pinned.values()] for row in rows
        }
        rows = [row for version, row in known.items() if self._commit_of.get(version) == number]
        return rows or [row for version, row in known.items() if not self._commit_of.get(version)]

    def _rows_behind(self, key: str) -> list[Row]:
        """Return the rows that an unreadable index held: those pinned that no intact index has."""
        if not key.startswith(INDEX_PREFIX):
            return []
        pinned = {row.version: row for rows in self._pinned.values() for row in rows}
        return [row for version, row in pinned.items() if version not in self._visible]

    def _is_snapshot(self, key: str) -> bool:
        return key.startswith(SNAPSHOT_PREFIX) and key.endswith(".json")

    def _findings(self) -> Iterable[Finding]:
        holders: dict[str, set[str]] = defaultdict(set)
        for identity, rows in self._pinned.items():
            if snapshot_key(identity) in self._sizes:
                for row in rows:
                    holders[row.version].add(identity)
        replaced = {index_key(digest) for digest in self._replaced}
        for key, problem, touched in self._found:
            if key in replaced:
                continue
            rows = list(touched())
            snapshots = {holder for row in rows for holder in holders[row.version]}
            if self._is_snapshot(key):
                snapshots.add(key.removeprefix(SNAPSHOT_PREFIX).removesuffix(".json"))
            elements = tuple(sorted({str(row.ref) for row in rows}))
            yield Finding(key, problem, elements, tuple(sorted(snapshots)))
