"""Index files as a catalog reads them: small ones in memory, large ones looked into by their directories.

Both kinds answer the same questions. A directory that is damaged or lies about its file costs time only: the
whole file is read instead, checked against its digest.
"""

from __future__ import annotations

import logging
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from store.backend import Backend
from store.directory import (
    GROUP_ROWS,
    RECIPE_KEYS,
    RECIPE_ROWS,
    VERSION_KEYS,
    VERSION_ROWS,
    Directory,
    read_directory,
    read_footer,
    read_packs,
    read_section,
)
from store.errors import IntegrityError, KeyMissing
from store.format import RESTORE, bundle_key, check_digest, directory_key, index_key
from store.group_cache import GroupCache
from store.index import SMALL_ROWS, newest_commits
from store.keytable import KeyTable, decode_positions
from store.manifest import Bundle, Segment
from store.parallel import in_parallel
from store.region import Region, read_regions
from store.rows import SCHEMA, decode_table
from store.sparse import SparseTable
from store.visibility import merged, sorted_rows
from store.wanted import Wanted

_WINDOW_GROUPS = 8
"""Row groups that one request asks for where rows are read in order."""
_log = logging.getLogger(__name__)


class Source(Protocol):
    """The rows of one index file."""

    segment: Segment

    @property
    def lacks_directory(self) -> bool:
        """Whether a large file had to be read whole: its directory is damaged or was never written."""
        ...

    def is_prepared(self, column: str) -> bool:
        """Tell whether `by` needs no request to tell that a value is absent."""
        ...

    def prepare(self, column: str) -> None:
        """Make it so; may be called on any thread."""
        ...

    def by(self, wanted: Wanted) -> list[pa.Table]:
        """Return the rows that hold one of the wanted values."""
        ...

    def chunks(self, columns: Sequence[str], first: str = "", end: str = "\U0010ffff") -> Iterator[pa.Table]:
        """Yield `columns` in order, in bounded tables, at least of names from `first` until `end`."""
        ...

    def packs(self) -> dict[str, tuple[int, int]]:
        """Return the size of each pack, and the newest commit of a row in it."""
        ...


class Held:
    """All rows of an index file, in memory."""

    def __init__(self, segment: Segment, data: bytes) -> None:
        """Decode an index file; raises `IntegrityError` if it is not that of the segment."""
        key = index_key(segment.index)
        check_digest(data, segment.index, key, holds="index of a commit")
        table, metadata = decode_table(data, key)
        self._sizes: dict[str, int] = metadata["packs"]
        if not set(table["pack"].unique().to_pylist()) <= self._sizes.keys():
            raise IntegrityError(f"{key} does not say how large its packs are; {RESTORE}")
        self.segment = Segment(segment.index, len(table), segment.commit)
        self._table = sorted_rows(_numbered(table, segment.commit, key))
        self._places: dict[str, dict[str, list[int]]] = {}

    @property
    def lacks_directory(self) -> bool:
        return self.segment.rows > SMALL_ROWS

    def is_prepared(self, column: str) -> bool:
        return True

    def prepare(self, column: str) -> None:
        if column not in self._places:
            places: dict[str, list[int]] = defaultdict(list)
            for position, value in enumerate(self._table[column].to_pylist()):
                places[value].append(position)
            self._places[column] = places

    def by(self, wanted: Wanted) -> list[pa.Table]:
        self.prepare(wanted.column)
        places = self._places[wanted.column]
        positions = [place for value in wanted.values if value in places for place in places[value]]
        return [wanted.rows_in(self._table, positions)] if positions else []

    def chunks(self, columns: Sequence[str], first: str = "", end: str = "\U0010ffff") -> Iterator[pa.Table]:
        for start in range(0, len(self._table), _WINDOW_GROUPS * GROUP_ROWS):
            yield self._table.select(list(columns)).slice(start, _WINDOW_GROUPS * GROUP_ROWS)

    def packs(self) -> dict[str, tuple[int, int]]:
        return {pack: (self._sizes[pack], commit) for pack, commit in newest_commits(self._table).items()}


