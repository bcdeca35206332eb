"""Reading, looking up and verifying."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from store import Store
from store.errors import CellarError, ElementNotFound, IntegrityError, SnapshotNotFound
from tests.store.faulty import Fault
from tests.store.model.elements import ELEMENTS, members
from tests.store.model.naming import check_absent
from tests.store.model.operations import Operation, sometime
from tests.store.model.truth import Broken, Truth, Window


@dataclass(frozen=True)
class ReadSnapshot(Operation):
    """Open a snapshot by id, tag or head, and read all of it."""

    spec: str

    def run(self, store: Store, label: str) -> Any:
        snapshot = store.snapshot(self.spec)
        return snapshot.id, {row.ref: payload for row, payload in snapshot.stream()}

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        identity, payloads = result
        if payloads != {element.ref: element.payload for element in members(identity)}:
            raise Broken(f"{self} returned something else than was pinned")
        if ":" in self.spec:
            named = self._named(truth, window)
            sometime(named, lambda value: value == identity, f"{self.spec} named {identity[:12]}")

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        named = self._named(truth, window) if ":" in self.spec else [self.spec]
        if isinstance(error, SnapshotNotFound) and None in named:
            return
        if isinstance(error, SnapshotNotFound):
            check_absent(str(named[0]), truth, window)
            return
        gone = {snapshot for state in truth.states(window) for snapshot in state.gone}
        if not (isinstance(error, IntegrityError) and gone.intersection(named)):  # collected under the reader
            super().check_refusal(error, truth, window)

    def _named(self, truth: Truth, window: Window) -> list[str | None]:
        noun, _, name = self.spec.partition(":")
        return truth.snapshots_named(f"refs/{noun}s/{name}", window)


@dataclass(frozen=True)
class ReadElement(Operation):
    """Read one element by reference, with whatever this process knows of the catalog."""

    number: int

    def run(self, store: Store, label: str) -> Any:
        return store.read(ELEMENTS[self.number].ref)

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        if result != ELEMENTS[self.number].payload:
            raise Broken(f"{self} returned wrong bytes")

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if not isinstance(error, ElementNotFound):
            super().check_refusal(error, truth, window)
        version = ELEMENTS[self.number].version
        sometime(truth.states(window), lambda state: version not in state.visible, f"{self} was refused")


@dataclass(frozen=True)
class ListAll(Operation):
    """List every visible version with its pack."""

    def run(self, store: Store, label: str) -> Any:
        return [(row.version, row.name, row.pack) for row in store.catalog().rows()]

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        listed = sorted(result)
        if len({version for version, _, _ in listed}) != len(listed):
            raise Broken(f"{self} showed a version twice")
        visible = [
            sorted((place.version, place.name, place.pack) for place in state.visible.values())
            for state in truth.states(window)
        ]
        sometime(visible, lambda places: places == listed, f"{self} was answered with {listed}, which held")


@dataclass(frozen=True)
class Ask(Operation):
    """Look an element up by name, and what the same step made first."""

    number: int

    def run(self, store: Store, label: str) -> Any:
        element = ELEMENTS[self.number]
        catalog = store.catalog()
        latest, first = catalog.latest(element.full_name), catalog.find(str(element.provenance["recipe"]))
        return latest and latest.version, first and first.version

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        element = ELEMENTS[self.number]
        recipe = str(element.provenance["recipe"])
        answers = [(state.latest(element.full_name), state.first(recipe)) for state in truth.states(window)]
        sometime(answers, lambda answer: answer == result, f"{self} was answered with {result}, which held")


@dataclass(frozen=True)
class LookAtHead(Operation):
    """Ask where a head points."""

    name: str

    def run(self, store: Store, label: str) -> Any:
        return store.head(self.name)

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        named = truth.snapshots_named(f"refs/heads/{self.name}", window)
        sometime(named, lambda value: value == result, f"{self} answered {result}")


@dataclass(frozen=True)
class Verify(Operation):
    """Verify the store while others work on it."""

    def run(self, store: Store, label: str) -> Any:
        return store.verify(full=True).findings

    def check(self, result: Any, truth: Truth, window: Window, faults: Collection[Fault]) -> None:
        if result and not faults:
            raise Broken(f"verify found damage where there is none: {result}")
