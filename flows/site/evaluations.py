"""Evaluations of a store's snapshots, and how their figures went from one to the next."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.formatting import nats, number, section, share
from flows.report import conditions as report_conditions
from flows.site.charts import NoScale, Point, Scale, trend_chart
from flows.site.survey import Survey
from store import Row
from store.errors import CellarError

JSON_MEDIA = "application/json"
MOST_BYTES = 64 * 1024**2
"""A summary that is larger is none of ours."""


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure and its interval, which may be missing."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Metric:
    """What a chart is about: its key in a record, its words, and how a figure of it is printed."""

    key: str
    title: str
    about: str
    printed: Callable[[object], str]
    finest: float
    """The smallest step of a scale, so that its ticks differ as printed."""
    end: float


METRICS = (
    Metric("nll", "Log loss", "nats per target token, lower is better", nats, 0.01, math.inf),
    Metric("greedy_exact", "Continuations exactly right", "of tasks, higher is better", share, 0.001, 1.0),
    Metric("token_accuracy", "Tokens right", "of target tokens, higher is better", share, 0.001, 1.0),
)


@dataclass(frozen=True)
class Evaluation:
    """One published evaluation: `figures` by condition and metric."""

    row: Row
    time: str
    snapshot: str
    core: str
    tasks: float | None
    documents: float | None
    figures: Mapping[str, Mapping[str, Figure]]


@dataclass(frozen=True)
class Panel:
    """The course of one condition in one metric; `svg` is markup, `latest` the newest figure."""

    condition: str
    label: str
    family: str
    svg: str
    latest: Figure


@dataclass(frozen=True)
class Trend:
    """All evaluations of one name, oldest first, with a row of panels for each metric."""

    name: str
    evaluations: Sequence[Evaluation]
    conditions: Sequence[str]
    panels: Sequence[tuple[Metric, Sequence[Panel]]]


def read_evaluations(survey: Survey, warn: Callable[[object], None]) -> list[Evaluation]:
    """Evaluations of the snapshots of the site, oldest first; `warn` is told of those that cannot be read."""
    shown = {pinned.id for pinned in survey.pinned}
    rows = [
        row
        for row in survey.store.catalog().rows("evaluation")
        if row.commit <= survey.tip.sequence
        and row.media == JSON_MEDIA
        and str(row.provenance.get("snapshot")) in shown
        and row.length <= MOST_BYTES
    ]
    found = []
    for row in sorted(rows, key=lambda row: (row.commit, row.name, row.version)):
        try:
            record: Any = json.loads(survey.store.read(row))
        except (CellarError, ValueError, RecursionError) as error:
            warn(f"{row.name}@{row.version[:12]} is left out: {error}")
            continue
        if isinstance(record, dict) and "conditions" in record:  # others compare no evidence
            found.append(_evaluation(survey, row, record))
    return found


def trends(evaluations: Sequence[Evaluation], warn: Callable[[object], None]) -> list[Trend]:
    """The evaluations by name, with their charts; `warn` is told of figures that no chart can show."""
    by_name: dict[str, list[Evaluation]] = {}
    for evaluation in evaluations:
        by_name.setdefault(evaluation.row.name, []).append(evaluation)
    return [_trend(name, group, warn) for name, group in sorted(by_name.items())]


def _evaluation(survey: Survey, row: Row, record: Mapping[str, Any]) -> Evaluation:
    commit = survey.by_sequence.get(row.commit)
    conditions = section(record, "conditions")
    figures = {}
    for name in report_conditions.in_reading_order(conditions):
        values = section(conditions, name)
        found = {metric.key: _figure(values.get(metric.key)) for metric in METRICS}
        figures[name] = {key: figure for key, figure in found.items() if figure is not None}
    return Evaluation(
        row=row,
        time=commit.time if commit else "",
        snapshot=str(row.provenance.get("snapshot")),
        core=str(record.get("core") or ""),
        tasks=number(record.get("tasks")),
        documents=number(record.get("documents")),
        figures=figures,
    )


def _figure(value: object) -> Figure | None:
    if not isinstance(value, Mapping):
        bare = number(value)
        return None if bare is None else Figure(bare, None, None)
    mean = number(value.get("value"))
    return None if mean is None else Figure(mean, number(value.get("low")), number(value.get("high")))


def _trend(name: str, evaluations: Sequence[Evaluation], warn: Callable[[object], None]) -> Trend:
    present = {condition for evaluation in evaluations for condition in evaluation.figures}
    conditions = report_conditions.in_reading_order(present)
    panels = []
    for metric in METRICS[:2]:

        def left_out(why: object, metric: Metric = metric) -> None:
            warn(f"{name}: the chart of {metric.title.lower()}, {why}")

        panels.append((metric, list(_panels(metric, conditions, evaluations, left_out))))
    return Trend(name, evaluations, conditions, [(metric, row) for metric, row in panels if row])


def _panels(
    metric: Metric,
    conditions: Sequence[str],
    evaluations: Sequence[Evaluation],
    left_out: Callable[[object], None],
) -> Iterator[Panel]:
    """One panel a condition, on a scale of its own: on a common one intervals would be too small to see."""
    for condition in conditions:
        points = [
            Point(one.snapshot[:8], figure.value, figure.low, figure.high)
            if (figure := one.figures.get(condition, {}).get(metric.key))
            else None
            for one in evaluations
        ]
        known = [one.figures[condition] for one in evaluations if condition in one.figures]
        latest = next((by[metric.key] for by in reversed(known) if metric.key in by), None)
        if latest is not None:
            label = report_conditions.label(condition)
            ends = [e for p in points if p is not None for e in (p.value, p.low, p.high) if e is not None]
            try:
                scale = Scale.covering(
                    min(ends), max(ends), metric.printed, finest=metric.finest, end=metric.end
                )
            except NoScale as error:
                left_out(f"{label}, is left out: {error}")
                continue
            words = f"{metric.title}, {label}: {_words(points, metric)}"
            family = report_conditions.family_of(condition, None)
            yield Panel(condition, label, family, trend_chart(points, scale, words), latest)


def _words(points: Sequence[Point | None], metric: Metric) -> str:
    """The course in words, for readers who do not see the chart."""
    return "; ".join(
        f"snapshot {point.label} {metric.printed(point.value)}"
        + (f" ({metric.printed(point.low)} to {metric.printed(point.high)})" if point.low is not None else "")
        for point in points
        if point is not None
    )
