"""Snapshots: rows files, head records, and whether both make the set that the id names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from store.errors import IntegrityError
from store.format import (
    RESTORE,
    SNAPSHOT_PREFIX,
    check_digest,
    is_digest,
    sha256,
    snapshot_key,
    snapshot_rows_key,
)
from store.rows import decode_batches
from store.snapshot_head import IdDigest, decode_head, footer_of
from store.sparse import regions_of
from store.verify.chain import History
from store.verify.survey import Survey, Suspect
from store.verify.tables import RowCheck, Tables


@dataclass(frozen=True, slots=True)
class RowsFile:
    """An intact rows file: what a head record of its rows must say, and the packs that they are in."""

    digest: str
    identity: str
    record: dict[str, Any]
    packs: frozenset[str]


@dataclass(slots=True)
class Snapshots:
    """What is stored of snapshots: intact rows files by digest, and heads as rows digests by id."""

    files: dict[str, RowsFile] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)

    def rows_of(self, identity: str) -> RowsFile | None:
        """Return the rows of a snapshot: those that its head names, or any that make its id."""
        named = self.files.get(self.heads.get(identity, ""))
        if named is not None and named.identity == identity:
            return named
        return next((file for file in self.files.values() if file.identity == identity), None)

    def packs_of(self, identities: Iterable[str]) -> set[str]:
        """Return the packs that the rows of snapshots are in."""
        found = (self.rows_of(identity) for identity in identities)
        return {pack for file in found if file is not None for pack in file.packs}

    def scan(self, survey: Survey, identity: str) -> Iterator[pa.Table]:
        """Yield the rows of a snapshot again, in small tables."""
        file = self.rows_of(identity)
        if file is not None:
            key = snapshot_rows_key(file.digest)
            yield from decode_batches(survey.read(key), key)[1]


def check_snapshots(survey: Survey, history: History, tables: Tables, rows: RowCheck) -> Snapshots:
    """Check all rows files and heads, and see that every snapshot that the log pinned is there."""
    found = Snapshots()
    hurt = history.lost | {number for digest in tables.lacking() for number in tables.numbers_of(digest)}

    def check_rows(key: str, data: bytes) -> None:
        digest = _name(key, ".parquet")
        check_digest(data, digest, key, holds="rows of a snapshot")
        reading = _Reading(data, key)
        unknown: list[str] = []
        for batch in reading:
            rows.check(batch, key)
            unknown += _unpublished(batch, tables, hurt)
        file = found.files[digest] = reading.result(digest)
        if unknown and file.identity in history.pinned:
            what = f"snapshot {file.identity[:12]} holds {unknown[0]}, which no commit published"
            survey.suspect(key, f"{what}; {RESTORE}", unknown, [file.identity])

    def check_head(key: str, data: bytes) -> None:
        identity = _name(key, ".json")
        record = decode_head(data, identity)
        footer_of(record)
        if identity in history.removals.gone:
            return  # being deleted, or left of a pin that a removal overtook: nobody may rely on it
        found.heads[identity] = record["rows"]
        file = found.files.get(record["rows"])
        if file is None:
            where = snapshot_rows_key(record["rows"])
            raise IntegrityError(f"{where}, the rows of {key}, is missing or damaged; {RESTORE}")
        if file.identity != identity:
            raise IntegrityError(f"the rows of snapshot {identity[:12]} do not make its id; {RESTORE}")
        if any(record[name] != value for name, value in file.record.items()):
            raise IntegrityError(f"{key} says other things of its rows than they are; {RESTORE}")

    survey.examine(_keys(survey, ".parquet"), check_rows)
    survey.examine(
        _keys(survey, ".json"), check_head, lambda key: Suspect(key, "", (), [_name(key, ".json")])
    )
    for identity, number in sorted(history.pinned.items()):
        key = snapshot_key(identity)
        if not survey.exists(key):
            what = f"{key}, the snapshot that commit {number} pinned, is missing; {RESTORE}"
            survey.suspect(key, what, (), [identity])
    return found


def describe_rows(data: bytes, key: str) -> RowsFile:
    """Return what the rows file `data` is; raises `IntegrityError` if it is none."""
    reading = _Reading(data, key)
    for _ in reading:
        pass
    return reading.result(sha256(data))


class _Reading:
    """Reads a rows file in small tables, and sums up what a head record says of it."""

    def __init__(self, data: bytes, key: str) -> None:
        self._batches = decode_batches(data, key)[1]
        footer = pq.read_metadata(pa.BufferReader(data))
        self._ends = list(accumulate(footer.row_group(n).num_rows for n in range(footer.num_row_groups)))
        self._regions, self._footer = regions_of(data)
        self._names: list[tuple[str, str]] = []
        self._first = ""
        self._identity = IdDigest()
        self._count = self._bytes = 0
        self._kinds: Counter[str] = Counter()
        self._packs: set[str] = set()

    def __iter__(self) -> Iterator[pa.Table]:
        for batch in self._batches:
            self._take_in(batch)
            yield batch

    def _take_in(self, batch: pa.Table) -> None:
        names = batch["name"]
        for end in self._ends[len(self._names) :]:
            start = self._ends[len(self._names) - 1] if self._names else 0
            if self._count <= start < self._count + len(batch):
                self._first = names[start - self._count].as_py()
            if end > self._count + len(batch):
                break
            self._names.append((self._first, names[end - 1 - self._count].as_py()))
        self._identity.update(batch)
        self._count += len(batch)
        self._bytes += pc.sum(batch["length"]).as_py() or 0
        self._kinds.update(batch["kind"].to_pylist())
        self._packs.update(pc.unique(batch["pack"]).to_pylist())

    def result(self, digest: str) -> RowsFile:
        """What was found, when all was read."""
        groups = [
            [first, last, region.offset, region.length, region.digest]
            for (first, last), region in zip(self._names, self._regions, strict=True)
        ]
        record = {
            "bytes": self._bytes,
            "count": self._count,
            "footer": [self._footer.offset, self._footer.length, self._footer.digest],
            "groups": groups,
            "kinds": dict(self._kinds),
        }
        return RowsFile(digest, self._identity.id(), record, frozenset(self._packs))


def _unpublished(table: pa.Table, tables: Tables, hurt: set[int]) -> list[str]:
    """Return references to rows that no intact index file has, unless the one of their commit is hurt."""
    columns = (table[name].to_pylist() for name in ("name", "version", "commit"))
    return [
        f"{name}@{version}"
        for name, version, commit in zip(*columns, strict=True)
        if not tables.holds(version) and commit not in hurt
    ]


def _keys(survey: Survey, suffix: str) -> list[str]:
    return [key for key in survey.keys(SNAPSHOT_PREFIX, suffix) if is_digest(_name(key, suffix))]


def _name(key: str, suffix: str) -> str:
    return key.removeprefix(SNAPSHOT_PREFIX).removesuffix(suffix)
