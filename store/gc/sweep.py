"""Sweeping: deleting the objects of what the log says is removed, in an order that a kill may interrupt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from store.backend import Backend, ObjectInfo
from store.errors import IntegrityError, SnapshotNotFound
from store.format import (
    SNAPSHOT_PREFIX,
    lease_key,
    pack_key,
    signatures_prefix,
    snapshot_key,
    snapshot_rows_key,
)
from store.gc.names import BuildFiles, Names, lease_counts
from store.gc.strays import rows_digest, rows_files, stray_rows
from store.gc.summary import NOTHING, Amount
from store.gc.turn import Turn
from store.gc.view import View, list_heads, list_packs
from store.removals import Removal
from store.snapshot import open_snapshot
from store.snapshot_head import read_head
from store.verify import Progress


def sweep(
    backend: Backend, turn: Turn, dying: Removal, visible: Mapping[str, int], progress: Progress
) -> tuple[Amount, tuple[str, ...]]:
    """Delete what is dying, snapshots first and packs last, but for what a name keeps that came meanwhile.

    Returns how much that was, and the ids of the snapshots.

    Names are read here, after the `collect` entry: who wrote one before this sees the entry, or is seen.
    `visible` are the packs of visible rows, none of which is ever deleted.
    """
    named = Names.read(backend, backend.now()).by_snapshot()
    spared = dying.snapshots & named.keys()
    packs = sorted(dying.packs - _packs_of(backend, spared) - visible.keys())
    snapshots = sorted(dying.snapshots - spared)
    total = len(snapshots) + len(packs)
    amount, removed = NOTHING, list[str]()
    listed = list(backend.list(SNAPSHOT_PREFIX))
    heads, files = list_heads(listed), rows_files(listed)
    strays = stray_rows(backend, heads, files)
    for done, snapshot in enumerate(snapshots, start=1):
        rows = _own_rows(backend, snapshot) if snapshot in heads else ""
        beside = [*strays.get(snapshot, ()), *backend.list(signatures_prefix(snapshot))]
        turn.delete(snapshot_key(snapshot))  # first: without its head a snapshot is not there
        for item in [files[rows], *beside] if rows in files else beside:
            turn.delete(item.key)
        if snapshot in heads or beside:
            amount += Amount(snapshots=1)
            removed.append(snapshot)
        progress(done, total)
    sizes = list_packs(backend)
    for done, pack in enumerate(packs, start=len(snapshots) + 1):
        turn.delete(pack_key(pack))
        if pack in sizes:
            amount += Amount(packs=1, bytes=sizes[pack].size)
        progress(done, total)
    return amount, tuple(removed)


def over(view: View, grace: timedelta) -> list[BuildFiles]:
    """Return the builds whose lease is over and whose files are older than `grace`."""
    return [build for build in view.builds if not build.live and view.now - build.newest >= grace]


def remove_builds(backend: Backend, turn: Turn, builds: Iterable[BuildFiles]) -> Amount:
    """Delete the files of builds that are over, leases last; one that somebody resumes now is left."""
    amount = NOTHING
    for build in builds:
        lease = lease_key(build.name)
        parts = [item for item in build.objects if item.key != lease]
        for items in (parts, [item for item in build.objects if item.key == lease]):
            if lease_counts(backend, build.name, backend.now()):
                break
            for item in items:
                turn.delete(item.key)
                amount += Amount(files=1, bytes=item.size)
    return amount


def remove_old(
    backend: Backend, turn: Turn, items: Sequence[ObjectInfo], grace: timedelta, progress: Progress
) -> Amount:
    """Delete objects that were older than `grace` when they were listed, but for those written since."""
    amount = NOTHING
    for done, item in enumerate(items, start=1):
        found = backend.info(item.key)
        if found is not None and backend.now() - found.modified >= grace:
            turn.delete(item.key)
            amount += Amount(files=1, bytes=item.size)
        progress(done, len(items))
    return amount


def _packs_of(backend: Backend, snapshots: Iterable[str]) -> set[str]:
    packs: set[str] = set()
    for snapshot in snapshots:
        try:
            rows = snapshot_rows_key(read_head(backend, snapshot)["rows"])
        except SnapshotNotFound:  # deleted before the name came
            continue
        if backend.info(rows) is not None:
            packs |= open_snapshot(backend, snapshot).packs()
    return packs


def _own_rows(backend: Backend, snapshot: str) -> str:
    """Return the digest of a snapshot's rows file if it holds what the id names, "" otherwise.

    A head that was forged may name the rows of another snapshot.
    """
    try:
        open_snapshot(backend, snapshot).packs()
    except (IntegrityError, SnapshotNotFound):
        return ""
    return rows_digest(backend, snapshot)
