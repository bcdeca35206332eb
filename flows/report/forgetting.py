"""The page of domains learned one after another: what each gained, after each, and what was forgotten.

One file that explains itself, as the chain's report: no script, nothing from outside, every value escaped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flows.formatting import flatten, number, section
from flows.pages import environment
from flows.report.lines import LinePanel, Series, line_chart
from flows.report.members import texts
from flows.report.plots import EXTERNAL, ORACLE, STANDALONE, Bar, Chart, families_chart

PAGE = "cumulative.html"
_RETENTION = "retention"
_MOST_DOMAINS = 64


@dataclass(frozen=True)
class Cell:
    """A gain, its size in percent of the table's largest, and whether the domain was learned just then."""

    gain: float | None
    percent: int
    own: bool


@dataclass(frozen=True)
class Row:
    """A text's gains after each domain that was learned, against the host before any."""

    name: str
    cells: Sequence[Cell]
    forgotten: float | None
    before_own: float | None


def write_cumulative_page(figures: Mapping[str, Any], folder: Path) -> Path:
    """Write `<folder>/cumulative.html` and return its path; equal figures give equal bytes.

    Any section of the figures may be missing, and the page then leaves it out.
    """
    order = texts(figures.get("order"))[:_MOST_DOMAINS]
    rows = matrix(figures, order)
    page = (
        environment("flows")
        .get_template("cumulative.html.j2")
        .render(
            order=order if rows else [],
            rows=rows,
            charts=charts(rows),
            references=[("host", ref) for ref in texts([figures.get("host")])]
            + [("shadow", ref) for ref in texts(figures.get("shadows"))],
            settings=list(flatten(section(figures, "settings"))),
        )
    )
    path = folder / PAGE
    path.write_text(page, encoding="utf-8")
    return path


def matrix(figures: Mapping[str, Any], order: Sequence[str]) -> list[Row]:
    """A row for each domain in order, and one for retention text; texts without losses are left out."""
    losses, learned = section(figures, "losses"), section(figures, "cumulative")
    gains: dict[str, list[float | None]] = {}
    for name in dict.fromkeys((*order, _RETENTION)):
        listed = losses.get(name)
        first, *later = [number(loss) for loss in listed] if isinstance(listed, list) and listed else [None]
        if first is not None and len(later) == len(order):
            gains[name] = [None if loss is None else first - loss for loss in later]
    most = max((abs(gain) for row in gains.values() for gain in row if gain is not None), default=0.0) or 1.0
    return [
        Row(
            name,
            [
                Cell(gain, round(100 * abs(gain or 0.0) / most), stage == name)
                for stage, gain in zip(order, row, strict=True)
            ],
            number(section(learned, name).get("forgotten")),
            number(section(learned, name).get("before_own_stage")),
        )
        for name, row in gains.items()
    ]


def charts(rows: Sequence[Row]) -> dict[str, Chart]:
    """The charts that the figures suffice for, by name."""
    domains = [row for row in rows if row.name != _RETENTION]
    panels = [
        LinePanel(
            row.name,
            [
                Series(
                    "retention" if row.name == _RETENTION else "domain",
                    ORACLE if row.name == _RETENTION else EXTERNAL,
                    [
                        (0.0, 0.0),
                        *((float(n), c.gain) for n, c in enumerate(row.cells, 1) if c.gain is not None),
                    ],
                )
            ],
        )
        for row in rows
    ]
    families = [
        (
            "When learned",
            EXTERNAL,
            [_bar(row.name, cell.gain) for row in domains for cell in row.cells if cell.own],
        ),
        ("At the end", STANDALONE, [_bar(row.name, row.cells[-1].gain) for row in domains]),
        ("Forgotten", ORACLE, [_bar(row.name, row.forgotten) for row in domains]),
    ]
    known = [(heading, colour, [bar for bar in bars if bar]) for heading, colour, bars in families]
    drawn = [
        line_chart(
            "course", "Gain after each domain", "domains learned", "nats per token against the host", panels
        ),
        families_chart("kept", "What was gained, kept and forgotten", "nats per token", known, "nats"),
    ]
    return {chart.name: chart for chart in drawn if chart is not None}


def _bar(label: str, value: float | None) -> Bar | None:
    return None if value is None else Bar(label, value, f"{value:+.4f}".replace("-", "−"))
