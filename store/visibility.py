"""Which of the rows that index files hold are visible, and which one of a version counts.

A version can have several rows: its pack was condemned, and it was published again into another. Tables here
are sorted by name, version and commit, so that the rows of one version are neighbours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from store.removals import Removals
from store.rows import SCHEMA

NEEDED = ("name", "version", "pack", "commit")
"""Columns that decide about visibility and order."""


def sorted_rows(table: pa.Table) -> pa.Table:
    """Return `table` in the order of index files; among rows of one version the oldest commit is first."""
    keys = [("name", "ascending"), ("version", "ascending"), ("commit", "ascending")]
    return table.take(pc.sort_indices(table, sort_keys=keys))


def living(table: pa.Table, removals: Removals) -> pa.Table:
    """Return the rows whose pack was not collected since their commit."""
    if not removals.dead:
        return table
    packs, commits = table["pack"].to_pylist(), table["commit"].to_pylist()
    dead = [removals.is_dead(pack, commit) for pack, commit in zip(packs, commits, strict=True)]
    return table.filter(pa.array([not gone for gone in dead], pa.bool_())) if any(dead) else table


def lasting(table: pa.Table, removals: Removals) -> pa.Table:
    """Return the rows that a writer may rely on: those whose pack is not condemned."""
    if not removals.condemned.packs:
        return table
    condemned = pa.array(sorted(removals.condemned.packs), pa.string())
    return table.filter(pc.invert(pc.is_in(table["pack"], value_set=condemned)))


def one_per_version(table: pa.Table, removals: Removals) -> pa.Table:
    """Return the row of each version that counts: the first that is not condemned, else the first."""
    runs = list(_repeated(table))
    if not runs:
        return table
    packs = table["pack"].to_pylist()
    kept = set(range(len(table)))
    for start, end in runs:
        free = (number for number in range(start, end) if packs[number] not in removals.condemned.packs)
        kept -= set(range(start, end)) - {next(free, start)}
    return table.take(pa.array(sorted(kept), pa.int64()))


def one_per_pack(table: pa.Table) -> pa.Table:
    """Return the first and the last row of each version in each pack.

    As long as packs may go, a row of each has to be kept: the first says since when the version is there, the
    last when it was published again, which counts as recent for garbage collection.
    """
    runs = list(_repeated(table))
    if not runs:
        return table
    packs = table["pack"].to_pylist()
    kept = set(range(len(table)))
    for start, end in runs:
        first: dict[str, int] = {}
        last: dict[str, int] = {}
        for number in range(start, end):
            first.setdefault(packs[number], number)
            last[packs[number]] = number
        kept -= set(range(start, end)) - {*first.values(), *last.values()}
    return table.take(pa.array(sorted(kept), pa.int64()))


def merged(streams: Sequence[Iterator[pa.Table]]) -> Iterator[pa.Table]:
    """Merge tables that each stream yields in the order of index files.

    All rows of one name are in one of the tables that come out. About two tables of each stream are held.
    """
    heads = [_Head(stream) for stream in streams]
    while heads := [head for head in heads if head.fill()]:
        # Before the smallest last name everything is known; of that name itself more rows may follow.
        bounds = [head.last for head in heads if not head.ended]
        ready = [head.take_before(min(bounds)) if bounds else head.table for head in heads]
        if not bounds:
            yield sorted_rows(pa.concat_tables(ready))
            return
        if any(len(table) for table in ready):
            yield sorted_rows(pa.concat_tables(ready))
        else:
            for head in heads:
                if not head.ended and head.last == min(bounds):
                    head.grow()


class _Head:
    """What was read of one stream and not yet merged."""

    def __init__(self, stream: Iterator[pa.Table]) -> None:
        self._stream = stream
        self.table: pa.Table = SCHEMA.empty_table()
        self.ended = False

    @property
    def last(self) -> str:
        return str(self.table["name"][-1].as_py())

    def fill(self) -> bool:
        """Read until there are rows; False if there are no more."""
        while not self.ended and not len(self.table):
            self.grow()
        return len(self.table) > 0

    def grow(self) -> None:
        """Read one more table."""
        following = next(self._stream, None)
        if following is None:
            self.ended = True
        else:
            self.table = pa.concat_tables([self.table, following]) if len(self.table) else following

    def take_before(self, name: str) -> pa.Table:
        """Take out the rows whose names come before `name`."""
        names, low, high = self.table["name"], 0, len(self.table)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if names[middle].as_py() < name else (low, middle)
        taken, self.table = self.table.slice(0, low), self.table.slice(low)
        return taken


def _repeated(table: pa.Table) -> Iterator[tuple[int, int]]:
    """Yield start and end of every run of neighbouring rows of one version that is longer than one."""
    if len(table) < 2:
        return
    versions = table["version"].combine_chunks()
    same = pc.equal(versions.slice(1), versions.slice(0, len(versions) - 1))
    if not pc.any(same).as_py():
        return
    positions = [number for number, equal in enumerate(same.to_pylist()) if equal]
    start = end = positions[0]
    for position in positions:
        if position > end:
            yield start, end + 1
            start = position
        end = position + 1
    yield start, end + 1
