"""The page of a shadow: self-contained, the same for the same figures, hostile texts stay texts."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from flows.cli.anneal_figures import anneal_lines
from flows.report.annealing import write_anneal_page
from flows.report.depth import depth_chart
from tests.flows.report.browser_rules import check_laid_out
from tests.flows.report.page_rules import (
    check_equal_bytes,
    check_harmless,
    check_left_out,
    check_self_contained,
)
from tests.flows.report.test_report import HOSTILE, Page, hostile, plain


def _figure(value: float) -> dict[str, float]:
    return {"value": value, "low": value - 0.02, "high": value + 0.02, "z": 50 * value}


FIGURES: dict[str, Any] = {
    "shadow": "shadow/numpy@" + "a" * 64,
    "written": "shadow/numpy.written@" + "b" * 64,
    "host": "host/smollm2@" + "c" * 64,
    "text": "corpus numpy",
    "retention": ["corpus web", "wiki.txt"],
    "chunks": {"domain": 24, "retention": 20},
    "host_loss": {"domain": 2.5114, "retention": 3.0123},
    "gain": {"naive": _figure(-0.15), "consolidated": _figure(0.0971), "line": _figure(0.08)},
    "drift": {"naive": _figure(0.29), "consolidated": _figure(-0.012), "line": _figure(0.01)},
    "consolidated_over": {"naive": _figure(0.2471), "line": _figure(0.0171)},
    "anatomy": {
        "layers": [
            {"layer": layer, "alpha": alpha, "norm": 0.3}
            for layer, alpha in ((4, 0.61), (9, 0.63), (14, 0.25), (19, 1.1))
        ],
        "late_to_early": 1.0887,
    },
    "alphas": {"naive": [1, 1, 1, 1], "consolidated": [0.61, 0.63, 0.25, 1.1], "line": [0.5, 0.6, 0.7, 0.8]},
    "curve": [3.0 - place / 30 for place in range(30)],
    "courses": {
        "consolidated": [[1, -0.2], [4, 0.05], [40, 0.09]],
        "line": [[1, -0.2], [9, 0.08], [40, 0.08]],
    },
    "cards": [
        {
            "beginning": "numpy.clip(a, a_min, a_max)",
            "truth": "Clip the values in an array.",
            "before": "The function is a good one.",
            "after": "Clip the values of an array.",
        }
    ],
    "settings": {"anneal": {"evaluations": 40}},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_anneal_page(FIGURES, tmp_path_factory.mktemp("page")).read_text(encoding="utf-8")


@pytest.fixture
def page(text: str) -> Page:
    return Page(text)


def test_the_page_asks_for_nothing_outside_itself(text: str) -> None:
    check_self_contained(text)


def test_gain_drift_alphas_courses_and_cards_are_shown(page: Page) -> None:
    text = plain(page.text)

    for figure in ("+0.0971", "+0.0771 to +0.1171", "−0.1500", "+4.9", "1.09", "24 sealed chunks", "+0.2471"):
        assert figure in text
    words = [str(chart["aria-label"]) for chart in page.named("svg")]
    assert len(words) == 5
    assert sum("consolidated: layer 4 0.61, layer 9 0.63" in label for label in words) == 1
    assert sum("CMA-ES from -0.2 to 0.09, this search from -0.2 to 0.08" in label for label in words) == 1
    assert sum("chunk from 3 to 2.03" in label for label in words) == 1
    assert [mark["class"] for mark in page.named("mark")].count("right") > 2
    assert "Clip the values in an array." in text
    assert len(page.named("table")) == len(page.named("caption")) == 4


def test_the_page_begins_with_its_text_and_its_host(page: Page) -> None:
    beginning = plain(page.text).partition("sealed chunks of the domain")[0]
    named = (
        "text corpus numpy host host/smollm2@cccccccccccc retention corpus web, wiki.txt shadow shadow/numpy@"
    )
    assert named in " ".join(beginning.split())


def test_the_page_and_the_terminal_use_the_same_words(page: Page) -> None:
    text, lines = " ".join(plain(page.text).split()), anneal_lines(FIGURES)
    for words in ("full strength", "consolidated", "line over depth"):
        assert words in text
        assert any(line.startswith(words) for line in lines)
    assert lines[1] == "gain: higher is better; drift: higher is worse"
    assert (
        "host’s: higher is better. Drift is how much higher it is on sealed retention text: higher is worse"
        in text
    )
    assert "consolidated over full strength: +0.2471 [+0.2271, +0.2671]" in lines
    assert [line.split("  ")[0] for line in lines[3:6]] == [
        "full strength",
        "consolidated",
        "line over depth",
    ]
    assert not any("naive" in line for line in [text, *lines])


def test_equal_figures_give_equal_bytes_whatever_their_order(tmp_path: Path) -> None:
    check_equal_bytes(write_anneal_page, FIGURES, tmp_path)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_missing_or_foreign_section_is_left_out(tmp_path: Path, name: str) -> None:
    check_left_out(write_anneal_page, FIGURES, name, tmp_path)


def test_hostile_texts_are_shown_and_never_markup(tmp_path: Path) -> None:
    figures = hostile(deepcopy(FIGURES))
    figures["gain"][HOSTILE] = _figure(0.1)
    figures["alphas"][HOSTILE] = [0.1, 0.2, 0.3, 0.4]
    figures["courses"][HOSTILE] = [[1, 0.0]]
    figures["cards"] = [dict.fromkeys(("beginning", "truth", "before", "after"), HOSTILE)]
    check_harmless(write_anneal_page(figures, tmp_path).read_text(encoding="utf-8"))


def test_depth_without_a_bar_is_no_chart() -> None:
    assert depth_chart("n", "t", "alpha", [], (0.0, 1.2)) is None


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_a_browser_shows_the_page_without_scrolling_sideways(width: int, scheme: str, tmp_path: Path) -> None:
    check_laid_out(write_anneal_page(FIGURES, tmp_path), tmp_path, width, scheme)
