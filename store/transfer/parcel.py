"""Parcels: what travels as one pack, and how it is packed and checked on the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from store.backend import Backend
from store.element import MAX_PAYLOAD_BYTES, Element
from store.errors import IntegrityError, KeyMissing
from store.fetch import sizes_of
from store.format import RESTORE, canonical_json, check_digest, pack_key, sha256
from store.pack import TARGET_BYTES, PackBuilder, SealedPack, frame_size, frames, head_of, row_of
from store.prefetch import prefetched
from store.rows import UNCOMMITTED, Row
from store.stream import stream_payloads

Result = TypeVar("Result")

MAX_PACK_BYTES = MAX_PAYLOAD_BYTES + 4 * TARGET_BYTES
"""No store writes a larger pack: one payload, or frames up to the size at which a pack is closed."""

_PARALLEL = 4
_MOST_BYTES = 128 * 1024**2
"""Of parcels in work at one time; a larger one is worked on alone."""

_MAX_ROWS = 8192
"""Elements in one new pack, so that many tiny ones do not make a large one of their heads."""


@dataclass(frozen=True, slots=True)
class Parcel:
    """Elements that travel together: pack `pack` as it is, or a new one if that is empty.

    `size` is what is sent (of a new pack, all but its footer), `rows` what becomes visible.
    """

    pack: str
    size: int
    rows: tuple[Row, ...]

    @property
    def unit(self) -> str:
        """Name of this unit of work, by which a later run of the same copy recognises it."""
        named = sha256(canonical_json([self.pack, sorted(row.version for row in self.rows)]))
        return f"pack/{self.pack or 'new'}/{named[:32]}"


def parcels_of(backend: Backend, rows: Sequence[Row]) -> list[Parcel]:
    """Decide how `rows` travel from `backend`; equal rows in equal packs give equal parcels.

    A pack of whose bytes at least half are wanted travels whole, so that its digest stays and nobody who has
    it gets it twice. The rest is packed anew in the order of names.

    Raises `IntegrityError` if a pack is missing.
    """
    members: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        members[row.pack].append(row)
    packs = sorted(members)
    whole: list[Parcel] = []
    rest: list[Row] = []
    for pack, size in zip(packs, sizes_of(backend, [pack_key(pack) for pack in packs]), strict=True):
        if size is None:
            what = f"{pack_key(pack)}, which holds {members[pack][0].name},"
            raise IntegrityError(f"{what} is missing from {backend.url}; {RESTORE}")
        if 2 * sum(map(frame_size, members[pack])) >= size:
            whole.append(Parcel(pack, size, tuple(members[pack])))
        else:
            rest += members[pack]
    return [*whole, *_new_packs(rest)]


def _new_packs(rows: Sequence[Row]) -> Iterator[Parcel]:
    group: list[Row] = []
    size = 0
    for row in sorted(rows, key=lambda row: (row.name, row.version)):
        length = frame_size(row)
        if group and (size + length > TARGET_BYTES or len(group) == _MAX_ROWS):
            yield Parcel("", size, tuple(group))
            group, size = [], 0
        group.append(row)
        size += length
    if group:
        yield Parcel("", size, tuple(group))


def convey(parcels: Sequence[Parcel], work: Callable[[Parcel], Result]) -> Iterator[tuple[Parcel, Result]]:
    """Yield every parcel with what `work` made of it, in order; several are in work, in bounded memory."""
    results = prefetched(work, parcels, threads=_PARALLEL, weigh=_weight, limit=_MOST_BYTES)
    try:
        yield from zip(parcels, results, strict=True)
    finally:
        results.close()


def _weight(parcel: Parcel) -> int:
    """Return the bytes held for a parcel; what becomes a new pack is read, collected and packed."""
    return parcel.size if parcel.pack else 3 * parcel.size


def pack_parcel(backend: Backend, parcel: Parcel) -> SealedPack:
    """Read the elements of a parcel, check every byte of them, and return the pack that travels.

    Raises `IntegrityError` if anything is not as it was published.
    """
    if parcel.pack:
        return checked_pack(_read_pack(backend, parcel), parcel.pack, parcel.rows)
    as_they_lie = sorted(parcel.rows, key=lambda row: (row.pack, row.offset))
    payloads = {row.version: payload for row, payload in stream_payloads(backend, as_they_lie)}
    builder = PackBuilder()
    for row in parcel.rows:
        element = Element(
            kind=row.kind,
            name=row.ref.name.partition("/")[2],
            payload=payloads.pop(row.version),
            media=row.media,
            requires=row.requires,
            provenance=row.provenance,
            facts=row.facts,
        )
        builder.add(element)
    return builder.seal()


def _read_pack(backend: Backend, parcel: Parcel) -> bytes:
    key = pack_key(parcel.pack)
    if parcel.size > MAX_PACK_BYTES:
        raise IntegrityError(f"{key} is larger than any pack; {RESTORE}")
    try:
        return backend.read(key, length=parcel.size)
    except KeyMissing as error:
        raise IntegrityError(f"{key} went away while it was read; {RESTORE}") from error


def checked_pack(data: bytes, digest: str, rows: Sequence[Row]) -> SealedPack:
    """Return a whole pack if its bytes, every frame of it, and what `rows` say about it are right.

    Raises `IntegrityError` otherwise; a right checksum is not enough where somebody forged the frame or row.
    """
    key = pack_key(digest)
    check_digest(data, digest, key, holds=f"{len(rows)} elements")
    placed = {row.offset: row for row in rows}
    for frame in frames(data, digest):
        row = placed.pop(frame.offset, None)
        if row is None:
            row_of(frame, digest)  # not wanted, but nobody should have to meet it later
        elif not row.is_authentic() or (frame.length, frame.payload_digest, frame.head_digest) != (
            row.length,
            row.digest,
            sha256(head_of(row)),
        ):
            raise IntegrityError(
                f"{key} holds another element than the {row.name}@{row.version[:12]} that was published; "
                f"{RESTORE}"
            )
    for row in placed.values():
        raise IntegrityError(f"{key} holds no {row.name}@{row.version[:12]} where it should; {RESTORE}")
    return SealedPack(digest, data, [row.visible_since(UNCOMMITTED) for row in rows])
