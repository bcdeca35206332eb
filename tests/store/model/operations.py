"""What a simulated process does, and how its answer is judged by the truth of its time.

Every operation knows how to run on a `Store`, and raises `Broken` if no moment of the window in which it ran
explains its answer. An operation that met a fault may also end in `StorageUnavailable` or
`CommitStateUnknown`; then nothing is claimed, and it may have happened or still happen.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import Any

from store import Store
from store.errors import CellarError, CommitStateUnknown, ConflictError, IntegrityError, StorageUnavailable
from tests.store.faulty import DAMAGE, LISTING, Fault
from tests.store.model.truth import Broken, Entry, State, Truth, Window


@dataclass(frozen=True)
class Operation(ABC):
    """Base of all: by default it makes no entry and is never refused."""

    @abstractmethod
    def run(self, store: Store, label: str) -> Any:
        """Do it; `label` is the message of its log entry, by which the entry is recognised."""

    @abstractmethod
    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        """Raise `Broken` unless `result` was right at some moment of the window."""

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        """Raise `Broken` unless the refusal was right at some moment of the window."""
        raise Broken(f"{self} failed for no reason: {error!r}") from error

    def check_entry(self, entry: Entry, before: State, truth: Truth, window: Window) -> None:
        """Raise `Broken` unless `entry`, which this operation made, is what it should be."""
        raise Broken(f"{self} made entry {entry.number}")

    def excuses(self, error: BaseException, faults: Collection[Fault]) -> bool:
        """Whether it may end in `error` without claiming anything, having met `faults`."""
        if isinstance(error, IntegrityError):
            return not (DAMAGE | {Fault.GARBLED}).isdisjoint(faults)
        return bool(faults) and isinstance(error, (StorageUnavailable, CommitStateUnknown))


def sometime(candidates: Iterable[Any], test: Callable[[Any], bool], claim: str) -> None:
    """Raise `Broken` unless one of the states or values that existed in a window passes `test`."""
    found = list(candidates)
    if not any(map(test, found)):
        raise Broken(f"{claim} at no moment of {found}")


def is_being_removed(error: CellarError, truth: Truth, window: Window) -> bool:
    """Whether something was refused, rightly, because a collector was removing things."""
    return type(error) is ConflictError and any(state.dying for state in truth.states(window))


def was_removed(error: CellarError, truth: Truth, window: Window) -> bool:
    """Whether something that an operation had found was deleted by a collector before it was used."""
    return isinstance(error, IntegrityError) and truth.deleted(window)


def listing_lied(faults: Collection[Fault]) -> bool:
    """Whether a listing lacked what was there or showed what was not."""
    return not LISTING.isdisjoint(faults)
