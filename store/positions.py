"""Where a head pointed, who moved it there and why: the history inside its record, and the way back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from store.errors import InputError, IntegrityError, SnapshotNotFound
from store.format import is_digest, remedy

KEPT = 100
"""Former positions that a head remembers."""
LONGEST_WHY = 400
"""Characters of a reason; so a record stays below about 100 KB, and at about 10 KB where no move says why."""
LONGEST_BY = 200
_LONGEST = {"action": 32, "by": LONGEST_BY, "why": LONGEST_WHY, "evaluation": 600}
MOVE, ROLLBACK, PROMOTE, UPDATE = "move", "rollback", "promote", "update"


@dataclass(frozen=True, slots=True)
class Note:
    """What is recorded beside a move: all of it is text that somebody gave, "" where nothing is known.

    `by` is who moved the head, as user@host; `evaluation` refers to what a promotion was judged by.
    """

    action: str = ""
    by: str = ""
    why: str = ""
    evaluation: str = ""

    def check(self) -> Note:
        """Return the note; raises `InputError` for a part that is too long to be kept."""
        for name, most in _LONGEST.items():
            length = len(getattr(self, name))
            if length > most:
                raise InputError(
                    f"{name} of a move has {length:,} characters and a head keeps {most}; say it shorter and "
                    "put the rest where it can be looked up"
                )
        return self

    def to_dict(self) -> dict[str, str]:
        """What is said, as `note_of` takes it back."""
        return {field.name: getattr(self, field.name) for field in fields(self) if getattr(self, field.name)}


@dataclass(frozen=True, slots=True)
class Position:
    """The snapshot that a head named from `time` on."""

    snapshot: str
    time: str
    note: Note = Note()


def positions_of(record: Mapping[str, Any], key: str) -> tuple[Position, ...]:
    """Return all positions that the record of a head under `key` knows, oldest first, the present one last.

    Records of versions that kept no history know the present one only, and those of versions that kept no
    notes say nothing of who and why. Raises `IntegrityError` if an entry is not a snapshot with a time.
    """
    entries = record.get("history", [])
    present = [record.get("snapshot"), record.get("time")]
    if not isinstance(entries, list):
        raise IntegrityError(f"{key} holds no history of a head; {remedy(key)}")
    notes = record.get("notes", [{}] * (len(entries) + 1))
    if not isinstance(notes, list) or len(notes) != len(entries) + 1:
        raise IntegrityError(f"{key} does not say who moved it where; {remedy(key)}")
    return tuple(_position(entry, note, key) for entry, note in zip([*entries, present], notes, strict=True))


def history_after(positions: Sequence[Position], note: Note) -> dict[str, object]:
    """Return the entries of the record that follows `positions`, reached by a move of which `note` tells.

    Places and notes are two lists, so that programs which know of places alone read the record, and leave the
    notes out of the next one.
    """
    kept = positions[-KEPT:]
    return {
        "history": [[position.snapshot, position.time] for position in kept],
        "notes": [*(position.note.to_dict() for position in kept), note.check().to_dict()],
    }


def snapshot_before(positions: Sequence[Position], name: str) -> str:
    """Return what head `name` pointed to before it first pointed to the present snapshot.

    So rolling back twice goes two steps back instead of there and back again. Raises `SnapshotNotFound` if
    nothing older is known.
    """
    present = positions[-1].snapshot
    first = next(number for number, position in enumerate(positions) if position.snapshot == present)
    if first == 0:
        others = [position.snapshot for position in positions if position.snapshot != present]
        if others:
            raise SnapshotNotFound(
                f"head {name} stands at {present[:12]}, the oldest place that it remembers, to which it came "
                f"back; `cellar head rollback {name} --to {others[-1][:12]}` takes it to where it was last, "
                f"and `cellar head log {name}` shows every place"
            )
        raise SnapshotNotFound(
            f"head {name} stands at {present[:12]}, the oldest place that it remembers; `cellar head log "
            f"{name}` shows where it was, and `cellar head move {name}` takes it anywhere"
        )
    return positions[first - 1].snapshot


def _position(entry: object, note: object, key: str) -> Position:
    match entry:
        case [str(snapshot), str(time)] if is_digest(snapshot):
            return Position(snapshot, time, _note(note, key))
    raise IntegrityError(f"{key} does not name snapshots and times; {remedy(key)}")


def _note(values: object, key: str) -> Note:
    """Decode a note; what a later version says besides is left out."""
    known = {field.name for field in fields(Note)}
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise IntegrityError(f"{key} does not say who moved it and why; {remedy(key)}")
    return Note(**{name: value for name, value in values.items() if name in known})
