"""Searches keep to their budget and their box, find what is there, and resume bit for bit."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tasks.anneal import BASELINES, AnnealParams, Found, Scored, SearchName, run_search, search
from tasks.checkpoint import Checkpoints
from tasks.errors import UnfitHost

LAYERS = (4, 9, 14, 19, 24, 29)
BEST = np.array([0.1, 0.3, 1.0, 0.9, 0.5, 1.2])
ALL: tuple[SearchName, ...] = ("cma", *BASELINES)


class Killed(Exception):
    """Stands for Ctrl-C."""


class Bowl:
    """Best at `BEST`, curved more along late layers; counts what it is asked."""

    def __init__(self) -> None:
        self.asked: list[NDArray[np.float64]] = []

    def __call__(self, alphas_PL: NDArray[np.float64]) -> Scored:
        self.asked.append(alphas_PL.copy())
        score_P = -((alphas_PL - BEST) ** 2 * np.arange(1, 7)).sum(1)
        return Scored(alphas_PL, score_P, 0 * score_P, 0 * score_P, score_P)

    @property
    def count(self) -> int:
        return sum(len(one) for one in self.asked)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("evaluations", [1, 2, 7, 60])
def test_a_search_asks_for_exactly_its_budget_inside_the_box(name: SearchName, evaluations: int) -> None:
    bowl = Bowl()
    found = run_search(name, AnnealParams(evaluations=evaluations), LAYERS, bowl)
    assert bowl.count == len(found.tried.score_P) == (1 if name == "naive" else evaluations)
    asked = np.vstack(bowl.asked)
    assert asked.min() >= 0
    assert asked.max() <= 1.2
    assert np.array_equal(asked[0], np.ones(6)), "full strength is always among what is tried"
    assert found.tried.score_P[found.place] == found.tried.score_P.max()
    assert np.array_equal(found.alphas_L, found.tried.alphas_PL[found.place])


def test_the_course_of_a_search_is_where_its_best_rose_and_its_end() -> None:
    score_P = np.array([0.1, 0.0, 0.3, 0.3, 0.2])
    tried = Scored(np.zeros((5, 1)), score_P, score_P, score_P, score_P)
    assert Found(np.zeros(1), 2, tried).course() == [[1, 0.1], [3, 0.3], [5, 0.3]]


def test_searches_find_what_their_family_holds() -> None:
    params = AnnealParams(evaluations=300)
    found = {name: run_search(name, params, LAYERS, Bowl()) for name in ALL}
    scores = {name: one.tried.score_P[one.place] for name, one in found.items()}
    assert np.abs(found["cma"].alphas_L - BEST).max() < 0.05
    assert np.abs(found["quadratic"].alphas_L - BEST).max() < 0.2
    assert np.ptp(found["single"].alphas_L) == 0
    assert np.ptp(np.diff(found["line"].alphas_L)) < 1e-12
    assert scores["naive"] < scores["single"] < scores["line"] < scores["cma"]
    assert scores["random"] < scores["cma"]


@pytest.mark.parametrize("name", ["cma", "line", "quadratic"])
def test_an_interrupted_search_resumes_bit_for_bit(name: SearchName, tmp_path: Path) -> None:
    params = AnnealParams(evaluations=75, seed=5)
    whole = run_search(name, params, LAYERS, Bowl())
    checkpoints = Checkpoints(tmp_path, "a" * 64, seconds=0)

    def watch(done: int, total: int, **figures: float) -> None:
        assert total == 75
        if done > 30:
            raise Killed

    with pytest.raises(Killed):
        run_search(name, params, LAYERS, Bowl(), progress=watch, checkpoints=checkpoints)
    rest = Bowl()
    resumed = run_search(name, params, LAYERS, rest, checkpoints=checkpoints)
    assert 30 < 75 - rest.count < 60, "what was kept is not evaluated again"
    assert np.array_equal(resumed.tried.alphas_PL, whole.tried.alphas_PL)
    assert np.array_equal(resumed.tried.score_P, whole.tried.score_P)


def test_a_seed_decides_the_course() -> None:
    courses = [
        run_search("cma", AnnealParams(evaluations=40, seed=seed), LAYERS, Bowl()).tried.alphas_PL
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(courses[0], courses[1])
    assert not np.array_equal(courses[0], courses[2])


def test_a_clamped_layer_stays_at_one() -> None:
    bowl = Bowl()
    run_search("cma", AnnealParams(evaluations=40, clamp=14), LAYERS, bowl)
    asked = np.vstack(bowl.asked)
    assert (asked[:, 2] == 1).all()
    assert np.ptp(asked[:, 0]) > 0
    with pytest.raises(UnfitHost, match=r"anneal\.clamp is 15"):
        run_search("cma", AnnealParams(clamp=15), LAYERS, bowl)


def test_scores_that_are_lost_do_not_lead_the_search_astray() -> None:
    def holed(alphas_PL: NDArray[np.float64]) -> Scored:
        scored = Bowl()(alphas_PL)
        lost = np.where(alphas_PL[:, 0] > 0.7, -1e9, scored.score_P)
        return Scored(alphas_PL, lost, 0 * lost, 0 * lost, lost)

    found = run_search("cma", AnnealParams(evaluations=300), LAYERS, holed)
    assert np.abs(found.alphas_L - BEST).max() < 0.1
    assert next(search("naive", AnnealParams(), 2)).tolist() == [[1, 1]]
