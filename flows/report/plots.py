"""The charts of the report: horizontal bars as SVG, the same bytes for the same figures.

A chart is drawn in a few fixed colours. In its own file they stand as they are, on white; inside the page
each becomes a style variable of the page, so that a chart follows the reader's light or dark theme.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from flows.formatting import nats, number, one_line, seconds, share, visible

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK, FAINT, PAPER = "#20262e", "#d5d9de", "#fefefe"
STANDALONE, EXTERNAL, ORACLE, PLAIN = "#7b8490", "#2f6fb0", "#b67a1c", "#5b7c8d"
FAMILY_COLOURS = {"standalone": STANDALONE, "external": EXTERNAL, "oracle": ORACLE}
_INLINE = {
    INK: "currentColor",
    FAINT: "var(--line)",
    PAPER: "none",
    STANDALONE: "var(--standalone)",
    EXTERNAL: "var(--external)",
    ORACLE: "var(--oracle)",
    PLAIN: "var(--plain)",
}

# Points (1/72 inch). Narrow on purpose: a phone shows the chart at nearly its natural size.
WIDTH, _LABELS, _VALUES, _ROW, _HEAD, _FOOT, _GAP = 360.0, 112.0, 66.0, 22.0, 20.0, 36.0, 8.0
FONT = 11.0


@dataclass(frozen=True)
class Bar:
    """One figure: `text` is its printed value, `low` and `high` the bounds of its interval, if any."""

    label: str
    value: float
    text: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Panel:
    """Bars of one colour under a heading ("" for none)."""

    heading: str
    colour: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Chart:
    """A drawn chart: `svg` is a whole file, `inline` the element for the page, `description` its words."""

    name: str
    title: str
    description: str
    svg: str

    @property
    def inline(self) -> str:
        """The chart in the page's colours and font, without the ids that several charts would share."""
        body = self.svg[self.svg.index("<svg") :]
        body = re.sub(r"<defs>\s*<style.*?</style>\s*</defs>", "", body, count=1, flags=re.DOTALL)
        body = re.sub(r'\s(xmlns|xmlns:xlink|version|width|height)="[^"]*"', "", body, count=5)
        body = re.sub(r'\sid="[^"]*"', "", body)
        body = body.replace("font-family: 'DejaVu Sans'", "font-family: var(--font)")
        for colour, variable in _INLINE.items():
            body = body.replace(colour, variable)
        return body.strip()


def families_chart(
    name: str, title: str, axis: str, families: Sequence[tuple[str, str, Sequence[Bar]]], unit: str
) -> Chart | None:
    """One panel for each family, given as (heading, colour, bars); None if there is no bar at all."""
    panels = [Panel(heading, colour, bars) for heading, colour, bars in families if bars]
    return draw(name, title, axis, panels, unit) if panels else None


def gain_chart(gain: Mapping[str, Any]) -> Chart | None:
    """What evidence gains, split into the document's own part and the rest; None without both parts."""
    own, generic = number(gain.get("document_specific")), number(gain.get("generic"))
    if own is None or generic is None:
        return None
    bars = [
        Bar(label, value, nats(value))
        for label, value in (
            ("document-specific", own),
            ("generic", generic),
            ("whole gain", own + generic),
        )
    ]
    return draw(
        "gain",
        "What the right memory gains",
        "nats per target token saved",
        [Panel("", EXTERNAL, bars)],
        "nats",
    )


def stage_chart(stages: Sequence[tuple[str, float]]) -> Chart | None:
    """Seconds of each stage, in the order given; None without stages."""
    bars = [Bar(name, value, seconds(value)) for name, value in stages]
    return draw("stages", "Time of each stage", "seconds", [Panel("", PLAIN, bars)], "") if bars else None


def share_bar(label: str, value: float, bounds: tuple[float, float] | None = None) -> Bar:
    """A bar for a share in [0, 1] with its interval, drawn in percent."""
    low, high = bounds or (None, None)
    return Bar(
        label,
        100 * value,
        share(value),
        None if low is None else 100 * low,
        None if high is None else 100 * high,
    )


def nats_bar(label: str, value: float, bounds: tuple[float, float] | None) -> Bar:
    """A bar for a loss in nats with its interval."""
    low, high = bounds or (None, None)
    return Bar(label, value, nats(value), low, high)


def draw(name: str, title: str, axis: str, panels: Sequence[Panel], unit: str) -> Chart:
    """Draw panels one under the other on one scale that includes zero."""
    height = _GAP + _FOOT + sum(_ROW * len(p.bars) + _HEAD * bool(p.heading) + _GAP for p in panels)
    description = f"{title}. {_words(panels, unit)}"
    return render(name, title, description, height, lambda axes: _fill(axes, panels, axis, height))


