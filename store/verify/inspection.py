"""One inspection of a store: every check in the order in which later ones build on earlier ones."""

from __future__ import annotations

import time
from collections.abc import Callable

from store.backend import Backend
from store.errors import InputError
from store.format import RESTORE, pack_key
from store.verify.chain import History, catch_up, check_chain, missing_lists
from store.verify.checkpoints import check_checkpoints
from store.verify.derived import compare_checkpoints
from store.verify.leftovers import count_leftovers
from store.verify.names import Names
from store.verify.packs import PackCheck, damage_in
from store.verify.pinned import check_snapshots
from store.verify.reach import Reach
from store.verify.report import Cursor, VerifyReport
from store.verify.survey import Progress, Survey, silent
from store.verify.tables import RowCheck, Tables, check_parts


class Inspection:
    """All checks, once. What was found on the way stays known: a repair goes on from there."""

    def __init__(
        self,
        backend: Backend,
        *,
        sample: float = 0.0,
        seed: int = 0,
        resume: Cursor | None = None,
        max_seconds: float | None = None,
        keep: Callable[[Cursor], None] = lambda cursor: None,
        progress: Progress = silent,
    ) -> None:
        """Make them; for the options see `store.verify.verify`."""
        self._backend = backend
        self._share = sample
        self._seed = seed
        self._resume = resume
        until = None if max_seconds is None else time.monotonic() + max_seconds
        survey = self.survey = Survey(backend, progress)
        self.derived = check_checkpoints(survey)
        self.history = check_chain(survey, self.derived)
        start = self._start(self.history.store)
        for key, number in missing_lists(survey, self.history):
            survey.suspect(key, f"{key}, what commit {number} removes, is missing; {RESTORE}")
        compare_checkpoints(survey, self.derived, self.history)
        rows = RowCheck()
        self.tables = Tables(survey, self.history, self.derived.newest, rows)
        self.tables.check()
        self.snapshots = check_snapshots(survey, self.history, self.tables, rows)
        self.names = Names(survey, self.history)
        self.names.check()
        check_parts(survey, rows)
        del rows  # the largest thing that is held
        self.packs = PackCheck(survey, start, until=until, keep=keep)
        self.report = self._report(start)

    def _report(self, start: Cursor) -> VerifyReport:
        survey, packs = self.survey, self.packs
        held = self.snapshots.packs_of({*self.history.pinned, *self.names.named})
        needed = {**dict.fromkeys(held), **self.tables.sizes}
        reach = Reach(survey, self.history, self.tables, self.snapshots, self.names)
        self._check_packs(needed, reach)
        findings = reach.findings()
        survey.finish(complete=packs.complete)
        return VerifyReport(
            store=self.history.store,
            sample=start.sample,
            objects=len(survey.sizes),
            bytes_read=survey.bytes_read,
            commits=len(self.history.commits),
            elements=self.tables.count(),
            snapshots=len(self.snapshots.heads),
            packs_chosen=len(packs.chosen),
            packs_before=start.packs,
            packs_read=packs.cursor.packs - start.packs,
            cursor=None if packs.complete else packs.cursor,
            findings=findings,
            leftovers=count_leftovers(
                survey,
                self.history,
                self.derived,
                self.tables,
                self.snapshots,
                packs.sizes.keys() - needed.keys(),
            ),
        )

    def _start(self, store: str) -> Cursor:
        """Return where the pass over packs starts; raises `InputError` if `resume` is of another one."""
        resume = self._resume
        if resume is None:
            return Cursor(store, self._share, self._seed, "", 0, 0)
        if store and resume.store and resume.store != store:
            raise InputError(
                f"the pass that is to be continued is one over another store than {self._backend.url}"
            )
        if self._share and (self._share, self._seed) != (resume.sample, resume.seed):
            raise InputError(
                f"the pass that is to be continued reads a share of {resume.sample:g} with seed "
                f"{resume.seed}; continue it as it was begun, or start a new one"
            )
        return resume

    def _check_packs(self, needed: dict[str, int | None], reach: Reach) -> None:
        packs = self.packs
        unfit = packs.unfit(needed)
        damaged = packs.read(skip=unfit)
        unfit |= packs.unfit({pack: needed[pack] for pack in packs.vanished if pack in needed})
        unfit = self._without_collected(self.history, unfit)
        places = reach.places_in({*unfit, *damaged})
        for pack, problem in sorted(unfit.items()):
            elements = sorted(place.element for place in places[pack])
            self.survey.suspect(pack_key(pack), problem, elements)
        for pack in damaged:
            problem, elements = damage_in(self._backend, pack, places[pack])
            self.survey.suspect(pack_key(pack), problem, elements)

    def _without_collected(self, history: History, unfit: dict[str, str]) -> dict[str, str]:
        """Leave out what a collection at work has removed since the log was read: that is no damage."""
        if not unfit and not self.survey.suspects:
            return unfit
        before = history.removals
        catch_up(self.survey, history)
        now = history.removals
        gone = now.gone.keys() - before.gone.keys()
        self.survey.suspects = [
            suspect
            for suspect in self.survey.suspects
            if not suspect.snapshots or not gone.issuperset(suspect.snapshots)
        ]
        return {p: problem for p, problem in unfit.items() if now.dead.get(p) == before.dead.get(p)}
