"""Runs of bytes inside stored objects, each with the digest that it must have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from store.backend import Backend
from store.backend.cached import CachedBackend
from store.errors import IntegrityError, KeyMissing
from store.format import RESTORE, check_digest, is_digest, sha256


@dataclass(frozen=True, slots=True)
class Region:
    """A run of bytes of an object with the digest that it must have."""

    offset: int
    length: int
    digest: str

    @property
    def end(self) -> int:
        """Offset of the first byte behind it."""
        return self.offset + self.length

    @classmethod
    def of(cls, data: bytes, offset: int, length: int) -> Region:
        """Describe a region of `data`."""
        return cls(offset, length, sha256(data[offset : offset + length]))


def is_region(values: Any) -> bool:
    """Tell whether JSON `values` describe a region of some object, however large."""
    if not isinstance(values, list) or len(values) != 3:
        return False
    offset, length, digest = values
    sizes = all(type(size) is int and 0 <= size < 2**62 for size in (offset, length))
    return sizes and isinstance(digest, str) and is_digest(digest)


def read_regions(
    backend: Backend,
    key: str,
    regions: Sequence[Region],
    *,
    holds: Callable[[Region], str],
    gap: int = 0,
) -> list[memoryview]:
    """Return the bytes of `regions` of the object `key`, each checked against its digest.

    They are views of what was read at once: to copy each of them here would cost more than to hash it. What
    the backend's cache has is not asked for, and what was read is given to it. Regions that follow one
    another within `gap` bytes share a request. `holds` says in errors what a region is. Raises
    `IntegrityError` if the object is missing or other than recorded.
    """
    cache = backend.cache if isinstance(backend, CachedBackend) else None
    if cache is None:
        return [part for run in joined(regions, gap=gap) for part in _read_run(backend, key, run, holds)]
    kept = cache.find(region.digest for region in regions)
    found = {digest: memoryview(data) for digest, data in kept.items()}
    read: dict[str, memoryview] = {}
    for run in joined((region for region in regions if region.digest not in found), gap=gap):
        parts = _read_run(backend, key, run, holds)
        read.update((region.digest, part) for region, part in zip(run, parts, strict=True))
    if read:
        cache.add(read)
    found.update(read)
    return [found[region.digest] for region in regions]


def joined(regions: Iterable[Region], *, gap: int = 0) -> Iterator[list[Region]]:
    """Split regions into runs that are each worth one request: with at most `gap` bytes between them."""
    run: list[Region] = []
    for region in regions:
        if run and not 0 <= region.offset - run[-1].end <= gap:
            yield run
            run = []
        run.append(region)
    if run:
        yield run


def _read_run(
    backend: Backend, key: str, run: Sequence[Region], holds: Callable[[Region], str]
) -> list[memoryview]:
    start = run[0].offset
    try:
        view = memoryview(backend.read(key, offset=start, length=run[-1].end - start))
    except KeyMissing as error:
        raise IntegrityError(f"{key}, which holds {holds(run[0])}, is missing; {RESTORE}") from error
    parts = []
    for region in run:
        part = view[region.offset - start : region.end - start]
        if sha256(part) != region.digest:
            check_digest(part, region.digest, key, holds=holds(region))
        parts.append(part)
    return parts


def owned(view: memoryview) -> bytes:
    """Return the bytes of a view, without a copy if it shows all of them."""
    data = view.obj
    return data if isinstance(data, bytes) and len(data) == len(view) else bytes(view)
