"""Reading packs to the last byte, and finding the elements that damage in a pack touches."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from store.backend import Backend
from store.errors import IntegrityError
from store.fetch import RANGE_BYTES, read_payload
from store.format import pack_key
from store.rows import Row


def pack_is_intact(backend: Backend, digest: str, size: int) -> bool:
    """Tell whether all `size` bytes of a pack hash to its name; reads in ranges, so memory is bounded."""
    total = hashlib.sha256()
    for offset in range(0, size, RANGE_BYTES):
        total.update(backend.read(pack_key(digest), offset=offset, length=RANGE_BYTES))
    return total.hexdigest() == digest


def damaged_rows(backend: Backend, rows: Iterable[Row]) -> list[Row]:
    """Return those of `rows` whose payload no longer passes its checksum."""
    damaged = []
    for row in rows:
        try:
            read_payload(backend, row)
        except IntegrityError:
            damaged.append(row)
    return damaged
