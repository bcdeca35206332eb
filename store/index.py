"""Writing index files: rows sorted by name and version, in small row groups, many with a directory.

Rows of one flow run have neighbouring names, so what is looked up together lies together.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from store.backend import Backend
from store.directory import GROUP_ROWS, Lead, encode_directory, lead_of
from store.format import canonical_json, directory_key, index_key, sha256
from store.parquet import OPTIONS
from store.rows import METADATA_KEY, SCHEMA

SMALL_ROWS = GROUP_ROWS
"""Index files of up to this many rows have no directory: reading them costs no more than reading one."""

LISTED = ["name", "version", "recipe", "pack", "commit"]
"""Columns that a directory is made from."""


@dataclass(frozen=True, slots=True)
class IndexFile:
    """An encoded index file and its directory (empty if it needs none)."""

    digest: str
    rows: int
    data: bytes
    directory: bytes

    @property
    def lead(self) -> Lead | None:
        """What a checkpoint keeps of the directory."""
        return lead_of(self.directory, self.digest) if self.directory else None


class IndexBuilder:
    """Encodes an index file from tables that come sorted by name and version; holds only what is encoded."""

    def __init__(self) -> None:
        self._sink = io.BytesIO()
        self._writer = pq.ParquetWriter(self._sink, SCHEMA, **OPTIONS)
        self._rest = SCHEMA.empty_table()
        self._listed: list[pa.Table] = []
        self.rows = 0

    def add(self, table: pa.Table) -> None:
        """Append rows."""
        table = table.replace_schema_metadata(None)
        self.rows += len(table)
        self._listed.append(table.select(LISTED))
        table = pa.concat_tables([self._rest, table])
        full = len(table) - len(table) % GROUP_ROWS
        if full:
            self._write(table.slice(0, full))
        self._rest = table.slice(full)

    def finish(self, sizes: Mapping[str, int]) -> IndexFile:
        """Return the file; `sizes` are those of all packs that its rows may be in."""
        if len(self._rest):
            self._write(self._rest)
        listed = pa.concat_tables([SCHEMA.empty_table().select(LISTED), *self._listed])
        packs = {pack: sizes[pack] for pack in sorted(pc.unique(listed["pack"]).to_pylist())}
        self._writer.add_key_value_metadata({METADATA_KEY: canonical_json({"packs": packs})})
        self._writer.close()
        data = self._sink.getvalue()
        directory = directory_of(data, listed, packs) if self.rows > SMALL_ROWS else b""
        return IndexFile(sha256(data), self.rows, data, directory)

    def _write(self, table: pa.Table) -> None:
        # Combined, because how the rows came in pieces would show in the bytes.
        self._writer.write_table(table.combine_chunks(), row_group_size=GROUP_ROWS)


def encode_index(table: pa.Table, sizes: Mapping[str, int]) -> IndexFile:
    """Encode one table that is sorted by name and version."""
    builder = IndexBuilder()
    builder.add(table)
    return builder.finish(sizes)


def directory_of(data: bytes, listed: pa.Table, sizes: Mapping[str, int]) -> bytes:
    """Return the directory of the index file `data`, of whose rows `listed` has the columns `LISTED`."""
    newest = newest_commits(listed)
    return encode_directory(data, listed, {pack: (sizes[pack], newest[pack]) for pack in sorted(newest)})


def write_index(backend: Backend, index: IndexFile) -> None:
    """Write an index file and its directory."""
    backend.put(index_key(index.digest), index.data)
    if index.directory:
        backend.put(directory_key(index.digest), index.directory)


def newest_commits(table: pa.Table) -> dict[str, int]:
    """Return, for each pack that rows of `table` are in, the newest commit among these rows."""
    newest: dict[str, int] = {}
    for pack, commit in zip(table["pack"].to_pylist(), table["commit"].to_pylist(), strict=True):
        if commit >= newest.get(pack, 0):
            newest[pack] = commit
    return newest
