"""The page of a replay: self-contained, the same for the same figures, hostile texts stay texts."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from flows.report.replay import PATHS, write_replay_page
from tasks.replay import ReplayParams
from tests.flows.report.browser_rules import check_laid_out
from tests.flows.report.page_rules import (
    check_equal_bytes,
    check_harmless,
    check_left_out,
    check_self_contained,
)
from tests.flows.report.test_report import HOSTILE, Page, hostile, plain


def _path(value: float) -> dict[str, Any]:
    shares = {"success": value, "failure": 1 - value}
    return {"nested": value, "commits": value, "jobs": value, "calibration_error": 0.04, "by_label": shares}


FIGURES: dict[str, Any] = {
    "replay": {"reset_memory": _path(0.1274), "keep_memory": _path(0.1808), "controller": _path(0.1262)},
    "differences": {
        "controller over reset": {
            "value": 0.0012,
            "low": -0.0004,
            "high": 0.0031,
            "paths": ["reset_memory", "controller"],
        }
    },
    "jobs": {
        "rows": 120,
        "read": 110,
        "excluded": {"bad timestamp": 10},
        "training": {"jobs": 50, "commits": 4, "repositories": 1, "labels": {"success": 50}},
        "audit": {"jobs": 60, "commits": 5, "repositories": 1, "labels": {"success": 60}},
    },
    "calibration": {
        "controller": [
            {"low": 0.5, "high": 0.6, "n": 20, "chance": 0.55, "right": 0.5},
            {"low": 0.9, "high": 1.0, "n": 40, "chance": 0.95, "right": 0.9},
        ]
    },
    "courses": {
        "octo/repo": {
            "jobs": [1, 30, 60],
            "half_brier": {"reset_memory": [0.3, 0.2, 0.13], "controller": [0.3, 0.19, 0.125]},
            "trust": [0.2, 0.4, 0.7],
            "same_batch": {"controller": {"batches": [10, 20], "before": [0.5, 0.4], "after": [0.4, None]}},
        }
    },
    "updates": {
        "controller": {
            "batches": 20,
            "before": 0.45,
            "after": 0.4,
            "rose": 0.0,
            "gradient_norm": 0.3,
            "update_norm": 0.02,
            "distance": 0.21,
            "decisions": {"kept": 12, "shrunk": 7, "dropped": 1},
        }
    },
    "biases": None,
    "elements": ["host/smollm2@" + "a" * 64],
    "settings": {"rank": 4, "controller": {"prior": 0.2}},
}


@pytest.fixture
def page(tmp_path: Path) -> Page:
    return Page(write_replay_page(FIGURES, tmp_path).read_text(encoding="utf-8"))


def test_every_path_has_its_place_on_the_page() -> None:
    assert set(PATHS) == set(ReplayParams().paths)


def test_the_page_asks_for_nothing_outside_itself(tmp_path: Path) -> None:
    check_self_contained(write_replay_page(FIGURES, tmp_path).read_text(encoding="utf-8"))


def test_scores_differences_courses_and_decisions_are_shown(page: Page) -> None:
    text = plain(page.text)

    for figure in ("0.1274", "0.1808", "0.0012", "−0.0004 to 0.0031", "12 kept", "bad timestamp", "0.4000"):
        assert figure in text
    words = [str(chart["aria-label"]) for chart in page.named("svg")]
    assert len(words) == 5
    assert sum("the path from 0.3 to 0.125 over jobs" in label for label in words) == 1
    assert sum("kept state from 0.2 to 0.7" in label for label in words) == 1
    assert len(page.named("table")) == len(page.named("caption")) == 6


def test_many_paths_stand_in_two_charts_of_equal_scales(tmp_path: Path) -> None:
    figures = deepcopy(FIGURES)
    course = figures["courses"]["octo/repo"]
    for place, name in enumerate(PATHS):
        figures["replay"][name] = _path(0.1 + place / 100)
        course["half_brier"][name] = [0.1, 0.2, 0.3]
        course["same_batch"][name] = {"batches": [1, 2], "before": [0.5, 0.4], "after": [0.4, 0.3]}
        figures["calibration"][name] = FIGURES["calibration"]["controller"]
    course["half_brier"]["keep"] = [0.1, 0.9, 0.9]  # among the first; the others are drawn to its scale
    found = Page(write_replay_page(figures, tmp_path).read_text(encoding="utf-8"))
    text = plain(found.text)
    assert text.count("Half-Brier so far: octo/repo") == 2
    assert "Half-Brier so far: octo/repo, continued" in text
    described = [str(chart["aria-label"]) for chart in found.named("svg")]
    assert len(described) == 8
    assert [sum(f"{PATHS[name][0]}: " in one for one in described) for name in ("keep", "hedge5")] == [3, 3]
    pairs = [place for place in found.values("class") if place == "pair"]
    assert len(pairs) == 3


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_the_page_fits_its_window(tmp_path: Path, width: int, scheme: str) -> None:
    check_laid_out(write_replay_page(FIGURES, tmp_path), tmp_path, width, scheme)


def test_equal_figures_give_equal_bytes_whatever_their_order(tmp_path: Path) -> None:
    check_equal_bytes(write_replay_page, FIGURES, tmp_path)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_missing_or_foreign_section_is_left_out(tmp_path: Path, name: str) -> None:
    check_left_out(write_replay_page, FIGURES, name, tmp_path)


def test_hostile_texts_are_shown_and_never_markup(tmp_path: Path) -> None:
    figures = hostile(deepcopy(FIGURES))
    figures["replay"][HOSTILE] = _path(0.5)
    figures["differences"][HOSTILE] = {"value": 0.1, "paths": [HOSTILE, HOSTILE]}
    figures["courses"][HOSTILE] = FIGURES["courses"]["octo/repo"]
    figures["updates"][HOSTILE] = {"decisions": {HOSTILE: 3}}
    figures["jobs"]["excluded"][HOSTILE] = 1
    check_harmless(write_replay_page(figures, tmp_path).read_text(encoding="utf-8"))
