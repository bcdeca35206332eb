"""BM25 gives the scores of its formula on the decoded tokens, and an order that does not vary."""

import math

import numpy as np
import pytest

from tasks.retrieval import NO_TOKEN, BM25Search, Index
from tasks.retrieval.arrays import best_first


def _score(index: Index, cue: np.ndarray, element: int, k1: float, b: float) -> float:
    """Lucene's BM25, written down once more."""
    texts = [index.readout.tokens(row) for row in range(len(index.readout))]
    mean = np.mean([len(text) for text in texts])
    total = 0.0
    for token in cue[cue != NO_TOKEN]:
        holding = sum(bool((text == token).any()) for text in texts)
        idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
        times = int((texts[element] == token).sum())
        damped = k1 * (1 - b + b * len(texts[element]) / mean)
        total += idf * times / (times + damped)
    return total


@pytest.mark.parametrize(("k1", "b"), [(1.5, 0.75), (0.9, 0.0)])
def test_scores_follow_the_formula(index: Index, k1: float, b: float) -> None:
    searcher = BM25Search(index, k1=k1, b=b)
    cue = np.concatenate([index.readout.tokens(2)[10:30], [NO_TOKEN] * 3, index.readout.tokens(2)[33:40]])
    for found in searcher.search(cue, 10):
        element = index.readout.row_of[found.name]
        assert found.score == pytest.approx(_score(index, cue, element, k1, b), rel=1e-5)


def test_the_own_element_comes_first_and_the_cue_is_laid_over_it(index: Index) -> None:
    searcher = BM25Search(index)
    found = [searcher.search(index.readout.tokens(row)[20:60], 3)[0] for row in range(20)]
    right = [(index.readout.names[row], 60) for row in range(20)]
    assert np.mean([(c.name, c.offset) == place for c, place in zip(found, right, strict=True)]) >= 0.9


def test_many_cues_are_ranked_as_each_alone(index: Index) -> None:
    searcher = BM25Search(index)
    cues = [index.readout.tokens(row)[5 : 10 + row] for row in range(1, 30)]
    together = searcher.nearest(cues, 7)
    assert together.shape == (29, 7)
    assert together.tolist() == [searcher.nearest([cue], 7)[0].tolist() for cue in cues]
    assert searcher.nearest(cues[:1], 10_000).shape == (1, len(index.readout))


def test_equal_scores_keep_the_order_of_the_store() -> None:
    score, place = best_first(np.array([1.0, 3.0, 1.0, 2.0, 1.0]), 4)
    assert (score.tolist(), place.tolist()) == ([3.0, 2.0, 1.0, 1.0], [1, 3, 0, 2])
