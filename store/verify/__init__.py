"""Verification: the structure of a store, the sizes of its packs, and the bytes of all or some of them.

Everything is read from the storage itself, past any cache, and a finding never stops the search. Memory
stays bounded whatever the store holds: tables are checked piece by piece, and what damage touches is worked
out only if there is any.
"""

from __future__ import annotations

from collections.abc import Callable

from store.backend import Backend
from store.errors import InputError
from store.verify.inspection import Inspection
from store.verify.report import Cursor, Finding, VerifyReport
from store.verify.survey import Progress, silent

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
    if not 0 <= sample <= 1:
        raise InputError(f"a share of {sample} cannot be read; give a number between 0 and 1")
    return Inspection(
        backend,
        sample=1.0 if full else float(sample),
        seed=seed,
        resume=resume,
        max_seconds=max_seconds,
        keep=keep,
        progress=progress,
    ).report
