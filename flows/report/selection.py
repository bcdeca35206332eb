"""The page of a study of program selection: errors by condition, gains, how the states were trained.

One file that explains itself, as the chain's report: no script, nothing from outside, every value escaped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.formatting import flatten, number, section
from flows.pages import environment
from flows.report.lines import LinePanel, Series, line_chart
from flows.report.members import numbers, objects, sections, texts
from flows.report.plots import EXTERNAL, ORACLE, PLAIN, STANDALONE, Chart, families_chart, share_bar
from flows.report.scores import Score, score

PAGE = "selection.html"
_ARMS = {
    "static": "static objective",
    "adapted": "adapted objective",
    "untrained": "untrained start",
    "rule": "symbolic rule",
}
_CELLS = {
    "real/keep": "feedback, kept",
    "real/reset": "feedback, reset",
    "sham/keep": "sham, kept",
    "sham/reset": "sham, reset",
    "words": "feedback in words",
    "rule": "lowest error",
}
_CONTRASTS = ("static.G", "static.D", "adapted.G", "adapted.D", "objective")
_GAINS = {"G": "kept against reset", "D": "beyond what a sham gains", "": "less error after feedback"}


@dataclass(frozen=True)
class Condition:
    """An arm in a cell; `seeds` are the errors of its trainings."""

    arm: str
    cell: str
    error: Score
    greedy: Score
    right: Score
    seeds: Sequence[tuple[str, float]]
    deviation: float | None


@dataclass(frozen=True)
class Gain:
    """A contrast with its interval, and the least of any training where that is known."""

    arm: str
    name: str
    figure: Score
    material: bool
    worst: float | None


def write_selection_page(figures: Mapping[str, Any], folder: Path) -> Path:
    """Write `<folder>/selection.html` and return its path; equal figures give equal bytes.

    Any section of the figures may be missing, and the page then leaves it out.
    """
    rows = conditions(figures)
    chosen = section(figures, "selection")
    page = (
        environment("flows")
        .get_template("selection.html.j2")
        .render(
            figures=figures,
            charts=charts(figures, rows),
            arms=[
                (arm, [row for row in rows if row.arm == arm]) for arm in dict.fromkeys(r.arm for r in rows)
            ],
            gains=gains(figures),
            selected=_label(_ARMS, chosen.get("selected")),
            split=section(section(section(figures, "settings"), "study"), "outer").get("curve_split"),
            settings=list(flatten(section(figures, "settings"))),
            references=list(_references(figures)),
        )
    )
    path = folder / PAGE
    path.write_text(page, encoding="utf-8")
    return path


def conditions(figures: Mapping[str, Any]) -> list[Condition]:
    """The rows of the table of errors, arms and cells in reading order."""
    found = []
    for arm, cells in sections(section(figures, "conditions"), _ARMS):
        for cell, one in sections(cells, _CELLS):
            seeds = [(name, value) for name, value in numbers(section(one, "by_seed"))]
            figure, greedy, right = (score(one.get(name)) for name in ("error", "greedy_error", "all_right"))
            deviation = number(one.get("seed_sd"))
            found.append(
                Condition(_label(_ARMS, arm), _label(_CELLS, cell), figure, greedy, right, seeds, deviation)
            )
    return found


def gains(figures: Mapping[str, Any]) -> list[Gain]:
    """The rows of the table of contrasts."""
    by_seed = section(figures, "gains_by_seed")
    found = []
    for full, one in sections(section(figures, "contrasts"), _CONTRASTS):
        arm, _, name = full.partition(".")
        each = [number(seed.get(name)) for _, seed in sections(section(by_seed, arm))]
        known = [value for value in each if value is not None]
        label = _label(_ARMS, arm) if name else "adapted against static"
        found.append(
            Gain(
                label,
                _label(_GAINS, name),
                score(one),
                one.get("material") is True,
                min(known) if known else None,
            )
        )
    return found


def charts(figures: Mapping[str, Any], rows: Sequence[Condition]) -> dict[str, Chart]:
    """The charts that the figures suffice for, by name."""
    colours = {_ARMS["static"]: PLAIN, _ARMS["adapted"]: EXTERNAL, _ARMS["rule"]: ORACLE}
    panels = [
        (
            arm,
            colours.get(arm, STANDALONE),
            [
                share_bar(row.cell, row.error.value, row.error.bounds)
                for row in rows
                if row.arm == arm and row.error.value is not None
            ],
        )
        for arm in dict.fromkeys(row.arm for row in rows)
    ]
    listed = sections(section(figures, "training"))
    training = sorted(listed, key=lambda one: list(_ARMS).index(arm) if (arm := _arm(one[0])) in _ARMS else 9)
    across = "outer updates"
    drawn = [
        families_chart(
            "error",
            "Expected error by condition",
            "% of new inputs, lower is better",
            panels,
            "of new inputs",
        ),
        line_chart(
            "curve",
            "Learning curves",
            across,
            "expected error, %, on groups to look at",
            _panels(training, "curve", {"reset": STANDALONE, "keep": EXTERNAL}, 100),
        ),
        line_chart(
            "support",
            "Loss on the feedback's own inputs",
            across,
            "expected error, %, before the steps and at the last one known",
            _panels(training, "log", {"support_before": STANDALONE, "support_after": EXTERNAL}, 100),
        ),
        line_chart(
            "norms",
            "How far feedback moves the factors",
            across,
            "Euclidean norm",
            _panels(training, "log", {"update_norm": EXTERNAL, "slow_norm": STANDALONE}, 1),
        ),
    ]
    return {chart.name: chart for chart in drawn if chart is not None}


_LINES = {
    "support_before": "before",
    "support_after": "after",
    "update_norm": "way of an episode",
    "slow_norm": "slow factors",
}


def _panels(
    training: Sequence[tuple[str, Mapping[str, Any]]], part: str, lines: Mapping[str, str], scale: float
) -> list[LinePanel]:
    """A panel for each objective, with a line of each kind for every seed."""
    by_arm: dict[str, list[Series]] = {}
    for name, one in training:
        arm = _arm(name)
        points = objects(one.get(part))
        for line, colour in lines.items():
            known = [(number(row.get("update")), number(row.get(line))) for row in points]
            found = [(x, scale * y) for x, y in known if x is not None and y is not None]
            by_arm.setdefault(arm, []).append(Series(_LINES.get(line, line), colour, found))
    return [LinePanel(_label(_ARMS, arm), series) for arm, series in by_arm.items()]


def _arm(training: str) -> str:
    """The objective in a training's name, `static-2026092811`."""
    return training.rpartition("-")[0]


def _references(figures: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield from (("host", ref) for ref in texts([figures.get("host")]))
    sealed = section(figures, "predictions")
    yield from ((name, ref) for name, ref in sorted(sealed.items()) if isinstance(ref, str))


def _label(labels: Mapping[str, str], name: object) -> str:
    return labels.get(name, name) if isinstance(name, str) else ""
