"""Verification: log chain, checkpoints, indexes, snapshots, refs, builds, and packs by size or by content.

Everything is read from the storage itself, past any cache, and a finding never stops the search. Without
`full`, packs are checked by size only.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Protocol

from store.backend import Backend
from store.checkpoint import BLOCK, decode_checkpoint
from store.errors import IntegrityError, KeyMissing
from store.format import (
    BUILD_PREFIX,
    CHECKPOINT_PREFIX,
    FORMAT_KEY,
    HEAD_PREFIX,
    INDEX_PREFIX,
    LOG_PREFIX,
    PACK_PREFIX,
    SNAPSHOT_PREFIX,
    TAG_PREFIX,
    check_digest,
    index_key,
    log_key,
    pack_key,
    sha256,
    snapshot_key,
    snapshot_rows_key,
    unseal,
)
from store.report import Finding, VerifyReport
from store.rows import Row, decode_table, rows_of
from store.scrub import damaged_rows, pack_is_intact
from store.snapshot import snapshot_id

__all__ = ["Finding", "Progress", "VerifyReport", "silent", "verify"]


class Progress(Protocol):
    """Called now and then with the number of objects checked and to check, and running figures."""

    def __call__(self, done: int, total: int, **figures: float) -> None: ...


def silent(done: int, total: int, **figures: float) -> None:
    """Report nothing."""


def verify(backend: Backend, *, full: bool, progress: Progress = silent) -> VerifyReport:
    """Check the whole store and return what is wrong with it.

    Raises `StorageUnavailable` if the storage stops answering; damage is reported, never raised.
    """
    run = _Verification(backend, full=full, progress=progress)
    for prefix in (
        INDEX_PREFIX,
        SNAPSHOT_PREFIX,
        LOG_PREFIX,
        BUILD_PREFIX,
        TAG_PREFIX,
        HEAD_PREFIX,
        PACK_PREFIX,
    ):
        run.check(prefix)
    return run.report()


class _Verification:
    """State of one verification; the checks run in an order in which later ones know what is touched."""

    def __init__(self, backend: Backend, *, full: bool, progress: Progress) -> None:
        self._backend = backend
        self._full = full
        self._progress = progress
        self._sizes = {item.key: item.size for item in backend.list("")}
        self._findings: list[Finding] = []
        self._done = 0
        self._read = 0
        self._rows: dict[str, Row] = {}
        self._pack_sizes: dict[str, int] = {}
        self._holders: dict[str, set[str]] = defaultdict(set)
        self._snapshots: set[str] = set()
        self._entries: dict[int, bytes] = {}
        self._named_indexes: dict[str, int] = {}
        self._origin = ""
        self._checked(FORMAT_KEY, self._check_format)

    def check(self, prefix: str) -> None:
        """Check every object under `prefix`."""
        keys = [key for key in self._sizes if key.startswith(prefix)]
        if prefix == INDEX_PREFIX:
            for key in keys:
                self._checked(key, self._check_index)
        elif prefix == SNAPSHOT_PREFIX:
            for key in keys:
                self._checked(
                    key, self._check_snapshot if key.endswith(".json") else self._check_snapshot_rows
                )
        elif prefix == LOG_PREFIX:
            checkpoints = [key for key in keys if key.startswith(CHECKPOINT_PREFIX)]
            self._check_log([key for key in keys if key not in set(checkpoints)])
            for key in checkpoints:
                self._checked(key, self._check_checkpoint)
        elif prefix == BUILD_PREFIX:
            for key in keys:
                self._checked(key, self._check_lease if key.endswith("/lease.json") else self._check_part)
        elif prefix == PACK_PREFIX:
            self._check_packs(keys)
        else:
            for key in keys:
                self._checked(key, self._check_ref)

    def report(self) -> VerifyReport:
        """Return the result."""
        return VerifyReport(
            full=self._full,
            objects=len(self._sizes),
            bytes_read=self._read,
            commits=len(self._entries),
            elements=len(self._rows),
            snapshots=len(self._snapshots),
            unreferenced_packs=sum(key.startswith(PACK_PREFIX) for key in self._sizes)
            - len(self._present_packs()),
            findings=tuple(self._findings),
        )

    def _checked(self, key: str, check: Any) -> None:
        """Run one check; what it raises about the content becomes a finding."""
        try:
            check(key)
        except IntegrityError as error:
            self._add(key, str(error))
        except KeyMissing:
            self._add(key, f"{key} is missing")
        self._tick()

    def _tick(self) -> None:
        self._done += 1
        self._progress(self._done, len(self._sizes), findings=len(self._findings), bytes_read=self._read)

    def _add(self, key: str, problem: str, rows: Iterable[Row] = ()) -> None:
        touched = list(rows)
        snapshots = {holder for row in touched for holder in self._holders.get(row.version, ())}
        if key.startswith(SNAPSHOT_PREFIX) and key.endswith(".json"):
            snapshots.add(key.removeprefix(SNAPSHOT_PREFIX).removesuffix(".json"))
        elements = tuple(sorted({str(row.ref) for row in touched}))
        self._findings.append(Finding(key, problem, elements, tuple(sorted(snapshots))))

    def _get(self, key: str) -> bytes:
        data = self._backend.read(key)
        self._read += len(data)
        return data

    def _check_format(self, key: str) -> None:
        data = self._get(key)
        unseal(data, key)
        self._origin = sha256(data)

    def _check_index(self, key: str) -> None:
        digest = key.removeprefix(INDEX_PREFIX).removesuffix(".parquet")
        table, metadata = decode_table(
            check_digest(self._get(key), digest, key, holds="index of a commit"), key
        )
        self._pack_sizes.update(metadata["packs"])
        for row in rows_of(table):
            self._check_row(key, row)
            known = self._rows.get(row.version)
            if known is None or not known.commit:
                self._rows[row.version] = row

    def _check_row(self, key: str, row: Row) -> None:
        if not row.is_authentic():
            self._add(
                key, f"{key} describes {row.name}@{row.version[:12]} in a way that its version denies", [row]
            )

    def _check_snapshot(self, key: str) -> None:
        identity = key.removeprefix(SNAPSHOT_PREFIX).removesuffix(".json")
        self._snapshots.add(identity)
        record = unseal(self._get(key), key)
        rows_key = snapshot_rows_key(record["rows"])
        try:
            data = check_digest(self._get(rows_key), record["rows"], rows_key, holds="rows of a snapshot")
        except (IntegrityError, KeyMissing) as error:
            self._add(key, f"the rows of snapshot {identity[:12]} cannot be read: {error}")
            return
        rows = rows_of(decode_table(data, rows_key)[0])
        for row in rows:
            self._holders[row.version].add(identity)
            self._check_row(rows_key, row)
            if row.version not in self._rows:
                self._add(key, f"snapshot {identity[:12]} holds {row.name}, which no index names", [row])
                self._rows[row.version] = row
        if identity != record["id"] or identity != snapshot_id((row.name, row.version) for row in rows):
            self._add(key, f"the rows of snapshot {identity[:12]} do not make its id", rows)

    def _check_snapshot_rows(self, key: str) -> None:
        digest = key.removeprefix(SNAPSHOT_PREFIX).removesuffix(".parquet")
        check_digest(self._get(key), digest, key, holds="rows of a snapshot")

    def _check_log(self, keys: list[str]) -> None:
        numbers = {int(key.removeprefix(LOG_PREFIX).removesuffix(".json")): key for key in keys}
        previous: str | None = self._origin
        for number in range(1, max(numbers, default=0) + 1):
            key = log_key(number)
            try:
                data = self._get(key)
                record = unseal(data, key)
                if record["sequence"] != number or (previous is not None and record["previous"] != previous):
                    raise IntegrityError(f"{key} does not follow the entry before it")
                self._entries[number] = data
                previous = sha256(data)
                self._check_entry(key, number, record)
            except (IntegrityError, KeyMissing) as error:
                previous = None  # what the next entry names can no longer be compared
                self._add(key, str(error), [row for row in self._rows.values() if row.commit == number])
            self._tick()

    def _check_entry(self, key: str, number: int, record: dict[str, Any]) -> None:
        for digest in record["indexes"]:
            self._named_indexes[digest] = number
            if index_key(digest) not in self._sizes:
                touched = [row for row in self._rows.values() if row.commit == number]
                self._add(index_key(digest), f"the index of commit {number} is missing", touched)
        if record["snapshot"] and snapshot_key(record["snapshot"]) not in self._sizes:
            self._add(
                snapshot_key(record["snapshot"]), f"the snapshot that commit {number} pinned is missing"
            )

    def _check_checkpoint(self, key: str) -> None:
        checkpoint = decode_checkpoint(self._get(key), key)
        known = [self._entries.get(number) for number in range(1, checkpoint.sequence + 1)]
        if any(mine not in (None, theirs) for mine, theirs in zip(known, checkpoint.entries, strict=True)):
            self._add(key, f"{key} differs from the log; delete it and let the next commit write it again")
        for block, digest in enumerate(checkpoint.merged):
            if digest and index_key(digest) not in self._sizes:
                self._add(
                    index_key(digest), f"the merged index of commits up to {(block + 1) * BLOCK} is missing"
                )

    def _check_lease(self, key: str) -> None:
        unseal(self._get(key), key)

    def _check_part(self, key: str) -> None:
        digest = key.rpartition("/")[2].removesuffix(".parquet")
        decode_table(check_digest(self._get(key), digest, key, holds="part of a build"), key)

    def _check_ref(self, key: str) -> None:
        snapshot = unseal(self._get(key), key)["snapshot"]
        if snapshot not in self._snapshots:
            self._add(key, f"{key} names snapshot {snapshot[:12]}, which is missing")

    def _present_packs(self) -> set[str]:
        return {key for key in map(pack_key, {row.pack for row in self._rows.values()}) if key in self._sizes}

    def _check_packs(self, keys: list[str]) -> None:
        members: dict[str, list[Row]] = defaultdict(list)
        for row in self._rows.values():
            members[row.pack].append(row)
        for digest, rows in members.items():
            key = pack_key(digest)
            size = self._sizes.get(key)
            if size is None:
                self._add(key, f"{key} is missing", rows)
            elif size != self._pack_sizes.get(digest, size):
                self._add(key, f"{key} has {size} bytes instead of {self._pack_sizes[digest]}", rows)
        for key in keys:
            if self._full:
                digest = key.rpartition("/")[2]
                self._read += self._sizes[key]
                if not pack_is_intact(self._backend, digest, self._sizes[key]):
                    rows = damaged_rows(self._backend, members[digest])
                    what = (
                        f"{len(rows)} of {len(members[digest])} payloads"
                        if rows
                        else "no payload, but its framing"
                    )
                    self._add(key, f"{key} is damaged: {what}", rows)
            self._tick()
