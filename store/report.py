"""What `verify` found: a typed report that names the damage and what it touches."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    """One damaged, missing or inconsistent object.

    `elements` are the `kind/name@version` whose bytes or rows it concerns, `snapshots` the ids of the
    snapshots that hold any of them.
    """

    key: str
    problem: str
    elements: tuple[str, ...] = ()
    snapshots: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """Result of a verification: how much was looked at and every finding.

    `objects` counts keys, `bytes_read` what was read to check digests, `unreferenced_packs` packs that no
    commit names (of running or abandoned builds: no damage). `full` tells whether packs were read.
    """

    full: bool
    objects: int
    bytes_read: int
    commits: int
    elements: int
    snapshots: int
    unreferenced_packs: int
    findings: tuple[Finding, ...]

    @property
    def ok(self) -> bool:
        """True if nothing was found."""
        return not self.findings

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "ok": self.ok}
