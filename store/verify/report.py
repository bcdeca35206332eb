"""What `verify` found: a typed report that names the damage and what it touches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from store.errors import InputError
from store.format import check_fields, is_digest


@dataclass(frozen=True, slots=True)
class Finding:
    """One damaged, missing or inconsistent object.

    `elements` are the `kind/name@version` whose bytes or rows it concerns, `snapshots` the ids of the
    snapshots that hold any of them, `names` the tags, heads and holds (`tag:v1`) of these snapshots.
    """

    key: str
    problem: str
    elements: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a pass over the packs of a store stopped, and what it is a pass over.

    `sample` is the share of packs that are read, chosen by `seed`; `after` the last one that was read, in the
    order of digests; `packs` and `bytes` count those read so far, `damaged` names those found damaged.
    """

    store: str
    sample: float
    seed: int
    after: str
    packs: int
    bytes: int
    damaged: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values that `from_dict` takes back."""
        return {**asdict(self), "damaged": list(self.damaged)}

    @classmethod
    def from_dict(cls, values: Any) -> Cursor:
        """Rebuild a cursor from `to_dict`; raises `InputError` for values that are none."""
        types = {"store": str, "sample": float, "seed": int, "after": str, "packs": int, "bytes": int}
        try:
            check_fields(values, "the cursor", types | {"damaged": list})
            found = cls(**{**values, "damaged": tuple(values["damaged"])})
            if not all(map(is_digest, (found.after, *found.damaged))) or not 0 < found.sample <= 1:
                raise ValueError("no cursor")
        except Exception as error:
            raise InputError("that is not where a verification stopped; start a new pass") from error
        return found


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Result of a verification: how much was looked at and every finding.

    `objects` counts keys, `bytes_read` what was read to check digests. `sample` is the share of packs whose
    bytes are read: 0 for none, 1 for all (`full`). Of `packs_chosen` packs `packs_read` were read now and
    `packs_before` by the runs that this one continues; `cursor` is where it stopped, None if it is
    `complete`. `leftovers` counts, by kind, objects that nothing refers to: no damage.
    """

    store: str
    sample: float
    objects: int
    bytes_read: int
    commits: int
    elements: int
    snapshots: int
    packs_chosen: int
    packs_before: int
    packs_read: int
    cursor: Cursor | None
    findings: tuple[Finding, ...]
    leftovers: Mapping[str, int] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """True if nothing was found."""
        return not self.findings

    @property
    def full(self) -> bool:
        """Whether this is a pass over the bytes of all packs."""
        return self.sample == 1.0

    @property
    def complete(self) -> bool:
        """Whether the pass is over: every chosen pack was read, by this run or those that it continues."""
        return self.cursor is None

    @property
    def unreferenced_packs(self) -> int:
        """Packs that no commit names: of running or abandoned builds, or collected and not yet deleted."""
        return self.leftovers.get("packs", 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        cursor = self.cursor.to_dict() if self.cursor else None
        values = {**asdict(self), "cursor": cursor, "leftovers": dict(self.leftovers)}
        return {**values, "ok": self.ok, "full": self.full, "complete": self.complete}
