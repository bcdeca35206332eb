"""What a garbage collection found and did: a typed summary."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Amount:
    """Objects of a store; `files` are those that are neither packs nor of snapshots.

    `bytes` are those of packs and files; what snapshots take beside their packs is small and left out.
    """

    packs: int = 0
    snapshots: int = 0
    files: int = 0
    bytes: int = 0

    def __bool__(self) -> bool:
        return bool(self.packs or self.snapshots or self.files)

    def __add__(self, other: Amount) -> Amount:
        return Amount(
            self.packs + other.packs,
            self.snapshots + other.snapshots,
            self.files + other.files,
            self.bytes + other.bytes,
        )


NOTHING = Amount()


@dataclass(frozen=True, slots=True)
class Summary:
    """One garbage collection; with `applied` False nothing was written and it says what would happen.

    `roots` counts what keeps things alive: tags, heads, holds, recent pins, live builds. `kept` is what they
    reach. `condemned` was announced now, `waiting` earlier, and may be removed from `until` on (a time in the
    storage's clock); `queued` is not reached either and is announced once that is done. `rescued` was
    condemned and is reached again. `collected` was removed now, `finished` is what an interrupted collection
    had left to remove. `leftovers` are files of builds that are over and derived files that newer ones
    replace. `snapshots` are the ids of those that go or are to go, by the amount that counts them.
    `dangling` are names of snapshots that are no more.
    """

    store: str
    applied: bool
    time: str
    grace_seconds: int
    retain_seconds: int
    roots: dict[str, int]
    kept: Amount = NOTHING
    condemned: Amount = NOTHING
    waiting: Amount = NOTHING
    queued: Amount = NOTHING
    until: str | None = None
    rescued: Amount = NOTHING
    collected: Amount = NOTHING
    finished: Amount = NOTHING
    leftovers: Amount = NOTHING
    snapshots: dict[str, tuple[str, ...]] = field(default_factory=dict)
    dangling: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON values."""
        return asdict(self)
