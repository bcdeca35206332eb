"""Reads that are checked before anybody sees a byte of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

from store.backend import Backend
from store.errors import IntegrityError, KeyMissing
from store.format import RESTORE, pack_key, sha256
from store.rows import Row

_PARALLEL_READS = 8
RANGE_BYTES = 32 * 1024**2
"""A streaming read asks for about this much at once; it bounds the memory of `stream`."""
_GAP_BYTES = 64 * 1024
"""Unwanted bytes between two payloads that are cheaper to read than to ask around."""


def fetch_all(backend: Backend, keys: Sequence[str]) -> list[bytes]:
    """Read whole objects, several at a time, in the order of `keys`."""
    if len(keys) < 2:
        return [backend.read(key) for key in keys]
    with ThreadPoolExecutor(min(_PARALLEL_READS, len(keys))) as pool:
        return list(pool.map(backend.read, keys))


def sizes_of(backend: Backend, keys: Sequence[str]) -> list[int | None]:
    """Return the size of each object, None where it is absent, asking for several at a time."""
    with ThreadPoolExecutor(_PARALLEL_READS) as pool:
        return [info.size if info else None for info in pool.map(backend.info, keys)]


def read_payload(backend: Backend, row: Row) -> bytes:
    """Read the payload of `row` in one ranged request; raises `IntegrityError` if it is not as published."""
    return _checked(row, _range(backend, row, row.offset, row.length))


def stream_payloads(backend: Backend, rows: Iterable[Row]) -> Iterator[tuple[Row, bytes]]:
    """Yield every row with its payload, in pack order, holding about `RANGE_BYTES` at a time.

    Neighbouring payloads share a request. Raises `IntegrityError` at the first damaged payload.
    """
    ordered = sorted(rows, key=lambda row: (row.pack, row.offset, row.name))
    for _, members in groupby(ordered, key=lambda row: row.pack):
        for run in _runs(list(members)):
            start = run[0].offset
            data = memoryview(_range(backend, run[0], start, run[-1].offset + run[-1].length - start))
            for row in run:
                yield row, _checked(row, bytes(data[row.offset - start : row.offset - start + row.length]))


def _runs(rows: list[Row]) -> Iterator[list[Row]]:
    """Split the rows of one pack, sorted by offset, into runs that are each worth one request."""
    run: list[Row] = []
    for row in rows:
        if run:
            gap = row.offset - (run[-1].offset + run[-1].length)
            if gap > _GAP_BYTES or row.offset + row.length - run[0].offset > RANGE_BYTES:
                yield run
                run = []
        run.append(row)
    if run:
        yield run


def _range(backend: Backend, row: Row, offset: int, length: int) -> bytes:
    key = pack_key(row.pack)
    try:
        return backend.read(key, offset=offset, length=length)
    except KeyMissing as error:
        raise IntegrityError(
            f"{key}, which holds {row.name}@{row.version[:12]}, is missing; {RESTORE}"
        ) from error


def _checked(row: Row, payload: bytes) -> bytes:
    if len(payload) != row.length or sha256(payload) != row.digest:
        raise IntegrityError(
            f"{pack_key(row.pack)} is damaged: the payload of {row.name}@{row.version[:12]} fails its "
            f"checksum; {RESTORE}"
        )
    if not row.is_authentic():
        # The payload fits the row, so the row itself must be another than the version stands for.
        raise IntegrityError(
            f"the index describes {row.name}@{row.version[:12]} in a way that its version denies; {RESTORE}"
        )
    return payload
