"""Snapshots: exact pinned sets of versions, read lazily.

The id of a snapshot is the digest of its sorted (name, version) list, so equal sets have equal ids wherever
and however they are stored. Opening one reads its head record; reading one element then takes two requests,
one for a row group and one for the payload. What has read all rows has proven that they are the set that the
id names; a read of one element trusts the head for that, and proves that the payload is the version's.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from store.backend import Backend
from store.errors import ElementNotFound, IntegrityError
from store.fetch import check_authentic, read_payload
from store.format import RESTORE, snapshot_rows_key
from store.region import Region
from store.rows import Row, rows_of
from store.snapshot_head import IdDigest, encode_snapshot, footer_of, read_head, snapshot_id
from store.sparse import SparseTable
from store.stream import in_pack_order, stream_payloads

__all__ = ["Snapshot", "encode_snapshot", "open_snapshot", "read_head", "snapshot_id"]

_SCAN_BYTES = 8 * 1024**2
"""Stored bytes of row groups that one request of a scan asks for."""
_KEPT_BYTES = 128 * 1024**2
"""Decoded row groups that are kept for the next lookup."""


@dataclass(frozen=True, slots=True)
class _Group:
    first: str
    last: str
    region: Region


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
            footer_bytes=footer_of(record),
        )
        self._kept: OrderedDict[int, pa.Table] = OrderedDict()
        self._proven = False
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
        if kind is None:
            return [row for table in self.scan() for row in rows_of(table)]
        first, end = f"{kind}/", f"{kind}0"  # "0" follows "/"
        wanted = [n for n, group in enumerate(self._groups) if group.last >= first and group.first < end]
        tables = (table for numbers in self._windows(wanted) for table in self._lookup(numbers))
        return [row for table in tables for row in rows_of(table.filter(pc.equal(table["kind"], kind)))]

    def get(self, full_name: str) -> Row:
        """Return the row of `kind/name`; raises `ElementNotFound` if the snapshot does not hold it."""
        number = bisect_right(self._groups, full_name, key=lambda group: group.first) - 1
        for table in self._lookup([number] if number >= 0 else []):
            position = pc.index(table["name"], full_name).as_py()
            if position >= 0:
                return check_authentic(rows_of(table, [position])[0])
        raise ElementNotFound(
            f"snapshot {self.id[:12]} holds no element {full_name!r}; `cellar snapshot show` lists what it "
            "holds"
        )

    def one(self, kind: str) -> Row:
        """Return the only row of a kind; raises `ElementNotFound` if there is none or more than one."""
        count = self._kinds.get(kind, 0)
        rows = self.rows(kind) if count == 1 else []
        if len(rows) != 1:
            raise ElementNotFound(
                f"snapshot {self.id[:12]} holds {count} elements of kind {kind!r} where exactly one is "
                "needed; name the one to use or pin another set"
            )
        return rows[0]

    def scan(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield all rows, sorted by name, as tables of the named columns (default: all), in bounded memory.

        Every row group is checked before it is yielded. Whether all of them make the snapshot's id shows at
        the end only: `IntegrityError` is raised there if they do not.
        """
        digest = IdDigest()
        for numbers in self._windows():
            for table in self._read(numbers):
                digest.update(table)
                yield table if columns is None else table.select(columns)
        self._prove(digest)

    def packs(self) -> frozenset[str]:
        """Return the digests of the packs that the snapshot's payloads lie in."""
        found: set[str] = set()
        for table in self.scan(["pack"]):
            found.update(pc.unique(table["pack"]).to_pylist())
        return frozenset(found)

    def read(self, what: Row | str) -> bytes:
        """Return the payload of a row or of `kind/name`, checked against its SHA-256."""
        return read_payload(self._backend, what if isinstance(what, Row) else self.get(what))

    def read_many(self, full_names: Iterable[str]) -> Generator[tuple[Row, bytes], None, None]:
        """Yield the elements `kind/name` with their checked payloads in pack order, as `stream` does.

        Raises `ElementNotFound` before anything is yielded if the snapshot lacks one of them.
        """
        wanted: dict[int, set[str]] = {}
        for name in full_names:
            number = bisect_right(self._groups, name, key=lambda group: group.first) - 1
            wanted.setdefault(max(number, 0), set()).add(name)
        rows: list[Row] = []
        for numbers in self._windows(sorted(wanted)):
            for number, table in zip(numbers, self._lookup(numbers), strict=True):
                names = pa.array(sorted(wanted[number]), pa.string())
                found = rows_of(table.filter(pc.is_in(table["name"], names)))
                missing = wanted[number].difference(row.name for row in found)
                if missing:
                    raise ElementNotFound(
                        f"snapshot {self.id[:12]} holds no element {min(missing)!r}; list it to see what it "
                        "holds"
                    )
                rows += found
        return self.stream(rows)

    def stream(self, rows: Iterable[Row] | None = None) -> Generator[tuple[Row, bytes], None, None]:
        """Yield rows (default: all) with their checked payloads in pack order.

        Several ranges are read ahead at a time. Without `rows`, memory is bounded whatever the size of the
        snapshot, and the whole set is proven to be the one that the id names before the first payload comes.
        Raises `IntegrityError` at the first damaged payload. Closing the iterator ends all reading.
        """
        ordered = in_pack_order(self.scan) if rows is None else iter(_sorted_by_place(rows))
        return stream_payloads(self._backend, ordered)

    def _windows(self, numbers: Sequence[int] | None = None) -> Iterator[list[int]]:
        """Cut the row groups (default: all) into pieces that are each read at once."""
        window: list[int] = []
        size = 0
        for number in range(len(self._groups)) if numbers is None else numbers:
            length = self._groups[number].region.length
            if window and size + length > _SCAN_BYTES:
                yield window
                window, size = [], 0
            window.append(number)
            size += length
        if window:
            yield window

    def _read(self, numbers: Sequence[int]) -> list[pa.Table]:
        """Read row groups; each must begin and end with the names that the head gives it."""
        tables = self._table.read(numbers)
        for number, table in zip(numbers, tables, strict=True):
            group = self._groups[number]
            if not len(table) or [table["name"][0].as_py(), table["name"][-1].as_py()] != [
                group.first,
                group.last,
            ]:
                raise self._other_set()
        return tables

    def _lookup(self, numbers: Sequence[int]) -> list[pa.Table]:
        """Return row groups, kept from earlier lookups or read now."""
        with self._lock:
            found = {number: self._kept[number] for number in numbers if number in self._kept}
        missing = [number for number in numbers if number not in found]
        found.update(zip(missing, self._read(missing), strict=True))
        if not self._proven and len(found) == len(self._groups):
            digest = IdDigest()
            for number in range(len(self._groups)):
                digest.update(found[number])
            self._prove(digest)
        with self._lock:
            self._kept.update((number, found[number]) for number in numbers)
            for number in numbers:
                self._kept.move_to_end(number)
            size = sum(table.nbytes for table in self._kept.values())
            while size > _KEPT_BYTES and len(self._kept) > 1:
                size -= self._kept.popitem(last=False)[1].nbytes
        return [found[number] for number in numbers]

    def _prove(self, digest: IdDigest) -> None:
        """Compare the id of all rows with the snapshot's; a part of the rows proves nothing."""
        if digest.id() != self.id:
            raise self._other_set()
        self._proven = True

    def _other_set(self) -> IntegrityError:
        return IntegrityError(
            f"the rows of snapshot {self.id[:12]} are not the set that its id names; {RESTORE}"
        )


def open_snapshot(backend: Backend, identity: str) -> Snapshot:
    """Open a snapshot by its full id; raises `SnapshotNotFound` or `IntegrityError`."""
    return Snapshot(backend, read_head(backend, identity))


def _sorted_by_place(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.pack, row.offset, row.name))
