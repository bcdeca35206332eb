"""What the snapshots of a site hold and how each differs from the one before it, in one pass over each."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from flows.site.survey import Pinned, Survey
from store.diff import Change, Entry, Totals, compare, entries_of

SMALL_KIND = 20
"""Kinds with at most this many elements are listed on a snapshot's page."""
PAGE_CHANGES = 500
MOST_CHANGES = 10_000
"""Changes that a diff lists; the counts are of all."""


@dataclass(slots=True)
class Contents:
    """What a snapshot holds: bytes by kind, and the elements of its small kinds."""

    bytes: dict[str, int] = field(default_factory=dict)
    few: list[Entry] = field(default_factory=list)


@dataclass(slots=True)
class Difference:
    """How a snapshot differs from the one before it; `changes` are the first ones, `totals` count all."""

    before: str
    after: str
    totals: Totals = field(default_factory=Totals)
    changes: list[Change] = field(default_factory=list)

    @property
    def count(self) -> int:
        """All changes."""
        return self.totals.added.elements + self.totals.removed.elements + self.totals.replaced.elements

    @property
    def net(self) -> int:
        """Bytes that the second snapshot holds more than the first."""
        tallies = (self.totals.added, self.totals.removed, self.totals.replaced)
        return sum(tally.bytes_after - tally.bytes_before for tally in tallies)

    def pages(self) -> list[list[Change]]:
        """The listed changes, page by page; one empty page if there is none."""
        starts = range(0, max(len(self.changes), 1), PAGE_CHANGES)
        return [self.changes[start : start + PAGE_CHANGES] for start in starts]


class Membership:
    """Which snapshots of the site hold a version: one bit of a number for each snapshot."""

    def __init__(self) -> None:
        self._masks: dict[bytes, int] = {}

    def add(self, version: str, place: int) -> None:
        """The snapshot at `place` holds `version`."""
        key = bytes.fromhex(version)[:16]
        self._masks[key] = self._masks.get(key, 0) | (1 << place)

    def places(self, version: str) -> list[int]:
        """Places of the snapshots that hold `version`, in order."""
        mask = self._masks.get(bytes.fromhex(version)[:16], 0)
        return [place for place in range(mask.bit_length()) if mask >> place & 1]


def read_contents(
    survey: Survey, place: int, membership: Membership, step: Callable[[], None]
) -> tuple[Contents, Difference | None]:
    """Read one snapshot and the one before it; notes which versions the former holds."""
    pinned = survey.pinned[place]
    contents = Contents()
    entries = _noted(pinned, place, contents, membership, step)
    if not pinned.previous:
        for _ in entries:
            pass
        return contents, None
    difference = Difference(pinned.previous, pinned.id)
    changes = _counted(compare(entries_of(survey.store.snapshot(pinned.previous)), entries), difference)
    difference.changes = list(islice(changes, MOST_CHANGES))
    for _ in changes:
        pass
    return contents, difference


def _noted(
    pinned: Pinned, place: int, contents: Contents, membership: Membership, step: Callable[[], None]
) -> Iterator[Entry]:
    kinds = pinned.snapshot.kinds
    for entry in entries_of(pinned.snapshot):
        kind = entry.name.partition("/")[0]
        contents.bytes[kind] = contents.bytes.get(kind, 0) + entry.bytes
        if kinds.get(kind, 0) <= SMALL_KIND:
            contents.few.append(entry)
        membership.add(entry.version, place)
        step()
        yield entry


def _counted(changes: Iterable[Change], difference: Difference) -> Iterator[Change]:
    for change in changes:
        difference.totals.count(change)
        yield change
