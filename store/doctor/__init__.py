"""The examination of a storage before a store is trusted to it, and whenever it behaves strangely.

`diagnose` tries everything that the store relies on, against the real bucket or folder, below a prefix of its
own that it clears again; `probe` is the small part that guards the making of a store. Neither needs a store
to be there.
"""

from __future__ import annotations

from functools import partial
from typing import Protocol

from store.backend import Backend
from store.doctor import conditions
from store.doctor.examination import TRIALS, Trial, examine
from store.doctor.ground import cleared_ground
from store.doctor.permissions import roles_of
from store.doctor.report import Check, DoctorReport
from store.errors import AnswerLost, ConfigurationError, Unreachable

__all__ = ["Check", "DoctorReport", "diagnose", "probe"]


class Progress(Protocol):
    """Called after every check with the number made; how many there will be is not known (0)."""

    def __call__(self, done: int, total: int, **figures: float) -> None: ...


def diagnose(backend: Backend, *, progress: Progress | None = None) -> DoctorReport:
    """Examine the storage and return what was found; `DoctorReport.refuse_if_unfit` draws the conclusion.

    Raises `StorageUnavailable` if the storage does not answer, `ConfigurationError` if it is none at all or
    does not accept the credentials, `NotAStore` if it is a file.
    """
    checks: list[Check] = []
    with cleared_ground(backend) as ground:
        for check in examine(ground):
            checks.append(check)
            if progress is not None:
                progress(len(checks), 0)
    enforced = all(check.status != "fail" for check in checks)
    tested = {check.name for check in checks if check.status != "warn"}.issuperset(TRIALS)
    return DoctorReport(backend.url, roles_of(backend) if enforced else (), tuple(checks), tested)


def probe(backend: Backend) -> None:
    """Raise `ConfigurationError` if the storage does not enforce conditional writes; some 70 requests.

    Raises `StorageUnavailable` if it stops answering meanwhile.
    """
    trials: tuple[Trial, ...] = (
        conditions.create_is_enforced,
        conditions.replace_is_enforced,
        conditions.replace_needs_the_key,
        partial(conditions.racing_creates_have_one_winner, racers=2),
    )
    with cleared_ground(backend) as ground:
        for trial in trials:
            try:
                problem = trial(ground)
            except AnswerLost as error:
                raise Unreachable(
                    f"{backend.url} stopped answering while it was examined; run again when it answers"
                ) from error
            if problem:
                raise ConfigurationError(
                    f"{backend.url} is not fit for a store: {problem}, so commits could overwrite one "
                    "another; use another server, or another version or setting of this one (`cellar doctor` "
                    "tells more)"
                )
