"""`build_site`: everything that a store's own records say, as pages in a folder."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.site.changes import Membership
from flows.site.elements import Elements
from flows.site.evaluations import read_evaluations
from flows.site.folder import SiteFolder
from flows.site.names import Names, Page, Places, call, pages_of, shards_of
from flows.site.rendering import Pages
from flows.site.sections import Sections
from flows.site.survey import Survey, survey
from flows.site.texts import Texts
from store import Store
from tasks.progress import Progress, silent

if TYPE_CHECKING:
    from flows.runs.listing import Run


@dataclass(frozen=True)
class SiteOptions:
    """What a site holds: the newest `snapshots` (0: all), of one `head` if given, `text_bytes` of texts."""

    snapshots: int = 50
    head: str | None = None
    text_bytes: int = 64 * 1024**2


@dataclass(frozen=True)
class SiteReport:
    """What was written: of which commit, how much, and how many texts are on the site and left out."""

    commit: int
    files: int
    bytes: int
    snapshots: int
    elements: int
    texts: int
    texts_left_out: int


def build_site(
    store: Store,
    out: Path,
    options: SiteOptions,
    *,
    runs: "Sequence[Run] | None" = None,
    progress: Progress = silent,
    warn: Callable[[object], None] = lambda _: None,
) -> SiteReport:
    """Write the site of a store to `out`; the same state of the store gives the same bytes.

    Raises UsageError where `out` holds anything but a site, SnapshotNotFound for a head that does not exist.
    `runs` are those that a Prefect API knows, newest first; None where none was asked. `warn` is told of what
    is damaged and therefore left out.
    """
    with SiteFolder(out) as folder:
        found = survey(store, most=options.snapshots, head=options.head, warn=warn)
        places = _write_names(Names(store.catalog(), found.tip.sequence), folder)
        steps = _Steps(progress, sum(p.snapshot.count for p in found.pinned) + places.names)
        evaluations = read_evaluations(found, warn)
        pages = Pages(folder, _facts(found, options))
        pages.write_assets()
        membership = Membership()
        sections = Sections(pages, found, places, evaluations, warn)
        sections.write_snapshots(membership, steps)
        texts = Texts.open(found, options.text_bytes, warn)
        Elements(found, places, membership, texts).write(pages, steps)
        sections.write_index(texts)
        sections.write_evaluations()
        sections.write_elements()
        sections.write_runs(runs)
        return SiteReport(
            commit=found.tip.sequence,
            files=folder.files,
            bytes=folder.bytes,
            snapshots=len(found.pinned),
            elements=places.names,
            texts=texts.read,
            texts_left_out=texts.left_out,
        )


class _Steps:
    """Counts what was done of a known number of steps."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress = progress
        self._total = total
        self._done = 0

    def __call__(self) -> None:
        self._done += 1
        if self._done % 64 == 0 or self._done == self._total:
            self._progress(self._done, self._total)


def _write_names(names: Names, folder: SiteFolder) -> Places:
    """Write what the search goes through, and return where every element will stand."""
    pages: list[Page] = []
    directory: list[tuple[str, str, int]] = []
    for number, shard in enumerate(shards_of(pages_of(names))):
        made = [Page(its[0], its[-1], len(its)) for its in shard]
        data = [[page.path, "\n".join(its)] for page, its in zip(made, shard, strict=True)]
        folder.write(f"names/{number}.js", call("cellarNames", number, data))
        directory.append((made[0].first, made[-1].last, sum(page.count for page in made)))
        pages += made
    folder.write("names/directory.js", call("cellarDirectory", directory))
    return Places(pages, names.versions, names.stored)


def _facts(found: Survey, options: SiteOptions) -> dict[str, Any]:
    """What every page may print."""
    return {
        "store": found.store.url,
        "tip": found.tip,
        "moved": found.moved,
        "head": options.head,
        "on_site": frozenset(pinned.id for pinned in found.pinned),
    }
