"""Keeping a snapshot alive while a flow works with it."""

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flows import watch
from store import Hold, Store
from store.errors import AccessDenied, ReadOnly, StorageUnavailable
from tasks.progress import Progress

_LOG = logging.getLogger(__name__)


@contextmanager
def held(store: Store, snapshot: str, *, purpose: str) -> Iterator[Callable[[], None]]:
    """Hold a snapshot against garbage collection; yields what renews the hold, to be called now and then.

    The hold is released at the end, also after an error. An identity that may not write goes on without one:
    a snapshot that a tag or head names needs none.
    """
    hold = store.hold(f"{purpose}-{uuid.uuid4().hex[:16]}", snapshot, owner=purpose)
    try:
        hold.take()
    except (AccessDenied, ReadOnly) as error:
        _LOG.warning("snapshot %s is read without a hold: %s", snapshot[:12], error)
        yield lambda: None
        return
    try:
        yield lambda: _renew(hold)
    finally:
        try:
            hold.release()
        except StorageUnavailable as error:
            _LOG.warning("hold %s stays until it expires: %s", hold.name, error)


@contextmanager
def held_at_work(store: Store, snapshot: str, *, purpose: str, title: str, unit: str) -> Iterator[Progress]:
    """Hold a snapshot while a step works with it; yields the step's progress, which renews the hold."""
    with held(store, snapshot, purpose=purpose) as renew, watch.progress(title, unit) as progress:

        def report(done: int, total: int, **figures: float) -> None:
            renew()
            progress(done, total, **figures)

        yield report


def _renew(hold: Hold) -> None:
    try:
        hold.renew()
    except StorageUnavailable as error:
        _LOG.warning("hold %s was not renewed, the next step tries again: %s", hold.name, error)
