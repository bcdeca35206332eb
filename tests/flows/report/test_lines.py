"""Charts of lines: few panels are one chart, many are two that can be compared."""

import re

from flows.report.lines import LinePanel, Series, line_charts
from flows.report.plots import Chart


def panels(*tops: float) -> list[LinePanel]:
    return [
        LinePanel(f"path {place}", [Series("loss", "#2a68ab", [(1, 0.1), (300, top)])])
        for place, top in enumerate(tops)
    ]


def heights_of_lines(chart: Chart) -> list[float]:
    """How far up each of a chart's lines reaches, in points."""
    found = re.findall(r'<path d="M ([^"]*)"[^>]*stroke: #2a68ab', chart.svg)
    rises = []
    for path in found:
        ups = [float(y) for y in re.findall(r"[\d.]+ ([\d.]+)", path)]
        rises.append(round(max(ups) - min(ups), 3))
    return rises


def test_few_panels_are_one_chart_and_many_are_two() -> None:
    assert [chart.name for chart in line_charts("c", "T", "jobs", "loss", panels(1, 1, 1))] == ["c"]
    two = line_charts("c", "T", "jobs", "loss", panels(1, 1, 1, 1, 1))
    assert [(chart.name, chart.title) for chart in two] == [("c", "T"), ("c_more", "T, continued")]
    assert [len(heights_of_lines(chart)) for chart in two] == [3 + 1, 2 + 1]  # with the key
    assert line_charts("c", "T", "jobs", "loss", [LinePanel("none", [])]) == []


def test_both_charts_have_the_same_scales() -> None:
    first, second = line_charts("c", "T", "jobs", "loss", panels(1, 4, 1, 1))
    assert heights_of_lines(first)[0] == heights_of_lines(second)[0] > 0
    assert heights_of_lines(first)[1] > 3 * heights_of_lines(second)[1]
