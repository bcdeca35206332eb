"""The page of a shadow's evaluation: what it gains and harms, how much of each layer is kept, and texts.

One file that explains itself, as the chain's report: no script, nothing from outside, every value escaped.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from flows.formatting import flatten, number, section
from flows.pages import environment
from flows.report.alphas import CHOICES, DRIFT, GAIN, called
from flows.report.depth import DepthPanel, depth_chart
from flows.report.examples import agreement, cut
from flows.report.lines import LinePanel, Series, line_chart
from flows.report.members import objects, paired, sections, texts
from flows.report.plots import EXTERNAL, ORACLE, STANDALONE, Bar, Chart, families_chart
from flows.report.scores import Score, score

PAGE = "anneal.html"
_KEPT = "consolidated"
_MOST_CARDS, _MOST_LAYERS = 24, 512
_RECENT = 8
"""Chunks of the running mean, as of the check that ends a stream."""
_REFERENCES = ("shadow", "written", "host")
Pieces = Sequence[tuple[str, bool]]


@dataclass(frozen=True)
class Condition:
    """What a choice of alphas does to sealed text and sealed probes, in nats per token."""

    name: str
    label: str
    gain: Score
    z: float | None
    drift: Score
    over: Score
    """What consolidated alphas gain beyond it."""


@dataclass(frozen=True)
class Card:
    """A beginning, its true continuation, and two greedy ones, marked where they agree with the truth."""

    beginning: str
    truth: str
    before: Pieces
    after: Pieces
    same: bool


def write_anneal_page(figures: Mapping[str, Any], folder: Path) -> Path:
    """Write `<folder>/anneal.html` and return its path; equal figures give equal bytes.

    Any section of the figures may be missing, and the page then leaves it out.
    """
    rows = conditions(figures)
    anatomy = section(figures, "anatomy")
    page = (
        environment("flows")
        .get_template("anneal.html.j2")
        .render(
            figures=figures,
            subject=subject(figures),
            gain_goes=GAIN,
            drift_goes=DRIFT,
            chunks=section(figures, "chunks"),
            host_loss=section(figures, "host_loss"),
            rows=rows,
            kept=next((row for row in rows if row.name == _KEPT), None),
            naive=next((row for row in rows if row.name == "naive"), None),
            charts=charts(figures, rows),
            layers=[_layer(one) for one in objects(anatomy.get("layers"))[:_MOST_LAYERS]],
            late=number(anatomy.get("late_to_early")),
            cards=list(cards(figures)),
            references=[(role, ref) for role in _REFERENCES for ref in texts([figures.get(role)])],
            settings=list(flatten(section(figures, "settings"))),
        )
    )
    path = folder / PAGE
    path.write_text(page, encoding="utf-8")
    return path


def subject(figures: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What was evaluated, in words: text, host, what must not get worse, and shadow."""
    rows = [
        ("text", figures.get("text")),
        ("host", _short(figures.get("host"))),
        ("retention", ", ".join(texts(figures.get("retention")))),
        ("shadow", _short(figures.get("shadow"))),
    ]
    return [(role, what) for role, what in rows if isinstance(what, str) and what]


def _short(ref: object) -> str:
    """A reference with twelve digits of its version; nothing for what is none."""
    name, at, version = ref.rpartition("@") if isinstance(ref, str) else ("", "", "")
    return f"{name}@{version[:12]}" if at else ""


def conditions(figures: Mapping[str, Any]) -> list[Condition]:
    """The choices of alphas that have figures, in reading order."""
    drift, over = section(figures, "drift"), section(figures, "consolidated_over")
    return [
        Condition(
            name,
            called(name),
            score(one),
            number(one.get("z")),
            score(drift.get(name)),
            score(over.get(name)),
        )
        for name, one in sections(section(figures, "gain"), CHOICES)
    ]


def cards(figures: Mapping[str, Any]) -> Iterator[Card]:
    """The first before/after cards."""
    for one in objects(figures.get("cards"))[:_MOST_CARDS]:
        members = texts([one.get(name) for name in ("beginning", "truth", "before", "after")])
        if len(members) == 4:
            beginning, truth, before, after = members
            shown = cut(truth)
            pieces = [agreement(cut(text), shown) for text in (before, after)]
            yield Card(cut(beginning, keep_end=True), shown, pieces[0], pieces[1], before == after)


