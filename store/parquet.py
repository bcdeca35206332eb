"""Reading and writing Parquet: one set of fixed options, on the calling thread, in bounded memory.

Fixed options make equal tables equal bytes. Whatever is read may be hostile, so nothing is decoded before its
footer was looked at, and nothing is believed to have the size that the footer says.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, RecursionError)
"""What pyarrow and json raise for a file that is not what it should be."""

OPTIONS: dict[str, Any] = {
    "version": "2.6",
    "compression": "zstd",
    "compression_level": 3,
    "use_dictionary": ["kind", "pack", "media", "dtype"],
    # Of other columns they would be random digests or long JSON, and make footers larger than row groups.
    "write_statistics": ["name", "kind", "commit"],
}
_MAX_ROWS = 2**26
_MAX_DECODED_BYTES = 2 * 1024**3
_BATCH_ROWS = 512


def encode_table(table: pa.Table, *, group_size: int = 4096) -> bytes:
    """Write any table with the settings that all files of a store share."""
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=group_size, **OPTIONS)
    return sink.getvalue()


def check_columns(table: pa.Table, schema: pa.Schema) -> None:
    """Raise `ValueError` unless `table` has the columns and types of `schema`, well-formed, without nulls."""
    if not table.schema.equals(schema):
        raise ValueError("other columns or types")
    table.validate(full=True)
    for column in table.columns:
        items = pc.list_flatten(column) if pa.types.is_list(column.type) else column
        if column.null_count or items.null_count:
            raise ValueError("a null")


def check_footer(footer: pq.FileMetaData, numbers: Iterable[int], *, most: int | None = None) -> int:
    """Return the bytes of the largest of the row groups `numbers`.

    Raises `ValueError` if they are together larger than any table of a store can be, or than `most` bytes.
    """
    size = rows = largest = 0
    for number in numbers:
        # Not its column chunks: pyarrow ends the process where these are malformed, and however few values
        # they claim to have, their pages may hold more.
        group = footer.row_group(number)
        size += group.total_byte_size
        largest = max(largest, group.total_byte_size)
        rows += group.num_rows
    if max(footer.num_rows, rows) > _MAX_ROWS or size > _limit(most):
        raise ValueError("too large")
    return largest


def _limit(most: int | None) -> int:
    return _MAX_DECODED_BYTES if most is None else min(most, _MAX_DECODED_BYTES)


def read_parquet(source: pa.NativeFile, *, most: int | None = None) -> pa.Table:
    """Read a whole Parquet file on the calling thread; `ValueError` if it is larger than a table can be.

    So it is if it grows to more than `most` bytes, where the caller knows how large it can be.

    pyarrow's thread pools gain nothing on files of this size, and a short process that started them is now
    and then aborted by the C++ runtime at exit ("terminate called without an active exception").
    """
    file = pq.ParquetFile(source, pre_buffer=False)
    return read_groups(file, range(file.metadata.num_row_groups), most=most)


def iter_batches(
    file: pq.ParquetFile, numbers: Sequence[int], *, most: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of some row groups in small batches, none of which grows without bound."""
    largest = check_footer(file.metadata, numbers, most=most)
    rows = max(1, min(_BATCH_ROWS, _limit(most) // (largest + 1)))  # each may hold all of a dictionary
    yield from file.iter_batches(batch_size=rows, row_groups=list(numbers), use_threads=False)


def read_groups(file: pq.ParquetFile, numbers: Sequence[int], *, most: int | None = None) -> pa.Table:
    """Read some row groups in small batches, so that a file cannot grow without bound while it is decoded.

    Dictionaries let a few kilobytes stand for gigabytes, which the sizes in the footer do not show.
    """
    batches, size = [], 0
    for batch in iter_batches(file, numbers, most=most):
        size += batch.nbytes
        if size > _limit(most):
            raise ValueError("too large")
        batches.append(batch)
    table = pa.Table.from_batches(batches, schema=file.schema_arrow).combine_chunks()
    return table.replace_schema_metadata(file.metadata.metadata)
