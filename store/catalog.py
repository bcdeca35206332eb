"""The catalog: every visible version, found by version, name or recipe.

It is read once and then incrementally: a refresh costs one request when nothing was committed, and else the
new log entries and their index files. If two commits raced to publish one version, the first one counts.

A row whose pack was collected since its commit is invisible. A row whose pack is condemned is visible to
readers and hidden from writers (`known`, `find`, `find_all`, `find_many`), so that they publish the version
again instead of relying on what may go away.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from store.backend import Backend
from store.checkpoint import BLOCK
from store.errors import IntegrityError, KeyMissing
from store.fetch import fetch_all
from store.format import RESTORE, check_digest, index_key
from store.log import Commit, Log
from store.removals import Removals, read_removal
from store.rows import SCHEMA, Row, decode_table, rows_of


class _Place(NamedTuple):
    """Where a row is: number of a table and position in it; and what decides whether it is visible."""

    table: int
    position: int
    commit: int
    pack: str


class Catalog:
    """A view of all visible versions that `refresh` brings up to date. Safe to share between threads."""

    def __init__(self, backend: Backend, log: Log) -> None:
        self._backend = backend
        self._store_log = log
        self._lock = log.lock  # one lock for both: a commit refreshes the catalog while it holds the log
        self._seen = 0
        self._removals = Removals()
        self._tables: list[pa.Table] = []
        self._by_version: dict[str, list[_Place]] = defaultdict(list)
        self._by_name: dict[str, set[str]] = defaultdict(set)
        self._by_recipe: dict[str, set[str]] = defaultdict(set)
        self._sizes: dict[str, int] = {}

    @property
    def removals(self) -> Removals:
        """What is condemned, being removed or gone, as of the last `refresh`."""
        return self._removals

    def refresh(self) -> None:
        """Read what was committed since the last call."""
        with self._lock:
            self._store_log.refresh()
            self.catch_up()

    def catch_up(self) -> None:
        """Take in the commits that the log has read already: no request if there is none."""
        with self._lock:
            commits = self._store_log.commits()
            sources: list[tuple[str, int]] = []
            seen = self._seen
            if seen == 0:
                merged = self._store_log.checkpoint.merged
                sources += [(digest, 0) for digest in merged if digest]
                seen = len(merged) * BLOCK
            replaced = {digest for commit in commits for digest in commit.replaces}
            sources += [
                (digest, commit.sequence)
                for commit in commits[seen:]
                for digest in commit.indexes
                if digest not in replaced
            ]
            removals = self._fold(commits[self._seen :])
            tables = self._fetch(sources)
            for table, sizes in tables:  # only now that all of them are known to be intact
                self._admit(table)
                self._sizes.update(sizes)
            self._removals = removals.without(_packs_since(removals.condemned_at, tables))
            self._seen = len(commits)

    def known(self, versions: Iterable[str]) -> set[str]:
        """Return those of `versions` that a writer need not publish again."""
        with self._lock:
            return {version for version in versions if self._place(version, free=True) is not None}

    def find(self, recipe: str) -> Row | None:
        """Return the first published version that the step with fingerprint `recipe` made, or None.

        The first, so that every later run agrees on it even if two runs raced.
        """
        rows = self.find_all(recipe)
        return rows[0] if rows else None

    def find_all(self, recipe: str) -> list[Row]:
        """Return every version that the step with fingerprint `recipe` made, in the order published."""
        with self._lock:
            versions = self._by_recipe.get(recipe, ()) if recipe else ()
            rows = self._rows(self._place(version, free=True) for version in versions)
        return sorted(rows, key=lambda row: (row.commit, row.name, row.version))

    def find_many(self, recipes: Iterable[str]) -> dict[str, Row]:
        """Return what `find` returns for each of `recipes`, without those that made nothing."""
        found = ((recipe, self.find(recipe)) for recipe in recipes)
        return {recipe: row for recipe, row in found if row is not None}

    def latest(self, full_name: str) -> Row | None:
        """Return the newest version of `kind/name`, or None."""
        with self._lock:
            rows = self._rows(self._place(version) for version in self._by_name.get(full_name, ()))
        return max(rows, key=lambda row: (row.commit, row.version), default=None)

    def get(self, version: str) -> Row | None:
        """Return the row of an exact version, or None."""
        return self.get_all([version]).get(version)

    def get_all(self, versions: Iterable[str]) -> dict[str, Row]:
        """Return the rows of those `versions` that are visible; far faster than `get` one by one."""
        with self._lock:
            return {row.version: row for row in self._rows(self._place(version) for version in versions)}

    def rows(self, kind: str | None = None) -> list[Row]:
        """Return every visible version, of one kind or of all, sorted by name and then commit."""
        with self._lock:
            rows = self._rows(self._place(version) for version in self._by_version)
        return sorted(
            (row for row in rows if kind is None or row.kind == kind),
            key=lambda row: (row.name, row.commit, row.version),
        )

    def scan(self, columns: Sequence[str]) -> Iterator[pa.Table]:
        """Yield `columns` of every visible version, in tables of bounded size and no particular order."""
        with self._lock:
            chosen: dict[int, list[int]] = defaultdict(list)
            for version in self._by_version:
                place = self._place(version)
                if place is not None:
                    chosen[place.table].append(place.position)
            tables = [
                self._tables[number].select(list(columns)).take(pa.array(positions, pa.int64()))
                for number, positions in chosen.items()
            ]
        yield from tables

    def packs(self) -> dict[str, int]:
        """Return every pack that a visible row is in, with its size."""
        with self._lock:
            places = (place for places in self._by_version.values() for place in places)
            used = {place.pack for place in places if not self._removals.is_dead(place.pack, place.commit)}
            return {pack: self._sizes[pack] for pack in sorted(used)}

    def __contains__(self, version: str) -> bool:
        with self._lock:
            return self._place(version) is not None

    def __len__(self) -> int:
        with self._lock:
            return sum(self._place(version) is not None for version in self._by_version)

    def _place(self, version: str, *, free: bool = False) -> _Place | None:
        """Return the first row of a version that is visible and not condemned; else, unless `free`, any."""
        places = self._by_version.get(version, ())
        living = [place for place in places if not self._removals.is_dead(place.pack, place.commit)]
        lasting = [place for place in living if place.pack not in self._removals.condemned.packs]
        if lasting or free:
            return lasting[0] if lasting else None
        return living[0] if living else None

    def _rows(self, places: Iterable[_Place | None]) -> list[Row]:
        """Materialise rows, one pass per table."""
        positions: dict[int, list[int]] = defaultdict(list)
        for place in places:
            if place is not None:
                positions[place.table].append(place.position)
        return [row for number, chosen in positions.items() for row in rows_of(self._tables[number], chosen)]

    def _fold(self, commits: Sequence[Commit]) -> Removals:
        removals = self._removals
        for commit in commits:
            removal = read_removal(self._backend, commit.removal) if commit.removal else None
            removals = removals.after(commit, removal)
        return removals

    def _fetch(self, sources: list[tuple[str, int]]) -> list[tuple[pa.Table, dict[str, Any]]]:
        """Read index files; rows that do not say which commit they are of get that of their source."""
        keys = [index_key(digest) for digest, _ in sources]
        try:
            files = fetch_all(self._backend, keys)
        except KeyMissing as error:
            raise IntegrityError(
                f"an index file that the log names is missing ({error}); {RESTORE}"
            ) from error
        tables = []
        for (digest, commit), key, data in zip(sources, keys, files, strict=True):
            table, metadata = decode_table(check_digest(data, digest, key, holds="index of a commit"), key)
            if not set(table["pack"].unique().to_pylist()) <= metadata["packs"].keys():
                raise IntegrityError(f"{key} does not say how large its packs are; {RESTORE}")
            tables.append((_numbered(table, commit, key), metadata["packs"]))
        return tables

    def _admit(self, table: pa.Table) -> None:
        number = len(self._tables)
        self._tables.append(table)
        columns = (table[name].to_pylist() for name in ("version", "name", "recipe", "commit", "pack"))
        for position, (version, name, recipe, commit, pack) in enumerate(zip(*columns, strict=True)):
            places = self._by_version[version]
            if not any((place.commit, place.pack) == (commit, pack) for place in places):
                places.append(_Place(number, position, commit, pack))
                places.sort(key=lambda place: place.commit)
            self._by_name[name].add(version)
            self._by_recipe[recipe].add(version)


def _numbered(table: pa.Table, commit: int, key: str) -> pa.Table:
    """Return `table` with `commit` where it says none; it cannot say one that came later."""
    if not commit:
        return table
    numbers = pc.if_else(pc.equal(table["commit"], 0), pa.scalar(commit, pa.int64()), table["commit"])
    if pc.any(pc.greater(numbers, commit)).as_py():
        raise IntegrityError(f"{key} has rows of commits after the one that names it; {RESTORE}")
    return table.set_column(SCHEMA.get_field_index("commit"), SCHEMA.field("commit"), numbers)


def _packs_since(commit: int, tables: Iterable[tuple[pa.Table, dict[str, Any]]]) -> set[str]:
    """Return the packs of rows that were committed after `commit`."""
    packs: set[str] = set()
    for table, _ in tables:
        packs.update(table.filter(pc.greater(table["commit"], commit))["pack"].unique().to_pylist())
    return packs
