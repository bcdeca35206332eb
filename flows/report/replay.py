"""The page of a replay of CI feedback: all paths in one table, courses, calibration, what updates did.

One file that explains itself, as the chain's report: no script, nothing from outside, every value escaped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.formatting import flatten, number, one_line, section, visible
from flows.pages import environment
from flows.report.lines import LinePanel, Series, line_chart, line_charts
from flows.report.members import objects, paired, sections, texts
from flows.report.plots import EXTERNAL, ORACLE, PLAIN, STANDALONE, Bar, Chart, families_chart
from flows.report.scores import Score, score

PAGE = "replay.html"
MOST_REPOSITORIES = 4
"""Repositories whose courses are drawn."""
_REFERENCE = "reset_memory"

PATHS: Mapping[str, tuple[str, str, str]] = {
    "reset": ("reset", "Slow state", "no cases; read at the fitted slow state"),
    "reset_memory": ("reset, cases", "Slow state", "with cases of the memory; the reference of the charts"),
    "original": ("original", "Slow state", "before the fit to the training jobs; it learns from labels"),
    "calibrated": ("calibrated", "Slow state", "the original with four biases from the training jobs"),
    "keep": ("keep", "Kept state", "no cases; every update is kept"),
    "keep_memory": ("keep, cases", "Kept state", "with cases; carries on with the full step"),
    "carry_tenth": ("carry, tenth", "Kept state", "carries on with a tenth of the step"),
    "latest_full": ("latest", "Kept state", "the latest batch alone, from the slow state"),
    "latest_tenth": ("latest, tenth", "Kept state", "the same with a tenth of the step"),
    "permuted": ("permuted labels", "Kept state", "learns labels that are permuted for each job"),
    "controller": ("controller", "Controller", "keeps, shrinks or drops updates; mixes both reads by trust"),
    "hedge4": ("HEDGE4", "Experts", "four simple experts by exponential weights"),
    "hedge5": ("HEDGE5", "Experts", "the same with the controller as fifth"),
}
"""Each path's short name, its group, and what it is; in reading order."""
_COLOURS = {"Slow state": STANDALONE, "Kept state": ORACLE, "Controller": EXTERNAL, "Experts": PLAIN}


@dataclass(frozen=True)
class PathRow:
    """Half-Brier of one path by three weightings, and how far its chances are from what happens."""

    key: str
    label: str
    group: str
    about: str
    nested: float
    commits: float | None
    jobs: float | None
    calibration: float | None


@dataclass(frozen=True)
class UpdateRow:
    """What the updates of one path did."""

    label: str
    batches: float | None
    before: float | None
    after: float | None
    rose: float | None
    distance: float | None
    decisions: str


def write_replay_page(figures: Mapping[str, Any], folder: Path) -> Path:
    """Write `<folder>/replay.html` and return its path; equal figures give equal bytes.

    Any section of the figures may be missing, and the page then leaves it out.
    """
    rows = path_rows(figures)
    page = (
        environment("flows")
        .get_template("replay.html.j2")
        .render(
            figures=figures,
            counts=section(figures, "jobs"),
            charts=charts(figures, rows),
            groups=[
                (group, [r for r in rows if r.group == group])
                for group in dict.fromkeys(r.group for r in rows)
            ],
            gains=list(_gains(figures)),
            updates=list(_updates(figures)),
            excluded=sorted(section(section(figures, "jobs"), "excluded").items()),
            settings=list(flatten(section(figures, "settings"))),
            references=texts(figures.get("elements")),
        )
    )
    path = folder / PAGE
    path.write_text(page, encoding="utf-8")
    return path


def path_rows(figures: Mapping[str, Any]) -> list[PathRow]:
    """The paths that have a score, in reading order."""
    found = []
    for key, one in sections(section(figures, "replay"), PATHS):
        nested = number(one.get("nested"))
        if nested is None:
            continue
        label, group, about = PATHS.get(key, (key, "Others", ""))
        commits, jobs, calibration = (
            number(one.get(name)) for name in ("commits", "jobs", "calibration_error")
        )
        found.append(PathRow(key, label, group, about, nested, commits, jobs, calibration))
    return found


