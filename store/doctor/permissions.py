"""What this identity may do, one permission after the other, and which roles that makes it fit for."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress

from store.backend import Backend
from store.backend.local import LocalBackend
from store.doctor.conditions import NO_SUCH_ETAG
from store.doctor.ground import Ground
from store.doctor.report import Check
from store.errors import AccessDenied, CellarError, Contended, KeyMissing, ReadOnly, TokenMismatch
from store.format import BUILD_PREFIX, FORMAT_KEY, HEAD_PREFIX, INDEX_PREFIX, PACK_PREFIX, REMOVAL_PREFIX

DENIED = (AccessDenied, ReadOnly)
_WRITES = {"worker": (PACK_PREFIX, BUILD_PREFIX), "committer": (INDEX_PREFIX, HEAD_PREFIX)}
"""Where each role writes besides what the one before it may."""


def permissions(ground: Ground) -> Iterator[Check]:
    """Try to list, write, read, overwrite and delete below the ground; what is denied is a warning."""
    backend, key = ground.backend, ground.key("permission")
    trials: dict[str, Callable[[], object]] = {
        "list": lambda: next(iter(backend.list(ground.prefix)), None),
        "write": lambda: backend.put(key, ground.body()),
        "read": lambda: _read(backend, key),
        "overwrite": lambda: backend.replace(key, ground.body(), token=backend.read_with_token(key)[1]),
        "delete": lambda: _delete(ground, key),
    }
    for verb, trial in trials.items():
        try:
            trial()
        except (*DENIED, KeyMissing):  # the key is missing where it could not be written
            yield Check(verb, "warn", f"this identity may not {verb} objects under {ground.prefix}")
        else:
            yield Check(verb, "ok", f"this identity may {verb} objects")


def _read(backend: Backend, key: str) -> None:
    """Read the object or, if this identity could not write it, one that every store has."""
    try:
        backend.read(key)
    except KeyMissing:
        with suppress(KeyMissing):
            backend.read(FORMAT_KEY)


def _delete(ground: Ground, key: str) -> None:
    """Delete the object; a folder refuses no delete of what could not be written, so ask it first."""
    backend = ground.backend
    if isinstance(backend, LocalBackend) and not _is_writable(backend, ground.prefix):
        raise ReadOnly(f"cannot delete {key}: {backend.url} cannot be written")
    backend.delete(key)


def roles_of(backend: Backend) -> tuple[str, ...]:
    """Return the roles of `docs/operations.md` that this identity fits, without writing anything.

    A replacement of a missing key is refused either way: as "missing" if the identity may write there, as
    "denied" if not. So this must only be asked of a storage that enforces conditions.
    """
    found = []
    if not (_may_list(backend) and _may_read(backend, FORMAT_KEY)):
        return ()
    if _may_read(backend, f"{PACK_PREFIX}{_absent()}"):
        found.append("reader")
        for role, prefixes in _WRITES.items():
            if not all(_may_write(backend, prefix) for prefix in prefixes):
                break
            found.append(role)
    if _may_write(backend, REMOVAL_PREFIX) and _may_delete(backend):
        found.append("collector")
    return tuple(found)


def _absent() -> str:
    return f"doctor-{uuid.uuid4().hex}"


def _may_list(backend: Backend) -> bool:
    try:
        next(iter(backend.list("")), None)
    except DENIED:
        return False
    return True


def _may_read(backend: Backend, key: str) -> bool:
    try:
        backend.read(key)
    except DENIED:
        return False
    except KeyMissing:
        return True
    return True


def _may_write(backend: Backend, prefix: str) -> bool:
    if isinstance(backend, LocalBackend):
        return _is_writable(backend, prefix)
    try:
        backend.replace(prefix + _absent(), b"", token=NO_SUCH_ETAG)
    except DENIED:
        return False
    except (KeyMissing, TokenMismatch, Contended):
        return True
    raise AssertionError("conditions are enforced")


def _may_delete(backend: Backend) -> bool:
    if isinstance(backend, LocalBackend):
        return _is_writable(backend, PACK_PREFIX)
    try:
        backend.delete(PACK_PREFIX + _absent())
    except CellarError as error:
        if isinstance(error, DENIED):
            return False
        raise
    return True


def _is_writable(backend: LocalBackend, prefix: str) -> bool:
    """Whether the folder of a prefix, or the next one above it that exists, can be written."""
    folder = backend.root / prefix
    while not folder.exists():
        folder = folder.parent
    return os.access(folder, os.W_OK | os.X_OK)
