"""Snapshots: exact pinned sets of versions, read lazily.

The id of a snapshot is the digest of its sorted (name, version) list, so equal sets have equal ids wherever
and however they are stored. Opening one reads its head record; reading one element of a large snapshot
takes three requests more: footer, one row group, one payload.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from store.backend import Backend
from store.errors import ElementNotFound, IntegrityError, KeyMissing, SnapshotNotFound
from store.fetch import read_payload, stream_payloads
from store.format import (
    RESTORE,
    canonical_json,
    is_digest,
    seal,
    sha256,
    snapshot_key,
    snapshot_rows_key,
    unseal,
)
from store.rows import Row, encode_rows, rows_of
from store.sparse import Region, SparseTable, regions_of

GROUP_ROWS = 1024
"""Rows per row group: what a reader of one element has to fetch."""


_FIELDS: dict[str, type] = {
    "bytes": int,
    "count": int,
    "footer": list,
    "groups": list,
    "id": str,
    "kinds": dict,
    "rows": str,
}


@dataclass(frozen=True, slots=True)
class _Group:
    first: str
    last: str
    region: Region


def snapshot_id(pairs: Iterable[tuple[str, str]]) -> str:
    """Return the id of the set of (full name, version) `pairs`."""
    return sha256(canonical_json(sorted([name, version] for name, version in pairs)))


class Snapshot:
    """A pinned set. Obtain one from `Store.pin` or `Store.snapshot`; safe to share between threads."""

    def __init__(self, backend: Backend, record: dict[str, Any]) -> None:
        self._backend = backend
        self._lock = threading.Lock()
        self._kinds: dict[str, int] = record["kinds"]
        self._groups = [_Group(first, last, Region(*region)) for first, last, *region in record["groups"]]
        self._table = SparseTable(
            backend,
            snapshot_rows_key(record["rows"]),
            [group.region for group in self._groups],
            Region(*record["footer"]),
        )
        self._loaded: dict[int, list[Row]] = {}
        self.id: str = record["id"]
        self.count: int = record["count"]
        self.bytes: int = record["bytes"]

    def __repr__(self) -> str:
        return f"Snapshot({self.id[:12]}, {self.count} elements, {self.bytes} bytes)"

    @property
    def kinds(self) -> dict[str, int]:
        """Number of elements by kind."""
        return dict(self._kinds)

    def rows(self, kind: str | None = None) -> list[Row]:
        """Return the rows of one kind, or all, sorted by name."""
        first, end = (f"{kind}/", f"{kind}0") if kind is not None else ("", "\U0010ffff")  # "0" follows "/"
        wanted = [n for n, group in enumerate(self._groups) if group.last >= first and group.first < end]
        return [row for row in self._load(wanted) if kind is None or row.kind == kind]

    def get(self, full_name: str) -> Row:
        """Return the row of `kind/name`; raises `ElementNotFound` if the snapshot does not hold it."""
        number = bisect_right(self._groups, full_name, key=lambda group: group.first) - 1
        if number >= 0:
            for row in self._load([number]):
                if row.name == full_name:
                    return row
        raise ElementNotFound(
            f"snapshot {self.id[:12]} holds no element {full_name!r}; list it to see what it holds"
        )

    def one(self, kind: str) -> Row:
        """Return the only row of a kind; raises `ElementNotFound` if there is none or more than one."""
        count = self._kinds.get(kind, 0)
        if count != 1:
            raise ElementNotFound(
                f"snapshot {self.id[:12]} holds {count} elements of kind {kind!r} where exactly one is "
                "needed; name the one to use or pin another set"
            )
        return self.rows(kind)[0]

    def read(self, what: Row | str) -> bytes:
        """Return the payload of a row or of `kind/name`, checked against its SHA-256."""
        return read_payload(self._backend, what if isinstance(what, Row) else self.get(what))

    def stream(self, rows: Iterable[Row] | None = None) -> Iterator[tuple[Row, bytes]]:
        """Yield rows (default: all) with their checked payloads in pack order, in bounded memory."""
        yield from stream_payloads(self._backend, self.rows() if rows is None else rows)

    def _load(self, numbers: Sequence[int]) -> list[Row]:
        with self._lock:
            missing = [number for number in numbers if number not in self._loaded]
            if missing:
                rows = rows_of(self._table.read(missing))
                bounds = [self._groups[number].last for number in missing]
                starts = [0, *(bisect_right(rows, last, key=lambda row: row.name) for last in bounds)]
                groups = [rows[start:end] for start, end in pairwise(starts)]
                whole = starts[-1] == len(rows) and all(groups)
                self._loaded.update(zip(missing, groups, strict=True))
                if not whole or not self._makes_its_id():
                    self._loaded.clear()
                    raise IntegrityError(
                        f"the rows of snapshot {self.id[:12]} are not the set that its id names; {RESTORE}"
                    )
            return [row for number in numbers for row in self._loaded[number]]

    def _makes_its_id(self) -> bool:
        """False if all rows are known and their digest is not the id; a part of them proves nothing."""
        if len(self._loaded) < len(self._groups):
            return True
        rows = (row for group in self._loaded.values() for row in group)
        return snapshot_id((row.name, row.version) for row in rows) == self.id


def encode_snapshot(rows: Sequence[Row]) -> tuple[bytes, bytes]:
    """Return the head record and the rows file of the snapshot of `rows`, one version per name."""
    ordered = sorted(rows, key=lambda row: row.name)
    data = encode_rows(ordered, {"snapshot": True}, group_size=GROUP_ROWS)
    regions, footer = regions_of(data)
    kinds: dict[str, int] = {}
    for row in ordered:
        kinds[row.kind] = kinds.get(row.kind, 0) + 1
    groups = []
    for number, region in enumerate(regions):
        members = ordered[number * GROUP_ROWS : (number + 1) * GROUP_ROWS]
        groups.append([members[0].name, members[-1].name, region.offset, region.length, region.digest])
    record = {
        "bytes": sum(row.length for row in ordered),
        "count": len(ordered),
        "footer": [footer.offset, footer.length, footer.digest],
        "groups": groups,
        "id": snapshot_id((row.name, row.version) for row in ordered),
        "kinds": kinds,
        "rows": sha256(data),
    }
    return seal(record), data


def open_snapshot(backend: Backend, identity: str) -> Snapshot:
    """Open a snapshot by its full id; raises `SnapshotNotFound` or `IntegrityError`."""
    return Snapshot(backend, read_head(backend, identity))


def read_head(backend: Backend, identity: str) -> dict[str, Any]:
    """Read and check the head record of a snapshot."""
    key = snapshot_key(identity)
    try:
        record = unseal(backend.read(key), key, _FIELDS)
    except KeyMissing as error:
        raise SnapshotNotFound(
            f"no snapshot {identity[:12]} in {backend.url}; `cellar snapshot ls` shows those that exist"
        ) from error
    if record["id"] != identity:
        raise IntegrityError(f"{key} holds snapshot {record['id'][:12]} instead; {RESTORE}")
    regions = [record["footer"], *(group[2:] for group in record["groups"] if isinstance(group, list))]
    names = [name for group in record["groups"] if isinstance(group, list) for name in group[:2]]
    if (
        not is_digest(record["rows"])
        or len(regions) != len(record["groups"]) + 1
        or len(names) != 2 * len(record["groups"])
        or not all(isinstance(name, str) for name in names)
        or not all([type(part) for part in region] == [int, int, str] for region in regions)
        or not all(type(count) is int for count in record["kinds"].values())
    ):
        raise IntegrityError(f"{key} does not say where its rows are; {RESTORE}")
    return record
