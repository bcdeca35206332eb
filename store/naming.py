"""Naming a snapshot (tag, head, hold) while garbage collection may be about to remove it.

Names are not log entries, so a name and a `collect` entry can miss each other. Two rules make that harmless.
A condemned snapshot is first taken back by a `pin` entry, which any later `collect` respects. And whoever
wrote a name looks at the log afterwards, as the collector looks at the names after its entry: one of the two
sees the other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from store.catalog import Catalog
from store.errors import SnapshotNotFound
from store.format import plain
from store.log import PIN, Commit, Draft, Log


def take_back(log: Log, catalog: Catalog, snapshot: str, *, by: str, run: Mapping[str, Any]) -> None:
    """Free a condemned snapshot before `by` names it; raises `SnapshotNotFound` if it was collected.

    The `pin` entry, if there has to be one, records `run` like every other commit.
    """

    def prepare() -> Draft | Commit:
        catalog.catch_up()
        _check_not_gone(catalog, snapshot)
        if snapshot not in catalog.removals.condemned.snapshots:
            return log.tip
        message = f"Keep a condemned snapshot for {by}"
        return Draft(action=PIN, message=message, run=plain(run), snapshot=snapshot)

    catalog.refresh()
    _check_not_gone(catalog, snapshot)
    if snapshot in catalog.removals.condemned.snapshots:
        log.append(prepare)
        catalog.catch_up()


def check_named(catalog: Catalog, snapshot: str, *, undo: Callable[[], object]) -> None:
    """Undo a name that was just written and raise `SnapshotNotFound` if its snapshot was collected."""
    catalog.refresh()
    try:
        _check_not_gone(catalog, snapshot)
    except SnapshotNotFound:
        undo()
        raise


def _check_not_gone(catalog: Catalog, snapshot: str) -> None:
    if snapshot in catalog.removals.gone:
        raise SnapshotNotFound(
            f"snapshot {snapshot[:12]} was removed by garbage collection; pin its elements again first"
        )
