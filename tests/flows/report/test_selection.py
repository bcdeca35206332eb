"""The page of program selection: self-contained, the same for the same figures, hostile texts stay texts."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from flows.report.lines import LinePanel, Series, line_chart
from flows.report.plots import EXTERNAL
from flows.report.selection import write_selection_page
from tests.flows.report.page_rules import (
    check_equal_bytes,
    check_harmless,
    check_left_out,
    check_self_contained,
)
from tests.flows.report.test_report import HOSTILE, Page, hostile, plain


def _figure(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.02, "high": value + 0.02}


def _condition(value: float) -> dict[str, Any]:
    return {
        "error": _figure(value),
        "greedy_error": _figure(value / 2),
        "all_right": _figure(1 - value),
        "by_seed": {"1": value - 0.01, "2": value + 0.01},
        "seed_sd": 0.0141,
        "families": {"arithmetic": value, "list": value},
    }


FIGURES: dict[str, Any] = {
    "episodes": 64,
    "groups": 16,
    "host": "host/smollm2@" + "a" * 64,
    "conditions": {
        "rule": {"rule": _condition(0.0328)},
        "static": {"real/keep": _condition(0.3), "real/reset": _condition(0.55)},
        "adapted": {"real/keep": _condition(0.25), "words": _condition(0.6)},
    },
    "contrasts": {
        "static.G": {**_figure(0.25), "material": True},
        "objective": {**_figure(-0.05), "material": False},
    },
    "gains_by_seed": {"static": {"1": {"G": 0.2, "D": 0.19}, "2": {"G": 0.3, "D": 0.28}}},
    "selection": {"selected": "static", "eligible": ["static"]},
    "training": {
        f"{arm}-{seed}": {
            "curve": [{"update": u, "reset": 0.68, "keep": 0.68 - u / 1000} for u in (0, 64, 128)],
            "log": [
                {
                    "update": u,
                    "support_before": 0.6,
                    "support_after": 0.4,
                    "update_norm": 0.1,
                    "slow_norm": 1.0,
                }
                for u in (8, 16)
            ],
        }
        for arm in ("static", "adapted")
        for seed in (1, 2)
    },
    "predictions": {"static-1": "evaluation/selection/predictions/static-1@" + "b" * 64},
    "settings": {"study": {"inner_steps": 2, "outer": {"curve_split": "preflight"}}},
}


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(write_selection_page(FIGURES, tmp_path).read_text(encoding="utf-8"))


def test_the_page_asks_for_nothing_outside_itself(tmp_path: Path) -> None:
    check_self_contained(write_selection_page(FIGURES, tmp_path).read_text(encoding="utf-8"))


def test_errors_gains_and_lines_of_every_seed_are_shown(page: Page) -> None:
    text = plain(page.text)

    for figure in (
        "25.00",
        "23.00 to 27.00",
        "24.00 · 26.00",
        "3.28",
        "−5.00",
        "64 episodes of 16 groups",
        "on preflight groups",
    ):
        assert figure in text
    assert "the static objective gains most in its worst training" in text
    words = [str(chart["aria-label"]) for chart in page.named("svg")]
    assert len(words) == 4
    assert sum(label.count("keep from 68 to 55.2") for label in words) == 4
    assert len(page.named("table")) == len(page.named("caption")) == 4


def test_equal_figures_give_equal_bytes_whatever_their_order(tmp_path: Path) -> None:
    check_equal_bytes(write_selection_page, FIGURES, tmp_path)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_missing_or_foreign_section_is_left_out(tmp_path: Path, name: str) -> None:
    check_left_out(write_selection_page, FIGURES, name, tmp_path)


def test_hostile_texts_are_shown_and_never_markup(tmp_path: Path) -> None:
    figures = hostile(deepcopy(FIGURES))
    figures["conditions"][HOSTILE] = {HOSTILE: _condition(0.5)}
    figures["contrasts"][HOSTILE] = _figure(0.1)
    figures["training"][HOSTILE] = FIGURES["training"]["static-1"]
    figures["predictions"] = {HOSTILE: HOSTILE}
    check_harmless(write_selection_page(figures, tmp_path).read_text(encoding="utf-8"))


def test_a_chart_without_a_line_is_none_and_a_flat_line_has_a_scale() -> None:
    assert line_chart("n", "t", "x", "y", [LinePanel("a", [Series("s", EXTERNAL, [])])]) is None
    flat = line_chart("n", "t", "x", "y", [LinePanel("a", [Series("s", EXTERNAL, [(0, 0.0), (1, 0.0)])])])
    assert flat is not None
    assert "s from 0 to 0 over x" in flat.description
