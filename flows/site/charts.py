"""Charts of a site as SVG elements: no style of their own, so that the page's colours apply.

The pages forbid inline styles. Everything here is attributes and classes; equal figures give equal markup.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Self

from flows.formatting import visible

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _FOOT = 300.0, 132.0, 46.0, 14.0, 8.0, 22.0
_MOST_TICKS = 4
_MOST_STEPS = 2.0**40
"""Steps that a value may be away from 0, so that ticks differ and are round."""
_ALL_DOTS = 40
"""With more points than this, dots and intervals would touch: a band is drawn instead."""


class NoScale(ValueError):
    """Values that no scale of a chart can show: too large, or too close for what a float can tell apart."""


@dataclass(frozen=True, slots=True)
class Point:
    """One value of a course; `low` and `high` are the bounds of its interval, if any."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Scale:
    """A vertical scale with round ticks and how they are printed."""

    least: float
    most: float
    ticks: tuple[float, ...]
    printed: Callable[[object], str]

    @classmethod
    def covering(
        cls, least: float, most: float, printed: Callable[[object], str], *, finest: float, end: float
    ) -> Self:
        """A scale from `least` to `most`, neither below 0 nor above `end`, and no wider than need be.

        Ticks are round and at least `finest` apart, so that they differ as printed. Raises `NoScale` where
        there is none such.
        """
        step = max((most - least) / _MOST_TICKS, finest)
        if not math.isfinite(step) or max(abs(least), abs(most)) > _MOST_STEPS * step:
            raise NoScale(f"no scale shows {least:.6g} and {most:.6g}")
        step = _round_up(step)
        first, last = math.floor(least / step + 1e-9), math.ceil(most / step - 1e-9)
        if last - first < 2:  # a single value stands between two ticks, where there is room
            first, last = first - 1, last + 1
        first, last = max(first, 0), min(last, math.floor(end / step + 1e-9)) if math.isfinite(end) else last
        first, last = (first, last) if first < last else (max(last - 1, 0), max(last, 1))
        ticks = tuple(step * number for number in range(first, last + 1))
        if not math.isfinite(ticks[-1] - ticks[0]):
            raise NoScale(f"no scale shows {least:.6g} and {most:.6g}")
        return cls(ticks[0], ticks[-1], ticks, printed)

    def place(self, value: float) -> float:
        """Height of a value in the chart."""
        share = (value - self.least) / (self.most - self.least)
        return _HEIGHT - _FOOT - min(max(share, 0.0), 1.0) * (_HEIGHT - _FOOT - _TOP)


def trend_chart(
    points: Sequence[Point | None], scale: Scale, words: str, *, times: Sequence[float] | None = None
) -> str:
    """A course with intervals, oldest on the left; None leaves a gap. `words` say the same in text.

    Points stand at equal distances; with `times`, which must not fall, to the scale of time, where a value
    holds until the next.
    """
    places = _across(len(points), times)
    known = [(x, point) for x, point in zip(places, points, strict=True) if point is not None]
    parts = [_frame(scale)]
    if len(points) > _ALL_DOTS:
        parts.append(_band(known, scale))
    corners = [(x, scale.place(point.value)) for x, point in known]
    if times is not None:
        held = [(x, y) for (_, y), (x, _) in pairwise(corners)]
        corners = [corners[0], *(corner for pair in zip(held, corners[1:], strict=True) for corner in pair)]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    parts.append(f'<polyline class="line" points="{line}"/>')
    if len(points) <= _ALL_DOTS:
        parts += [_dot(x, point, scale) for x, point in known]
    parts += _ends(points, places)
    return _svg(parts, words)


def _frame(scale: Scale) -> str:
    """Grid lines with their numbers."""
    rows = []
    for tick in scale.ticks:
        y = scale.place(tick)
        rows.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        label = escape(visible(scale.printed(tick)))
        rows.append(f'<text class="tick" x="{_LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{label}</text>')
    return "".join(rows)


def _dot(x: float, point: Point, scale: Scale) -> str:
    y = scale.place(point.value)
    whisker = ""
    if point.low is not None and point.high is not None:
        low, high = scale.place(point.low), scale.place(point.high)
        whisker = f'<path class="whisker" d="M{x:.1f} {low:.1f}V{high:.1f}'
        whisker += f'M{x - 3:.1f} {low:.1f}h6M{x - 3:.1f} {high:.1f}h6"/>'
    return f'{whisker}<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'


def _band(known: Sequence[tuple[float, Point]], scale: Scale) -> str:
    """The intervals of many points as one area."""
    tops = [(x, scale.place(p.high if p.high is not None else p.value)) for x, p in known]
    feet = [(x, scale.place(p.low if p.low is not None else p.value)) for x, p in known]
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in [*tops, *reversed(feet)])
    return f'<polygon class="band" points="{corners}"/>'


def _ends(points: Sequence[Point | None], places: Sequence[float]) -> list[str]:
    """Labels under the first and the last point."""
    texts = []
    sides = {0: "middle"} if len(points) == 1 else {0: "start", len(points) - 1: "end"}
    for number, side in sides.items():
        point = points[number]
        if point is not None:
            x = places[number] + {"start": -6.0, "middle": 0.0, "end": 6.0}[side]
            label = escape(visible(point.label))
            texts.append(
                f'<text class="tick" x="{x:.1f}" y="{_HEIGHT - 5}" text-anchor="{side}">{label}</text>'
            )
    return texts


def _across(count: int, times: Sequence[float] | None) -> list[float]:
    """Where points stand, from left to right; a single one in the middle, and those of one moment evenly."""
    inner = _WIDTH - _LEFT - _RIGHT - 8
    if count == 1:
        return [_LEFT + 8 + inner / 2]
    if times is None or times[-1] == times[0]:
        times = range(count)
    span = times[-1] - times[0]
    return [_LEFT + 8 + inner * (time - times[0]) / span for time in times]


def _svg(parts: Sequence[str], words: str) -> str:
    label = escape(visible(words), quote=True)
    return (
        f'<svg class="chart" role="img" aria-label="{label}" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}">'
        f"{''.join(parts)}</svg>"
    )


def _round_up(step: float) -> float:
    """The next of 1, 2, 5, 10, ... times a power of ten."""
    magnitude = 10.0 ** math.floor(math.log10(step))
    return next(m * magnitude for m in (1.0, 2.0, 2.5, 5.0, 10.0) if m * magnitude >= step * (1 - 1e-9))
