"""Publishing, building and pinning."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from store import Store
from store.errors import CellarError, ElementNotFound, MissingRequirement
from tests.store.faulty import Fault
from tests.store.model.elements import BY_VERSION, ELEMENTS, SETS, SNAPSHOTS, UNITS
from tests.store.model.operations import Operation, is_being_removed, sometime, was_removed
from tests.store.model.truth import Broken, Entry, State, Truth, Window


@dataclass(frozen=True)
class Publish(Operation):
    """Publish a few elements in one call."""

    chosen: tuple[int, ...]

    def run(self, store: Store, label: str) -> Any:
        return store.publish([ELEMENTS[n] for n in self.chosen], message=label)

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        if result != [ELEMENTS[n].ref for n in self.chosen]:
            raise Broken(f"{self} returned {result}")
        _check_published(self, self.chosen, truth, window)

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if not is_being_removed(error, truth, window) and not was_removed(error, truth, window):
            super().check_refusal(error, truth, window)

    def check_entry(self, entry: Entry, before: State, truth: Truth, window: Window) -> None:
        _check_publication(self.chosen, entry, before)


@dataclass(frozen=True)
class Work(Operation):
    """Do what is left of a build of two units, as one of several workers and finalisers, and commit it."""

    build: int
    target_bytes: int

    def run(self, store: Store, label: str) -> Any:
        build = store.build(f"job-{self.build}", owner=label, target_bytes=self.target_bytes)
        receipts = build.receipts()
        for number in self._units:
            if str(number) not in receipts:
                with build.writer(str(number)) as writer:
                    for position in UNITS[number]:
                        writer.add(ELEMENTS[position])
                    receipts[str(number)] = writer.finish()
        return build.commit(receipts, message=label)

    @property
    def _units(self) -> tuple[int, int]:
        return 2 * self.build, 2 * self.build + 1

    @property
    def _chosen(self) -> tuple[int, ...]:
        return tuple(position for number in self._units for position in UNITS[number])

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        _check_published(self, self._chosen, truth, window)

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if not is_being_removed(error, truth, window) and not was_removed(error, truth, window):
            super().check_refusal(error, truth, window)

    def check_entry(self, entry: Entry, before: State, truth: Truth, window: Window) -> None:
        _check_publication(self._chosen, entry, before)


def _check_published(operation: Operation, chosen: Iterable[int], truth: Truth, window: Window) -> None:
    wanted = {ELEMENTS[n].version for n in chosen}
    sometime(truth.states(window), lambda state: wanted <= state.known.keys(), f"{operation} was visible")


def _check_publication(chosen: Iterable[int], entry: Entry, before: State) -> None:
    new = {ELEMENTS[n].version for n in chosen} - before.known.keys()
    if entry.action != "publish" or {place.version for place in entry.places} != new or not new:
        raise Broken(f"entry {entry.number} shows other versions than the new ones of {list(chosen)}")
    for place in entry.places:
        if place.payload != BY_VERSION[place.version].payload:
            raise Broken(f"entry {entry.number} shows wrong bytes for {place.name}")


@dataclass(frozen=True)
class Pin(Operation):
    """Pin one of the sets."""

    which: int

    def run(self, store: Store, label: str) -> Any:
        return store.pin([ELEMENTS[n].ref for n in SETS[self.which]], message=label).id

    @property
    def _wanted(self) -> set[str]:
        return {ELEMENTS[n].version for n in SETS[self.which]}

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        if result != SNAPSHOTS[self.which]:
            raise Broken(f"{self} returned {result}")
        sometime(truth.states(window), lambda state: result in state.pinned, f"{self} was recorded")

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        wanted = self._wanted
        if isinstance(error, ElementNotFound):
            sometime(
                truth.states(window), lambda state: not wanted <= state.visible.keys(), f"{self} was refused"
            )
        elif isinstance(error, MissingRequirement):
            if {version for n in SETS[self.which] for version in ELEMENTS[n].requires} <= wanted:
                raise Broken(f"{self} lacks no requirement") from error
        elif not is_being_removed(error, truth, window):
            super().check_refusal(error, truth, window)

    def check_entry(self, entry: Entry, before: State, truth: Truth, window: Window) -> None:
        if (entry.action, entry.snapshot) != ("pin", SNAPSHOTS[self.which]):
            raise Broken(f"entry {entry.number} is no pin of set {self.which}")
        if entry.snapshot in before.pinned - before.condemned:
            raise Broken(f"entry {entry.number} pins what was pinned already")
        if not self._wanted <= before.visible.keys():
            raise Broken(f"entry {entry.number} pins what is not visible")
