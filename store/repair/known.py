"""Where the rows of lost index files may still be: merged index files, snapshots, and parts of builds.

Index files merged from others and snapshots say of every row which commit made it visible. Parts do not, but
the log says which build a commit published, and the digest of exactly the parts that it took.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from itertools import combinations, islice

import pyarrow as pa
import pyarrow.compute as pc

from store.entry import Commit
from store.format import canonical_json, index_key, parts_prefix, sha256, snapshot_rows_key
from store.rows import SCHEMA, decode_batches
from store.verify.inspection import Inspection

_LISTED = ["version", "commit"]
_MOST_SUBSETS = 4096
"""Sets of parts that are tried for one commit, where not all parts of the build were committed together."""


class KnownRows:
    """Rows of lost commits that intact files still have, and what else they tell.

    `numbered` are rows that say themselves which commit they are of, by its number; `sizes` are those of all
    packs that any intact table names.
    """

    def __init__(self, inspection: Inspection, commits: Collection[int]) -> None:
        self._inspection = inspection
        self._survey = inspection.survey
        self.sizes: dict[str, int] = dict(inspection.packs.sizes)
        self.numbered: dict[int, pa.Table] = {}
        self._visible: pa.Table | None = None
        self._damaged = {finding.key for finding in inspection.report.findings}
        found: dict[int, list[pa.Table]] = defaultdict(list)
        wanted = pa.array(sorted(commits), pa.int64())
        for table in self._numbered_tables() if commits else ():
            rows = table.filter(pc.is_in(table["commit"], value_set=wanted))
            for number in rows["commit"].unique().to_pylist():
                found[number].append(rows.filter(pc.equal(rows["commit"], number)))
        for number, tables in found.items():
            self.numbered[number] = first_of_each(pa.concat_tables(tables))

    def of_parts(self, commit: Commit) -> Iterator[pa.Table]:
        """Yield the rows of parts of the commit's build: of those that it took, if there, and of all."""
        tables: dict[str, pa.Table] = {}
        for key in self._survey.keys(parts_prefix(commit.build)) if commit.build else ():
            if key not in self._damaged:
                metadata, batches = decode_batches(self._survey.read(key), key)
                self.sizes.update(metadata["packs"])
                digest = key.rpartition("/")[2].removesuffix(".parquet")
                tables[digest] = pa.concat_tables([SCHEMA.empty_table(), *batches])
        taken = _taken(sorted(tables), commit.receipts)
        for chosen in (taken, tuple(sorted(tables))):
            if chosen:
                yield first_of_each(pa.concat_tables([tables[digest] for digest in chosen]))

    def earlier(self, versions: Collection[str]) -> dict[str, int]:
        """Return, for those of `versions` that an intact index file has, the first commit that it was of."""
        if self._visible is None:
            self._visible = pa.concat_tables([SCHEMA.empty_table().select(_LISTED), *self._visible_rows()])
        wanted = pa.array(sorted(versions), pa.string())
        rows = self._visible.filter(pc.is_in(self._visible["version"], value_set=wanted))
        found: dict[str, int] = {}
        for version, number in zip(*(column.to_pylist() for column in rows.columns), strict=True):
            found[version] = min(number, found.get(version, number))
        return found

    def named_packs(self) -> set[str]:
        """Return the packs that intact index files, snapshots, or parts of builds without a commit name."""
        inspection = self._inspection
        built = {commit.build for commit in inspection.history.commits.values()}
        found = set(inspection.tables.sizes) | inspection.snapshots.packs_of(inspection.history.pinned)
        found |= inspection.history.removals.dead.keys()
        for key in self._survey.keys("builds/", ".parquet"):
            if key not in self._damaged and key.split("/")[1] not in built:
                found.update(decode_batches(self._survey.read(key), key)[0]["packs"])
        return found

    def _visible_rows(self) -> Iterator[pa.Table]:
        tables = self._inspection.tables
        for digest in tables.needed():
            if digest in tables.intact:
                for table in tables.living(digest, self._survey.read(index_key(digest))):
                    yield table.replace_schema_metadata(None).select(_LISTED)

    def _numbered_tables(self) -> Iterator[pa.Table]:
        for digest in sorted(self._inspection.tables.intact):
            metadata, batches = decode_batches(self._survey.read(index_key(digest)), index_key(digest))
            self.sizes.update(metadata["packs"])
            yield from batches
        for digest in sorted(self._inspection.snapshots.files):
            key = snapshot_rows_key(digest)
            yield from decode_batches(self._survey.read(key), key)[1]


def first_of_each(table: pa.Table) -> pa.Table:
    """Return the first row of each version, in order."""
    first = {version: n for n, version in reversed(list(enumerate(table["version"].to_pylist())))}
    return table if len(first) == len(table) else table.take(pa.array(sorted(first.values()), pa.int64()))


def _taken(parts: Sequence[str], receipts: str) -> tuple[str, ...]:
    """Return the parts whose digests make `receipts`, none if no set that is tried does."""
    sizes = range(len(parts), 0, -1)
    sets = (chosen for size in sizes for chosen in combinations(parts, size))
    for chosen in islice(sets, _MOST_SUBSETS):
        if sha256(canonical_json(list(chosen))) == receipts:
            return chosen
    return ()
