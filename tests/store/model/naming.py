"""Tags, heads and holds."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Literal

from store import Store
from store.errors import CellarError, HeadMoved, HoldExists, HoldNotFound, SnapshotNotFound, TagExists
from tests.store.faulty import Fault
from tests.store.model.elements import SNAPSHOTS
from tests.store.model.operations import Operation, sometime
from tests.store.model.truth import Broken, Entry, State, Truth, Window


@dataclass(frozen=True)
class Naming(Operation):
    """Base of what names a snapshot."""

    name: str
    which: int

    @property
    def snapshot(self) -> str:
        """The id that is to be named."""
        return SNAPSHOTS[self.which]

    @property
    @abstractmethod
    def key(self) -> str:
        """The key of the name."""

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        named = truth.snapshots_named(self.key, window)
        sometime(named, lambda value: value == self.snapshot, f"{self} held")

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if not isinstance(error, SnapshotNotFound):
            super().check_refusal(error, truth, window)
        check_absent(self.snapshot, truth, window)

    def check_entry(self, entry: Entry, before: State, truth: Truth, window: Window) -> None:
        if (entry.action, entry.snapshot) != ("pin", self.snapshot) or self.snapshot not in before.condemned:
            raise Broken(f"{self} made entry {entry.number}, which takes back nothing")


def check_absent(snapshot: str, truth: Truth, window: Window) -> None:
    """Raise `Broken` unless a snapshot was not there, or had been collected, at some moment of a window."""
    if not any(snapshot in state.gone for state in truth.states(window)):
        heads = truth.values(f"snapshots/{snapshot}.json", window)
        sometime(heads, lambda body: body is None, f"snapshot {snapshot[:12]} was absent")


@dataclass(frozen=True)
class Tag(Naming):
    """Name a snapshot for good."""

    @property
    def key(self) -> str:
        return f"refs/tags/{self.name}"

    def run(self, store: Store, label: str) -> Any:
        store.tag(self.name, self.snapshot)

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if isinstance(error, TagExists):
            named = truth.snapshots_named(self.key, window)
            sometime(named, lambda value: value not in (None, self.snapshot), f"{self} was taken")
        else:
            super().check_refusal(error, truth, window)


@dataclass(frozen=True)
class Move(Naming):
    """Move a head from what it is expected to name, which is looked up first if `expect` is "now"."""

    expect: int | Literal["now"] | None

    @property
    def key(self) -> str:
        return f"refs/heads/{self.name}"

    def run(self, store: Store, label: str) -> Any:
        expected = store.head(self.name) if self.expect == "now" else self._expected
        store.move_head(self.name, self.snapshot, expect=expected)

    @property
    def _expected(self) -> str | None:
        return SNAPSHOTS[self.expect] if isinstance(self.expect, int) else None

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if not isinstance(error, HeadMoved):
            super().check_refusal(error, truth, window)
            return
        named = truth.snapshots_named(self.key, window)
        if truth.wrote(self.key, window):
            raise Broken(f"{self} was refused and moved the head all the same")
        if self.expect == "now":
            sometime([named], lambda values: len(values) > 1, f"{self} was wrong")
        else:
            fitting = (self._expected, self.snapshot)
            sometime(named, lambda value: value not in fitting, f"{self} was wrong")


@dataclass(frozen=True)
class Keep(Naming):
    """Hold a snapshot for some hours."""

    hours: int

    @property
    def key(self) -> str:
        return f"pins/{self.name}.json"

    def run(self, store: Store, label: str) -> Any:
        store.hold(self.name, self.snapshot, owner=label, seconds=3600 * self.hours).take()

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if isinstance(error, HoldExists):
            named = truth.snapshots_named(self.key, window)
            sometime(named, lambda value: value not in (None, self.snapshot), f"{self} was taken")
        else:
            super().check_refusal(error, truth, window)


@dataclass(frozen=True)
class Release(Operation):
    """Release a hold, whoever took it."""

    name: str

    def run(self, store: Store, label: str) -> Any:
        store.release_hold(self.name)

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        named = truth.snapshots_named(f"pins/{self.name}.json", window)
        sometime(named, lambda value: value is None, f"{self} was done")

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if not isinstance(error, HoldNotFound):
            super().check_refusal(error, truth, window)
        named = truth.snapshots_named(f"pins/{self.name}.json", window)
        sometime(named, lambda value: value is None, f"{self} had nothing to do")
