"""The catalog: every visible version, found by version, name or recipe.

It is a view of index files and holds few of them: the small ones of recent commits. Of the others it reads
what a question needs (see `store.source`). A refresh costs one request when nothing was committed, and else
the new log entries and their index files. If two commits raced to publish one version, the first one counts.

A row whose pack was collected since its commit is invisible. A row whose pack is condemned is visible to
readers and hidden from writers (`known`, `find`, `find_all`, `find_many`), so that they publish the version
again instead of relying on what may go away.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from store.backend import Backend
from store.entry import PIN, PUBLISH, REPAIR, Commit
from store.errors import IntegrityError
from store.fetch import check_authentic
from store.group_cache import GroupCache
from store.log import Log
from store.manifest import Checkpoint, Segment
from store.parallel import in_parallel
from store.removals import Removal, Removals, read_removal
from store.rows import SCHEMA, Row, rows_of
from store.source import Source, in_order, open_bundle, open_source
from store.visibility import NEEDED, lasting, living, one_per_version, sorted_rows
from store.wanted import Wanted

R = TypeVar("R")
_log = logging.getLogger(__name__)


class Catalog:
    """A view of all visible versions that `refresh` brings up to date. Safe to share between threads."""

    def __init__(self, backend: Backend, log: Log) -> None:
        self._backend = backend
        self._store_log = log
        self._lock = log.lock  # one lock for both: a commit refreshes the catalog while it holds the log
        self._seen = 0
        self._checkpoint = Checkpoint()
        self._plain = True
        self._removals = Removals()
        self._sources: dict[tuple[str, int], Source] = {}
        self._cache = GroupCache()
        self._removal_files: dict[str, Removal] = {}

    @property
    def removals(self) -> Removals:
        """What is condemned, being removed or gone, as of the last `refresh`."""
        return self._removals

    @property
    def sources(self) -> list[Source]:
        """The index files that hold all rows, those of the log's checkpoint first."""
        return list(self._sources.values())

    @property
    def plain(self) -> bool:
        """Whether nothing was ever condemned or repaired, so that no version has two rows."""
        return self._plain

    def refresh(self) -> None:
        """Read what was committed since the last call."""
        with self._lock:
            self._store_log.refresh()
            self.catch_up()

    def catch_up(self) -> None:
        """Take in the commits that the log has read already: no request if there is none."""
        with self._lock:
            while self._checkpoint is not self._store_log.checkpoint or (
                self._seen != self._store_log.tip.sequence
            ):
                try:
                    self._take_in(self._store_log.checkpoint, self._store_log.recent())
                except IntegrityError as error:
                    self._distrust_checkpoint(error)

    def fall_back(self, checkpoint: Checkpoint, error: IntegrityError) -> None:
        """Catch up without `checkpoint`, which led to `error`; raise that if the log itself did.

        What others committed meanwhile is taken in as well.
        """
        with self._lock:
            if self._store_log.checkpoint is checkpoint:  # else another thread went on from another one
                self._distrust_checkpoint(error)
            self.catch_up()

    def known(self, versions: Iterable[str]) -> set[str]:
        """Return those of `versions` that a writer need not publish again."""
        found = self._look_up("version", versions, columns=NEEDED, free=True)
        return set(found["version"].to_pylist())

    def find(self, recipe: str, *, name: str | None = None) -> Row | None:
        """Return the first published version that the step with fingerprint `recipe` made, or None.

        The first, so that every later run agrees on it even if two runs raced. With `name` (`kind/name`) the
        first under that name: for steps whose fingerprint does not know what their element is called.
        """
        if name is None:
            return self.find_many([recipe]).get(recipe)
        return next((row for row in self.find_all(recipe) if row.name == name), None)

    def find_all(self, recipe: str) -> list[Row]:
        """Return every version that the step with fingerprint `recipe` made, in the order published."""
        rows = _rows_in(self._look_up("recipe", [recipe], free=True))
        return sorted(rows, key=lambda row: (row.commit, row.name, row.version))

    def find_many(self, recipes: Iterable[str]) -> dict[str, Row]:
        """Return what `find` returns for each of `recipes`, without those that made nothing."""
        table = self._look_up("recipe", recipes, free=True)
        keys = [("commit", "descending"), ("name", "descending"), ("version", "descending")]
        order = pc.sort_indices(table, sort_keys=keys)
        made = dict(zip(table["recipe"].take(order).to_pylist(), order.to_pylist(), strict=True))
        return {row.recipe: row for row in _rows_in(table.take(pa.array(list(made.values()), pa.int64())))}

    def latest(self, full_name: str) -> Row | None:
        """Return the newest version of `kind/name`, or None."""
        rows = self.versions(full_name)
        return rows[-1] if rows else None

    def versions(self, full_name: str) -> list[Row]:
        """Return every visible version of `kind/name`, oldest first."""
        rows = _rows_in(self._look_up("name", [full_name]))
        return sorted(rows, key=lambda row: (row.commit, row.version))

    def get(self, version: str) -> Row | None:
        """Return the row of an exact version, or None."""
        return self.get_all([version]).get(version)

    def get_all(self, versions: Iterable[str]) -> dict[str, Row]:
        """Return the rows of those `versions` that are visible; far faster than `get` one by one."""
        return {row.version: row for row in _rows_in(self._look_up("version", versions))}

    def newest_commit(self, versions: Iterable[str]) -> int:
        """Return the newest commit that made any of `versions` visible, 0 if none is."""
        return pc.max(self._look_up("version", versions, columns=NEEDED)["commit"]).as_py() or 0

    def rows(self, kind: str | None = None) -> list[Row]:
        """Return every visible version, of one kind or of all, sorted by name and then commit."""
        bounds = () if kind is None else (f"{kind}/", f"{kind}0")  # "0" follows "/"

        def collect() -> list[Row]:
            tables = self._in_order(SCHEMA.names, *bounds)
            wanted = (t if kind is None else t.filter(pc.equal(t["kind"], kind)) for t in tables)
            return [row for table in wanted for row in rows_of(table)]

        return sorted(self._ask(collect), key=lambda row: (row.name, row.commit, row.version))

    def scan(self, columns: Sequence[str], kind: str | None = None) -> Iterator[pa.Table]:
        """Yield `columns` of every visible version, of one kind or of all, by name, in bounded memory.

        Where a checkpoint leads to what is damaged or gone, an older one goes on, in the end the log itself:
        all rows of a name come in one table, so what is missing then is all that comes after the last name.
        """
        first, end = ("", "\U0010ffff") if kind is None else (f"{kind}/", f"{kind}0")
        needed = list(dict.fromkeys([*columns, *NEEDED, "kind"]))
        last = ""
        while True:
            checkpoint, done = self._checkpoint, last
            try:
                for table in self._in_order(needed, max(first, done), end):
                    last = table["name"][-1].as_py()
                    wanted = table.filter(pc.greater(table["name"], done)) if done else table
                    if kind is not None:
                        wanted = wanted.filter(pc.equal(wanted["kind"], kind))
                    yield wanted.select(list(columns))
                return
            except IntegrityError as error:
                self.fall_back(checkpoint, error)

    def packs(self) -> dict[str, int]:
        """Return every pack that a visible row is in, with its size."""

        return {pack: size for pack, size, _ in self._ask(self._living_packs)}

    def packs_since(self, commit: int) -> set[str]:
        """Return every pack that holds a visible row of `commit` or of a later one."""
        return {pack for pack, _, newest in self._ask(self._living_packs) if newest >= commit}

    def __contains__(self, version: str) -> bool:
        return len(self._look_up("version", [version], columns=NEEDED)) > 0

    def __len__(self) -> int:
        with self._lock:
            if self._plain:
                return sum(source.segment.rows for source in self._sources.values())
        return sum(len(table) for table in self.scan(["version"]))

    def _living_packs(self) -> list[tuple[str, int, int]]:
        """Packs with their sizes and the newest commit of a visible row in them, by pack."""
        found: dict[str, tuple[int, int]] = {}
        for source in self._sources.values():
            for pack, (size, newest) in source.packs().items():
                if not self._removals.is_dead(pack, newest):
                    found[pack] = size, max(newest, found[pack][1] if pack in found else 0)
        return [(pack, *found[pack]) for pack in sorted(found)]

    def _look_up(
        self,
        column: str,
        values: Iterable[str],
        *,
        columns: Sequence[str] = SCHEMA.names,
        free: bool = False,
    ) -> pa.Table:
        """Return the row of each version that holds one of `values`; `free`: none of a condemned pack."""
        wanted = Wanted(column, values, columns)
        nothing = SCHEMA.empty_table().select(wanted.columns)

        def collect() -> pa.Table:
            sources = list(self._sources.values())
            if column == "version":
                # Of a file that later commits name again, the one of the checkpoint: it comes first.
                by_index = {source.segment.index: source for source in reversed(sources)}
                for bundle in self._checkpoint.bundles:
                    open_bundle(self._backend, bundle, by_index)
            fresh = [source for source in sources if not source.is_prepared(column)]
            in_parallel(self._backend, lambda source: source.prepare(column), fresh)
            tables = [table for source in sources for table in source.by(wanted)]
            table = living(pa.concat_tables([nothing, *tables]), self._removals)
            table = sorted_rows(lasting(table, self._removals) if free else table)
            return one_per_version(table, self._removals)

        return self._ask(collect) if wanted.values else nothing

    def _in_order(self, columns: Sequence[str], *bounds: str) -> Iterator[pa.Table]:
        with self._lock:
            removals = self._removals
            sources = list(self._sources.values())
        for table in in_order(sources, columns, *bounds):
            table = one_per_version(living(table, removals), removals)
            if len(table):
                yield table

    def _ask(self, question: Callable[[], R]) -> R:
        """Answer from the view; from the log itself if a checkpoint led to what is damaged or gone."""
        with self._lock:
            while True:
                try:
                    return question()
                except IntegrityError as error:
                    self._distrust_checkpoint(error)
                    self.catch_up()

    def _distrust_checkpoint(self, error: IntegrityError) -> None:
        """Go back to an older checkpoint, in the end to the log itself; raise `error` if that was in use."""
        if not self._store_log.distrust_checkpoint():
            raise error
        _log.warning("%s is opened again without its newest checkpoint: %s", self._backend.url, error)

    def _take_in(self, checkpoint: Checkpoint, recent: Sequence[Commit]) -> None:
        removals = checkpoint.removals
        for commit in recent:
            removals = removals.after(commit, self._removal_of(commit))
        sources = self._open(_segments(checkpoint, recent))
        if removals.condemned.packs:
            since = max(removals.condemned_at, checkpoint.sequence)
            for source in sources.values():
                if source.segment.commit > since:
                    newest = source.packs().items()
                    removals = removals.without(p for p, (_, n) in newest if n > removals.condemned_at)
        # Taken over together, now that everything was there and intact.
        self._removals = self._removals if removals == self._removals else removals
        self._sources = sources
        self._plain = checkpoint.plain and all(commit.action in (PUBLISH, PIN) for commit in recent)
        self._checkpoint, self._seen = checkpoint, recent[-1].sequence if recent else checkpoint.sequence

    def _open(self, segments: Sequence[Segment]) -> dict[tuple[str, int], Source]:
        """Return the sources of `segments`, in order; those that are open already stay as they are."""
        missing = [segment for segment in segments if (segment.index, segment.commit) not in self._sources]
        opened = in_parallel(self._backend, lambda s: open_source(self._backend, s, self._cache), missing)
        fresh = {(source.segment.index, source.segment.commit): source for source in opened}
        known = {**self._sources, **fresh}
        return {(s.index, s.commit): known[s.index, s.commit] for s in segments}

    def _removal_of(self, commit: Commit) -> Removal | None:
        if not commit.removal:
            return None
        if commit.removal not in self._removal_files:
            self._removal_files[commit.removal] = read_removal(self._backend, commit.removal)
        return self._removal_files[commit.removal]


def _segments(checkpoint: Checkpoint, recent: Sequence[Commit]) -> list[Segment]:
    """Return all index files that hold rows: those of the checkpoint and of the commits after it.

    How many rows an index of a repair has is not said in the log: it is opened as one of unknown size. A file
    that a repair stands in for may be made and named again by a later commit, and counts then.
    """
    replaced = {digest: commit.sequence for commit in recent for digest in commit.replaces}
    segments = [
        *checkpoint.segments,
        *(
            Segment(digest, commit.elements if commit.action != REPAIR else 0, commit.sequence)
            for commit in recent
            for digest in commit.indexes
        ),
    ]
    return [segment for segment in segments if segment.commit > replaced.get(segment.index, 0)]


def _rows_in(table: pa.Table) -> list[Row]:
    """Return rows whose versions are the digests of what they describe; raises `IntegrityError` otherwise."""
    return [check_authentic(row) for row in rows_of(table)]
