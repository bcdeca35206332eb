"""Rows: where each version lies and what it is; the tables of index, part and snapshot files.

All three kinds of file are Parquet with one schema, written with fixed settings so that equal rows give
equal bytes. `provenance` and `facts` are JSON text columns; the file-level entry `cellar` of the schema
metadata is JSON too and holds what belongs to the file as a whole, such as the sizes of packs.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from store.element import Ref, record_of
from store.errors import IntegrityError
from store.format import RESTORE, canonical_json, sha256

UNCOMMITTED = 0
"""Commit number of a row that no log entry has made visible yet."""

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("kind", pa.string()),
        ("version", pa.string()),
        ("digest", pa.string()),
        ("pack", pa.string()),
        ("offset", pa.int64()),
        ("length", pa.int64()),
        ("media", pa.string()),
        ("requires", pa.list_(pa.string())),
        ("recipe", pa.string()),
        ("provenance", pa.string()),
        ("facts", pa.string()),
        ("dtype", pa.string()),
        ("shape", pa.list_(pa.int64())),
        ("commit", pa.int64()),
    ]
)
_METADATA_KEY = b"cellar"


@dataclass(frozen=True, slots=True)
class Row:
    """One version in the store.

    `name` is the full name; `offset` and `length` are the bytes of the payload inside pack `pack`; `digest`
    is the payload's SHA-256; `dtype` and `shape` describe its largest tensor; `commit` is the number of the
    log entry that made it visible.
    """

    name: str
    kind: str
    version: str
    digest: str
    pack: str
    offset: int
    length: int
    media: str
    requires: tuple[str, ...] = ()
    provenance: dict[str, Any] = field(default_factory=dict, hash=False)
    facts: dict[str, Any] = field(default_factory=dict, hash=False)
    dtype: str = ""
    shape: tuple[int, ...] = ()
    commit: int = UNCOMMITTED

    @property
    def ref(self) -> Ref:
        """Reference to exactly this version."""
        return Ref(name=self.name, version=self.version)

    @property
    def recipe(self) -> str:
        """Fingerprint of the step that made it, empty if it has none."""
        return str(self.provenance.get("recipe", ""))

    def placed(self, *, pack: str) -> Row:
        """The same row in a pack whose digest is now known."""
        return replace(self, pack=pack)

    def visible_since(self, commit: int) -> Row:
        """The same row with the number of the commit that made it visible."""
        return replace(self, commit=commit)

    def is_authentic(self) -> bool:
        """Tell whether the version is the digest of the record that the row describes."""
        record = record_of(self.name, self.media, self.digest, self.length, self.requires, self.provenance)
        return sha256(canonical_json(record)) == self.version


def encode_rows(rows: Iterable[Row], metadata: Mapping[str, Any], *, group_size: int = 4096) -> bytes:
    """Write rows, in the order given, as a Parquet file with `metadata` (JSON values) beside them."""
    columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}
    for row in rows:
        for name in (
            "name",
            "kind",
            "version",
            "digest",
            "pack",
            "offset",
            "length",
            "media",
            "recipe",
            "dtype",
        ):
            columns[name].append(getattr(row, name))
        columns["requires"].append(list(row.requires))
        columns["provenance"].append(canonical_json(row.provenance).decode())
        columns["facts"].append(canonical_json(row.facts).decode())
        columns["shape"].append(list(row.shape))
        columns["commit"].append(row.commit)
    schema = SCHEMA.with_metadata({_METADATA_KEY: canonical_json(metadata)})
    table = pa.table(columns, schema=schema)
    return encode_table(table, group_size=group_size)


def encode_table(table: pa.Table, *, group_size: int = 4096) -> bytes:
    """Write any table with the settings that all files of a store share."""
    sink = io.BytesIO()
    pq.write_table(
        table,
        sink,
        row_group_size=group_size,
        version="2.6",
        compression="zstd",
        compression_level=3,
        use_dictionary=["kind", "pack", "media", "dtype"],
        write_statistics=True,
    )
    return sink.getvalue()


def decode_table(data: bytes, key: str) -> tuple[pa.Table, dict[str, Any]]:
    """Read a file of rows and its metadata; raises `IntegrityError` naming `key` if it is not one."""
    try:
        table = read_parquet(pa.BufferReader(data))
        metadata = json.loads((table.schema.metadata or {})[_METADATA_KEY])
    except (pa.ArrowException, KeyError, ValueError) as error:
        raise IntegrityError(f"{key} is not a table of this store; {RESTORE}") from error
    if table.schema.names != SCHEMA.names:
        raise IntegrityError(f"{key} has other columns than a table of this store; {RESTORE}")
    return table, metadata


def read_parquet(source: pa.NativeFile) -> pa.Table:
    """Read a whole Parquet file on the calling thread.

    pyarrow's thread pools gain nothing on files of this size, and a short process that started them is now
    and then aborted by the C++ runtime at exit ("terminate called without an active exception").
    """
    return pq.ParquetFile(source, pre_buffer=False).read(use_threads=False)


def rows_of(
    table: pa.Table, positions: Sequence[int] | None = None, *, commit: int = UNCOMMITTED
) -> list[Row]:
    """Turn a table, or the rows at `positions`, into `Row`s; `commit` stands in where the file has none."""
    chosen = table if positions is None else table.take(pa.array(positions, pa.int64()))
    rows = []
    for entry in chosen.to_pylist():
        entry.pop("recipe")
        entry["requires"] = tuple(entry["requires"])
        entry["shape"] = tuple(entry["shape"])
        entry["provenance"] = json.loads(entry["provenance"])
        entry["facts"] = json.loads(entry["facts"])
        entry["commit"] = entry["commit"] or commit
        rows.append(Row(**entry))
    return rows
