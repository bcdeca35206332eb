"""A Parquet file of which only the needed row groups are fetched, each checked before it is used.

A digest of the whole file would force a reader of one row to fetch all rows. So the snapshot's sealed head
record keeps a digest for the footer and for every row group, and this module reads the file by them.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from store.backend import Backend
from store.errors import IntegrityError
from store.footer import read_chunks
from store.format import RESTORE
from store.parquet import UNREADABLE, read_groups
from store.region import Region, owned, read_regions
from store.rows import check_table

_MAGIC = b"PAR1"


def regions_of(data: bytes) -> tuple[list[Region], Region]:
    """Split a Parquet file into its row groups and its footer; raises `ValueError` if that is malformed."""
    groups = []
    for chunks in read_chunks(data):
        start = min(chunk.offset for chunk in chunks)
        groups.append(Region.of(data, start, sum(chunk.length for chunk in chunks)))
    end = groups[-1].offset + groups[-1].length if groups else len(_MAGIC)
    return groups, Region.of(data, end, len(data) - end)


class SparseTable:
    """The row groups of one stored Parquet file, fetched on demand. Safe to share between threads."""

    def __init__(
        self,
        backend: Backend,
        key: str,
        groups: Sequence[Region],
        footer: Region,
        *,
        footer_bytes: bytes | None = None,
    ) -> None:
        """Describe the file under `key`; `footer_bytes` spares a request, and were checked by the caller."""
        self._backend = backend
        self._key = key
        self._groups = groups
        self._footer = footer
        self._metadata = None if footer_bytes is None else self._parsed(footer_bytes)

    def read(self, numbers: Sequence[int]) -> list[pa.Table]:
        """Return the groups `numbers` (ascending), one table each; neighbouring groups share a request.

        Raises `IntegrityError` if the bytes are not those recorded, or are but are no table of a store.
        """
        if not numbers:
            return []
        regions = [self._groups[number] for number in numbers]
        chunks = list(zip((region.offset for region in regions), self._fetch(regions), strict=True))
        if self._metadata is None:
            self._metadata = self._parsed(owned(*self._fetch([self._footer])))
        size = self._footer.offset + self._footer.length
        source = pa.PythonFile(_Islands(chunks, size, self._key), mode="r")
        try:
            sizes = [self._metadata.row_group(number).num_rows for number in numbers]
            table = read_groups(pq.ParquetFile(source, metadata=self._metadata, pre_buffer=False), numbers)
        except (*UNREADABLE, IndexError) as error:
            raise self._not_ours() from error
        if sum(sizes) != len(table):
            raise self._not_ours()
        whole = check_table(table, self._key)
        return [whole.slice(end - size, size) for end, size in zip(accumulate(sizes), sizes, strict=True)]

    def _parsed(self, footer: bytes) -> pq.FileMetaData:
        try:
            return pq.read_metadata(pa.BufferReader(_MAGIC + footer))
        except UNREADABLE as error:
            raise self._not_ours() from error

    def _not_ours(self) -> IntegrityError:
        return IntegrityError(f"{self._key} is not a table of this store; {RESTORE}")

    def _fetch(self, regions: Sequence[Region]) -> list[memoryview]:
        return read_regions(self._backend, self._key, regions, holds=lambda _: "a group of rows")


class _Islands(io.RawIOBase):
    """A read-only file that consists of a few known runs of bytes; reading elsewhere is refused."""

    def __init__(self, chunks: Sequence[tuple[int, memoryview]], size: int, key: str) -> None:
        super().__init__()
        self._chunks = chunks
        self._size = size
        self._key = key
        self._position = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = base + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def read(self, size: int | None = -1) -> Any:
        length = self._size - self._position if size is None or size < 0 else size
        for start, data in self._chunks:
            if start <= self._position and self._position + length <= start + len(data):
                begin = self._position - start
                self._position += length
                return data[begin : begin + length]
        raise IntegrityError(f"{self._key} has row groups elsewhere than recorded; {RESTORE}")
