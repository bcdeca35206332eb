"""Which elements a new snapshot holds: named ones and what they require, a set without some, with others."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from store.catalog import Catalog
from store.element import KINDS, Ref
from store.errors import ElementNotFound, InputError, MissingRequirement
from store.format import is_digest
from store.rows import Row

_SHOWN = 3
_FIRST_DIGITS = r"[0-9a-f]{8,63}"

Lookup = Callable[[Iterable[str]], Mapping[str, Row]]
"""Finds rows by version, such as `Catalog.get_all`."""


@dataclass(frozen=True, slots=True)
class Retirement:
    """A set of rows taken apart: what was named, what cannot be without it, and the rest."""

    kept: tuple[Row, ...]
    named: tuple[Row, ...]
    dependents: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Replacement:
    """A set of rows with others instead: the whole new set, and what is new in it or stands for others."""

    rows: tuple[Row, ...]
    added: tuple[Row, ...]
    replaced: tuple[tuple[Row, Row], ...]
    """Former and present row of each name that changed its version."""


def choose(catalog: Catalog, texts: Iterable[str]) -> list[Row]:
    """Return the rows that names, globs (newest versions) and exact `name@version` references mean.

    At least eight digits of a version are enough, since listings show twelve. Raises `ElementNotFound` for a
    text that means none, `InputError` if the digits fit several versions.
    """
    chosen: list[Row] = []
    for text in texts:
        if is_digest(text.rpartition("@")[2]):
            row = catalog.get(Ref.parse(text).version)
            found = [row] if row is not None and str(row.ref) == text else []
        elif (row := catalog.latest(text)) is not None:
            found = [row]
        else:
            found = _begun(catalog, text) or _matching(catalog, text)
        if not found:
            raise ElementNotFound(
                f"no element of the store is called {text}; `cellar log` says what was published"
            )
        chosen += found
    return chosen


def _begun(catalog: Catalog, text: str) -> list[Row]:
    """Return the row that `name@` with the first digits of its version means, if `text` is of that form."""
    name, _, digits = text.rpartition("@")
    if not name or not re.fullmatch(_FIRST_DIGITS, digits):
        return []
    found = [row for row in catalog.versions(name) if row.version.startswith(digits)]
    if len(found) > 1:
        raise InputError(f"{text} could be {' or '.join(str(row.ref) for row in found)}; give more digits")
    return found


def _matching(catalog: Catalog, pattern: str) -> list[Row]:
    """Return the newest row of every name that a glob matches, by name."""
    kind = pattern.partition("/")[0]
    newest: dict[str, tuple[int, str]] = {}
    for table in catalog.scan(("name", "version", "commit"), kind if kind in KINDS else None):
        for name, version, commit in zip(*(column.to_pylist() for column in table.columns), strict=True):
            if fnmatchcase(name, pattern):
                newest[name] = max((commit, version), newest.get(name, (0, "")))
    rows = catalog.get_all(version for _, version in newest.values())
    return sorted(rows.values(), key=lambda row: row.name)


def closure(rows: Iterable[Row], lookup: Lookup) -> list[Row]:
    """Return the rows and, step by step, what they require; what `lookup` does not find is left out."""
    pending, found = list(rows), dict[str, Row]()
    while pending:
        fresh = {row.version: row for row in pending if row.version not in found}
        found |= fresh
        wanted = {version for row in fresh.values() for version in row.requires if version not in found}
        pending = list(lookup(wanted).values())
    return list(found.values())


def retire(rows: Sequence[Row], patterns: Sequence[str], *, with_dependents: bool = False) -> Retirement:
    """Take the elements that names or globs mean out of a set; what is a name of it means that one only.

    Raises `ElementNotFound` for a pattern that means none of them, and `MissingRequirement` if others require
    what was named, unless those go as well (`with_dependents`).
    """
    names = {row.name for row in rows}
    meant: set[str] = set()
    for pattern in patterns:
        found = {pattern} & names or {name for name in names if fnmatchcase(name, pattern)}
        if not found:
            raise ElementNotFound(
                f"no element of the snapshot is called {pattern}; `cellar snapshot show` lists those it holds"
            )
        meant |= found
    named = tuple(row for row in rows if row.name in meant)
    gone = {row.version for row in named}
    dependents = _dependents(rows, gone)
    if dependents and not with_dependents:
        direct = [row for row in dependents if not gone.isdisjoint(row.requires)]
        required = {version for row in direct for version in row.requires}
        needed = sorted(row.name for row in named if row.version in required)
        raise MissingRequirement(
            f"{_requiring(direct)} {_names(needed)}; retire what requires it as well (--with-dependents), or "
            "keep it"
        )
    gone |= {row.version for row in dependents}
    return Retirement(tuple(row for row in rows if row.version not in gone), named, tuple(dependents))


def replace(rows: Sequence[Row], chosen: Sequence[Row]) -> Replacement:
    """Put `chosen` into a set, each instead of the row of the same name if there is one.

    `chosen` holds everything that it requires, see `closure`. Raises `InputError` if it holds two versions of
    a name, `MissingRequirement` if what stays requires a version that would be replaced.
    """
    new: dict[str, Row] = {}
    for row in chosen:
        other = new.setdefault(row.name, row)
        if other.version != row.version:
            raise InputError(
                f"{row.name} would be in the snapshot twice, as {other.version[:12]} and {row.version[:12]}; "
                "give versions that agree in what they require"
            )
    old = {row.name: row for row in rows}
    result = sorted((old | new).values(), key=lambda row: row.name)
    replaced = [(old[name], row) for name, row in sorted(new.items()) if name in old]
    replaced = [(before, after) for before, after in replaced if before.version != after.version]
    gone = {before.version: before.name for before, _ in replaced}
    broken = [row for row in result if not gone.keys().isdisjoint(row.requires)]
    if broken:
        needed = sorted({gone[version] for row in broken for version in row.requires if version in gone})
        raise MissingRequirement(
            f"{_requiring(broken)} the present version of {_names(needed)}; replace these as well, with "
            "versions made for the new one, or retire them first"
        )
    added = tuple(row for name, row in sorted(new.items()) if name not in old)
    return Replacement(tuple(result), added, tuple(replaced))


def _dependents(rows: Sequence[Row], versions: set[str]) -> list[Row]:
    """Return the rows outside `versions` that require one of them, directly or by way of others."""
    requiring: dict[str, list[Row]] = {}
    for row in rows:
        for version in row.requires:
            requiring.setdefault(version, []).append(row)
    pending, found = list(versions), dict[str, Row]()
    while pending:
        for row in requiring.get(pending.pop(), ()):
            if row.version not in versions and row.version not in found:
                found[row.version] = row
                pending.append(row.version)
    return sorted(found.values(), key=lambda row: row.name)


def _requiring(rows: Sequence[Row]) -> str:
    return f"{_names(row.name for row in rows)} {'requires' if len(rows) == 1 else 'require'}"


def _names(names: Iterable[str]) -> str:
    """The first names, and how many more there are."""
    every = list(names)
    shown, more = every[:_SHOWN], len(every) - _SHOWN
    if more > 0:
        return f"{', '.join(shown)} and {more:,} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))
