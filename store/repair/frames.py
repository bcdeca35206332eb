"""Rows from the frames of packs: what an element is and where it lies, when no table tells any more."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, combinations, islice

from store.backend import Backend
from store.entry import Commit
from store.errors import IntegrityError, KeyMissing
from store.format import PACK_PREFIX, check_digest, is_digest, pack_key
from store.pack import frames, row_of
from store.rows import Row

_MOST_CHOICES = 20_000
"""Sets of packs that are tried for one commit, if they do not lie side by side."""


@dataclass(frozen=True, slots=True)
class LoosePack:
    """An intact pack that no table names: its rows, and when it was written."""

    digest: str
    size: int
    modified: datetime
    rows: tuple[Row, ...]


def loose_packs(backend: Backend, named: Collection[str]) -> list[LoosePack]:
    """Read all intact packs but those `named`, in the order in which they were written."""
    found = []
    for item in backend.list(PACK_PREFIX):
        digest = item.key.rpartition("/")[2]
        if is_digest(digest) and item.key == pack_key(digest) and digest not in named:
            try:
                data = check_digest(backend.read(item.key), digest, item.key, holds="pack")
                rows = tuple(row_of(frame, digest) for frame in frames(data, digest))
            except (IntegrityError, KeyMissing):
                continue
            found.append(LoosePack(digest, len(data), item.modified, rows))
    return sorted(found, key=lambda pack: (pack.modified, pack.digest))


def choices(
    commit: Commit, packs: Sequence[LoosePack], earlier: Mapping[str, int]
) -> Iterator[tuple[list[LoosePack], list[Row]]]:
    """Yield sets of packs that may be what `commit` published, with the rows that it made visible.

    The log says how many packs, elements and bytes those were. `earlier` are versions that other commits made
    visible, by number. Packs that were written one after the other come first, since those of one build were.
    """
    count, number = commit.packs, commit.sequence
    new = {
        pack.digest: {row.version: row for row in pack.rows if earlier.get(row.version, number) >= number}
        for pack in packs
    }
    packs = [pack for pack in packs if 0 < len(new[pack.digest]) <= commit.elements]
    if not 0 < count <= len(packs):
        return
    windows = (packs[start : start + count] for start in range(len(packs) - count + 1))
    rest = islice(combinations(packs, count), _MOST_CHOICES) if count > 1 else ()
    for chosen in chain(windows, rest):
        rows: dict[str, Row] = {}
        if sum(len(new[pack.digest]) for pack in chosen) < commit.elements:
            continue
        for pack in chosen:
            rows = {**new[pack.digest], **rows}
        if (len(rows), sum(row.length for row in rows.values())) == (commit.elements, commit.bytes):
            yield list(chosen), list(rows.values())
