"""Where a head pointed before: the bounded history inside its record, and what a rollback goes back to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from store.errors import IntegrityError, SnapshotNotFound
from store.format import is_digest, remedy

KEPT = 100
"""Former positions that a head remembers; a record stays at about 10 KB."""


@dataclass(frozen=True, slots=True)
class Position:
    """The snapshot that a head named from `time` on."""

    snapshot: str
    time: str


def positions_of(record: Mapping[str, Any], key: str) -> tuple[Position, ...]:
    """Return all positions that the record of a head under `key` knows, oldest first, the present one last.

    Records of versions that kept no history know the present one only. Raises `IntegrityError` if an entry
    is not a snapshot with a time.
    """
    entries = record.get("history", [])
    present = [record.get("snapshot"), record.get("time")]
    if not isinstance(entries, list):
        raise IntegrityError(f"{key} holds no history of a head; {remedy(key)}")
    return tuple(_position(entry, key) for entry in [*entries, present])


def history_after(positions: Sequence[Position]) -> list[list[str]]:
    """Return the `history` entry of the record that follows `positions`."""
    return [[position.snapshot, position.time] for position in positions[-KEPT:]]


def snapshot_before(positions: Sequence[Position], name: str) -> str:
    """Return what head `name` pointed to before it first pointed to the present snapshot.

    So rolling back twice goes two steps back instead of there and back again. Raises `SnapshotNotFound` if
    nothing older is known.
    """
    present = positions[-1].snapshot
    first = next(number for number, position in enumerate(positions) if position.snapshot == present)
    if first == 0:
        raise SnapshotNotFound(
            f"head {name} stands at {present[:12]}, the oldest place that it remembers; `cellar head log "
            f"{name}` shows where it was, and `cellar head move {name}` takes it anywhere"
        )
    return positions[first - 1].snapshot


def _position(entry: object, key: str) -> Position:
    match entry:
        case [str(snapshot), str(time)] if is_digest(snapshot):
            return Position(snapshot, time)
    raise IntegrityError(f"{key} does not name snapshots and times; {remedy(key)}")
