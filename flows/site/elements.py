"""The pages of elements: versions, where each is held, provenance, facts, and what a memory decodes to."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from flows.formatting import flatten
from flows.site.changes import Membership
from flows.site.names import Page, Places, anchor
from flows.site.rendering import Pages
from flows.site.survey import Survey
from flows.site.texts import Text, Texts
from store import Row
from store.rows import SCHEMA, iter_rows

MOST_VERSIONS = 20
_ATTACHABLE = ("memory", "residual", "shadow", "skill")
MOST_VALUES = 60
"""Values of provenance or of facts that are printed of one element."""


@dataclass(frozen=True)
class Version:
    """One version of an element: when it came, and the newest and the number of snapshots that hold it."""

    row: Row
    time: str
    message: str
    held: int
    newest: str
    """Id of the newest snapshot of the site that holds it, empty if none does."""


@dataclass(frozen=True)
class Shown:
    """An element as its page tells of it; `text` is a sentence where there is none, None for other kinds."""

    name: str
    anchor: str
    newest: Row
    versions: Sequence[Version]
    earlier: int
    requires: Sequence[tuple[str, str, str]]
    """Name, version and address of each version that the newest one requires."""
    provenance: Sequence[tuple[str, str]]
    facts: Sequence[tuple[str, str]]
    text: Text | str | None


class Elements:
    """Makes what the pages show of elements."""

    def __init__(self, survey: Survey, places: Places, membership: Membership, texts: Texts) -> None:
        self._survey = survey
        self._places = places
        self._membership = membership
        self._texts = texts
        self._names: dict[str, str] = {}

    def write(self, pages: Pages, step: Callable[[], None]) -> None:
        """Write every page of elements, a page at a time."""
        groups = self._groups()
        group = next(groups, None)
        all_pages = self._places.pages
        for number, page in enumerate(all_pages):
            shown = []
            while group is not None and group[0] <= page.last:
                shown.append(self._shown(group[1]))
                group = next(groups, None)
            pages.write(
                "elements_page.html.j2",
                page.path,
                section="elements.html",
                title=f"{page.first} to {page.last}" if page.count > 1 else page.first,
                page=page,
                elements=shown,
                before=all_pages[number - 1] if number else None,
                after=all_pages[number + 1] if number + 1 < len(all_pages) else None,
            )
            for _ in range(page.count):
                step()

    def _groups(self) -> Iterator[tuple[str, list[Row]]]:
        """All names, each with its versions, oldest first; nothing that was published after the survey.

        What was collected since its name was listed is missing.
        """
        tip = self._survey.tip.sequence
        scanned = (
            row
            for table in self._survey.store.catalog().scan(SCHEMA.names)
            for row in iter_rows(table)
            if row.commit <= tip
        )
        for name, rows in groupby(scanned, key=lambda row: row.name):
            yield name, sorted(rows, key=lambda row: (row.commit, row.version))

    def _shown(self, rows: Sequence[Row]) -> Shown:
        newest = rows[-1]
        return Shown(
            name=newest.name,
            anchor=anchor(newest.name),
            newest=newest,
            versions=[self._version(row) for row in reversed(rows[-MOST_VERSIONS:])],
            earlier=max(len(rows) - MOST_VERSIONS, 0),
            requires=self._requirements(newest.requires),
            provenance=list(flatten(newest.provenance))[:MOST_VALUES],
            facts=list(flatten(newest.facts))[:MOST_VALUES],
            text=self._texts.of(newest) if newest.kind == "memory" else None,
        )

    def _version(self, row: Row) -> Version:
        commit = self._survey.by_sequence.get(row.commit)
        held = self._membership.places(row.version)
        return Version(
            row=row,
            time=commit.time if commit else "",
            message=commit.message if commit else "",
            held=len(held),
            newest=self._survey.pinned[held[0]].id if held else "",
        )

    def _requirements(self, versions: Iterable[str]) -> list[tuple[str, str, str]]:
        """Names of versions, looked up once: a thousand memories require the same codec."""
        wanted = list(versions)
        unknown = [version for version in wanted if version not in self._names]
        if unknown:
            if len(self._names) > 100_000:
                self._names.clear()
                unknown = wanted
            found = self._survey.store.catalog().get_all(unknown)
            self._names |= {version: found[version].name if version in found else "" for version in unknown}
        named = sorted((self._names[version], version) for version in wanted)
        return [(name, version, self._places.link(name) if name else "") for name, version in named]


def kinds_of(pages: Sequence[Page]) -> Mapping[str, list[Page]]:
    """Pages by the kind of their elements, what attaches to a core first."""
    kinds: dict[str, list[Page]] = {}
    for page in pages:
        kinds.setdefault(page.first.partition("/")[0], []).append(page)
    return {kind: kinds[kind] for kind in sorted(kinds, key=lambda kind: (kind not in _ATTACHABLE, kind))}
