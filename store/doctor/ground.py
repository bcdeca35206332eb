"""The ground that `doctor` works on: keys below `doctor/<random>/`, and all of them gone afterwards."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path

from store.backend import Backend
from store.backend.local import LocalBackend
from store.errors import AccessDenied, NotAStore, ReadOnly
from store.format import DOCTOR_PREFIX, FORMAT_KEY

_ABANDONED_AFTER = timedelta(hours=1)
_log = logging.getLogger(__name__)


class Ground:
    """Keys and bodies for one examination; no other examination has the same."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.prefix = f"{DOCTOR_PREFIX}{uuid.uuid4().hex[:16]}/"

    def key(self, name: str) -> str:
        """Key of a test object."""
        return self.prefix + name

    def body(self) -> bytes:
        """A new body: all are of one length, so that nothing but content tells them apart."""
        return uuid.uuid4().hex.encode()

    def clear(self) -> None:
        """Delete what this examination wrote, and what one that was killed more than an hour ago left."""
        items = list(self.backend.list(DOCTOR_PREFIX))
        newest = max((item.modified for item in items), default=None)
        for item in items:
            own = item.key.startswith(self.prefix)
            if own or (newest is not None and newest - item.modified > _ABANDONED_AFTER):
                self.backend.delete(item.key)


@contextmanager
def cleared_ground(backend: Backend) -> Iterator[Ground]:
    """Yield a ground and clear it, whatever happens; a folder that was not there is gone again, too.

    Raises `NotAStore` if a file is where the folder, or one above it, would have to be.
    """
    if isinstance(backend, LocalBackend):
        _refuse_files(backend.root)
    ground = Ground(backend)
    made = _missing(backend)
    try:
        yield ground
    finally:
        try:
            ground.clear()
        except (AccessDenied, ReadOnly):
            _log.warning(
                "test objects stay under %s of %s: no permission to delete", ground.prefix, backend.url
            )
        if isinstance(backend, LocalBackend):
            _remove_folders(backend.root, ground, made)


def _refuse_files(root: Path) -> None:
    """Nothing can be tried in a file, and nothing cleared: say so before anything is written."""
    for path in (root, *root.parents):
        if path.is_file():
            raise NotAStore(f"{path} is a file, a store needs a folder; choose another place")


def _missing(backend: Backend) -> list[Path]:
    """What is not there and may be made on the way, innermost first."""
    if not isinstance(backend, LocalBackend):
        return []
    root = backend.root
    return [path for path in (root / ".lock", root / ".tmp", root, *root.parents) if not path.exists()]


def _remove_folders(root: Path, ground: Ground, made: list[Path]) -> None:
    """Remove the folders of the ground and, unless a store was made there meanwhile, what came with it."""
    below = sorted((root / ground.prefix).rglob("*"), reverse=True)
    folders = [*below, root / ground.prefix, root / DOCTOR_PREFIX]
    if not (root / FORMAT_KEY).exists():
        if root / ".lock" in made:
            with suppress(OSError):  # never made, or the folder cannot be written
                (root / ".lock").unlink()
        folders += made
    for folder in folders:
        with suppress(OSError):  # not empty, no folder, or never made
            folder.rmdir()
