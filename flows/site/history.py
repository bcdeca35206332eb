"""How elements and bytes of the snapshots of a site went, as charts."""

from collections.abc import Sequence
from dataclasses import dataclass

from flows.formatting import count
from flows.site.charts import Point, Scale, trend_chart
from flows.site.survey import Pinned

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class HistoryChart:
    """A chart with its title; `svg` is markup."""

    title: str
    svg: str


def history_charts(pinned: Sequence[Pinned]) -> list[HistoryChart]:
    """Elements and bytes of each snapshot in the order of pinning; none where there is nothing to compare."""
    oldest_first = list(reversed(pinned))
    if len(oldest_first) < 2:
        return []
    labels = [one.commit.time[:10] for one in oldest_first]
    elements = [float(one.snapshot.count) for one in oldest_first]
    unit = max(
        0, min(len(_UNITS) - 1, (max(one.snapshot.bytes for one in oldest_first).bit_length() - 1) // 10)
    )
    sizes = [one.snapshot.bytes / 1024**unit for one in oldest_first]
    return [
        _chart("Elements", labels, elements, ""),
        _chart("Size of their payloads", labels, sizes, f" {_UNITS[unit]}"),
    ]


def _chart(title: str, labels: Sequence[str], values: Sequence[float], unit: str) -> HistoryChart:
    def printed(value: object) -> str:
        return f"{count(value)}{unit}"

    scale = Scale.covering(0.0, max(values), printed)
    points = [Point(label, value) for label, value in zip(labels, values, strict=True)]
    words = f"{title} of each snapshot, oldest first: {', '.join(map(printed, values))}"
    return HistoryChart(title, trend_chart(points, scale, words))