def charts(figures: Mapping[str, Any], rows: Sequence[PathRow]) -> dict[str, Chart]:
    """The charts that the figures suffice for, by name."""
    panels = [
        (
            group,
            _COLOURS.get(group, PLAIN),
            [Bar(row.label, row.nested, f"{row.nested:.4f}") for row in rows if row.group == group],
        )
        for group in dict.fromkeys(row.group for row in rows)
    ]
    drawn = [families_chart("scores", "Half-Brier of every path", "half-Brier, lower is better", panels, "")]
    for place, (repository, course) in enumerate(sections(section(figures, "courses"))):
        if place < MOST_REPOSITORIES:
            drawn += _course_charts(place, repository, course, rows)
    drawn += _calibration_charts(figures, rows)
    return {chart.name: chart for chart in drawn if chart is not None}


def _course_charts(
    place: int, repository: str, course: Mapping[str, Any], rows: Sequence[PathRow]
) -> list[Chart | None]:
    """Half-Brier so far, trust, and the losses of the batches, of one repository."""
    jobs, losses = course.get("jobs"), section(course, "half_brier")
    reference = Series("reset, cases", STANDALONE, paired(jobs, losses.get(_REFERENCE)))
    panels = [
        LinePanel(
            row.label,
            [reference, Series("the path", EXTERNAL, paired(jobs, losses.get(row.key)))],
        )
        for row in rows
        if row.key != _REFERENCE and row.key in losses
    ]
    batches = section(course, "same_batch")
    fits = [
        LinePanel(
            PATHS.get(key, (key,))[0],
            [
                Series(name, colour, paired(one.get("batches"), one.get(name)))
                for name, colour in (("before", STANDALONE), ("after", EXTERNAL))
            ],
        )
        for key, one in sections(batches, PATHS)
    ]
    trust = [LinePanel("controller", [Series("kept state", EXTERNAL, paired(jobs, course.get("trust")))])]
    where = visible(one_line(repository, 60))
    around = f"Loss of a batch around its own update: {where}"
    return [
        *line_charts(f"course{place}", f"Half-Brier so far: {where}", "jobs", "mean so far, by job", panels),
        line_chart(f"trust{place}", f"Trust in the kept state: {where}", "jobs", "weight of its read", trust),
        *line_charts(f"batches{place}", around, "batches", "nats", fits),
    ]


def _calibration_charts(figures: Mapping[str, Any], rows: Sequence[PathRow]) -> list[Chart]:
    panels = []
    for row in rows:
        bins = objects(section(figures, "calibration").get(row.key))
        points = paired([one.get("chance") for one in bins], [one.get("right") for one in bins])
        if points:
            ends = [(chance, chance) for chance, _ in (points[0], points[-1])]
            as_said = Series("as said", STANDALONE, ends)
            panels.append(LinePanel(row.label, [as_said, Series("right", EXTERNAL, points)]))
    title = "How often the likeliest label comes true"
    return line_charts("calibration", title, "chance given", "share of jobs", panels)


def _gains(figures: Mapping[str, Any]) -> Iterator[tuple[str, str, Score]]:
    """What is gained, between which paths, and by how much."""
    for name, one in sections(section(figures, "differences")):
        pair = [PATHS.get(path, (path,))[0] for path in texts(one.get("paths"))]
        yield name, " against ".join(reversed(pair)), score(one)


def _updates(figures: Mapping[str, Any]) -> Iterator[UpdateRow]:
    for key, one in sections(section(figures, "updates"), PATHS):
        decided = [(name, number(count)) for name, count in sorted(section(one, "decisions").items())]
        batches, before, after, rose, distance = (
            number(one.get(name)) for name in ("batches", "before", "after", "rose", "distance")
        )
        words = ", ".join(f"{count:,.0f} {name}" for name, count in decided if count is not None)
        yield UpdateRow(PATHS.get(key, (key,))[0], batches, before, after, rose, distance, words)