def render(name: str, title: str, description: str, height: float, fill: Callable[["Axes"], None]) -> Chart:
    """A chart of `WIDTH` by `height` points, whose content `fill` draws with y going down from 0."""
    import matplotlib.style
    from matplotlib.figure import Figure

    # The defaults, whatever a user's own matplotlibrc says; text stays text, ids are salted with a constant.
    with matplotlib.style.context(
        [
            "default",
            {
                "svg.fonttype": "none",
                "svg.hashsalt": "cellar",
                "font.family": "DejaVu Sans",
                "font.size": FONT,
            },
        ],
        after_reset=True,
    ):
        figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72, facecolor=PAPER)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
        axes.set_axis_off()
        axes.set_xlim(0, WIDTH)
        axes.set_ylim(height, 0)
        fill(axes)
        sink = io.StringIO()
        nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(sink, format="svg", metadata=nothing)
    svg = re.sub(r"<!DOCTYPE.*?>\s*", "", sink.getvalue(), count=1, flags=re.DOTALL)
    svg = svg.replace("<svg ", f'<svg role="img" aria-label="{escape(description)}" ', 1)
    return Chart(name, title, description, svg)


def _fill(axes: "Axes", panels: Sequence[Panel], axis: str, height: float) -> None:
    """Panels from the top down; the scale's numbers and its name at the foot."""
    least, most = _range(panels)
    scale = (WIDTH - _LABELS - _VALUES) / (most - least)

    def place(value: float) -> float:
        return _LABELS + (value - least) * scale

    marks = ticks(least, most)
    for tick in marks:
        write(axes, place(tick), height - _FOOT + 4, tick_label(tick), ha="center", va="top", size=FONT - 1)
    write(axes, _LABELS, height - 4, axis, va="bottom", size=FONT - 1)
    top = _GAP
    for panel in panels:
        if panel.heading:
            style = {"size": FONT - 1, "weight": "bold", "color": panel.colour}
            write(axes, 0, top + _HEAD / 2, one_line(panel.heading, 60), **style)
            top += _HEAD
        foot = top + _ROW * len(panel.bars)
        for tick in marks:
            stroke(axes, [place(tick)] * 2, [top, foot], FAINT, 0.8, 0)
        for row, bar in enumerate(panel.bars):
            _bar(axes, bar, panel.colour, top + _ROW * (row + 0.5), place)
        # Bars stand on the line at zero, whichever way they go.
        stroke(axes, [place(0.0)] * 2, [top, foot], INK, 0.8, 4)
        top = foot + _GAP


def ticks(least: float, most: float) -> list[float]:
    """A few round numbers from the least to the most."""
    from matplotlib.ticker import MaxNLocator

    located = MaxNLocator(4, steps=[1, 2, 2.5, 5, 10]).tick_values(least, most)
    return [float(tick) for tick in located if least <= tick <= most]


def tick_label(tick: float) -> str:
    """A number of a scale, with a true minus sign."""
    return f"{tick:,.10g}".replace("-", "−")


def _bar(axes: "Axes", bar: Bar, colour: str, middle: float, place: Callable[[float], float]) -> None:
    start, end = sorted((place(0.0), place(bar.value)))
    axes.barh(middle, end - start, height=_ROW * 0.62, left=start, color=colour, zorder=2, clip_on=False)
    if bar.low is not None and bar.high is not None:
        low, high = place(bar.low), place(bar.high)
        end = max(end, high)
        stroke(axes, [low, high], [middle] * 2, INK, 1.2, 3)
        for bound in (low, high):
            stroke(axes, [bound] * 2, [middle - 3, middle + 3], INK, 1.2, 3)
    write(axes, _LABELS - 6, middle, one_line(bar.label, 20), ha="right")
    write(axes, end + 5, middle, bar.text)


def write(axes: "Axes", x: float, y: float, text: str, **style: Any) -> None:
    """Text at a point, centred on its height."""
    # Labels are text, never formulas: a dollar sign is a dollar sign.
    axes.text(x, y, text, parse_math=False, clip_on=False, **{"va": "center", "color": INK, **style})


def stroke(axes: "Axes", x: list[float], y: list[float], colour: str, width: float, order: int) -> None:
    """A line through points."""
    axes.plot(x, y, color=colour, linewidth=width, zorder=order, clip_on=False)


def _range(panels: Sequence[Panel]) -> tuple[float, float]:
    bars = [bar for panel in panels for bar in panel.bars]
    ends = [end for bar in bars for end in (bar.value, bar.low, bar.high) if end is not None]
    least, most = min([0.0, *ends]), max([0.0, *ends])
    return least, most if most > least else least + 1.0


def _words(panels: Sequence[Panel], unit: str) -> str:
    """The figures as a sentence, for readers who do not see the bars."""
    groups = []
    for panel in panels:
        figures = ", ".join(f"{bar.label} {bar.text}" for bar in panel.bars)
        groups.append(f"{panel.heading}: {figures}" if panel.heading else figures)
    return visible("; ".join(groups)) + (f" ({unit})." if unit else ".")