class Stored:
    """An index file of which only the row groups that are needed are read. Safe to share between threads."""

    def __init__(
        self, backend: Backend, segment: Segment, cache: GroupCache, directory: Directory | None = None
    ) -> None:
        self.segment = segment
        self._backend = backend
        self._cache = cache
        self._directory = directory
        self._tables: dict[str, KeyTable] = {}
        self._positions: dict[str, Sequence[int]] = {}
        self._packs: dict[str, tuple[int, int]] | None = None
        self._groups: SparseTable | None = None
        self._held: Held | None = None

    @property
    def lacks_directory(self) -> bool:
        return self._held is not None

    def is_prepared(self, column: str) -> bool:
        return self._held is not None or column in self._tables or column not in _KEYED

    def prepare(self, column: str) -> None:
        if not self.is_prepared(column):
            try:
                self._key_table(column)
            except (IntegrityError, KeyMissing) as error:
                self._hold(error)

    def by(self, wanted: Wanted) -> list[pa.Table]:
        if self._held is None:
            try:
                if wanted.column == "name":
                    groups = (self._groups_between(name, name + "\0") for name in wanted.values)
                    chosen = sorted({group for some in groups for group in some})
                    return [wanted.rows_in(self._group(group)) for group in chosen]
                return self._rows_at(self._candidates(wanted), wanted)
            except (IntegrityError, KeyMissing) as error:
                self._hold(error)
        assert self._held is not None
        return self._held.by(wanted)

    def chunks(self, columns: Sequence[str], first: str = "", end: str = "\U0010ffff") -> Iterator[pa.Table]:
        done = 0
        try:
            if self._held is None:
                wanted = self._groups_between(first, end)
                for start in range(0, len(wanted), _WINDOW_GROUPS):
                    window = wanted[start : start + _WINDOW_GROUPS]
                    yield pa.concat_tables(self._read(window)).select(list(columns))
                    done += len(window)
                return
        except (IntegrityError, KeyMissing) as error:
            self._hold(error)
            if done:  # what was yielded must not come again, and may have been other rows
                raise
        assert self._held is not None
        yield from self._held.chunks(columns, first, end)

    def packs(self) -> dict[str, tuple[int, int]]:
        if self._packs is None and self._held is None:
            try:
                found = read_packs(self._backend, self._header())
            except (IntegrityError, KeyMissing) as error:
                self._hold(error)
            else:
                own = self.segment.commit
                self._packs = {pack: (size, newest or own) for pack, (size, newest) in found.items()}
        if self._held is not None:
            self._packs = self._held.packs()
        assert self._packs is not None
        return self._packs

    def _hold(self, error: Exception) -> None:
        _log.warning("%s is read whole, which takes longer: %s", index_key(self.segment.index), error)
        self._held = hold(self._backend, self.segment)

    def _header(self) -> Directory:
        if self._directory is None:
            directory = read_directory(self._backend, self.segment.index, self.segment.lead)
            if directory.rows != self.segment.rows:
                raise IntegrityError(
                    f"{directory_key(self.segment.index)} counts other rows; delete that object"
                )
            self._directory = directory
        return self._directory

    def accept_version_keys(self, data: bytes) -> None:
        """Take over the key table of versions, which somebody read together with others."""
        self._tables["version"] = _decoded(self.segment.index, KeyTable, data, self.segment.rows)

    def _key_table(self, column: str) -> KeyTable:
        table = self._tables.get(column)
        if table is None:
            name, lead = _KEYED[column][0], self.segment.lead
            known = lead.version_keys if lead and name == VERSION_KEYS else self._header().sections[name]
            data = read_section(self._backend, self.segment.index, known)
            table = self._tables[column] = _decoded(self.segment.index, KeyTable, data, self._count(column))
        return table

    def _count(self, column: str) -> int:
        return self.segment.rows if column == "version" else self._header().recipes

    def _candidates(self, wanted: Wanted) -> list[int]:
        """Return the positions of rows that may hold one of the wanted values."""
        column, table = wanted.column, self._key_table(wanted.column)
        ranks = {rank for key in wanted.keys for rank in table.find(key)}
        if not ranks:
            return []
        positions = self._positions.get(column)
        if positions is None:
            section = self._header().sections[_KEYED[column][1]]
            data = read_section(self._backend, self.segment.index, section)
            positions = _decoded(self.segment.index, decode_positions, data, self._count(column))
            self._positions[column] = positions
        return sorted(positions[rank] for rank in ranks)

    def _rows_at(self, positions: Sequence[int], wanted: Wanted) -> list[pa.Table]:
        if positions and positions[-1] >= self.segment.rows:
            raise IntegrityError(f"{directory_key(self.segment.index)} leads to no row; delete that object")
        chosen: dict[int, list[int]] = defaultdict(list)
        for position in positions:
            chosen[position // GROUP_ROWS].append(position % GROUP_ROWS)

        def take(groups: Sequence[int]) -> list[pa.Table]:
            kept: dict[int, Any] = {group: self._cache.get(self.segment, group) for group in groups}
            missing = [group for group, table in kept.items() if table is None]
            kept.update(zip(missing, self._load(missing), strict=True))
            return [wanted.rows_in(kept[group], chosen[group]) for group in groups]

        taken = in_parallel(self._backend, take, list(_windows(sorted(chosen))))
        return [table for tables in taken for table in tables]

    def _group(self, group: int) -> pa.Table:
        table = self._cache.get(self.segment, group)
        return table if table is not None else self._load([group])[0]

    def _load(self, groups: Sequence[int]) -> list[pa.Table]:
        tables = self._read(groups)
        if len(tables) > 1:  # slices of one table, of which any would keep all in memory
            tables = [table.take(pa.array(range(len(table)), pa.int64())) for table in tables]
        for group, table in zip(groups, tables, strict=True):
            self._cache.keep(self.segment, group, table)
        return tables

    def _read(self, groups: Sequence[int]) -> list[pa.Table]:
        header, key = self._header(), index_key(self.segment.index)
        if self._groups is None:
            footer = read_footer(self._backend, header)
            self._groups = SparseTable(self._backend, key, header.groups, header.footer, footer_bytes=footer)
        tables = self._groups.read(groups)
        for group, table in zip(groups, tables, strict=True):
            if len(table) != min(GROUP_ROWS, self.segment.rows - group * GROUP_ROWS):
                raise IntegrityError(f"{key} has other row groups than its directory says; {RESTORE}")
        return [_numbered(table, self.segment.commit, key) for table in tables]

    def _groups_between(self, first: str, end: str) -> list[int]:
        """Return the row groups that hold names from `first` until before `end`."""
        names = self._header().names
        start = max(0, bisect_left(names, first) - 1)  # names of one group may go on in the next
        return list(range(start, max(start, bisect_left(names, end))))


def _windows(groups: Sequence[int]) -> Iterator[list[int]]:
    """Split ascending numbers of row groups into runs of neighbours that are worth one request each."""
    window: list[int] = []
    for group in groups:
        if window and (group != window[-1] + 1 or len(window) == _WINDOW_GROUPS):
            yield window
            window = []
        window.append(group)
    if window:
        yield window


_KEYED = {"version": (VERSION_KEYS, VERSION_ROWS), "recipe": (RECIPE_KEYS, RECIPE_ROWS)}


def in_order(
    sources: Iterable[Source], columns: Sequence[str], first: str = "", end: str = "\U0010ffff"
) -> Iterator[pa.Table]:
    """Yield the rows of all sources as `Source.chunks` does for one, all rows of a name in one table.

    What is in memory is sorted together first: there may be very many small files.
    """
    held: list[pa.Table] = []
    streams: list[Iterator[pa.Table]] = []
    for source in sources:
        chunks = source.chunks(columns, first, end)
        if isinstance(source, Held):
            held += chunks
        else:
            streams.append(chunks)
    if held:
        streams.append(iter([sorted_rows(pa.concat_tables(held))]))
    return merged(streams)


def open_bundle(backend: Backend, bundle: Bundle, sources: Mapping[str, Source]) -> None:
    """Give all members of a bundle among `sources` their version key tables, by one request.

    Those that a damaged or missing bundle does not give, their own directories do.
    """
    regions, offset = {}, 0
    for member in bundle.members:
        source = sources.get(member)
        lead = source.segment.lead if source else None
        if not isinstance(source, Stored) or lead is None:
            return  # without its length, those behind it cannot be found
        region = Region(offset, lead.version_keys.length, lead.version_keys.digest)
        offset = region.end
        if not source.is_prepared("version"):
            regions[region] = source
    try:
        tables = read_regions(backend, bundle_key(bundle.digest), list(regions), holds=lambda _: "key tables")
        for source, data in zip(regions.values(), tables, strict=True):
            source.accept_version_keys(bytes(data))
    except IntegrityError as error:
        _log.warning("%s is opened segment by segment: %s", backend.url, error)


def hold(backend: Backend, segment: Segment) -> Held:
    """Read a whole index file; raises `IntegrityError` if it is missing or damaged."""
    try:
        return Held(segment, backend.read(index_key(segment.index)))
    except KeyMissing as error:
        raise IntegrityError(f"an index file that the log names is missing ({error}); {RESTORE}") from error


def open_source(backend: Backend, segment: Segment, cache: GroupCache) -> Source:
    """Open an index file: held if it is small or has no directory, else looked into by need."""
    if segment.rows <= SMALL_ROWS:
        return hold(backend, segment)
    if segment.lead is not None:
        return Stored(backend, segment, cache)
    try:
        directory = read_directory(backend, segment.index)
    except KeyMissing:  # earlier versions wrote none
        return hold(backend, segment)
    except IntegrityError as error:
        _log.warning("%s is read whole, which takes longer: %s", index_key(segment.index), error)
        return hold(backend, segment)
    opened = Segment(segment.index, directory.rows, segment.commit, directory.lead)
    return Stored(backend, opened, cache, directory)


def _decoded(index: str, decode: Any, data: bytes, count: int) -> Any:
    try:
        return decode(data, count)
    except ValueError as error:
        raise IntegrityError(
            f"{directory_key(index)} is not what its header says; delete that object"
        ) from error


def _numbered(table: pa.Table, commit: int, key: str) -> pa.Table:
    """Return `table` with `commit` where it says none; it cannot say one that came later."""
    numbers = pc.if_else(pc.equal(table["commit"], 0), pa.scalar(commit, pa.int64()), table["commit"])
    if pc.any(pc.greater(numbers, commit)).as_py():
        raise IntegrityError(f"{key} has rows of commits after the one that names it; {RESTORE}")
    return table.set_column(SCHEMA.get_field_index("commit"), SCHEMA.field("commit"), numbers)
