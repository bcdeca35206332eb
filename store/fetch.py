"""Reads that are checked before anybody sees a byte of them."""

from __future__ import annotations

from collections.abc import Sequence

from store.backend import Backend
from store.errors import IntegrityError
from store.format import RESTORE, pack_key
from store.parallel import in_parallel
from store.region import Region, owned, read_regions
from store.rows import Row

RANGE_BYTES = 32 * 1024**2
"""What reading a pack from end to end asks for at once."""


def fetch_all(backend: Backend, keys: Sequence[str]) -> list[bytes]:
    """Read whole objects, several at a time, in the order of `keys`."""
    return in_parallel(backend, backend.read, keys)


def sizes_of(backend: Backend, keys: Sequence[str]) -> list[int | None]:
    """Return the size of each object, None where it is absent, asking for several at a time."""
    return [info.size if info else None for info in in_parallel(backend, backend.info, keys)]


def read_payload(backend: Backend, row: Row) -> bytes:
    """Read the payload of `row` in one ranged request; raises `IntegrityError` if it is not as published."""
    return owned(read_payloads(backend, [row])[0])


def read_payloads(backend: Backend, rows: Sequence[Row], *, gap: int = 0) -> list[memoryview]:
    """Read payloads of one pack, sorted by offset; those at most `gap` bytes apart share a request.

    Raises `IntegrityError` if one of them is not what the version of its row stands for.
    """
    key = pack_key(rows[0].pack)
    regions = [Region(row.offset, row.length, row.digest) for row in rows]

    def holds(region: Region) -> str:
        row = rows[regions.index(region)]
        return f"the payload of {row.name}@{row.version[:12]}"

    payloads = read_regions(backend, key, regions, holds=holds, gap=gap)
    for row in rows:
        check_authentic(row)  # the payload fits the row, but the row may be another than the version's
    return payloads


def check_authentic(row: Row) -> Row:
    """Return `row` if its version is the digest of what it describes; raises `IntegrityError` otherwise."""
    if not row.is_authentic():
        raise IntegrityError(
            f"the index describes {row.name}@{row.version[:12]} in a way that its version denies; {RESTORE}"
        )
    return row
