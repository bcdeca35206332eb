"""Garbage collection: condemn what nothing reaches, and remove it a grace period later.

1. finish what an interrupted collection left,
2. remove the files of builds that are over,
3. collect what was condemned at least a grace period ago and still is not reached: one log entry that takes
   effect for everybody at once, then the index, snapshots, and packs last,
4. condemn what is not reached now,
5. remove derived files that newer ones replaced a grace period ago.

Ages are taken from the storage's clock alone. Nothing is deleted that a writer, a pin or a name could have
referred to unseen: the log orders the collection among them, and `docs/formats.md` says how.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import timedelta

from store.backend import ObjectInfo
from store.checkpoint import write_checkpoint
from store.errors import InputError
from store.gc.derived import superseded
from store.gc.mark import Marker, common, dangling, minus
from store.gc.reach import Graph
from store.gc.summary import NOTHING, Amount, Summary
from store.gc.sweep import over, remove_builds, remove_old, sweep
from store.gc.turn import Turn
from store.gc.view import View, Viewer
from store.lease import LEASE_SECONDS
from store.log import COLLECT, CONDEMN, SWEPT, Commit, Draft
from store.removals import Removal, write_removal
from store.store import Store
from store.verify import Progress, silent

GRACE = timedelta(days=7)
RETAIN = timedelta(days=30)
_LONGEST = timedelta(days=36_500)


def collect(
    store: Store,
    *,
    apply: bool = False,
    grace: timedelta = GRACE,
    retain: timedelta = RETAIN,
    progress: Progress = silent,
) -> Summary:
    """Say what garbage collection would do now, or do it if `apply`.

    What no root reaches is condemned first and removed by a later run, `grace` after that. Roots are tags,
    heads, holds, live builds, and what was published or pinned within `retain`.

    Raises `InputError` if `grace` is not longer than a lease can last, `CollectorBusy` if another collection
    may be at work, `IntegrityError` if damage hides what is still needed; nothing is removed then.
    """
    if grace <= timedelta(seconds=LEASE_SECONDS):
        raise InputError(
            f"a grace period of {grace} is too short: leases protect builds for {LEASE_SECONDS // 3600} "
            "hours, so choose a longer one"
        )
    if not timedelta(0) <= retain <= _LONGEST or grace > _LONGEST:
        raise InputError(
            f"a time of retention is 0 to {_LONGEST.days:,} days, and a grace period not longer; 0 keeps "
            "only what a name reaches"
        )
    collection = _Collection(store, grace, retain, progress)
    return collection.apply() if apply else collection.preview()


@dataclass(slots=True)
class _Done:
    """What the steps of a run did, or would do."""

    finished: Amount = NOTHING
    leftovers: Amount = NOTHING
    collected: Amount = NOTHING
    rescued: Amount = NOTHING
    snapshots: dict[str, tuple[str, ...]] = field(default_factory=dict)


class _Collection:
    """One run."""

    def __init__(self, store: Store, grace: timedelta, retain: timedelta, progress: Progress) -> None:
        self._backend = store.backend
        self._run = store.run
        self._grace = grace
        self._retain = retain
        self._progress = progress
        self._log = store.history
        self._catalog = store.catalog()
        graph = Graph(self._backend, self._log, self._catalog, self._looked)
        self._viewer = Viewer(self._backend, self._log, self._catalog, graph, retain)
        self._marker = Marker(self._backend, graph, grace=grace, retain=retain)

    def preview(self) -> Summary:
        """Return what `apply` would do; writes nothing."""
        self._catalog.refresh()
        view = self._viewer.look(writable=False)
        done = _Done(
            finished=_amount(view, view.removals.dying),
            leftovers=sum(map(_file, self._leftovers(view)), NOTHING),
            snapshots={"finished": _snapshots(view, view.removals.dying)},
        )
        unreached, condemned = self._marker.unreached(view), view.removals.condemned
        leaving = view.removals.dying
        if self._is_due(view):
            leaving = self._marker.collectable(view)
            done.collected = _amount(view, leaving)
            done.snapshots["collected"] = _snapshots(view, leaving)
            done.rescued = _amount(view, minus(condemned, leaving))
            condemned = Removal()
        return self._summary(view, unreached, leaving, condemned, done, applied=False)

    def apply(self) -> Summary:
        """Do it."""
        with Turn(self._backend, f"{socket.gethostname()}, process {os.getpid()}") as turn:
            done = _Done()
            self._catalog.refresh()
            if self._catalog.removals.dying:
                done.finished, done.snapshots["finished"] = self._sweep(turn)
            view = self._viewer.look(writable=True)
            done.leftovers = remove_builds(self._backend, turn, over(view, self._grace))
            if self._is_due(view):
                self._append(turn, self._draft_collect)
                dying = self._catalog.removals.dying
                done.rescued = _amount(view, minus(view.removals.condemned, dying))
                if dying:
                    done.collected, done.snapshots["collected"] = self._sweep(turn)
                view = self._viewer.look(writable=True)
            unreached, condemned = self._marker.unreached(view), view.removals.condemned
            self._append(turn, self._draft_condemn)
            derived = superseded(self._backend, self._log, view.now, self._grace, self._looked)
            done.leftovers += remove_old(self._backend, turn, derived, self._grace, self._progress)
            return self._summary(view, unreached, Removal(), condemned, done, applied=True)

    def _leftovers(self, view: View) -> list[ObjectInfo]:
        builds = [item for build in over(view, self._grace) for item in build.objects]
        return builds + superseded(self._backend, self._log, view.now, self._grace, self._looked)

    def _looked(self, objects: int) -> None:
        self._progress(objects, 0)

    def _sweep(self, turn: Turn) -> tuple[Amount, tuple[str, ...]]:
        """Delete what was collected, once no index leads to it any more."""
        removals = self._catalog.removals
        turn.check()
        write_checkpoint(self._backend, self._log, self._catalog, without_dead=True)
        swept = sweep(self._backend, turn, removals.dying, self._catalog.packs(), self._progress)

        def prepare() -> Draft | Commit:
            self._catalog.catch_up()
            if self._catalog.removals.dying_since != removals.dying_since:
                return self._log.tip
            return Draft(action=SWEPT, message="Deleted what was collected", run=self._run)

        self._append(turn, prepare)
        return swept

    def _draft_collect(self) -> Draft | Commit:
        view = self._viewer.look(writable=True)
        if not self._is_due(view) or view.removals.dying:
            return self._log.tip
        return self._draft(COLLECT, "Collect", self._marker.collectable(view))

    def _draft_condemn(self) -> Draft | Commit:
        view = self._viewer.look(writable=True)
        unreached = self._marker.unreached(view)
        if view.removals.dying or not unreached or common(view.removals.condemned, unreached):
            return self._log.tip
        return self._draft(CONDEMN, "Condemn", unreached)

    def _draft(self, action: str, verb: str, removal: Removal) -> Draft:
        message = f"{verb} {_count(removal.packs, 'pack')} and {_count(removal.snapshots, 'snapshot')}"
        digest = write_removal(self._backend, removal)
        return Draft(action=action, message=message, run=self._run, removal=digest)

    def _append(self, turn: Turn, prepare: Callable[[], Draft | Commit]) -> None:
        turn.check()
        self._log.append(prepare)
        self._catalog.catch_up()

    def _is_due(self, view: View) -> bool:
        since = view.condemned_time
        return bool(view.removals.condemned) and since is not None and view.now - since >= self._grace

    def _summary(
        self,
        view: View,
        unreached: Removal,
        leaving: Removal,
        condemned: Removal,
        done: _Done,
        *,
        applied: bool,
    ) -> Summary:
        """Describe a run: `unreached` of what it sees, `leaving` now, or `condemned` before."""
        rest = minus(unreached, leaving)
        waiting = common(condemned, rest)
        fresh = minus(rest, waiting)
        to_come = {"waiting": waiting, "queued": fresh} if waiting else {"condemned": fresh}
        snapshots = done.snapshots | {name: _snapshots(view, removal) for name, removal in to_come.items()}
        announced = self._catalog.removals.condemned_at if applied or waiting else 0
        since = self._viewer.time_of(announced) or view.now
        return Summary(
            store=self._backend.url,
            applied=applied,
            time=view.now.isoformat(timespec="seconds"),
            grace_seconds=int(self._grace.total_seconds()),
            retain_seconds=int(self._retain.total_seconds()),
            roots={
                "tags": len(view.names.tags),
                "heads": len(view.names.heads),
                "holds": len(view.names.holds),
                "recent_pins": len(view.pinned),
                "live_builds": sum(build.live for build in view.builds),
            },
            kept=_amount(view, minus(Removal(frozenset(view.packs), frozenset(view.heads)), unreached)),
            condemned=NOTHING if waiting else _amount(view, rest),
            waiting=_amount(view, waiting),
            queued=_amount(view, fresh) if waiting else NOTHING,
            until=(since + self._grace).isoformat(timespec="seconds") if rest else None,
            rescued=_amount(view, minus(condemned, unreached)) + done.rescued,
            collected=done.collected,
            finished=done.finished,
            leftovers=done.leftovers,
            snapshots={name: ids for name, ids in snapshots.items() if ids},
            dangling=tuple(sorted(dangling(view).values())),
        )


def _count(things: Collection[str], noun: str) -> str:
    return f"{len(things):,} {noun}{'' if len(things) == 1 else 's'}"


def _amount(view: View, removal: Removal) -> Amount:
    """Count what is there of a removal."""
    packs = [view.packs[pack].size for pack in removal.packs if pack in view.packs]
    return Amount(packs=len(packs), snapshots=len(_snapshots(view, removal)), bytes=sum(packs))


def _snapshots(view: View, removal: Removal) -> tuple[str, ...]:
    """Return the ids of those snapshots of a removal of which anything is there."""
    return tuple(sorted(removal.snapshots & (view.heads.keys() | view.strays.keys())))


def _file(item: ObjectInfo) -> Amount:
    return Amount(files=1, bytes=item.size)
