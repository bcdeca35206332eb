"""The parts of a site that are not elements: overview, snapshots, differences, evaluations, runs."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from flows.site.changes import MOST_CHANGES, Contents, Difference, Membership, read_contents
from flows.site.elements import kinds_of
from flows.site.evaluations import METRICS, Evaluation, trends
from flows.site.history import history_charts
from flows.site.names import Places
from flows.site.rendering import Pages, short
from flows.site.survey import Pinned, Survey, made_by
from flows.site.texts import Texts
from store import Commit

if TYPE_CHECKING:
    from flows.runs.listing import Run

NEWEST_COMMITS = 8
MOST_COMMITS = 500
MOST_RUNS = 500
MOST_RANGES = 2000
"""Pages of one kind that the list of all pages names."""


class Sections:
    """Writes the pages; snapshots come first, since other pages tell of how they differ."""

    def __init__(
        self,
        pages: Pages,
        survey: Survey,
        places: Places,
        evaluations: Sequence[Evaluation],
        warn: Callable[[object], None],
    ) -> None:
        self._pages = pages
        self._survey = survey
        self._places = places
        self._evaluations = evaluations
        self._warn = warn
        self._differences: dict[str, Difference] = {}

    def write_snapshots(self, membership: Membership, step: Callable[[], None]) -> None:
        """A page for each snapshot, one or more for how it differs from the one before, and their list."""
        for place, pinned in enumerate(self._survey.pinned):
            contents, difference = read_contents(self._survey, place, membership, step)
            if difference is not None:
                self._write_difference(pinned, difference)
                difference.changes = []
                self._differences[pinned.id] = difference
            self._write_snapshot(pinned, contents)
        self._pages.write(
            "snapshots.html.j2",
            "snapshots.html",
            section="snapshots.html",
            title="Snapshots",
            pinned=self._survey.pinned,
            living=self._survey.living,
            differences=self._differences,
            charts=history_charts(self._survey),
            address=difference_path,
        )

    def write_index(self, texts: Texts) -> None:
        """The overview."""
        survey = self._survey
        newest = survey.pinned[0] if survey.pinned else None
        self._pages.write(
            "index.html.j2",
            "index.html",
            section="index.html",
            title="Overview",
            survey=survey,
            newest=newest,
            difference=self._differences.get(newest.id) if newest else None,
            names=self._places.names,
            versions=self._places.versions,
            stored=self._places.stored,
            commits=[_told(commit) for commit in survey.commits[: -NEWEST_COMMITS - 1 : -1]],
            evaluations=len(self._evaluations),
            texts=texts,
            address=difference_path,
        )

    def write_evaluations(self) -> None:
        """How the figures went from snapshot to snapshot."""
        self._pages.write(
            "evaluations.html.j2",
            "evaluations.html",
            section="evaluations.html",
            title="Evaluations",
            trends=trends(self._evaluations, self._warn),
            metrics=METRICS,
            core=_core,
            places=self._places,
        )

    def write_elements(self) -> None:
        """The list of all pages of elements, for browsing."""
        self._pages.write(
            "elements.html.j2",
            "elements.html",
            section="elements.html",
            title="Elements",
            kinds=kinds_of(self._places.pages),
            names=self._places.names,
            most=MOST_RANGES,
        )

    def write_runs(self, runs: "Sequence[Run] | None") -> None:
        """Runs of flows as far as they are known, and what was done to the store, newest first."""
        commits = self._survey.commits
        self._pages.write(
            "runs.html.j2",
            "runs.html",
            section="runs.html",
            title="Runs",
            commits=[_told(commit) for commit in commits[: -MOST_COMMITS - 1 : -1]],
            every=len(commits),
            runs=None if runs is None else [(run, _duration(run)) for run in runs[:MOST_RUNS]],
            most_runs=MOST_RUNS,
        )

    def _write_snapshot(self, pinned: Pinned, contents: Contents) -> None:
        evaluations = [one for one in self._evaluations if one.snapshot == pinned.id]
        self._pages.write(
            "snapshot.html.j2",
            f"snapshots/{pinned.id}.html",
            section="snapshots.html",
            title=f"Snapshot {short(pinned.id)}",
            pinned=pinned,
            by=made_by(pinned.commit.run),
            contents=contents,
            difference=self._differences.get(pinned.id),
            evaluations=evaluations,
            metrics=METRICS,
            places=self._places,
            address=difference_path,
        )

    def _write_difference(self, pinned: Pinned, difference: Difference) -> None:
        pages = difference.pages()
        for number, changes in enumerate(pages):
            self._pages.write(
                "difference.html.j2",
                difference_path(difference, number),
                section="snapshots.html",
                title=f"What changed in snapshot {short(difference.after)}",
                difference=difference,
                changes=changes,
                number=number,
                count=len(pages),
                listed=len(difference.changes),
                most=MOST_CHANGES,
                line=pinned.line,
                places=self._places,
                address=difference_path,
            )


def difference_path(difference: Difference, number: int = 0) -> str:
    """Where a page of a difference stands: named by digits of both snapshots."""
    more = f"-{number + 1}" if number else ""
    return f"differences/{difference.before[:16]}-{difference.after[:16]}{more}.html"


def _told(commit: Commit) -> tuple[Commit, str]:
    """A commit, and who made it."""
    return commit, made_by(commit.run)


def _duration(run: "Run") -> float | None:
    """Seconds of a run that ended; how long one goes on changes while the page is made."""
    return None if run.state in ("Running", "Retrying", "Cancelling") else run.duration


def _core(reference: str) -> tuple[str, str]:
    """Name and version of the core that an evaluation names."""
    name, _, version = reference.rpartition("@")
    return name, version
