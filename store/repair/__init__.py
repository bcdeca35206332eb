"""Repair: what can be found again or made again is written again, and nothing is deleted.

Every byte that is written proves itself: it hashes to its name, follows from the log, or makes the id of its
snapshot. Rounds of repair follow one another as long as one of them helps, because what one brings back may
be what the next needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from store.backend import Backend
from store.entry import COLLECT, REPAIR, Commit, Draft
from store.errors import ConflictError
from store.format import index_key, plain
from store.index import write_index
from store.repair.copies import restore_copies
from store.repair.derived import (
    repair_bundles,
    repair_checkpoints,
    repair_directories,
    repair_history,
    write_newest,
)
from store.repair.indexes import IndexRepair, StandIn
from store.repair.packs import repair_packs
from store.repair.report import Repaired, RepairReport
from store.repair.snapshots import repair_snapshots
from store.store import Store
from store.verify import Progress, silent
from store.verify.inspection import Inspection
from store.verify.report import Cursor

__all__ = ["RepairReport", "Repaired", "repair"]

_ROUNDS = 32
"""More than layers of data that lead to each other: repair ends when a round brings nothing back."""
_LAST = "f" * 64
"""No pack comes after this one: a pass from here on reads those again that were damaged, and no other."""


def repair(
    backend: Backend,
    *,
    source: Backend | None = None,
    full: bool = False,
    run: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> RepairReport:
    """Repair what `verify` finds; `full` looks for damaged packs too, which are then taken from `source`.

    `source` is another store or an export; `run` is recorded in a log entry, if one has to be made.

    Raises `StorageUnavailable` or `AccessDenied` if the storage cannot be read or written, `ConflictError` if
    garbage collection or another repair was at work meanwhile.
    """
    inspection = Inspection(backend, sample=1.0 if full else 0.0, progress=progress)
    damaged = inspection.packs.cursor.damaged
    repaired: list[Repaired] = []
    notes: tuple[str, ...] = ()
    commit: Commit | None = None
    for _ in range(_ROUNDS):
        done = list(_round(inspection, source))
        if not done and commit is None and not inspection.history.lost:
            stand_in = IndexRepair(inspection, _hurt(inspection)).stand_in()
            if stand_in is not None:
                commit, notes = _commit(backend, inspection.history.tip, stand_in, run or {}), stand_in.notes
                how = f"stands in for lost ones by commit {commit.sequence}"
                done = [Repaired(index_key(stand_in.index.digest), how), *write_newest(backend)]
        if not done:
            break
        known = {before.key for before in repaired}
        repaired += done
        again = Cursor(inspection.history.store, 1.0, 0, _LAST, 0, 0, damaged) if full else None
        inspection = Inspection(backend, resume=again, progress=progress)
        if known.issuperset(item.key for item in done):  # what is damaged again at once stays so
            break
    return RepairReport(tuple(repaired), commit.sequence if commit else 0, notes, inspection.report)


def _round(inspection: Inspection, source: Backend | None) -> Iterator[Repaired]:
    """Try every kind of repair once; what an earlier one brought back, later ones see in the next round."""
    hurt = _hurt(inspection)
    kinds: list[Callable[[], Iterator[Repaired]]] = [
        lambda: restore_copies(inspection, hurt, source),
        lambda: repair_packs(inspection, hurt, source),
        lambda: IndexRepair(inspection, hurt).rebuild(),
        lambda: repair_directories(inspection, hurt),
        lambda: repair_bundles(inspection, hurt),
        lambda: repair_history(inspection, hurt),
        lambda: repair_checkpoints(inspection, hurt),
        lambda: repair_snapshots(inspection, hurt, source),
    ]
    for kind in kinds:
        for done in kind():
            hurt.discard(done.key)
            yield done


def _hurt(inspection: Inspection) -> set[str]:
    return {finding.key for finding in inspection.report.findings}


def _commit(backend: Backend, seen: int, stand_in: StandIn, run: Mapping[str, Any]) -> Commit:
    """Make the entry by which an index file stands in for lost ones; `seen` was the newest one before."""
    write_index(backend, stand_in.index)
    log = Store(backend).history

    def prepare() -> Draft:
        for number in range(seen + 1, log.tip.sequence + 1):
            if log.at(number).action in (COLLECT, REPAIR):  # rows that it removed must not come back
                raise ConflictError(
                    f"commit {number} changed what is visible in {backend.url} during the repair; run it "
                    "again"
                )
        return Draft(
            action=REPAIR,
            message=f"Stand in for {len(stand_in.replaces)} lost index files",
            run=plain(run),
            indexes=(stand_in.index.digest,),
            replaces=stand_in.replaces,
        )

    return log.append(prepare)
