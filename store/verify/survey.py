"""The ground of a verification: what a listing showed, reading with count and progress, and suspicions."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Protocol

from store.backend import Backend
from store.errors import IntegrityError, KeyMissing
from store.parquet import UNREADABLE
from store.prefetch import prefetched

_THREADS = 8
_AHEAD_BYTES = 64 * 1024**2
_FORGED = (*UNREADABLE, TypeError, AttributeError, IndexError, OverflowError)
"""What decoding raises for records that are whole and yet such as no store writes."""


class Progress(Protocol):
    """Called after every object with the number checked and to check, and running figures."""

    def __call__(self, done: int, total: int, **figures: float) -> None: ...


def silent(done: int, total: int, **figures: float) -> None:
    """Report nothing."""


@dataclass(frozen=True, slots=True)
class Suspect:
    """A finding in the making: what is wrong with `key`, and what is known of what it touches.

    `elements` are references as text; `commits` are those whose elements are touched, whichever they are.
    """

    key: str
    problem: str
    elements: Collection[str] = ()
    snapshots: Collection[str] = ()
    commits: Collection[int] = ()


class Survey:
    """One look at everything that is stored. Reading is counted, and what is wrong is collected."""

    def __init__(self, backend: Backend, progress: Progress) -> None:
        self.backend = backend
        self.sizes: dict[str, int] = {item.key: item.size for item in backend.list("")}
        self.suspects: list[Suspect] = []
        self.bytes_read = 0
        self._progress = progress
        self._total = len(self.sizes)
        self._done = 0
        self._started = time.monotonic()

    def keys(self, prefix: str, suffix: str = "") -> list[str]:
        """Return the listed keys with that beginning and end, in order."""
        return [key for key in self.sizes if key.startswith(prefix) and key.endswith(suffix)]

    def examine(
        self,
        keys: Iterable[str],
        check: Callable[[str, bytes], None],
        touched: Callable[[str], Suspect | None] = lambda key: None,
    ) -> None:
        """Read objects ahead and check one after the other; what a check raises becomes a suspicion.

        What vanished since the listing is left out: whoever refers to it says so. `touched` may say what
        damage to a key touches; key and problem are filled in here.
        """
        for key, data in prefetched(
            self._fetch, keys, threads=_THREADS, weigh=lambda key: self.sizes[key], limit=_AHEAD_BYTES
        ):
            if data is None:
                del self.sizes[key]
            else:
                self.bytes_read += len(data)
                problem = self._problem(key, data, check)
                if problem:
                    known = touched(key) or Suspect(key, problem)
                    self.suspect(key, problem, known.elements, known.snapshots, known.commits)
            self.tick()

    def suspect(
        self,
        key: str,
        problem: str,
        elements: Collection[str] = (),
        snapshots: Collection[str] = (),
        commits: Collection[int] = (),
    ) -> None:
        """Add a suspicion."""
        self.suspects.append(Suspect(key, problem, elements, snapshots, commits))

    def exists(self, key: str) -> bool:
        """Whether an object is there: what was written since the listing is no damage, so look again."""
        return key in self.sizes or self.backend.info(key) is not None

    def read(self, key: str) -> bytes:
        """Read an object again, or one that came since the listing."""
        data = self.backend.read(key)
        self.bytes_read += len(data)
        return data

    def tick(self) -> None:
        """Report progress: one more of the listed objects is done."""
        self._done += 1
        seconds = time.monotonic() - self._started
        rate = self.bytes_read / seconds / 1024**2 if seconds > 0 else 0.0
        self._progress(
            min(self._done, self._total), self._total, findings=len(self.suspects), **{"MiB/s": rate}
        )

    def finish(self, *, complete: bool) -> None:
        """Report the end; what was listed and is of no kind that a store has counts as done then."""
        if complete:
            self._done = self._total
            self.tick()

    def _fetch(self, key: str) -> tuple[str, bytes | None]:
        try:
            return key, self.backend.read(key)
        except KeyMissing:
            return key, None

    def _problem(self, key: str, data: bytes, check: Callable[[str, bytes], None]) -> str:
        try:
            check(key, data)
        except (IntegrityError, KeyMissing) as error:
            return str(error)
        except _FORGED as error:
            return f"{key} holds what no store writes there ({type(error).__name__})"
        return ""
