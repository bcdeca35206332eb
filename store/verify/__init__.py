"""Verification: the structure of a store, the sizes of its packs, and the bytes of all or some of them.

Everything is read from the storage itself, past any cache, and a finding never stops the search. Memory
stays bounded whatever the store holds: tables are checked piece by piece, and what damage touches is worked
out only if there is any.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from store.backend import Backend
from store.errors import InputError
from store.format import RESTORE, pack_key
from store.verify.chain import History, catch_up, check_chain, missing_lists
from store.verify.derived import check_checkpoints, compare_checkpoints
from store.verify.leftovers import count_leftovers
from store.verify.names import Names
from store.verify.packs import PackCheck, damage_in
from store.verify.pinned import check_snapshots
from store.verify.reach import Reach
from store.verify.report import Cursor, Finding, VerifyReport
from store.verify.survey import Progress, Survey, silent
from store.verify.tables import RowCheck, Tables, check_parts

__all__ = ["Cursor", "Finding", "Progress", "VerifyReport", "silent", "verify"]


def verify(
    backend: Backend,
    *,
    full: bool = False,
    sample: float = 0.0,
    seed: int = 0,
    resume: Cursor | None = None,
    max_seconds: float | None = None,
    keep: Callable[[Cursor], None] = lambda cursor: None,
    progress: Progress = silent,
) -> VerifyReport:
    """Check the whole store and return what is wrong with it.

    The structure and the sizes of packs are always checked; the bytes of all packs if `full`, or of the share
    `sample` of them that `seed` chooses. After `max_seconds` that pass stops, but not before it has read a
    pack, and the report's cursor is what `resume` takes to go on. `keep` is called with the cursor after
    every pack, for whoever may be interrupted.

    Raises `StorageUnavailable` if the storage stops answering, `NotAStore` if there is none, `InputError` if
    `resume` belongs to another store or pass; damage is reported, never raised.
    """
    return _Verification(
        backend, progress, max_seconds, _share(full=full, sample=sample), seed, resume, keep
    ).run()


def _share(*, full: bool, sample: float) -> float:
    if not 0 <= sample <= 1:
        raise InputError(f"a share of {sample} cannot be read; give a number between 0 and 1")
    return 1.0 if full else float(sample)


class _Verification:
    """One verification: the parts in the order in which later ones build on earlier ones."""

    def __init__(
        self,
        backend: Backend,
        progress: Progress,
        max_seconds: float | None,
        share: float,
        seed: int,
        resume: Cursor | None,
        keep: Callable[[Cursor], None],
    ) -> None:
        self._backend = backend
        self._until = None if max_seconds is None else time.monotonic() + max_seconds
        self._share = share
        self._seed = seed
        self._resume = resume
        self._keep = keep
        self._survey = Survey(backend, progress)

    def run(self) -> VerifyReport:
        survey = self._survey
        derived = check_checkpoints(survey)
        history = check_chain(survey, derived.copies)
        start = self._start(history.store)
        for key, number in missing_lists(survey, history):
            survey.suspect(key, f"{key}, what commit {number} removes, is missing; {RESTORE}")
        compare_checkpoints(survey, derived, history)
        rows = RowCheck()
        tables = Tables(survey, history, derived.newest, rows)
        tables.check()
        snapshots = check_snapshots(survey, history, tables, rows)
        names = Names(survey, history)
        names.check()
        check_parts(survey, rows)
        del rows  # the largest thing that is held
        packs = PackCheck(survey, start, until=self._until, keep=self._keep)
        reach = Reach(survey, history, tables, snapshots, names)
        needed: dict[str, int | None] = dict.fromkeys(snapshots.packs_of({*history.pinned, *names.named}))
        needed.update(tables.sizes)
        self._check_packs(packs, needed, reach, history)
        findings = reach.findings()
        survey.finish(complete=packs.complete)
        return VerifyReport(
            store=history.store,
            sample=start.sample,
            objects=len(survey.sizes),
            bytes_read=survey.bytes_read,
            commits=len(history.commits),
            elements=tables.count(),
            snapshots=len(snapshots.heads),
            packs_chosen=len(packs.chosen),
            packs_before=start.packs,
            packs_read=packs.cursor.packs - start.packs,
            cursor=None if packs.complete else packs.cursor,
            findings=findings,
            leftovers=count_leftovers(
                survey, history, derived, tables, snapshots, packs.sizes.keys() - needed.keys()
            ),
        )

    def _start(self, store: str) -> Cursor:
        """Return where the pass over packs starts; raises `InputError` if `resume` is of another one."""
        resume = self._resume
        if resume is None:
            return Cursor(store, self._share, self._seed, "", 0, 0)
        if store and resume.store != store:
            raise InputError(
                f"the pass that is to be continued is one over another store than {self._backend.url}"
            )
        if self._share and (self._share, self._seed) != (resume.sample, resume.seed):
            raise InputError(
                f"the pass that is to be continued reads a share of {resume.sample:g} with seed "
                f"{resume.seed}; continue it as it was begun, or start a new one"
            )
        return resume

    def _check_packs(
        self,
        packs: PackCheck,
        needed: dict[str, int | None],
        reach: Reach,
        history: History,
    ) -> None:
        unfit = packs.unfit(needed)
        damaged = packs.read(skip=unfit)
        unfit |= packs.unfit({pack: needed[pack] for pack in packs.vanished if pack in needed})
        unfit = self._without_collected(history, unfit)
        places = reach.places_in({*unfit, *damaged})
        for pack, problem in sorted(unfit.items()):
            elements = sorted(place.element for place in places[pack])
            self._survey.suspect(pack_key(pack), problem, elements)
        for pack in damaged:
            problem, elements = damage_in(self._backend, pack, places[pack])
            self._survey.suspect(pack_key(pack), problem, elements)

    def _without_collected(self, history: History, unfit: dict[str, str]) -> dict[str, str]:
        """Leave out what a collection at work has removed since the log was read: that is no damage."""
        if not unfit and not self._survey.suspects:
            return unfit
        before = history.removals
        catch_up(self._survey, history)
        now = history.removals
        gone = now.gone.keys() - before.gone.keys()
        self._survey.suspects = [
            suspect
            for suspect in self._survey.suspects
            if not suspect.snapshots or not gone.issuperset(suspect.snapshots)
        ]
        return {p: problem for p, problem in unfit.items() if now.dead.get(p) == before.dead.get(p)}
