"""What the processes of the model do to a store, and what each may answer, judged by the truth of its time.

Every operation knows how to run on a `Store` and how to check what came out: `check` gets the truth and the
window in which it ran, and raises `Broken` if no moment of that window explains the answer. An operation
that met a fault may also end in `StorageUnavailable` or `CommitStateUnknown`; then nothing is claimed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from store import Element, Store
from store.errors import (
    CellarError,
    CommitStateUnknown,
    ElementNotFound,
    HeadMoved,
    IntegrityError,
    MissingRequirement,
    SnapshotNotFound,
    StorageUnavailable,
    TagExists,
)
from store.snapshot import snapshot_id
from tests.store.faulty import DAMAGE, Fault
from tests.store.model.truth import Broken, Entry, State, Truth, Window
from tests.store.samples import BYTES, codec

CODEC = codec()


def _memory(name: str, revision: int, *requires: str) -> Element:
    return Element(
        "memory",
        name,
        f"{name} {revision} ".encode() * 9,
        media=BYTES,
        requires=requires,
        provenance={"recipe": f"{ord(name):064x}", "revision": revision},
    )


ELEMENTS = (
    CODEC,
    *(_memory(name, revision, CODEC.version) for name in "ab" for revision in (1, 2)),
    *(_memory(name, revision) for name in "cd" for revision in (1, 2)),
)
PAYLOADS = {element.version: element.payload for element in ELEMENTS}
SETS = ((0, 1), (0, 2, 3), (5,), (6, 7), (0, 1, 3, 5, 7), (1, 5))
"""Sets to pin, by position in `ELEMENTS`; the last one lacks what its first element requires."""
SNAPSHOTS = tuple(
    snapshot_id((ELEMENTS[n].full_name, ELEMENTS[n].version) for n in chosen) for chosen in SETS
)
UNITS = ((1, 2), (3,), (5, 7), (8, 0))
"""Units of the builds, by position in `ELEMENTS`."""


@dataclass(frozen=True)
class Operation:
    """Base of all: by default it writes nothing and fails only where the storage fails."""

    def run(self, store: Store, label: str) -> Any:
        """Do it; `label` is the message of its log entry, by which the entry is recognised."""
        raise NotImplementedError

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        """Raise `Broken` unless `result` was right at some moment of the window."""
        raise NotImplementedError

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        """Raise `Broken` unless the refusal was right at some moment of the window."""
        raise Broken(f"{self} failed for no reason: {error!r}") from error

    def check_entry(self, entry: Entry, before: State) -> None:
        """Raise `Broken` unless `entry`, which this operation made, is what it should be."""
        raise Broken(f"{self} made entry {entry.number}")


def excused(error: BaseException, faults: Iterable[Fault]) -> bool:
    """Whether an operation that met `faults` may end so without claiming anything."""
    met = set(faults)
    if isinstance(error, IntegrityError):
        return bool(met & DAMAGE)
    return bool(met) and isinstance(error, (StorageUnavailable, CommitStateUnknown))


def _some(candidates: Iterable[Any], test: Callable[[Any], bool], claim: str) -> None:
    found = list(candidates)
    if not any(map(test, found)):
        raise Broken(f"{claim} at no moment: {found}")


@dataclass(frozen=True)
class Publish(Operation):
    """Publish a few elements in one call."""

    chosen: tuple[int, ...]

    def run(self, store: Store, label: str) -> Any:
        return store.publish([ELEMENTS[n] for n in self.chosen], message=label)

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        wanted = [ELEMENTS[n].ref for n in self.chosen]
        if result != wanted:
            raise Broken(f"{self} returned {result}")
        _some(
            truth.states(window),
            lambda state: {ref.version for ref in wanted} <= state.known.keys(),
            f"what {self} published was visible",
        )

    def check_entry(self, entry: Entry, before: State) -> None:
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

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        wanted = {ELEMENTS[n].version for n in self._chosen}
        _some(truth.states(window), lambda state: wanted <= state.known.keys(), f"{self} was visible")

    def check_entry(self, entry: Entry, before: State) -> None:
        _check_publication(self._chosen, entry, before)


def _check_publication(chosen: Iterable[int], entry: Entry, before: State) -> None:
    new = {ELEMENTS[n].version for n in chosen} - before.known.keys()
    if entry.action != "publish" or {place.version for place in entry.places} != new or not new:
        raise Broken(f"entry {entry.number} shows other versions than the new ones of {list(chosen)}")
    for place in entry.places:
        if place.payload != PAYLOADS[place.version]:
            raise Broken(f"entry {entry.number} shows wrong bytes for {place.name}")


@dataclass(frozen=True)
class Pin(Operation):
    """Pin one of the sets."""

    which: int

    def run(self, store: Store, label: str) -> Any:
        return store.pin([ELEMENTS[n].ref for n in SETS[self.which]], message=label).id

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        if result != SNAPSHOTS[self.which]:
            raise Broken(f"{self} returned {result}")
        _some(truth.states(window), lambda state: result in state.pinned, f"{self} was recorded")

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        wanted = {ELEMENTS[n].version for n in SETS[self.which]}
        if isinstance(error, ElementNotFound):
            _some(
                truth.states(window), lambda state: not wanted <= state.visible.keys(), f"{self} was refused"
            )
        elif isinstance(error, MissingRequirement):
            needed = {version for n in SETS[self.which] for version in ELEMENTS[n].requires}
            _some(truth.states(window), lambda state: not needed <= wanted, f"{self} was refused")
        else:
            super().check_refusal(error, truth, window)

    def check_entry(self, entry: Entry, before: State) -> None:
        if (entry.action, entry.snapshot) != (
            "pin",
            SNAPSHOTS[self.which],
        ) or entry.snapshot in before.pinned:
            raise Broken(f"entry {entry.number} is not the first pin of set {self.which}")


@dataclass(frozen=True)
class Tag(Operation):
    """Name a snapshot for good."""

    name: str
    which: int

    def run(self, store: Store, label: str) -> Any:
        store.tag(self.name, SNAPSHOTS[self.which])

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        named = truth.snapshots_named(f"refs/tags/{self.name}", window)
        _some(named, lambda value: value == SNAPSHOTS[self.which], f"{self} held")

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if isinstance(error, TagExists):
            named = truth.snapshots_named(f"refs/tags/{self.name}", window)
            _some(named, lambda value: value not in (None, SNAPSHOTS[self.which]), f"{self} was taken")
        else:
            _check_absent(self, SNAPSHOTS[self.which], error, truth, window)


@dataclass(frozen=True)
class Move(Operation):
    """Move a head from what it is expected to name, which is looked up first if `expect` is "now"."""

    name: str
    expect: int | Literal["now"] | None
    which: int

    def run(self, store: Store, label: str) -> Any:
        expected = store.head(self.name) if self.expect == "now" else self._expected
        store.move_head(self.name, SNAPSHOTS[self.which], expect=expected)

    @property
    def _expected(self) -> str | None:
        return SNAPSHOTS[self.expect] if isinstance(self.expect, int) else None

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        named = truth.snapshots_named(self._key, window)
        _some(named, lambda value: value == SNAPSHOTS[self.which], f"{self} held")

    @property
    def _key(self) -> str:
        return f"refs/heads/{self.name}"

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if not isinstance(error, HeadMoved):
            _check_absent(self, SNAPSHOTS[self.which], error, truth, window)
            return
        named = truth.snapshots_named(self._key, window)
        if truth.wrote(self._key, window):
            raise Broken(f"{self} was refused and moved the head all the same")
        if self.expect == "now":
            _some([named], lambda values: len(values) > 1, f"{self} was wrong")
        else:
            fitting = (self._expected, SNAPSHOTS[self.which])
            _some(named, lambda value: value not in fitting, f"{self} was wrong")


@dataclass(frozen=True)
class ReadSnapshot(Operation):
    """Open a snapshot by id, tag or head, and read all of it."""

    spec: str

    def run(self, store: Store, label: str) -> Any:
        snapshot = store.snapshot(self.spec)
        return snapshot.id, {row.ref: payload for row, payload in snapshot.stream()}

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        identity, payloads = result
        chosen = [ELEMENTS[n] for n in SETS[SNAPSHOTS.index(identity)]]
        if payloads != {element.ref: element.payload for element in chosen}:
            raise Broken(f"{self} returned something else than was pinned")
        noun, _, name = self.spec.partition(":")
        if name:
            named = truth.snapshots_named(f"refs/{noun}s/{name}", window)
            _some(named, lambda value: value == identity, f"{self.spec} named {identity[:12]}")

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        noun, _, name = self.spec.partition(":")
        if not name:
            _check_absent(self, self.spec, error, truth, window)
        elif isinstance(error, SnapshotNotFound):
            named = truth.snapshots_named(f"refs/{noun}s/{name}", window)
            _some(named, lambda value: value is None, f"there was no {self.spec}")
        else:
            super().check_refusal(error, truth, window)


def _check_absent(
    operation: Operation, snapshot: str, error: CellarError, truth: Truth, window: Window
) -> None:
    if not isinstance(error, SnapshotNotFound):
        Operation.check_refusal(operation, error, truth, window)
    heads = truth.values(f"snapshots/{snapshot}.json", window)
    _some(heads, lambda body: body is None, f"snapshot {snapshot[:12]} was absent")


@dataclass(frozen=True)
class ReadElement(Operation):
    """Read one element by reference, with whatever this process knows of the catalog."""

    number: int

    def run(self, store: Store, label: str) -> Any:
        return store.read(ELEMENTS[self.number].ref)

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        if result != ELEMENTS[self.number].payload:
            raise Broken(f"{self} returned wrong bytes")

    def check_refusal(self, error: CellarError, truth: Truth, window: Window) -> None:
        if not isinstance(error, ElementNotFound):
            super().check_refusal(error, truth, window)
        version = ELEMENTS[self.number].version
        _some(truth.states(window), lambda state: version not in state.visible, f"{self} was refused")


@dataclass(frozen=True)
class ListAll(Operation):
    """List every visible version and every commit."""

    def run(self, store: Store, label: str) -> Any:
        rows = store.catalog().rows()
        return [(row.version, row.name, row.pack) for row in rows], len(rows)

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        listed, count = result
        if len({version for version, _, _ in listed}) != count:
            raise Broken(f"{self} showed a version twice")
        _some(
            truth.states(window),
            lambda state: (
                set(listed) == {(place.version, place.name, place.pack) for place in state.visible.values()}
            ),
            f"{self} showed what was visible, {listed},",
        )


@dataclass(frozen=True)
class Ask(Operation):
    """Look an element up by name, and what the same step made first."""

    number: int

    def run(self, store: Store, label: str) -> Any:
        element = ELEMENTS[self.number]
        catalog = store.catalog()
        latest, first = catalog.latest(element.full_name), catalog.find(str(element.provenance["recipe"]))
        return latest and latest.version, first and first.version

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        element = ELEMENTS[self.number]
        recipe = str(element.provenance["recipe"])
        _some(
            truth.states(window),
            lambda state: result == (state.latest(element.full_name), state.first(recipe)),
            f"{self} was answered with {result}",
        )


@dataclass(frozen=True)
class LookAtHead(Operation):
    """Ask where a head points."""

    name: str

    def run(self, store: Store, label: str) -> Any:
        return store.head(self.name)

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        named = truth.snapshots_named(f"refs/heads/{self.name}", window)
        _some(named, lambda value: value == result, f"{self} answered {result}")


@dataclass(frozen=True)
class Verify(Operation):
    """Verify the store while others work on it."""

    def run(self, store: Store, label: str) -> Any:
        return store.verify(full=True).findings

    def check(self, result: Any, truth: Truth, window: Window, faults: tuple[Fault, ...]) -> None:
        if result and not faults:
            raise Broken(f"verify found damage where there is none: {result}")


_WHICH = st.integers(0, len(SETS) - 1)
_NUMBER = st.integers(0, len(ELEMENTS) - 1)
_TAGS = st.sampled_from(("t", "u"))
_PUBLISH = st.builds(Publish, st.lists(_NUMBER, min_size=1, max_size=3).map(tuple))
_WORK = st.builds(Work, st.integers(0, 1), st.sampled_from((1, 10_000)))
_PIN = st.builds(Pin, _WHICH)
_TAG = st.builds(Tag, _TAGS, _WHICH)
_MOVE = st.builds(Move, st.just("main"), st.just("now") | st.none() | st.integers(0, 2), st.integers(0, 2))
_READ_SNAPSHOT = st.builds(ReadSnapshot, st.sampled_from((*SNAPSHOTS, "tag:t", "tag:u", "head:main")))
_READ = st.builds(ReadElement, _NUMBER)
_ASK = st.builds(Ask, _NUMBER)
_LOOK = st.builds(LookAtHead, st.just("main"))
_LIST, _VERIFY = st.builds(ListAll), st.builds(Verify)
THEMES: tuple[st.SearchStrategy[Operation], ...] = (
    st.one_of(_PUBLISH, _WORK, _PIN, _TAG, _MOVE, _READ_SNAPSHOT, _READ, _ASK, _LOOK, _LIST, _VERIFY),
    st.one_of(_PUBLISH, _WORK, _LIST, _VERIFY),
    st.one_of(_PIN, _TAG, _READ_SNAPSHOT, _VERIFY),
    st.one_of(_MOVE, _LOOK),
)
"""What the processes of one race do: anything, or what gets in each other's way most."""

BEGINNINGS: tuple[tuple[Operation, ...], ...] = (
    (Publish(tuple(range(6))), Pin(0), Pin(1), Pin(2), Move("main", None, 0), Tag("t", 1)),
    (Publish((0, 1)), Publish((6, 7)), Pin(0), Pin(3), Move("main", None, 0)),
    (Work(0, 1), Work(1, 10_000), Pin(1)),
    (ListAll(),),
)
"""What stores hold before the races."""
