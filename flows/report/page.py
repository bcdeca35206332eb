"""The HTML report of a chain: one file that explains itself, offline, on any screen and on paper.

Texts come from documents that nobody vetted. Every value that the template prints is escaped, and passes
`visible` first, so that no control character reaches the page; only our own charts are printed as markup. The
page has no script and asks for nothing outside itself.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from flows import formatting
from flows.pages import environment
from flows.report import views as report_views
from flows.report.addressing import addressing, recall_chart
from flows.report.conditions import ConditionRow, conditions, families
from flows.report.examples import examples, reconstructions
from flows.report.leakage import leakage
from flows.report.plots import (
    FAMILY_COLOURS,
    Chart,
    families_chart,
    gain_chart,
    nats_bar,
    share_bar,
    stage_chart,
)
from flows.report.rates import rate_chart, rates
from flows.report.reading import reading, reading_charts
from flows.report.replacement import replacement, replacement_charts
from flows.report.skills import skills

_CHARTS = (
    "nll",
    "greedy_exact",
    "gain",
    "reading",
    "reading_exact",
    "replacement",
    "replacement_nll",
    "recall",
    "rate",
    "stages",
)


def write_report(summary: Mapping[str, Any], folder: Path) -> Path:
    """Write `<folder>/report.html` and `<folder>/plots/`, and return the page's path.

    `plots/` gets one SVG file a chart, and `nll.json` with a row per condition for `dvc plots`. Equal
    summaries give equal bytes. The counts and the snapshot's id must be there; any other section may be
    missing, and the page then leaves it out.
    """
    rows = conditions(summary)
    charts = _charts(summary, rows)
    plots = folder / "plots"
    plots.mkdir(parents=True, exist_ok=True)
    for name in _CHARTS:
        path = plots / f"{name}.svg"
        if name in charts:
            path.write_text(charts[name].svg, encoding="utf-8")
        else:
            # A chart that an earlier report left would show other figures than the page.
            path.unlink(missing_ok=True)
    (plots / "nll.json").write_text(json.dumps(_nll_points(rows), indent=1) + "\n", encoding="utf-8")
    page = folder / "report.html"
    page.write_text(_render(summary, rows, charts), encoding="utf-8")
    return page


def _render(summary: Mapping[str, Any], rows: Sequence[ConditionRow], charts: Mapping[str, Chart]) -> str:
    return (
        environment("flows")
        .get_template("report.html.j2")
        .render(
            summary=summary,
            charts=charts,
            tiles=report_views.tiles(summary, rows),
            families=families(rows),
            examples=examples(summary),
            reconstructions=reconstructions(summary),
            reading=reading(summary),
            replacement=replacement(summary),
            leakage=leakage(summary),
            addressing=addressing(summary),
            skills=skills(summary),
            rates=rates(summary),
            rejected=list(summary.get("rejected_documents") or ()),
            most_rejected=report_views.MOST_REJECTED,
            accounts=report_views.accounts(summary),
            references=report_views.references(summary),
            reasons=report_views.reasons(summary),
            params=list(formatting.flatten(summary.get("params") or {})),
            settings=list(formatting.flatten(summary.get("settings") or {})),
        )
    )


def _charts(summary: Mapping[str, Any], rows: Sequence[ConditionRow]) -> dict[str, Chart]:
    """The charts that the summary has figures for, by name."""
    losses, exact = [], []
    for family in families(rows):
        heading, colour = family.label, FAMILY_COLOURS[family.key]
        losses.append(
            (
                heading,
                colour,
                [nats_bar(r.label, r.nll, r.bounds) for r in family.conditions if r.nll is not None],
            )
        )
        exact.append(
            (
                heading,
                colour,
                [share_bar(r.label, r.greedy_exact) for r in family.conditions if r.greedy_exact is not None],
            )
        )
    drawn = [
        families_chart(
            "nll", "Log loss under each condition", "nats per target token, lower is better", losses, "nats"
        ),
        families_chart(
            "greedy_exact", "Continuations exactly right", "% of tasks, higher is better", exact, "of tasks"
        ),
        gain_chart(summary.get("gain") or {}),
        *reading_charts(reading(summary)),
        *replacement_charts(replacement(summary)),
        recall_chart(addressing(summary)),
        rate_chart(rates(summary)),
        stage_chart(report_views.stages(summary)),
    ]
    return {chart.name: chart for chart in drawn if chart is not None}


def _nll_points(rows: Sequence[ConditionRow]) -> list[dict[str, Any]]:
    """Loss and interval of each condition, in nats per target token; bounds are null where there are none."""
    return [
        {
            "condition": row.name,
            "nll": row.nll,
            "low": row.bounds[0] if row.bounds else None,
            "high": row.bounds[1] if row.bounds else None,
        }
        for row in rows
        if row.nll is not None
    ]
