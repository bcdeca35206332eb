"""Charts of lines over a count: the same bytes for the same figures, in the colours of the other charts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flows.formatting import one_line, visible
from flows.report.plots import FAINT, FONT, INK, WIDTH, Chart, render, stroke, tick_label, ticks, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _RIGHT, _TOP, _HEAD, _PLOT, _KEY, _FOOT, _GAP = 44.0, 12.0, 16.0, 20.0, 110.0, 18.0, 38.0, 12.0
_LOW_PLOT, _MANY = 80.0, 4
"""Height of lines where panels are many, and how many those are: they stand in two charts side by side."""


@dataclass(frozen=True)
class Series:
    """Points (x, y) in the order of x; several of one label share a colour and an entry of the key."""

    label: str
    colour: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class LinePanel:
    """Lines under a heading; all panels of a chart share both scales."""

    heading: str
    series: Sequence[Series]


def line_chart(
    name: str,
    title: str,
    across: str,
    axis: str,
    panels: Sequence[LinePanel],
    unit: str = "",
    *,
    from_zero: bool = True,
    scaled_as: Sequence[LinePanel] = (),
    plot: float = _PLOT,
) -> Chart | None:
    """Panels one under the other, `across` and `axis` naming the two scales; None if there is no line.

    The upright scale starts at zero where no value is negative, unless it need not hold it. Both scales hold
    the lines of `scaled_as` as well. `plot` is the height of a panel's lines, in points.
    """
    drawn = _with_lines(panels)
    if not drawn:
        return None
    points = [point for panel in (*drawn, *scaled_as) for one in panel.series for point in one.points]
    spans = _span([x for x, _ in points], zero=False), _span([y for _, y in points], zero=from_zero)
    height = _TOP + len(drawn) * (_HEAD + plot + _GAP) + _KEY + _FOOT
    description = f"{title}. {_words(drawn, across, unit)}"
    return render(
        name, title, description, height, lambda axes: _fill(axes, drawn, across, axis, height, plot, spans)
    )


def line_charts(
    name: str, title: str, across: str, axis: str, panels: Sequence[LinePanel], unit: str = ""
) -> list[Chart]:
    """The panels in one chart or, where they are many, in two of equal scales to stand side by side.

    The second is called as the first with `_more` after its name.
    """
    drawn = _with_lines(panels)
    many = len(drawn) >= _MANY
    first = (len(drawn) + 1) // 2 if many else len(drawn)
    plot = _LOW_PLOT if many else _PLOT
    parts = (name, title, drawn[:first]), (f"{name}_more", f"{title}, continued", drawn[first:])
    charts = [
        line_chart(called, named, across, axis, part, unit, scaled_as=drawn, plot=plot)
        for called, named, part in parts
    ]
    return [chart for chart in charts if chart is not None]


def _with_lines(panels: Sequence[LinePanel]) -> list[LinePanel]:
    """Panels without lines that have no point, and without panels that have no line then."""
    drawn = [LinePanel(panel.heading, [one for one in panel.series if one.points]) for panel in panels]
    return [panel for panel in drawn if panel.series]


def _fill(
    axes: "Axes",
    panels: Sequence[LinePanel],
    across: str,
    axis: str,
    height: float,
    plot: float,
    spans: tuple[tuple[float, float], tuple[float, float]],
) -> None:
    (left, right), (low, high) = spans

    def place(x: float) -> float:
        return _LEFT + (x - left) * (WIDTH - _LEFT - _RIGHT) / (right - left)

    write(axes, 0, _TOP / 2, axis, size=FONT - 1)
    top = _TOP
    for panel in panels:
        write(axes, WIDTH - _RIGHT, top + _HEAD / 2, one_line(panel.heading, 40), ha="right", weight="bold")
        foot = top + _HEAD + plot

        def rise(y: float, foot: float = foot) -> float:
            return foot - (y - low) * plot / (high - low)

        for tick in ticks(low, high):
            stroke(axes, [_LEFT, WIDTH - _RIGHT], [rise(tick)] * 2, FAINT, 0.8, 0)
            write(axes, _LEFT - 6, rise(tick), tick_label(tick), ha="right", size=FONT - 1)
        for one in panel.series:
            xs, ys = [place(x) for x, _ in one.points], [rise(y) for _, y in one.points]
            stroke(axes, xs, ys, one.colour, 1.4, 2)
        stroke(axes, [_LEFT, WIDTH - _RIGHT], [foot, foot], INK, 0.8, 3)
        top = foot + _GAP
    for tick in ticks(left, right):
        at_end = place(tick) > WIDTH - 2 * _RIGHT  # a label in the middle of its tick would be cut there
        x, side = (WIDTH, "right") if at_end else (place(tick), "center")
        write(axes, x, top - _GAP + 5, tick_label(tick), ha=side, va="top", size=FONT - 1)
    write(axes, WIDTH - _RIGHT, top + 12, across, ha="right", size=FONT - 1)
    _key(axes, panels, height)


def _key(axes: "Axes", panels: Sequence[LinePanel], height: float) -> None:
    """What each colour is, in one row at the foot."""
    found = dict.fromkeys((one.label, one.colour) for panel in panels for one in panel.series)
    step = (WIDTH - _LEFT) / max(1, len(found))
    for place, (label, colour) in enumerate(found):
        x = _LEFT + place * step
        stroke(axes, [x, x + 14], [height - 9] * 2, colour, 2.5, 2)
        write(axes, x + 19, height - 9, one_line(label, 24), size=FONT - 1)


def _span(values: Sequence[float], *, zero: bool) -> tuple[float, float]:
    least, most = min(values), max(values)
    if zero:
        least, most = min(0.0, least), max(0.0, most)
    return least, most if most > least else least + 1.0


def _words(panels: Sequence[LinePanel], across: str, unit: str) -> str:
    """Where every line begins and ends, for readers who do not see it."""
    groups = []
    for panel in panels:
        ends = ", ".join(
            f"{one.label} from {one.points[0][1]:.3g} to {one.points[-1][1]:.3g}" for one in panel.series
        )
        groups.append(f"{panel.heading}: {ends}")
    return visible("; ".join(groups)) + f" over {across}" + (f" ({unit})." if unit else ".")
