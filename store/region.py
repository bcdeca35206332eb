"""Runs of bytes inside stored objects, each with the digest that it must have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from store.backend import Backend
from store.backend.cached import CachedBackend
from store.errors import IntegrityError, KeyMissing
from store.format import RESTORE, check_digest, sha256


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


def read_regions(
    backend: Backend,
    key: str,
    regions: Sequence[Region],
    *,
    holds: Callable[[Region], str],
    gap: int = 0,
) -> list[bytes]:
    """Return the bytes of `regions` of the object `key`, each checked against its digest.

    What the backend's cache has is not asked for, and what was read is given to it. Regions that follow one
    another within `gap` bytes share a request. `holds` says in errors what a region is. Raises
    `IntegrityError` if the object is missing or other than recorded.
    """
    cache = backend.cache if isinstance(backend, CachedBackend) else None
    found = cache.find(region.digest for region in regions) if cache else {}
    read: dict[str, bytes] = {}
    for run in joined((region for region in regions if region.digest not in found), gap=gap):
        read.update(_read_run(backend, key, run, holds))
    if cache and read:
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
) -> Iterator[tuple[str, bytes]]:
    start = run[0].offset
    try:
        data = backend.read(key, offset=start, length=run[-1].end - start)
    except KeyMissing as error:
        raise IntegrityError(f"{key}, which holds {holds(run[0])}, is missing; {RESTORE}") from error
    view = memoryview(data)
    for region in run:
        part = data if len(run) == 1 else bytes(view[region.offset - start : region.end - start])
        yield region.digest, check_digest(part, region.digest, key, holds=holds(region))
