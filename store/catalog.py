"""The catalog: every visible version, found by version, name or recipe.

It is read once and then incrementally: a refresh costs one request when nothing was committed, and else the
new log entries and their index files. If two commits raced to publish one version, the first one counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import pyarrow as pa

from store.backend import Backend
from store.checkpoint import BLOCK
from store.errors import IntegrityError, KeyMissing
from store.fetch import fetch_all
from store.format import RESTORE, check_digest, index_key
from store.log import Log
from store.rows import Row, decode_table, rows_of

_Place = tuple[int, int]
"""Number of a table and position in it."""


class Catalog:
    """A view of all visible versions that `refresh` brings up to date. Safe to share between threads."""

    def __init__(self, backend: Backend, log: Log) -> None:
        self._backend = backend
        self._store_log = log
        self._lock = log.lock  # one lock for both: a commit refreshes the catalog while it holds the log
        self._seen = 0
        self._tables: list[tuple[pa.Table, int]] = []
        self._by_version: dict[str, _Place] = {}
        self._by_name: dict[str, _Place] = {}
        self._by_recipe: dict[str, list[_Place]] = defaultdict(list)
        self.pack_sizes: dict[str, int] = {}

    def refresh(self) -> None:
        """Read what was committed since the last call."""
        with self._lock:
            self._store_log.refresh()
            sources: list[tuple[str, int]] = []
            seen = self._seen
            if seen == 0:
                merged = self._store_log.checkpoint.merged
                sources += [(digest, 0) for digest in merged if digest]
                seen = len(merged) * BLOCK
            commits = self._store_log.commits()
            sources += [(digest, commit.sequence) for commit in commits[seen:] for digest in commit.indexes]
            self._load(sources)
            self._seen = len(commits)

    def find(self, recipe: str) -> Row | None:
        """Return the first published version that the step with fingerprint `recipe` made, or None.

        The first, so that every later run agrees on it even if two runs raced.
        """
        rows = self.find_all(recipe)
        return rows[0] if rows else None

    def find_all(self, recipe: str) -> list[Row]:
        """Return every version that the step with fingerprint `recipe` made, in the order published."""
        with self._lock:
            return self._rows(self._by_recipe.get(recipe, []) if recipe else [])

    def latest(self, full_name: str) -> Row | None:
        """Return the newest version of `kind/name`, or None."""
        with self._lock:
            place = self._by_name.get(full_name)
            return self._rows([place])[0] if place else None

    def get(self, version: str) -> Row | None:
        """Return the row of an exact version, or None."""
        with self._lock:
            place = self._by_version.get(version)
            return self._rows([place])[0] if place else None

    def get_all(self, versions: Iterable[str]) -> dict[str, Row]:
        """Return the rows of those `versions` that are visible; far faster than `get` one by one."""
        with self._lock:
            places = [self._by_version[version] for version in versions if version in self._by_version]
            return {row.version: row for row in self._rows(places)}

    def rows(self, kind: str | None = None) -> list[Row]:
        """Return every visible version, of one kind or of all, sorted by name and then commit."""
        with self._lock:
            rows = self._rows(list(self._by_version.values()))
        return sorted(
            (row for row in rows if kind is None or row.kind == kind),
            key=lambda row: (row.name, row.commit, row.version),
        )

    def __contains__(self, version: str) -> bool:
        return version in self._by_version

    def __len__(self) -> int:
        return len(self._by_version)

    def _rows(self, places: list[_Place]) -> list[Row]:
        """Materialise rows in the order of `places`, one pass per table."""
        positions: dict[int, list[int]] = defaultdict(list)
        for table, position in places:
            positions[table].append(position)
        found: dict[_Place, Row] = {}
        for number, chosen in positions.items():
            table, commit = self._tables[number]
            for position, row in zip(chosen, rows_of(table, chosen, commit=commit), strict=True):
                found[number, position] = row
        return [found[place] for place in places]

    def _load(self, sources: list[tuple[str, int]]) -> None:
        keys = [index_key(digest) for digest, _ in sources]
        try:
            files = fetch_all(self._backend, keys)
        except KeyMissing as error:
            raise IntegrityError(
                f"an index file that the log names is missing ({error}); {RESTORE}"
            ) from error
        decoded = []
        for (digest, commit), key, data in zip(sources, keys, files, strict=True):
            decoded.append(
                (*decode_table(check_digest(data, digest, key, holds="index of a commit"), key), commit)
            )
        for table, metadata, commit in decoded:  # only now that all of them are known to be intact
            self._admit(table, commit)
            self.pack_sizes.update(metadata["packs"])

    def _admit(self, table: pa.Table, commit: int) -> None:
        number = len(self._tables)
        self._tables.append((table, commit))
        columns = (table[name].to_pylist() for name in ("version", "name", "recipe"))
        for position, (version, name, recipe) in enumerate(zip(*columns, strict=True)):
            if version not in self._by_version:
                self._by_version[version] = number, position
                self._by_name[name] = number, position
                self._by_recipe[recipe].append((number, position))
