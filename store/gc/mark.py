"""Marking: which packs and snapshots nothing keeps alive.

Roots are the snapshots that tags, heads and holds name and those pinned recently, the packs of rows
published recently, and what live builds have written; whatever these need is reached as well. A pack with
one reached element stays whole, and so does everything that its elements require: what stays visible stays
complete.
"""

from __future__ import annotations

from datetime import timedelta

from store.backend import Backend
from store.errors import IntegrityError, SnapshotNotFound
from store.format import RESTORE
from store.gc.reach import Graph
from store.gc.view import View
from store.removals import Removal
from store.snapshot import open_snapshot


class Marker:
    """Marks one store; remembers the packs of snapshots, which never change."""

    def __init__(self, backend: Backend, graph: Graph, *, grace: timedelta, retain: timedelta) -> None:
        self._backend = backend
        self._graph = graph
        self._grace = grace
        self._retain = retain
        self._packs: dict[str, frozenset[str]] = {}

    def unreached(self, view: View) -> Removal:
        """Return what no root reaches.

        What a killed writer left, which nothing names, counts only once it is older than the grace period.
        """
        snapshots = self.kept_snapshots(view)
        live = self._graph.reach(self._kept_packs(view, snapshots))
        packs = {pack for pack in view.visible if pack not in live}
        packs |= {
            pack
            for pack, item in view.packs.items()
            if pack not in view.visible and pack not in live and view.age(item) >= self._grace
        }
        old = {
            snapshot
            for snapshot, files in view.strays.items()
            if all(view.age(item) >= self._grace for item in files)
        }
        return Removal(frozenset(packs), frozenset((view.heads.keys() | old) - snapshots))

    def collectable(self, view: View) -> Removal:
        """Return the part of what is condemned that can go without breaking anything that stays.

        What is not condemned is kept here, reached or not: snapshots and packs that came later may refer to
        what was condemned before.
        """
        condemned = view.removals.condemned
        named = self.kept_snapshots(view)
        snapshots = named | (view.heads.keys() - condemned.snapshots) | view.pinned_since
        young = {
            pack
            for pack in condemned.packs
            if pack in view.packs and view.age(view.packs[pack]) < self._grace
        }
        kept = self._kept_packs(view, snapshots) | (view.visible.keys() - condemned.packs) | young
        live = self._graph.reach(kept)
        return Removal(condemned.packs - live, condemned.snapshots - named)

    def kept_snapshots(self, view: View) -> set[str]:
        """Return the snapshots that roots name; raises `IntegrityError` if one is missing for no good reason.

        A name of a snapshot that was collected keeps what is left of it; see `dangling`.
        """
        gone = view.removals.gone
        young = {name for name, item in view.heads.items() if view.age(item) < self._retain}
        wanted = {**dict.fromkeys(view.pinned, "the log"), **view.names.by_snapshot()}
        for snapshot, name in wanted.items():
            if snapshot not in view.heads and snapshot not in gone:
                self._packs_of(view, snapshot, name)  # a listing may be late
        return (wanted.keys() - dangling(view).keys()) | (young - gone.keys())

    def _kept_packs(self, view: View, snapshots: set[str]) -> set[str]:
        packs = view.protected.packs | view.recent_packs | self._graph.homes(view.protected.requires)
        return packs.union(*(self._packs_of(view, snapshot) for snapshot in sorted(snapshots)))

    def _packs_of(self, view: View, snapshot: str, name: str = "the store") -> frozenset[str]:
        """Return the packs that a snapshot refers to, whether or not their rows are visible.

        What is left of one that was collected may be incomplete, and then keeps nothing.
        """
        if snapshot not in self._packs:
            try:
                self._packs[snapshot] = open_snapshot(self._backend, snapshot).packs()
            except (IntegrityError, SnapshotNotFound) as error:
                if snapshot in view.removals.gone:
                    return frozenset()
                if isinstance(error, IntegrityError):
                    raise
                raise IntegrityError(
                    f"snapshot {snapshot}, which {name} names, is missing, so nobody can tell what it needs; "
                    f"{RESTORE}"
                ) from error
        return self._packs[snapshot]


def dangling(view: View) -> dict[str, str]:
    """Return the named snapshots that were collected and are not there any more, with one of their names."""
    return {
        snapshot: name
        for snapshot, name in view.names.by_snapshot().items()
        if snapshot not in view.heads and snapshot in view.removals.gone
    }


def minus(removal: Removal, other: Removal) -> Removal:
    """Return `removal` without what `other` holds."""
    return Removal(removal.packs - other.packs, removal.snapshots - other.snapshots)


def common(removal: Removal, other: Removal) -> Removal:
    """Return what both hold."""
    return Removal(removal.packs & other.packs, removal.snapshots & other.snapshots)
