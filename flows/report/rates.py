"""A rate-distortion evaluation as the report tells it: what cells of fewer bytes lose."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from flows.formatting import count, number, section, size
from flows.report.plots import EXTERNAL, PLAIN, Chart, families_chart, share_bar


@dataclass(frozen=True)
class RatePoint:
    """Cells of one width in one number format; figures are of documents that no codec has seen."""

    width: float
    dtype: str
    bytes_per_block: float
    token_recall: float
    span8_exact: float | None
    steps_per_block: float | None
    published: float | None
    rarity: Sequence[tuple[str, float | None]]
    """Token recall by how often training saw a token."""


@dataclass(frozen=True)
class Rates:
    """The points in the order of their bytes; `formats` in the order of the evaluation."""

    documents: float | None
    raw_bytes: float | None
    least_recall: float | None
    smallest: RatePoint | None
    formats: Sequence[str]
    points: Sequence[RatePoint]

    def of(self, dtype: str) -> list[RatePoint]:
        """The points of one format."""
        return [point for point in self.points if point.dtype == dtype]

    @property
    def rare(self) -> list[RatePoint]:
        """The points of the first format that tell recall by rarity."""
        return [point for point in self.of(self.formats[0]) if point.rarity]


def rates(summary: Mapping[str, Any]) -> Rates | None:
    """The rate-distortion evaluation in a summary, None if it has none."""
    given = section(summary, "rate")
    listed = given.get("points")
    rows = [row for row in listed if isinstance(row, Mapping)] if isinstance(listed, list) else []
    points = [point for row in rows if (point := _point(row)) is not None]
    if not points:
        return None
    smallest = section(given, "smallest")
    best = section(smallest, "point")
    at = (number(best.get("width")), best.get("dtype"))
    return Rates(
        number(given.get("documents")),
        number(given.get("raw_id_bytes_per_block")),
        number(smallest.get("least_recall")),
        next((point for point in points if (point.width, point.dtype) == at), None),
        list(dict.fromkeys(point.dtype for point in points)),
        sorted(points, key=lambda point: (point.bytes_per_block, point.dtype)),
    )


def rate_chart(found: Rates | None) -> Chart | None:
    """Token recall against the bytes of a block, a panel for each number format."""
    if found is None:
        return None
    panels = [
        (
            dtype,
            EXTERNAL if dtype == found.formats[0] else PLAIN,
            [share_bar(f"{size(p.bytes_per_block)} a block", p.token_recall) for p in found.of(dtype)],
        )
        for dtype in found.formats
    ]
    title = "Tokens read back, as cells take fewer bytes"
    return families_chart("rate", title, "% of tokens, higher is better", panels, "of tokens")


def _point(row: Mapping[str, Any]) -> RatePoint | None:
    width, size_, recall = (number(row.get(name)) for name in ("width", "bytes_per_block", "token_recall"))
    dtype = row.get("dtype")
    if width is None or size_ is None or recall is None or not isinstance(dtype, str):
        return None
    classes = row.get("by_rarity")
    return RatePoint(
        width,
        dtype,
        size_,
        recall,
        number(row.get("span8_exact")),
        number(row.get("steps_per_block")),
        number(row.get("published")),
        [_class(one) for one in classes if isinstance(one, Mapping)] if isinstance(classes, list) else [],
    )


def _class(given: Mapping[str, Any]) -> tuple[str, float | None]:
    first, last = number(given.get("seen_from")), number(given.get("seen_to"))
    if first is None:
        return "\N{EN DASH}", number(given.get("token_recall"))
    if last is None:
        label = f"{count(first)} and more"
    else:
        label = count(first) if first == last else f"{count(first)} to {count(last)}"
    return label, number(given.get("token_recall"))
