"""Reads that are checked before anybody sees a byte of them."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from store.backend import Backend
from store.errors import IntegrityError, KeyMissing
from store.format import RESTORE, pack_key, sha256
from store.rows import Row

_PARALLEL_READS = 8
RANGE_BYTES = 32 * 1024**2
"""What reading a pack from end to end asks for at once."""


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
    return checked_payload(row, read_range(backend, row, row.offset, row.length))


def read_range(backend: Backend, row: Row, offset: int, length: int) -> bytes:
    """Read bytes of the pack that holds `row`; raises `IntegrityError` naming the row if the pack is gone."""
    key = pack_key(row.pack)
    try:
        return backend.read(key, offset=offset, length=length)
    except KeyMissing as error:
        raise IntegrityError(
            f"{key}, which holds {row.name}@{row.version[:12]}, is missing; {RESTORE}"
        ) from error


def checked_payload(row: Row, payload: bytes) -> bytes:
    """Return `payload` if it is what the version of `row` stands for; raises `IntegrityError` otherwise."""
    if len(payload) != row.length or sha256(payload) != row.digest:
        raise IntegrityError(
            f"{pack_key(row.pack)} is damaged: the payload of {row.name}@{row.version[:12]} fails its "
            f"checksum; {RESTORE}"
        )
    check_authentic(row)  # the payload fits the row, but the row may be another than the version stands for
    return payload


def check_authentic(row: Row) -> Row:
    """Return `row` if its version is the digest of what it describes; raises `IntegrityError` otherwise."""
    if not row.is_authentic():
        raise IntegrityError(
            f"the index describes {row.name}@{row.version[:12]} in a way that its version denies; {RESTORE}"
        )
    return row
