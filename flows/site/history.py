"""How elements and bytes of the snapshots of a site went, as charts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from flows.formatting import count
from flows.site.charts import Point, Scale, trend_chart
from flows.site.survey import Pinned, Survey

MOST_HEADS = 4
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class HistoryChart:
    """A chart with its title; `svg` is markup."""

    title: str
    svg: str


def history_charts(survey: Survey) -> list[HistoryChart]:
    """Elements and bytes of the snapshots of each head; of all as they were pinned if no head moved yet."""
    by_id = {pinned.id: pinned for pinned in survey.pinned}
    charts: list[HistoryChart] = []
    for name, positions in sorted(survey.positions.items())[:MOST_HEADS]:
        line = [by_id[position.snapshot] for position in positions if position.snapshot in by_id]
        charts += _charts(f"head {name}", line)
    return charts or _charts("each snapshot", list(reversed(survey.pinned)))


def _charts(whose: str, oldest_first: Sequence[Pinned]) -> list[HistoryChart]:
    """Both charts of a line of snapshots; none where there is nothing to compare."""
    if len(oldest_first) < 2:
        return []
    labels = [one.commit.time[5:16].replace("T", " ") for one in oldest_first]
    elements = [float(one.snapshot.count) for one in oldest_first]
    unit = max(
        0, min(len(_UNITS) - 1, (max(one.snapshot.bytes for one in oldest_first).bit_length() - 1) // 10)
    )
    sizes = [one.snapshot.bytes / 1024**unit for one in oldest_first]
    return [
        _chart(f"Elements of {whose}", labels, elements, ""),
        _chart(f"Size of {whose}", labels, sizes, f" {_UNITS[unit]}"),
    ]


def _chart(title: str, labels: Sequence[str], values: Sequence[float], unit: str) -> HistoryChart:
    def printed(value: object) -> str:
        return f"{count(value)}{unit}"

    scale = Scale.covering(0.0, max(values), printed, finest=0.1 if unit else 1.0, end=math.inf)
    points = [Point(label, value) for label, value in zip(labels, values, strict=True)]
    words = f"{title} of each snapshot, oldest first: {', '.join(map(printed, values))}"
    return HistoryChart(title, trend_chart(points, scale, words))
