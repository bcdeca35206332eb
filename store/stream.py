"""Reading many payloads in the order in which they lie, several ranges ahead, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from store.backend import Backend
from store.fetch import read_payloads
from store.prefetch import prefetched
from store.region import owned
from store.rows import Row, iter_rows

_REQUEST_BYTES = 17 * 1024**2
"""What one request asks for, unless one payload alone is larger: half a pack of the usual size."""
_AHEAD_BYTES = 4 * _REQUEST_BYTES
"""What is being read or waits to be used; it bounds the memory of a stream."""
_THREADS = 4
_GAP_BYTES = 64 * 1024
"""Unwanted bytes between two payloads that are cheaper to read than to ask around."""
_TABLE_BYTES = 32 * 1024**2
"""Rows, as tables, that are sorted at once."""


def stream_payloads(backend: Backend, rows: Iterable[Row]) -> Generator[tuple[Row, bytes], None, None]:
    """Yield every row with its checked payload; `rows` are sorted by pack and offset.

    Neighbouring payloads share a request. Raises `IntegrityError` at the first damaged payload.
    """
    runs = prefetched(
        partial(_read_run, backend), _runs(rows), threads=_THREADS, weigh=_span, limit=_AHEAD_BYTES
    )
    try:
        for run in runs:
            for row, payload in run:
                yield row, owned(payload)  # copied here, where the memory of the one before is free again
    finally:
        runs.close()


def in_pack_order(scan: Callable[[], Iterator[pa.Table]]) -> Iterator[Row]:
    """Yield the rows of a table that `scan` reads piece by piece, sorted by pack and offset.

    The table is read once if it is small, and else once for every group of packs whose rows are small enough
    to be sorted in memory. All of it is read before the first row is yielded.
    """
    sizes: dict[str, int] = {}
    kept: list[pa.Table] = []
    small = True
    for table in scan():
        small = small and sum(sizes.values()) + table.nbytes <= _TABLE_BYTES
        kept = [*kept, table] if small else []
        for entry in pc.value_counts(table["pack"]).to_pylist():
            share = table.nbytes * entry["counts"] // len(table)
            sizes[entry["values"]] = sizes.get(entry["values"], 0) + share
    if small:
        yield from _sorted_rows(kept)
        return
    for packs in _pack_groups(sizes):
        chosen = pa.array(packs, pa.string())
        yield from _sorted_rows([table.filter(pc.is_in(table["pack"], chosen)) for table in scan()])


def _pack_groups(sizes: dict[str, int]) -> Iterator[list[str]]:
    group: list[str] = []
    size = 0
    for pack in sorted(sizes):
        if group and size + sizes[pack] > _TABLE_BYTES:
            yield group
            group, size = [], 0
        group.append(pack)
        size += sizes[pack]
    if group:
        yield group


def _sorted_rows(tables: list[pa.Table]) -> Iterator[Row]:
    if not tables:
        return
    table = pa.concat_tables(tables)
    tables.clear()  # only the sorted copy is kept
    table = table.take(pc.sort_indices(table, [("pack", "ascending"), ("offset", "ascending")]))
    yield from iter_rows(table)


def _runs(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """Join neighbouring rows into runs that are each worth one request."""
    run: list[Row] = []
    for row in rows:
        if run and (
            row.pack != run[0].pack
            or row.offset - _end(run) > _GAP_BYTES
            or row.offset + row.length - run[0].offset > _REQUEST_BYTES
        ):
            yield run
            run = []
        run.append(row)
    if run:
        yield run


def _end(run: list[Row]) -> int:
    return run[-1].offset + run[-1].length


def _span(run: list[Row]) -> int:
    return _end(run) - run[0].offset


def _read_run(backend: Backend, run: list[Row]) -> list[tuple[Row, memoryview]]:
    return list(zip(run, read_payloads(backend, run, gap=_GAP_BYTES), strict=True))
