"""Conditional writes whose outcome is certain, over storages that may lose an answer.

The rule is: read before deciding. Every body carries a unique id, so that finding our own bytes under the
key proves that our write landed, even when the storage said "precondition failed" to a retry of it. Sending
the same conditional write again is always safe, because at most one of the copies can land.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable

from store.backend import Backend
from store.errors import (
    AnswerLost,
    CellarError,
    CommitStateUnknown,
    Contended,
    KeyExists,
    KeyMissing,
    StorageUnavailable,
    TokenMismatch,
    Unreachable,
)

_ATTEMPTS = 8
_FIRST_PAUSE_S = 0.05
_LONGEST_PAUSE_S = 2.0
_JITTER = secrets.SystemRandom()


def create(backend: Backend, key: str, body: bytes) -> bool:
    """Create `key` with `body`; True if it now holds our body, False if somebody else's.

    Raises `CommitStateUnknown` if the storage stays silent, and deletes nothing in that case.
    """
    return _write(backend, key, body, lambda: backend.create(key, body), before=None)


def replace(backend: Backend, key: str, body: bytes, *, before: bytes, token: str) -> bool:
    """Replace the content `before` that was read with `token`; True if ours is there now, False if not.

    Raises `CommitStateUnknown` if the storage stays silent, and deletes nothing in that case.
    """
    return _write(backend, key, body, lambda: backend.replace(key, body, token=token), before=before)


def _write(
    backend: Backend, key: str, body: bytes, attempt: Callable[[], None], *, before: bytes | None
) -> bool:
    may_have_landed = False
    last: CellarError | None = None
    for number in range(_ATTEMPTS):
        if number:
            # Jitter only spreads retries in time; it takes no part in any result.
            time.sleep(_JITTER.uniform(0.0, min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2**number)))
        try:
            attempt()
            return True
        except (Contended, Unreachable) as error:  # certainly not written
            last = error
        except (KeyExists, TokenMismatch, KeyMissing):
            return _holds(backend, key, may_have_landed) == body
        except AnswerLost:
            may_have_landed = True
            found = _holds(backend, key, may_have_landed)
            if found == body:
                return True
            if found != before:
                return False
    if may_have_landed:
        raise CommitStateUnknown(
            f"{backend.url} did not say whether {key} was written; wait until it answers and run the same "
            "command again, which finds out and writes nothing twice"
        )
    if isinstance(last, Unreachable):
        raise last
    raise StorageUnavailable(f"{backend.url} was too busy to write {key}; run the same command again")


def _holds(backend: Backend, key: str, may_have_landed: bool) -> bytes | None:
    try:
        return backend.read(key)
    except KeyMissing:
        return None
    except StorageUnavailable as error:
        if not may_have_landed:
            raise
        raise CommitStateUnknown(
            f"{backend.url} stopped answering while {key} was written; wait until it answers and run the "
            "same command again, which finds out and writes nothing twice"
        ) from error
