"""Index files that were lost: made again byte by byte where the digest proves it, else replaced by a commit.

The encoding is deterministic. So the right rows give the right bytes, whichever place they were found in,
and the digest in the name tells whether they are the right rows. Where no attempt succeeds, a `repair` entry
names an index file with the rows that are known, in place of those that are lost.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from store.entry import REPAIR, Commit
from store.format import directory_key, index_key, log_key, sha256
from store.index import LISTED, SMALL_ROWS, IndexFile, directory_of, encode_index
from store.repair.former import INDEX_GROUP_ROWS, encode_former
from store.repair.frames import LoosePack, choices, loose_packs
from store.repair.known import KnownRows, first_of_each
from store.repair.report import Repaired
from store.rows import SCHEMA, tabulate
from store.verify.inspection import Inspection
from store.visibility import living, sorted_rows


@dataclass(frozen=True, slots=True)
class StandIn:
    """What a `repair` entry is to name: an index file, the lost ones, and what is missing in it, in words."""

    index: IndexFile
    replaces: tuple[str, ...]
    notes: tuple[str, ...]


class IndexRepair:
    """The index files that the log names and that are missing or damaged."""

    def __init__(self, inspection: Inspection, hurt: Collection[str]) -> None:
        self._inspection = inspection
        self._backend = inspection.survey.backend
        history = inspection.history
        self._lost = {
            digest: numbers
            for digest in inspection.tables.lacking()
            if (numbers := [n for n in inspection.tables.numbers_of(digest) if n in history.commits])
            and digest in history.indexes
            and index_key(digest) in hurt
        }
        commits = {number for digest in self._lost for number in self._commits_of(digest)}
        self._known = KnownRows(inspection, commits)
        self._earlier: dict[str, int] = {}
        self._asked: set[str] = set()
        self._taken: set[str] = set()
        self._loose: list[LoosePack] | None = None

    def rebuild(self) -> Iterator[Repaired]:
        """Make again those whose rows are found: merged files, snapshots and parts first, then frames."""
        for number, digest in sorted((numbers[0], digest) for digest, numbers in self._lost.items()):
            commit = self._inspection.history.commits[number]
            for table, where in self._candidates(commit):
                data = self._encoded(table, commit, digest)
                if data:
                    self._write(digest, data, table)
                    self._take(table, number)
                    del self._lost[digest]
                    yield Repaired(index_key(digest), f"made again from {where}")
                    break

    def stand_in(self) -> StandIn | None:
        """Return what a `repair` entry should name for those that are still lost; None for nothing."""
        tables, replaces, notes = [], [], []
        for digest, numbers in sorted(self._lost.items(), key=lambda item: item[1]):
            rows = [self._remaining(number) for number in self._commits_of(digest)]
            count = sum(map(len, rows))
            if not count:
                continue  # a store that does not open tells more than one that hides what it lost
            tables += [living(table, self._inspection.history.removals) for table in rows]
            replaces.append(digest)
            commit = self._inspection.history.commits[numbers[0]]
            if commit.action != REPAIR and count != commit.elements:
                notes.append(
                    f"of the {commit.elements} elements of commit {numbers[0]}, {count} are known again; run "
                    f"its build {commit.build!r} again to publish the others"
                )
        if not replaces:
            return None
        index = encode_index(sorted_rows(pa.concat_tables(tables)), self._known.sizes)
        return StandIn(index, tuple(replaces), tuple(notes))

    def _commits_of(self, digest: str) -> list[int]:
        """Return the commits whose rows an index file holds; those of a repair are of others."""
        history = self._inspection.history
        found = []
        for number in history.indexes.get(digest, ()):
            commit = history.commits.get(number)
            if commit is None:
                continue
            named = commit.replaces if commit.action == REPAIR else ()
            found += [n for replaced in named for n in history.indexes.get(replaced, ())] or [number]
        return found

    def _candidates(self, commit: Commit) -> Iterator[tuple[pa.Table, str]]:
        """Yield tables that may be the rows of a lost index file, and where they are from."""
        if commit.action == REPAIR:
            numbers = sorted({n for digest in commit.indexes for n in self._commits_of(digest)})
            tables = [self._known.numbered[n] for n in numbers if n in self._known.numbered]
            yield pa.concat_tables([SCHEMA.empty_table(), *tables]), "merged index files and snapshots"
            return
        numbered = self._known.numbered.get(commit.sequence, SCHEMA.empty_table())
        yield _without_number(numbered), "merged index files and snapshots"
        for table in self._known.of_parts(commit):
            yield table, f"parts of build {commit.build}"
            yield self._new(table, commit.sequence), f"parts of build {commit.build}"
        for _, rows in choices(commit, self._loose_packs(), self._earlier):
            yield tabulate(rows), "frames of packs"

    def _new(self, table: pa.Table, number: int) -> pa.Table:
        """Return the rows of those versions that no earlier commit made visible."""
        versions = table["version"].to_pylist()
        self._look_up(versions)
        new = [self._earlier.get(version, number) >= number for version in versions]
        return table.filter(pa.array(new, pa.bool_()))

    def _look_up(self, versions: Iterable[str]) -> None:
        fresh = set(versions) - self._asked
        self._asked |= fresh
        for version, number in self._known.earlier(fresh).items():
            self._earlier[version] = min(number, self._earlier.get(version, number))

    def _take(self, table: pa.Table, number: int) -> None:
        """Remember that these rows are those of a commit, so that no other one gets them."""
        for version in table["version"].to_pylist():
            self._earlier[version] = min(number, self._earlier.get(version, number))
        self._taken.update(table["pack"].unique().to_pylist())

    def _loose_packs(self) -> list[LoosePack]:
        if self._loose is None:
            self._loose = loose_packs(self._backend, self._known.named_packs())
            self._look_up(row.version for pack in self._loose for row in pack.rows)
        return [pack for pack in self._loose if pack.digest not in self._taken]

    def _encoded(self, table: pa.Table, commit: Commit, digest: str) -> bytes:
        """Return the index file with those rows if it is the lost one, as it is written or was once."""
        if commit.action != REPAIR and len(table) != commit.elements:
            return b""
        packs = table["pack"].unique().to_pylist()
        if not all(pack in self._known.sizes for pack in packs):
            return b""
        table = sorted_rows(table)
        for encode in _ENCODINGS:
            data = encode(table, {pack: self._known.sizes[pack] for pack in packs})
            if sha256(data) == digest:
                return data
        return b""

    def _write(self, digest: str, data: bytes, table: pa.Table) -> None:
        """Write an index file, and the directory of a large one unless there is one."""
        self._backend.put(index_key(digest), data)
        key = directory_key(digest)
        if len(table) > SMALL_ROWS and key not in self._inspection.survey.sizes:
            listed = sorted_rows(table).select(LISTED)
            self._backend.put(key, directory_of(data, listed, self._known.sizes))

    def _remaining(self, number: int) -> pa.Table:
        """Return all rows of a lost commit that are known in any way, with its number."""
        commit = self._inspection.history.commits[number]
        tables = [self._known.numbered.get(number, SCHEMA.empty_table())]
        tables += [self._new(table, number) for table in self._known.of_parts(commit)]
        table = first_of_each(pa.concat_tables(tables))
        if len(table) < commit.elements:
            table = first_of_each(pa.concat_tables([table, self._likely(commit)]))
        self._take(table, number)
        return _with_number(table, number)

    def _likely(self, commit: Commit) -> pa.Table:
        """Return the rows in packs that were written before the commit and have its numbers to the byte.

        Elements that were never published must not become visible: so nothing is taken that only might be
        the commit's.
        """
        entry = self._backend.info(log_key(commit.sequence))
        before = [
            pack for pack in self._loose_packs() if entry is not None and pack.modified <= entry.modified
        ]
        return tabulate(next((rows for _, rows in choices(commit, before, self._earlier)), []))


def _present(table: pa.Table, sizes: Mapping[str, int]) -> bytes:
    return encode_index(table, sizes).data


def _former(table: pa.Table, sizes: Mapping[str, int]) -> bytes:
    return encode_former(table, {"packs": sizes}, group_size=INDEX_GROUP_ROWS)


_ENCODINGS = (_present, _former)


def _without_number(table: pa.Table) -> pa.Table:
    return _with_number(table, 0)


def _with_number(table: pa.Table, number: int) -> pa.Table:
    position = SCHEMA.get_field_index("commit")
    return table.set_column(position, SCHEMA.field(position), pa.array([number] * len(table), pa.int64()))
