"""What `doctor` found out about a storage: one check after the other, and the role of this identity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from store.errors import ConfigurationError

Status = Literal["ok", "warn", "fail"]

ESSENTIAL = ("list", "write", "read", "delete")
"""The permissions without which no condition can be tried out; each is the name of a check."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried: `warn` costs speed, space or certainty, `fail` makes the storage unfit."""

    name: str
    status: Status
    sentence: str


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """Result of an examination: all checks in the order made, and the roles that this identity fits.

    `tested` tells whether this identity could try out every condition that a store relies on.
    """

    url: str
    roles: tuple[str, ...]
    checks: tuple[Check, ...]
    tested: bool

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that make the storage unfit."""
        return tuple(check for check in self.checks if check.status == "fail")

    @property
    def ok(self) -> bool:
        """True if the storage was tested and no check failed; other warnings do not count."""
        return self.tested and not self.failed

    @property
    def verdict(self) -> str:
        """What may be said of the storage, to follow its URL: fitness only where it was tested."""
        if self.failed:
            return "is not fit for a store"
        if self.tested:
            return "is fit for a store"
        lacking = [check.name for check in self.checks if check.status == "warn" and check.name in ESSENTIAL]
        if not lacking:
            return "was tested in part: this identity was refused some of the trials"
        return (
            f"was only looked at: this identity may not {' or '.join(lacking)}, so nothing is known about "
            "its conditions"
        )

    def refuse_if_unfit(self) -> None:
        """Raise `ConfigurationError` naming what failed; nothing happens if nothing did."""
        failed = self.failed
        if failed:
            more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
            raise ConfigurationError(
                f"{self.url} is not fit for a store: {failed[0].sentence}{more}; use another storage, or "
                "another version or setting of this one"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "ok": self.ok}
