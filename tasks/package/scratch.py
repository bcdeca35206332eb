"""A scratch folder that is gone when its block ends, and at the latest when the next one is made."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_PREFIX = "part-"


@contextmanager
def scratch(place: Path) -> Iterator[Path]:
    """Give a new folder in `place`, which is made if it is missing.

    What killed processes left there is removed first: who works in a folder holds a lock on it, and the
    system lets go of the locks of the dead.
    """
    place.mkdir(parents=True, exist_ok=True)
    with _locked(place):
        for left in place.glob(f"{_PREFIX}*"):
            with suppress(OSError), _locked(left, wait=False):
                shutil.rmtree(left)
        made = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=place))
        held = os.open(made, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        os.close(held)


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold the lock of a folder; raises BlockingIOError where another has it and this does not wait."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        yield
    finally:
        os.close(handle)
