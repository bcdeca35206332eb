"""How elements and bytes of the snapshots of a site went, as charts over time."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate

from flows.formatting import count
from flows.site.charts import Point, Scale, trend_chart
from flows.site.rendering import moment
from flows.site.survey import Pinned, Survey

MOST_HEADS = 4
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


@dataclass(frozen=True)
class HistoryChart:
    """A chart with its title; `svg` is markup."""

    title: str
    svg: str


def history_charts(survey: Survey) -> list[HistoryChart]:
    """Elements and bytes of what each head pointed to; of all as they were pinned if no head moved yet."""
    by_id = {pinned.id: pinned for pinned in survey.pinned}
    charts: list[HistoryChart] = []
    for name, positions in sorted(survey.positions.items())[:MOST_HEADS]:
        line = [(one.time, by_id[one.snapshot]) for one in positions if one.snapshot in by_id]
        charts += _charts(f"head {name}", line)
    return charts or _charts("each snapshot", [(one.commit.time, one) for one in reversed(survey.pinned)])


def _charts(whose: str, oldest_first: Sequence[tuple[str, Pinned]]) -> list[HistoryChart]:
    """Both charts of snapshots since some times; none where there is nothing to compare."""
    if len(oldest_first) < 2:
        return []
    since = [time for time, _ in oldest_first]
    elements = [float(one.snapshot.count) for _, one in oldest_first]
    most = max(one.snapshot.bytes for _, one in oldest_first)
    unit = max(0, min(len(_UNITS) - 1, (most.bit_length() - 1) // 10))
    sizes = [one.snapshot.bytes / 1024**unit for _, one in oldest_first]
    return [
        _chart(f"Elements of {whose}", since, elements, ""),
        _chart(f"Size of {whose}", since, sizes, f" {_UNITS[unit]}"),
    ]


def _chart(title: str, since: Sequence[str], values: Sequence[float], unit: str) -> HistoryChart:
    def printed(value: object) -> str:
        return f"{count(value)}{unit}"

    labels = _labels(since)
    scale = Scale.covering(0.0, max(values), printed, finest=0.1 if unit else 1.0, end=math.inf)
    points = [Point(label, value) for label, value in zip(labels, values, strict=True)]
    course = ", ".join(f"{printed(point.value)} since {point.label}" for point in points)
    words = f"{title}, oldest first: {course}"
    return HistoryChart(title, trend_chart(points, scale, words, times=_seconds(since)))


def _labels(times: Sequence[str]) -> list[str]:
    """Month, day and time of day, with seconds where all is within a minute."""
    shown = [moment(time)[5:] for time in times]
    return shown if shown[0] != shown[-1] else [time[5:19].replace("T", " ") for time in times]


def _seconds(times: Sequence[str]) -> list[float] | None:
    """The times as numbers that never fall, whatever the clocks said; None if one of them is no time."""
    try:
        read = [datetime.fromisoformat(time) for time in times]
    except ValueError:
        return None
    return list(accumulate((one.replace(tzinfo=one.tzinfo or UTC).timestamp() for one in read), max))
