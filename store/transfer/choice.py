"""Which elements of a snapshot travel: all of them, or a choice that stays complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from store.element import KINDS
from store.errors import ElementNotFound, InputError, IntegrityError, MissingRequirement
from store.rows import Row
from store.selection import closure
from store.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Choice:
    """Elements of these kinds whose full name matches one of these globs; what is left empty takes all.

    `requirements` adds what the chosen elements require, step by step, whatever its kind or name; without it,
    a choice that lacks a requirement is refused.
    """

    kinds: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    requirements: bool = True

    def rows(self, snapshot: Snapshot) -> list[Row]:
        """Return the chosen rows of `snapshot`, sorted by name.

        Raises `InputError` for a kind that does not exist, `ElementNotFound` for a kind or glob that takes
        nothing, `MissingRequirement` if the choice is not complete, `IntegrityError` if the snapshot is not.
        """
        for kind in self.kinds:
            if kind not in KINDS:
                raise InputError(f"{kind!r} is no kind of element; choose from {', '.join(sorted(KINDS))}")
        held = {row.version: row for row in snapshot.rows()}
        chosen = [row for row in held.values() if self._takes(row)]
        self._check_used(chosen, snapshot)
        if self.requirements:
            chosen = closure(chosen, lambda versions: {v: held[v] for v in versions if v in held})
        self._check_complete(chosen, held, snapshot)
        return sorted(chosen, key=lambda row: row.name)

    def _takes(self, row: Row) -> bool:
        return (not self.kinds or row.kind in self.kinds) and (
            not self.names or any(fnmatchcase(row.name, name) for name in self.names)
        )

    def _check_used(self, chosen: Sequence[Row], snapshot: Snapshot) -> None:
        """Refuse a kind or glob that takes nothing: whoever gave it expected something."""
        unused = [f"of kind {kind}" for kind in self.kinds if all(row.kind != kind for row in chosen)]
        unused += [
            f"called {name}" for name in self.names if not any(fnmatchcase(row.name, name) for row in chosen)
        ]
        if unused:
            raise ElementNotFound(
                f"snapshot {snapshot.id[:12]} has no element {unused[0]} to choose; see what it holds with "
                f"`cellar snapshot show {snapshot.id[:12]}`"
            )

    def _check_complete(self, chosen: Sequence[Row], held: dict[str, Row], snapshot: Snapshot) -> None:
        versions = {row.version for row in chosen}
        for row in sorted(chosen, key=lambda row: row.name):
            for version in row.requires:
                if version in versions:
                    continue
                if version in held:
                    raise MissingRequirement(
                        f"{row.name} requires {held[version].name}@{version[:12]}, which was not chosen; "
                        "choose it as well, or let requirements come along"
                    )
                raise IntegrityError(
                    f"{row.name} requires version {version[:12]}, which snapshot {snapshot.id[:12]} lacks; "
                    "get a complete copy of that snapshot"
                )
