"""What differs between two snapshots, found in one pass over both in the order of names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from store.snapshot import Snapshot

What = Literal["added", "removed", "replaced"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One element of a snapshot, as far as a comparison needs it; `bytes` is the size of its payload."""

    name: str
    version: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Change:
    """An element that only one of two snapshots holds, or that they hold in two versions."""

    name: str
    before: Entry | None
    after: Entry | None

    @property
    def what(self) -> What:
        """How the second snapshot differs from the first in this element."""
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "replaced"

    def to_dict(self) -> dict[str, Any]:
        """The change as JSON; what is on one side only has no entry for the other."""
        sides = (("before", self.before), ("after", self.after))
        return {"name": self.name} | {
            side: {"version": entry.version, "bytes": entry.bytes} for side, entry in sides if entry
        }


@dataclass(slots=True)
class Tally:
    """How many elements changed in one way, and the bytes of their payloads on the two sides."""

    elements: int = 0
    bytes_before: int = 0
    bytes_after: int = 0


@dataclass(slots=True)
class Totals:
    """A tally for each way in which two snapshots can differ."""

    added: Tally = field(default_factory=Tally)
    removed: Tally = field(default_factory=Tally)
    replaced: Tally = field(default_factory=Tally)

    def count(self, change: Change) -> None:
        """Add one change."""
        tally: Tally = getattr(self, change.what)
        tally.elements += 1
        tally.bytes_before += change.before.bytes if change.before else 0
        tally.bytes_after += change.after.bytes if change.after else 0


def entries_of(snapshot: Snapshot) -> Iterator[Entry]:
    """Yield what a comparison needs of every element, sorted by name, in bounded memory."""
    for table in snapshot.scan(["name", "version", "length"]):
        columns = (table[name].to_pylist() for name in ("name", "version", "length"))
        yield from map(Entry, *columns)


def compare(before: Iterable[Entry], after: Iterable[Entry]) -> Iterator[Change]:
    """Yield the differences in the order of names; both sides are sorted by name and read once.

    Nothing is kept but one entry of each side, so snapshots of any size can be compared.
    """
    left, right = iter(before), iter(after)
    old, new = next(left, None), next(right, None)
    while old is not None or new is not None:
        if new is None or (old is not None and old.name < new.name):
            assert old is not None, "one of the sides has an entry"
            yield Change(old.name, old, None)
            old = next(left, None)
        elif old is None or new.name < old.name:
            yield Change(new.name, None, new)
            new = next(right, None)
        else:
            if old.version != new.version:
                yield Change(old.name, old, new)
            old, new = next(left, None), next(right, None)
