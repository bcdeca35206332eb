"""Snapshots made again: head records and rows files, proven by the id that the rows make.

A head follows from an intact rows file. The rows of a lost one are found in a copy, in those row groups of
the damaged file that are intact, and by trying the set that people pin most: the newest version of every
name at that time.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Collection, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from store.backend import Backend
from store.errors import CellarError, IntegrityError
from store.format import (
    check_digest,
    index_key,
    seal,
    sha256,
    snapshot_key,
    snapshot_rows_key,
)
from store.region import Region
from store.repair.former import SNAPSHOT_GROUP_ROWS, encode_former
from store.repair.report import Repaired
from store.rows import SCHEMA, decode_table, encode_described
from store.snapshot_head import IdDigest, decode_head, footer_of, group_rows
from store.sparse import SparseTable
from store.verify.inspection import Inspection
from store.verify.pinned import RowsFile, describe_rows


def repair_snapshots(
    inspection: Inspection, hurt: Collection[str], source: Backend | None
) -> Iterator[Repaired]:
    """Make again what is damaged or missing of the snapshots that the log pinned."""
    heads = inspection.snapshots.heads
    for identity, number in sorted(inspection.history.pinned.items()):
        if not {snapshot_key(identity), snapshot_rows_key(heads.get(identity, ""))}.isdisjoint(hurt):
            yield from _Snapshot(inspection, identity, number, source).repair()


class _Snapshot:
    """One snapshot, its intact rows file if there is one, and its head record if that is intact."""

    def __init__(self, inspection: Inspection, identity: str, number: int, source: Backend | None) -> None:
        self._inspection = inspection
        self._backend = inspection.survey.backend
        self._identity = identity
        self._number = number
        self._source = source
        self._file = inspection.snapshots.rows_of(identity)
        self._head = self._intact_head()

    def repair(self) -> Iterator[Repaired]:
        """Make again the rows file if it is lost, and the head if that is or has to name other rows."""
        if self._file is None:
            for table, where in self._candidates():
                made = self._rows_file(table)
                if made is not None:
                    key = snapshot_rows_key(sha256(made))
                    self._backend.put(key, made)
                    self._file = describe_rows(made, key)
                    yield Repaired(key, f"made again from {where}")
                    break
        if self._file is not None and not self._is_right(self._file):
            key = snapshot_key(self._identity)
            self._backend.put(key, self._made_head(self._file))
            yield Repaired(key, "made again from its rows")

    def _is_right(self, file: RowsFile) -> bool:
        """Whether the head says of the rows what they are."""
        right = {**file.record, "rows": file.digest}
        return self._head is not None and all(self._head[name] == value for name, value in right.items())

    def _intact_head(self) -> dict[str, Any] | None:
        try:
            return decode_head(self._backend.read(snapshot_key(self._identity)), self._identity)
        except CellarError:
            return None

    def _made_head(self, file: RowsFile) -> bytes:
        data = self._backend.read(snapshot_rows_key(file.digest))
        footer = base64.b64encode(zlib.compress(data[file.record["footer"][0] :], 9)).decode()
        return seal({**file.record, "footer_zlib": footer, "id": self._identity, "rows": file.digest})

    def _rows_file(self, table: pa.Table) -> bytes | None:
        """Return the rows file of `table` if its rows make the id: that which the head names, if possible."""
        identity = IdDigest()
        identity.update(table)
        if identity.id() != self._identity:
            return None
        metadata = {"snapshot": True}
        present = encode_described(table, metadata, group_size=group_rows(len(table)))
        for data in (present, encode_former(table, metadata, group_size=SNAPSHOT_GROUP_ROWS)):
            if self._head is not None and sha256(data) == self._head["rows"]:
                return data
        return present

    def _candidates(self) -> Iterator[tuple[pa.Table, str]]:
        """Yield tables, sorted by name, that may be the rows, and where they are from."""
        if self._source is not None:
            copied = self._copied(self._source)
            if copied is not None:
                yield copied, f"a copy in {self._source.url}"
        newest = self._newest()
        if self._head is not None:
            yield self._pieced(self._head, newest), "intact row groups and the index"
            kinds = pa.array(sorted(self._head["kinds"]), pa.string())
            newest = newest.filter(pc.is_in(newest["kind"], value_set=kinds))
        yield newest, "the newest versions at that time"

    def _copied(self, source: Backend) -> pa.Table | None:
        try:
            head = decode_head(source.read(snapshot_key(self._identity)), self._identity)
            key = snapshot_rows_key(head["rows"])
            data = check_digest(source.read(key), head["rows"], key, holds="rows of a snapshot")
            return decode_table(data, key)[0]
        except CellarError:  # it has no such snapshot, or not intact either
            return None

    def _pieced(self, head: dict[str, Any], newest: pa.Table) -> pa.Table:
        """Return the row groups that are intact, and newest versions in the place of the others."""
        groups = [Region(*group[2:]) for group in head["groups"]]
        stored = SparseTable(
            self._backend,
            snapshot_rows_key(head["rows"]),
            groups,
            Region(*head["footer"]),
            footer_bytes=footer_of(head),
        )
        tables = [SCHEMA.empty_table()]
        for number, (first, last, *_) in enumerate(head["groups"]):
            try:
                tables += stored.read([number])
            except IntegrityError:
                names = newest["name"]
                between = pc.and_(pc.greater_equal(names, first), pc.less_equal(names, last))
                tables.append(newest.filter(between))
        return pa.concat_tables([table.replace_schema_metadata(None) for table in tables])

    def _newest(self) -> pa.Table:
        """Return the newest row of every name before the snapshot was pinned, sorted by name."""
        inspection = self._inspection
        tables = [SCHEMA.empty_table()]
        for digest in inspection.tables.needed():
            if digest in inspection.tables.intact:
                data = inspection.survey.read(index_key(digest))
                for table in inspection.tables.living(digest, data):
                    rows = table.filter(pc.less(table["commit"], self._number))
                    tables.append(rows.replace_schema_metadata(None))
        found = pa.concat_tables(tables)
        keys = [("name", "ascending"), ("commit", "ascending"), ("version", "ascending")]
        found = found.take(pc.sort_indices(found, sort_keys=keys))
        last = {name: position for position, name in enumerate(found["name"].to_pylist())}
        return found.take(pa.array(sorted(last.values()), pa.int64()))
