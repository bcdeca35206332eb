"""A chart shows what it is given, whatever that is, and words say the same."""

import math
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flows.formatting import nats, share
from flows.site.charts import NoScale, Point, Scale, trend_chart

VALUES = st.floats(0, 50, allow_nan=False)


@given(st.tuples(VALUES, VALUES).map(sorted))
def test_a_scale_encloses_its_values_with_ticks_that_differ_as_printed(ends: list[float]) -> None:
    scale = Scale.covering(*ends, nats, finest=0.01, end=math.inf)
    assert 0 <= scale.least <= ends[0] + 1e-9
    assert ends[1] - 1e-9 <= scale.most
    assert 2 <= len(scale.ticks) <= 8
    assert scale.least < scale.most
    printed = [nats(tick) for tick in scale.ticks]
    assert len(set(printed)) == len(printed)


@given(st.tuples(st.floats(), st.floats()))
def test_values_of_any_size_have_a_scale_with_different_ticks_or_none(ends: tuple[float, float]) -> None:
    try:
        scale = Scale.covering(min(ends), max(ends), nats, finest=0.01, end=math.inf)
    except NoScale:
        return
    assert len(set(scale.ticks)) == len(scale.ticks) >= 2
    assert all(math.isfinite(scale.place(value)) for value in ends)


@given(st.tuples(st.floats(0, 1), st.floats(0, 1)).map(sorted))
def test_a_scale_of_shares_stays_within_them(ends: list[float]) -> None:
    scale = Scale.covering(*ends, share, finest=0.001, end=1.0)
    assert 0 <= scale.least <= ends[0] + 1e-9
    assert ends[1] - 1e-9 <= scale.most <= 1 + 1e-9


@pytest.mark.parametrize("count", [1, 2, 40, 41, 1000])
def test_every_number_of_points_can_be_drawn(count: int) -> None:
    points: list[Point | None] = [Point(str(n), n % 7, n % 7 - 0.5, n % 7 + 0.5) for n in range(count)]
    if count > 2:
        points[1] = None
    chart = ET.fromstring(
        trend_chart(points, Scale.covering(0, 7, nats, finest=0.01, end=math.inf), 'a "word" <b>')
    )
    assert chart.attrib["aria-label"] == 'a "word" <b>'
    known = count - (count > 2)
    assert len(chart.find("polyline").attrib["points"].split()) == known  # type: ignore[union-attr]
    assert len(chart.findall("circle")) == (known if count <= 40 else 0)
    assert len(chart.findall("polygon")) == (count > 40)


def test_times_place_points_to_scale_and_a_value_holds_until_the_next() -> None:
    points = [Point(str(n), n) for n in (1.0, 2.0, 1.0)]
    scale = Scale.covering(0, 2, nats, finest=0.01, end=math.inf)
    chart = ET.fromstring(trend_chart(points, scale, "", times=[100, 101, 110]))

    first, second, third = (float(dot.attrib["cx"]) for dot in chart.findall("circle"))
    assert (second - first) * 9 == pytest.approx(third - second, rel=0.01)
    line = chart.find("polyline").attrib["points"].split()  # type: ignore[union-attr]
    low, high = (f"{scale.place(value):.1f}" for value in (1.0, 2.0))
    assert line == [
        f"{first},{low}",
        f"{second},{low}",
        f"{second},{high}",
        f"{third},{high}",
        f"{third},{low}",
    ]


def test_points_of_one_moment_stand_beside_each_other() -> None:
    points = [Point(str(n), n) for n in (1.0, 2.0, 1.0)]
    scale = Scale.covering(0, 2, nats, finest=0.01, end=math.inf)
    evenly = ET.fromstring(trend_chart(points, scale, "")).findall("circle")
    at_once = ET.fromstring(trend_chart(points, scale, "", times=[5, 5, 5])).findall("circle")
    assert [dot.attrib for dot in at_once] == [dot.attrib for dot in evenly]
