"""What `doctor` found out about a storage: one check after the other, and the role of this identity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from store.errors import ConfigurationError

Status = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was tried: `warn` costs speed, space or certainty, `fail` makes the storage unfit."""

    name: str
    status: Status
    sentence: str


@dataclass(frozen=True, slots=True)
class DoctorReport:
    """Result of an examination: all checks in the order made, and the roles that this identity fits."""

    url: str
    roles: tuple[str, ...]
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        """True unless a check failed; warnings do not count."""
        return all(check.status != "fail" for check in self.checks)

    def refuse_if_unfit(self) -> None:
        """Raise `ConfigurationError` naming what failed; nothing happens if nothing did."""
        failed = [check for check in self.checks if check.status == "fail"]
        if failed:
            more = f" (and {len(failed) - 1} more)" if len(failed) > 1 else ""
            raise ConfigurationError(
                f"{self.url} is not fit for a store: {failed[0].sentence}{more}; use another storage, or "
                "another version or setting of this one"
            )

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return {**asdict(self), "ok": self.ok}
