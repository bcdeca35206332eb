"""The page of several domains: self-contained, the same for the same figures, hostile texts stay texts."""

from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from flows.report.forgetting import write_cumulative_page
from tests.flows.report.browser_rules import check_laid_out
from tests.flows.report.page_rules import (
    check_equal_bytes,
    check_harmless,
    check_left_out,
    check_self_contained,
)
from tests.flows.report.test_report import HOSTILE, Page, hostile, plain


def _learned(own: float, end: float, before: float) -> dict[str, float]:
    return {"gain_own_stage": own, "gain_end": end, "forgotten": own - end, "before_own_stage": before}


FIGURES: dict[str, Any] = {
    "host": "host/smollm2@" + "c" * 64,
    "order": ["python", "numpy", "novel"],
    "shadows": [f"shadow/{name}@" + "a" * 64 for name in ("python", "numpy", "novel")],
    "losses": {
        "python": [2.5, 2.4, 2.42, 2.47],
        "numpy": [2.8, 2.75, 2.6, 2.65],
        "novel": [3.1, 3.12, 3.15, 3.0],
        "retention": [3.0, 3.01, 3.0, 2.99],
    },
    "cumulative": {
        "python": _learned(0.1, 0.03, 0.0),
        "numpy": _learned(0.15, 0.15, 0.05),
        "novel": _learned(0.15, 0.1, -0.05),
    },
    "drift_by_stage": [0.0, 0.01, 0.0, -0.01],
    "settings": {"anneal": {"evaluations": 40}},
}


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_cumulative_page(FIGURES, tmp_path_factory.mktemp("page")).read_text(encoding="utf-8")


@pytest.fixture
def page(text: str) -> Page:
    return Page(text)


def test_the_page_asks_for_nothing_outside_itself(text: str) -> None:
    check_self_contained(text)


def test_every_text_has_its_gain_after_every_domain(page: Page) -> None:
    cells = [cell for cell in page.named("td") if "cell" in str(cell.get("class"))]
    assert len(cells) == 12
    assert [place for place, cell in enumerate(cells) if "own" in str(cell["class"])] == [0, 4, 8]
    assert [place for place, cell in enumerate(cells) if "loss" in str(cell["class"])] == [6, 7, 9]
    text = plain(page.text)
    for figure in ("+0.1000", "+0.0300", "+0.2000", "−0.0500", "+0.0700"):
        assert figure in text
    words = [str(chart["aria-label"]) for chart in page.named("svg")]
    assert len(words) == 2
    assert sum("python: domain from 0 to 0.03" in label for label in words) == 1
    assert sum("Forgotten: python +0.0700" in label for label in words) == 1


def test_equal_figures_give_equal_bytes_whatever_their_order(tmp_path: Path) -> None:
    check_equal_bytes(write_cumulative_page, FIGURES, tmp_path)


@pytest.mark.parametrize("name", sorted(FIGURES))
def test_a_missing_or_foreign_section_is_left_out(tmp_path: Path, name: str) -> None:
    check_left_out(write_cumulative_page, FIGURES, name, tmp_path)


def test_hostile_texts_are_shown_and_never_markup(tmp_path: Path) -> None:
    figures = hostile(deepcopy(FIGURES))
    figures["order"] = [*FIGURES["order"], HOSTILE]
    figures["losses"] = {name: [*losses, 2.0] for name, losses in FIGURES["losses"].items()}
    figures["losses"][HOSTILE] = [3.0, 3.0, 3.0, 3.0, 2.0]
    figures["cumulative"][HOSTILE] = _learned(1.0, 1.0, 0.0)
    check_harmless(write_cumulative_page(figures, tmp_path).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1280, "light")])
def test_a_browser_shows_the_page_without_scrolling_sideways(width: int, scheme: str, tmp_path: Path) -> None:
    check_laid_out(write_cumulative_page(FIGURES, tmp_path), tmp_path, width, scheme)
