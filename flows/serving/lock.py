"""Who serves a folder: one process at a time, whose lock the system itself releases when it dies."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil

from flows.errors import AlreadyServed
from store import process

_LOCK, _NOTE = "serve.lock", "serve.json"


@dataclass(frozen=True)
class Serving:
    """A long-lived server on this machine: the process that serves, and its Prefect API."""

    pid: int
    url: str
    server: dict[str, Any] | None = None
    """The identity of the process of the API itself, if the serving process started one."""


def serving(home: Path) -> Serving | None:
    """Who serves the folder at this moment, None if nobody does or it is only about to start."""
    try:
        with (home / _LOCK).open("rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return None
    except BlockingIOError:
        return _read(home)
    return None


class ServeLock:
    """The held lock of a folder; `announce` lets other commands find the API."""

    def __init__(self, home: Path) -> None:
        self._home = home

    def announce(self, url: str, server: int | None) -> None:
        """Write down which API is served, and by which process."""
        note = Serving(os.getpid(), url, process.identity(server) if server else None)
        partial = self._home / f"{_NOTE}.partial"
        partial.write_text(json.dumps(asdict(note)) + "\n", encoding="utf-8")
        partial.replace(self._home / _NOTE)


@contextmanager
def serve_lock(home: Path) -> Iterator[ServeLock]:
    """Hold the folder's lock for the duration of the block, after ending what a killed holder left behind.

    Raises:
        AlreadyServed: another process holds it.
    """
    home.mkdir(parents=True, exist_ok=True)
    with (home / _LOCK).open("wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _refusal(home, _read(home)) from None
        _end_orphan(home)
        try:
            yield ServeLock(home)
        finally:
            (home / _NOTE).unlink(missing_ok=True)


def check_free(home: Path) -> None:
    """Raise AlreadyServed where another process serves the folder; nothing is taken."""
    note = serving(home)
    if note is not None:
        raise _refusal(home, note)


def _refusal(home: Path, note: Serving | None) -> AlreadyServed:
    who = f"process {note.pid} serves it at {note.url}" if note else "another process is starting"
    return AlreadyServed(
        f"{home} is served already: {who}; stop that one first, or give another CELLAR_WORK_DIR"
    )


def _end_orphan(home: Path) -> None:
    """End the API of a holder that was killed, where the system did not do so."""
    note = _read(home)
    if note is not None and note.server is not None and process.is_alive(note.server):
        with suppress(psutil.NoSuchProcess):
            orphan = psutil.Process(note.server["number"])
            orphan.kill()
            orphan.wait()
    (home / _NOTE).unlink(missing_ok=True)


def _read(home: Path) -> Serving | None:
    try:
        return Serving(**json.loads((home / _NOTE).read_bytes()))
    except (FileNotFoundError, ValueError, TypeError):
        return None
