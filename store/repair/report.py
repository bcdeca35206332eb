"""What a repair did, and what is left to do."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from store.verify.report import VerifyReport


@dataclass(frozen=True, slots=True)
class Repaired:
    """One object that is right again, and how its bytes were found."""

    key: str
    how: str


@dataclass(frozen=True, slots=True)
class RepairReport:
    """Result of a repair.

    `commit` is the log entry whose index stands in for lost ones, 0 if none was needed; `notes` say what of
    them could not be found again. `after` is a verification of the repaired store: its findings are what
    could not be repaired.
    """

    repaired: tuple[Repaired, ...]
    commit: int
    notes: tuple[str, ...]
    after: VerifyReport

    @property
    def ok(self) -> bool:
        """True if nothing is left to repair."""
        return self.after.ok and not self.notes

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "after": self.after.to_dict(), "ok": self.ok}
