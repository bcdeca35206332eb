"""Charts of a head tell where it pointed and when, whenever its snapshots were pinned."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.site import SiteOptions, build_site
from flows.site.history import history_charts
from flows.site.survey import Survey, survey
from store import Position, Snapshot, Store
from tests.flows.site.test_build import Page

Filled = tuple[Store, Snapshot, Snapshot]


def elements_of_docs(store: Store, positions: Sequence[Position]) -> str:
    found = replace(survey(store, most=0, head=None, warn=print), positions={"docs": positions})
    [elements, _] = history_charts(found)
    assert elements.title == "Elements of head docs"
    return elements.svg


def test_a_head_s_chart_has_the_times_of_its_moves_to_scale(cellar_store: Filled) -> None:
    store, first, second = cellar_store
    moves = [(first, "01:25:00"), (second, "01:26:00"), (first, "01:31:00"), (second, "01:35:00")]
    svg = elements_of_docs(
        store, [Position(one.id, f"2026-11-30T{time}.000001+00:00") for one, time in moves]
    )

    assert re.findall(r">([^<>]*\d\d:\d\d)</text>", svg) == ["11-30 01:25", "11-30 01:35"]
    places = [float(x) for x in re.findall(r'cx="([\d.]+)"', svg)]
    shares = [(x - places[0]) / (places[-1] - places[0]) for x in places]
    assert [round(share, 2) for share in shares] == [0, 0.1, 0.6, 1]
    words = f"{first.count} since 11-30 01:25, {second.count} since 11-30 01:26"
    assert words in svg


def test_moves_within_a_minute_are_told_apart(cellar_store: Filled) -> None:
    store, first, second = cellar_store
    svg = elements_of_docs(
        store,
        [Position(one.id, f"2026-11-30T01:25:{n}.5+00:00") for one, n in ((first, "08"), (second, "50"))],
    )
    assert re.findall(r">([^<>]*\d\d:\d\d)</text>", svg) == ["11-30 01:25:08", "11-30 01:25:50"]


def test_what_is_no_time_leaves_a_chart_with_equal_distances(cellar_store: Filled) -> None:
    store, first, second = cellar_store
    times: list[Any] = ["2026-11-30T01:25:00+00:00", "soon", "2026-11-30T01:26:00+00:00"]
    moves = zip((first, second, first), times, strict=True)
    svg = elements_of_docs(store, [Position(one.id, time) for one, time in moves])
    first_x, second_x, third_x = (float(x) for x in re.findall(r'cx="([\d.]+)"', svg))
    assert round(second_x - first_x, 1) == round(third_x - second_x, 1)


def test_pages_say_until_when_they_tell_of_heads(
    cellar_store: Filled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = Position(cellar_store[1].id, "2100-01-01T00:00:00+00:00")

    def later(*given: Any, **options: Any) -> Survey:
        return replace(survey(*given, **options), positions={"docs": (late,)})

    monkeypatch.setattr("flows.site.build.survey", later)
    build_site(cellar_store[0], tmp_path / "site", SiteOptions(text_bytes=0))

    page = Page(tmp_path / "site/index.html").text
    assert "UTC, and of heads as they moved until 2100-01-01 00:00 UTC." in page