def charts(figures: Mapping[str, Any], rows: Sequence[Condition]) -> dict[str, Chart]:
    """The charts that the figures suffice for, by name."""
    drawn = [
        families_chart(
            "gain",
            "Gain on sealed text of the domain",
            f"nats per token, {GAIN}",
            _panels([(row, row.gain) for row in rows]),
            "nats",
        ),
        families_chart(
            "drift",
            "Drift on sealed retention text",
            f"nats per token, {DRIFT}",
            _panels([(row, row.drift) for row in rows]),
            "nats",
        ),
        _alphas(figures),
        _courses(figures),
        _curve(figures),
    ]
    return {chart.name: chart for chart in drawn if chart is not None}


def _panels(rows: Sequence[tuple[Condition, Score]]) -> list[tuple[str, str, list[Bar]]]:
    """The method, what it consolidates, and other searches at the same budget."""
    panels: dict[tuple[str, str], list[Bar]] = {}
    for row, figure in rows:
        if figure.value is None:
            continue
        low, high = figure.bounds or (None, None)
        text = f"{figure.value:+.4f}".replace("-", "−")
        panels.setdefault(_group(row.name), []).append(Bar(row.label, figure.value, text, low, high))
    return [(heading, colour, bars) for (heading, colour), bars in panels.items()]


def _group(condition: str) -> tuple[str, str]:
    known = {_KEPT: ("Consolidated by CMA-ES", EXTERNAL), "naive": ("As written", ORACLE)}
    return known.get(condition, ("Other searches, the same budget", STANDALONE))


def _alphas(figures: Mapping[str, Any]) -> Chart | None:
    anatomy = objects(section(figures, "anatomy").get("layers"))[:_MOST_LAYERS]
    layers = [int(layer) for one in anatomy if (layer := number(one.get("layer"))) is not None]
    chosen = section(figures, "alphas")
    names = [name for name in CHOICES if name in chosen] + sorted(set(chosen) - set(CHOICES))
    panels = [
        DepthPanel(
            called(name),
            _group(name)[1],
            [(int(layer), max(0.0, alpha)) for layer, alpha in paired(layers, chosen[name])],
        )
        for name in names
    ]
    return depth_chart("alphas", "How much of each layer is kept", "alpha", panels, (0.0, 0.4, 0.8, 1.2))


def _courses(figures: Mapping[str, Any]) -> Chart | None:
    """The best score so far of every search beside that of CMA-ES, as stairs."""
    courses = section(figures, "courses")
    found = {name: _stairs(courses[name]) for name in CHOICES if name in courses}
    reference = Series("CMA-ES", EXTERNAL, found.pop(_KEPT, []))
    panels = [
        LinePanel(called(name), [reference, Series("this search", STANDALONE, stairs)])
        for name, stairs in found.items()
    ]
    return line_chart(
        "courses",
        "Best score so far",
        "evaluations",
        "gain less penalty on selection text, nats per token",
        panels or [LinePanel("CMA-ES", [reference])],
    )


def _stairs(course: object) -> list[tuple[float, float]]:
    listed = [one for one in course if isinstance(one, list)] if isinstance(course, list) else []
    points = paired([one[0] for one in listed if len(one) == 2], [one[1] for one in listed if len(one) == 2])
    corners = [[before, (after[0], before[1])] for before, after in pairwise(points)]
    return [point for corner in corners for point in corner] + points[-1:]


def _curve(figures: Mapping[str, Any]) -> Chart | None:
    losses = [loss for _, loss in _steps(figures.get("curve"))]
    recent = [
        (float(place + 1), sum(losses[max(0, place + 1 - _RECENT) : place + 1]) / min(place + 1, _RECENT))
        for place in range(len(losses))
    ]
    panel = LinePanel(
        "",
        [
            Series("chunk", STANDALONE, _steps(figures.get("curve"))),
            Series(f"mean of the last {_RECENT}", EXTERNAL, recent),
        ],
    )
    return line_chart(
        "curve",
        "Loss while writing",
        "chunks",
        "nats per token, before a chunk is learned",
        [panel],
        from_zero=False,
    )


def _steps(values: object) -> list[tuple[float, float]]:
    """The numbers of a list, each with its place from 1 on."""
    return paired(list(range(1, len(values) + 1)), values) if isinstance(values, list) else []


def _layer(one: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    layer, alpha, norm = (number(one.get(name)) for name in ("layer", "alpha", "norm"))
    return layer, alpha, norm
