"""How earlier versions encoded tables: to make again what they wrote, byte by byte."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from store.format import canonical_json
from store.parquet import OPTIONS
from store.rows import METADATA_KEY, SCHEMA

INDEX_GROUP_ROWS = 4096
SNAPSHOT_GROUP_ROWS = 1024


def encode_former(table: pa.Table, metadata: Mapping[str, Any], *, group_size: int) -> bytes:
    """Write a table of rows as versions did that kept statistics of all columns."""
    schema = SCHEMA.with_metadata({METADATA_KEY: canonical_json(metadata)})
    described = pa.Table.from_arrays(table.combine_chunks().columns, schema=schema)
    sink = io.BytesIO()
    pq.write_table(described, sink, row_group_size=group_size, **{**OPTIONS, "write_statistics": True})
    return sink.getvalue()
