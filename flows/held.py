"""Keeping a snapshot alive while a flow works with it."""

import logging
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from store import Hold, Store
from store.errors import AccessDenied, ReadOnly, StorageUnavailable

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


def _renew(hold: Hold) -> None:
    try:
        hold.renew()
    except StorageUnavailable as error:
        _LOG.warning("hold %s was not renewed, the next step tries again: %s", hold.name, error)
