"""What garbage collection has condemned, is removing, or has removed: the part of the log that takes away.

A `condemn` entry announces, a `collect` entry takes effect, a `swept` entry says that the objects are gone.
From a `collect` at `k` on, the packs it names are dead for the rows of commits up to `k`; a later commit may
write and name the same pack again. `docs/formats.md` has the whole protocol.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from store.backend import Backend
from store.entry import COLLECT, CONDEMN, PIN, SWEPT, Commit
from store.errors import IntegrityError, KeyMissing
from store.format import RESTORE, canonical_json, check_digest, is_digest, removal_key, sha256


@dataclass(frozen=True, slots=True)
class Removal:
    """Packs and snapshots, by digest and id, that one `condemn` or `collect` entry is about."""

    packs: frozenset[str] = frozenset()
    snapshots: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.packs or self.snapshots)


@dataclass(frozen=True, slots=True)
class Removals:
    """The removals of a store as of one log entry.

    `condemned` (by entry `condemned_at`) is what is still announced, without what was rescued since; `dying`
    (by entry `dying_since`) is being deleted at this moment. `dead` maps packs to the last entry that
    collected them, `gone` the snapshots that were collected and not pinned again since. `changed_at` is the
    newest `collect` or `swept` entry, when objects may have gone. Numbers are 0 for none.
    """

    condemned: Removal = Removal()
    condemned_at: int = 0
    dying: Removal = Removal()
    dying_since: int = 0
    dead: Mapping[str, int] = field(default_factory=dict)
    gone: Mapping[str, int] = field(default_factory=dict)
    changed_at: int = 0

    def is_dead(self, pack: str, commit: int) -> bool:
        """Tell whether a row that entry `commit` made visible in `pack` was collected."""
        return commit <= self.dead.get(pack, 0)

    def after(self, commit: Commit, removal: Removal | None = None) -> Removals:
        """Return the state after the next entry; `removal` is what its field of that name stands for.

        A publish rescues the packs that it names; say so with `without`, since only its index names them.
        """
        number = commit.sequence
        if commit.action == CONDEMN:
            return replace(self, condemned=removal or Removal(), condemned_at=number)
        if commit.action == COLLECT:
            taken = removal or Removal()
            dying = Removal(self.dying.packs | taken.packs, self.dying.snapshots | taken.snapshots)
            return Removals(
                dying=dying,
                dying_since=number,
                dead={**self.dead, **dict.fromkeys(taken.packs, number)},
                gone={**self.gone, **dict.fromkeys(taken.snapshots, number)},
                changed_at=number,
            )
        if commit.action == SWEPT:
            return replace(self, dying=Removal(), dying_since=0, changed_at=number)
        if commit.action == PIN:
            return self._pinned(commit.snapshot)
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values that `from_dict` takes back."""
        return {
            "changed_at": self.changed_at,
            "condemned": _lists(self.condemned),
            "condemned_at": self.condemned_at,
            "dead": dict(self.dead),
            "dying": _lists(self.dying),
            "dying_since": self.dying_since,
            "gone": dict(self.gone),
        }

    @classmethod
    def from_dict(cls, record: Any) -> Removals:
        """Rebuild a state from `to_dict`; raises `ValueError` for values that are none."""
        if not isinstance(record, dict) or record.keys() != Removals().to_dict().keys():
            raise ValueError("not a state of removals")
        numbers = [record[name] for name in ("changed_at", "condemned_at", "dying_since")]
        maps = [record["dead"], record["gone"]]
        if not all(isinstance(entries, dict) and all(map(is_digest, entries)) for entries in maps):
            raise ValueError("not a state of removals")
        numbers += [number for entries in maps for number in entries.values()]
        if not all(type(number) is int and number >= 0 for number in numbers):
            raise ValueError("not a state of removals")
        return cls(
            condemned=_removal_of(record["condemned"]),
            condemned_at=record["condemned_at"],
            dying=_removal_of(record["dying"]),
            dying_since=record["dying_since"],
            dead=record["dead"],
            gone=record["gone"],
            changed_at=record["changed_at"],
        )

    def without(self, packs: Iterable[str]) -> Removals:
        """Return the state in which a commit after the condemnation has named `packs`."""
        rescued = self.condemned.packs.intersection(packs)
        if not rescued:
            return self
        condemned = Removal(self.condemned.packs - rescued, self.condemned.snapshots)
        return replace(self, condemned=condemned)

    def _pinned(self, snapshot: str) -> Removals:
        if snapshot not in self.condemned.snapshots and snapshot not in self.gone:
            return self
        condemned = Removal(self.condemned.packs, self.condemned.snapshots - {snapshot})
        gone = {identity: number for identity, number in self.gone.items() if identity != snapshot}
        return replace(self, condemned=condemned, gone=gone)


def write_removal(backend: Backend, removal: Removal) -> str:
    """Write what is to be removed and return its digest, for the log entry that will name it."""
    data = encode_removal(removal)
    digest = sha256(data)
    backend.put(removal_key(digest), data)
    return digest


def encode_removal(removal: Removal) -> bytes:
    """Return the content of `gc/<digest>.json`."""
    return canonical_json(_lists(removal))


def read_removal(backend: Backend, digest: str) -> Removal:
    """Read what a log entry removes; raises `IntegrityError` if it is missing, damaged or no such list."""
    key = removal_key(digest)
    try:
        return decode_removal(backend.read(key), digest)
    except KeyMissing as error:
        raise IntegrityError(f"{key}, which the log names, is missing; {RESTORE}") from error


def decode_removal(data: bytes, digest: str) -> Removal:
    """Decode the content of `gc/<digest>.json`; raises `IntegrityError` if no store wrote it."""
    key = removal_key(digest)
    check_digest(data, digest, key, holds="list of a removal")
    try:
        removal = _removal_of(json.loads(data))
        if encode_removal(removal) != data:
            raise ValueError("not as it is written")
    except (ValueError, RecursionError) as error:
        raise IntegrityError(f"{key} is not the list of a removal; {RESTORE}") from error
    return removal


def _lists(removal: Removal) -> dict[str, list[str]]:
    return {"packs": sorted(removal.packs), "snapshots": sorted(removal.snapshots)}


def _removal_of(record: Any) -> Removal:
    if not isinstance(record, dict) or record.keys() != {"packs", "snapshots"}:
        raise ValueError("not a removal")
    return Removal(_digests(record["packs"]), _digests(record["snapshots"]))


def _digests(values: Any) -> frozenset[str]:
    if not isinstance(values, list) or not all(
        isinstance(value, str) and is_digest(value) for value in values
    ):
        raise ValueError("not digests")
    return frozenset(values)
