"""Parquet payloads that hold exactly what their reader expects, or are refused."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq

from tasks.errors import BadPayload

R = TypeVar("R")

_MAX_BYTES = 2 * 1024**3
"""Decoded size of a table: dictionaries and runs let a few kilobytes stand for gigabytes."""
_BATCH_ROWS = 1024
_UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError)


def encode_records(kind: type[R], records: Sequence[R]) -> bytes:
    """Instances of a flat dataclass (str, int, float and bool fields) as Parquet bytes, in the order given.

    Equal records give equal bytes with one version of pyarrow.
    """
    types = {str: pa.large_string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    rows: list[dict[str, Any]] = [asdict(record) for record in records]  # type: ignore[call-overload]
    columns = {
        name: pa.array([row[name] for row in rows], type=types[field])
        for name, field in get_type_hints(kind).items()
    }
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table(columns),
        sink,
        compression="zstd",
        compression_level=3,
        write_statistics=False,
        store_schema=False,
        version="2.6",
        data_page_version="1.0",
    )
    data: bytes = sink.getvalue().to_pybytes()
    return data


def load_records(payload: bytes, kind: type[R], *, what: str) -> list[R]:
    """The records of a payload written by `encode_records`; raises `BadPayload` when it is none."""
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    columns = {name: types[field] for name, field in get_type_hints(kind).items()}
    return [kind(**row) for row in load_table(payload, columns, what=what).to_pylist()]


def load_table(payload: bytes, columns: Mapping[str, pa.DataType], *, what: str) -> pa.Table:
    """The named columns of a Parquet payload, all flat; others are left out.

    Raises `BadPayload` when the bytes are no Parquet file of reasonable size, or a column is missing, has
    another type or holds a null.
    """
    schema = pa.schema(list(columns.items()))
    try:
        # Not pq.read_table: its threads can abort the process at exit (apache/arrow#34314). Nor does
        # anything look at the footer's column chunks: pyarrow aborts where those are malformed.
        file = pq.ParquetFile(pa.BufferReader(payload), pre_buffer=False)
        found = file.schema_arrow
        if any(found.get_all_field_indices(name) != [found.names.index(name)] for name in columns):
            raise ValueError("a column stands there twice")
        if not pa.schema([found.field(name) for name in columns]).equals(schema):
            raise ValueError("other columns or types")
        table = _read(file, schema)
        table.validate(full=True)
        if any(column.null_count for column in table.columns):
            raise ValueError("a null")
    except _UNREADABLE as error:
        reason = (str(error).splitlines() or [""])[0][:120]
        raise BadPayload(f"the payload is not {what} ({reason}); check the reference") from error
    return table


def _read(file: pq.ParquetFile, schema: pa.Schema) -> pa.Table:
    """Read in batches, each small enough even if every row of it holds all of a row group's bytes."""
    groups = [file.metadata.row_group(number) for number in range(file.metadata.num_row_groups)]
    largest = max((group.total_byte_size for group in groups), default=0)
    if not 0 <= largest <= _MAX_BYTES:
        raise ValueError("too large")
    rows = max(1, min(_BATCH_ROWS, _MAX_BYTES // (largest + 1)))
    batches, size = [], 0
    for batch in file.iter_batches(batch_size=rows, columns=schema.names, use_threads=False):
        size += batch.nbytes
        if size > _MAX_BYTES:
            raise ValueError("too large")
        batches.append(batch)
    # Columns come in the order of the file.
    return pa.Table.from_batches([batch.select(schema.names) for batch in batches], schema=schema)
