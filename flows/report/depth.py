"""Charts of upright bars over depth: one panel for each way of choosing, a bar for each layer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from flows.formatting import one_line, visible
from flows.report.plots import FAINT, FONT, INK, WIDTH, Chart, render, stroke, tick_label, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LEFT, _RIGHT, _TOP, _HEAD, _PLOT, _FOOT, _GAP = 44.0, 12.0, 16.0, 20.0, 54.0, 30.0, 10.0
_LABELLED = 12
"""Layers that are all labelled; of more, some."""


@dataclass(frozen=True)
class DepthPanel:
    """Bars of one colour under a heading: (layer, value) from the first layer to the last, values from 0."""

    heading: str
    colour: str
    bars: Sequence[tuple[int, float]]


def depth_chart(
    name: str, title: str, axis: str, panels: Sequence[DepthPanel], ticks: Sequence[float]
) -> Chart | None:
    """Panels one under the other on one scale from 0 to the last tick; None if there is no bar."""
    drawn = [panel for panel in panels if panel.bars]
    if not drawn:
        return None
    height = _TOP + len(drawn) * (_HEAD + _PLOT + _GAP) + _FOOT
    description = f"{title}. {_words(drawn)}."
    return render(name, title, description, height, lambda axes: _fill(axes, drawn, axis, ticks))


def _fill(axes: "Axes", panels: Sequence[DepthPanel], axis: str, ticks: Sequence[float]) -> None:
    layers = sorted({layer for panel in panels for layer, _ in panel.bars})
    step = (WIDTH - _LEFT - _RIGHT) / len(layers)
    middles = {layer: _LEFT + (place + 0.5) * step for place, layer in enumerate(layers)}
    most = max([*ticks, *(value for panel in panels for _, value in panel.bars)])
    write(axes, 0, _TOP / 2, axis, size=FONT - 1)
    top = _TOP
    for panel in panels:
        write(axes, WIDTH - _RIGHT, top + _HEAD / 2, one_line(panel.heading, 40), ha="right", weight="bold")
        foot = top + _HEAD + _PLOT
        for tick in ticks:
            height = foot - tick * _PLOT / most
            stroke(axes, [_LEFT, WIDTH - _RIGHT], [height] * 2, FAINT, 0.8, 0)
            write(axes, _LEFT - 6, height, tick_label(tick), ha="right", size=FONT - 1)
        for layer, value in panel.bars:
            rise, width = value * _PLOT / most, min(30.0, 0.62 * step)
            axes.bar(
                middles[layer], -rise, width=width, bottom=foot, color=panel.colour, zorder=2, clip_on=False
            )
        stroke(axes, [_LEFT, WIDTH - _RIGHT], [foot, foot], INK, 0.8, 3)
        top = foot + _GAP
    every = -(-len(layers) // _LABELLED)
    for layer in layers[::every]:
        write(axes, middles[layer], top - _GAP + 5, str(layer), ha="center", va="top", size=FONT - 1)
    write(axes, WIDTH - _RIGHT, top + 12, "layer", ha="right", size=FONT - 1)


def _words(panels: Sequence[DepthPanel]) -> str:
    """Every bar, for readers who do not see it."""
    groups = [
        f"{panel.heading}: " + ", ".join(f"layer {layer} {value:.3g}" for layer, value in panel.bars)
        for panel in panels
    ]
    return visible("; ".join(groups))
