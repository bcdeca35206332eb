"""What damage touches: elements, the snapshots that hold them, and the names of these snapshots.

Nobody needs to know before something is found. Then index files and snapshots are read once more, and only
the rows in question are kept.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from store.format import index_key, parts_prefix
from store.rows import decode_batches
from store.verify.chain import History
from store.verify.names import Names
from store.verify.pinned import Snapshots
from store.verify.report import Finding
from store.verify.survey import Survey, Suspect
from store.verify.tables import Tables


class Place(NamedTuple):
    """An element and where its payload lies in a pack."""

    element: str
    digest: str
    offset: int
    length: int


class Reach:
    """Answers what is touched, from all files that are intact."""

    def __init__(
        self, survey: Survey, history: History, tables: Tables, snapshots: Snapshots, names: Names
    ) -> None:
        self._survey = survey
        self._history = history
        self._tables = tables
        self._snapshots = snapshots
        self._names = names

    def places_in(self, packs: Collection[str]) -> dict[str, set[Place]]:
        """Return, for each of `packs`, every visible or pinned element in it."""
        found: dict[str, set[Place]] = {pack: set() for pack in packs}
        wanted = pa.array(sorted(packs), pa.string())
        for table in self._all_rows() if packs else ():
            rows = table.filter(pc.is_in(table["pack"], value_set=wanted))
            for row in rows.select(["name", "version", "digest", "pack", "offset", "length"]).to_pylist():
                element = f"{row['name']}@{row['version']}"
                found[row["pack"]].add(Place(element, row["digest"], row["offset"], row["length"]))
        return found

    def findings(self) -> tuple[Finding, ...]:
        """Return every suspicion of the survey with all that it touches."""
        suspects = self._survey.suspects
        by_commit = self._elements_of({number for suspect in suspects for number in suspect.commits})
        touched = [
            {*suspect.elements, *(element for n in suspect.commits for element in by_commit[n])}
            for suspect in suspects
        ]
        holders = self._holders({element for elements in touched for element in elements})
        return tuple(
            self._finding(suspect, elements, holders)
            for suspect, elements in zip(suspects, touched, strict=True)
        )

    def _finding(self, suspect: Suspect, elements: set[str], holders: dict[str, set[str]]) -> Finding:
        snapshots = {*suspect.snapshots, *(holder for element in elements for holder in holders[element])}
        names = {name for snapshot in snapshots for name in self._names.of(snapshot)}
        return Finding(
            suspect.key,
            suspect.problem,
            tuple(sorted(elements)),
            tuple(sorted(snapshots)),
            tuple(sorted(names)),
        )

    def _elements_of(self, commits: Collection[int]) -> dict[int, set[str]]:
        """Return the elements that each of `commits` made visible, as far as any intact file still tells."""
        found: dict[int, set[str]] = defaultdict(set)
        wanted = pa.array(sorted(commits), pa.int64())
        for table in self._all_rows() if commits else ():
            rows = table.filter(pc.is_in(table["commit"], value_set=wanted))
            for element, number in zip(_elements(rows), rows["commit"].to_pylist(), strict=True):
                found[number].add(element)
        for number in commits:
            commit = self._history.commits.get(number)
            if commit is not None and commit.build and len(found[number]) < commit.elements:
                found[number] |= self._built(commit.build)
        return found

    def _built(self, build: str) -> set[str]:
        """Return the elements of a build's parts that no intact index file has."""
        found: set[str] = set()
        for key in self._survey.keys(parts_prefix(build)):
            if key not in {suspect.key for suspect in self._survey.suspects}:
                for table in decode_batches(self._survey.read(key), key)[1]:
                    versions = table["version"].to_pylist()
                    lost = pa.array([not self._tables.holds(version) for version in versions], pa.bool_())
                    found.update(_elements(table.filter(lost)))
        return found

    def _holders(self, elements: set[str]) -> dict[str, set[str]]:
        """Return, for each element, the snapshots that hold it."""
        found: dict[str, set[str]] = defaultdict(set)
        if elements:
            versions = pa.array(sorted({element.rpartition("@")[2] for element in elements}), pa.string())
            for identity in self._snapshots.heads.keys() | self._history.pinned.keys():
                for table in self._snapshots.scan(self._survey, identity):
                    rows = table.filter(pc.is_in(table["version"], value_set=versions))
                    for element in _elements(rows):
                        found[element].add(identity)
        return found

    def _all_rows(self) -> Iterator[pa.Table]:
        for digest in self._tables.needed():
            if digest in self._tables.intact:
                yield from self._tables.living(digest, self._survey.read(index_key(digest)))
        for identity in {*self._history.pinned, *self._names.named}:
            yield from self._snapshots.scan(self._survey, identity)


def _elements(table: pa.Table) -> Iterable[str]:
    names, versions = table["name"].to_pylist(), table["version"].to_pylist()
    return [f"{name}@{version}" for name, version in zip(names, versions, strict=True)]
