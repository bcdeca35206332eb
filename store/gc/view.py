"""One look at a store: what is there, how old it is by the storage's clock, and what keeps it alive."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from store.backend import Backend, ObjectInfo
from store.catalog import Catalog
from store.errors import AccessDenied, ReadOnly
from store.format import (
    ENTRY_PREFIX,
    FORMAT_KEY,
    PACK_PREFIX,
    SNAPSHOT_PREFIX,
    is_digest,
    log_key,
    pack_key,
    snapshot_key,
)
from store.gc.names import BuildFiles, Names, Protected, read_builds, read_protected
from store.gc.reach import Graph
from store.gc.strays import rows_files, stray_rows
from store.log import PIN, Log, is_entry
from store.removals import Removals


@dataclass(frozen=True, slots=True)
class View:
    """What a collection decides on.

    `packs` and `heads` are the listed packs and head records of snapshots by digest and id, `strays` rows
    files without a head; `visible` the packs of visible rows with their sizes; `recent` the first commit
    within the time of retention; `pinned` the snapshots pinned since then, and `pinned_since` those pinned
    since the condemnation.
    """

    now: datetime
    names: Names
    builds: list[BuildFiles]
    protected: Protected
    packs: dict[str, ObjectInfo]
    heads: dict[str, ObjectInfo]
    strays: dict[str, list[ObjectInfo]]
    visible: dict[str, int]
    removals: Removals
    condemned_time: datetime | None
    recent_packs: set[str]
    pinned: frozenset[str]
    pinned_since: frozenset[str]

    def age(self, item: ObjectInfo) -> timedelta:
        """Return how long ago an object was written."""
        return self.now - item.modified


class Viewer:
    """Looks at one store again and again; what cannot have changed is not read again."""

    def __init__(self, backend: Backend, log: Log, catalog: Catalog, graph: Graph, retain: timedelta) -> None:
        self._backend = backend
        self._log = log
        self._catalog = catalog
        self._graph = graph
        self._retain = retain

    def look(self, *, writable: bool) -> View:
        """Look at the store as of what the log has read; `writable` False makes do with reading.

        Names are read before objects are listed, so that what is listed without a name had none.
        """
        self._catalog.catch_up()
        self._graph.catch_up()
        now = self._now(writable=writable)
        recent = self._first_recent(now)
        removals = self._catalog.removals
        names = Names.read(self._backend, now)
        listed = list(self._backend.list(SNAPSHOT_PREFIX))
        heads = list_heads(listed)
        builds = list(read_builds(self._backend, now))
        since = min(recent, removals.condemned_at + 1) if removals.condemned_at else recent
        pins = {number: snapshot for number, snapshot in self._pins(since) if snapshot not in removals.gone}
        return View(
            now=now,
            names=names,
            builds=builds,
            protected=read_protected(self._backend, builds),
            packs=list_packs(self._backend),
            heads=heads,
            strays=stray_rows(self._backend, heads, rows_files(listed)),
            visible=self._catalog.packs(),
            removals=removals,
            condemned_time=self.time_of(removals.condemned_at),
            recent_packs=self._catalog.packs_since(recent),
            pinned=frozenset(snapshot for number, snapshot in pins.items() if number >= recent),
            pinned_since=frozenset(
                snapshot for number, snapshot in pins.items() if number > removals.condemned_at > 0
            ),
        )

    def _now(self, *, writable: bool) -> datetime:
        try:
            return self._backend.now()
        except (AccessDenied, ReadOnly):
            if writable:
                raise
            # A folder that cannot be written has no clock; nothing in it is younger than its newest object.
            listed = [*self._backend.list(FORMAT_KEY), *self._backend.list(ENTRY_PREFIX)]
            return max(item.modified for item in listed)

    def _first_recent(self, now: datetime) -> int:
        """Return the number of the first entry younger than the time of retention, or of unknown age."""
        expected = 1
        for item in self._backend.list(ENTRY_PREFIX):
            if is_entry(item.key):
                if item.key != log_key(expected) or now - item.modified < self._retain:
                    return expected
                expected += 1
        return expected

    def time_of(self, entry: int) -> datetime | None:
        """Return when a log entry was written, None if there is none of that number."""
        info = self._backend.info(log_key(entry)) if entry else None
        return info.modified if info else None

    def _pins(self, since: int) -> Iterator[tuple[int, str]]:
        for number in range(since, self._log.tip.sequence + 1):
            commit = self._log.at(number)
            if commit.action == PIN:
                yield number, commit.snapshot


def list_packs(backend: Backend) -> dict[str, ObjectInfo]:
    """Return all packs by digest."""
    named = ((item.key.rpartition("/")[2], item) for item in backend.list(PACK_PREFIX))
    return {digest: item for digest, item in named if is_digest(digest) and item.key == pack_key(digest)}


def list_heads(listed: Iterable[ObjectInfo]) -> dict[str, ObjectInfo]:
    """Pick the head records out of a listing of snapshots, by id."""
    named = ((item.key.removeprefix(SNAPSHOT_PREFIX).removesuffix(".json"), item) for item in listed)
    return {identity: item for identity, item in named if item.key == snapshot_key(identity)}
