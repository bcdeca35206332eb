"""Cues with gaps: laid over both sides at once, never matched in the gap, and no burden to other cues."""

import numpy as np
import pytest

from tasks.errors import BadQuery
from tasks.retrieval import NO_TOKEN, BM25Search, DenseSearch, Index, evaluate, span_tasks
from tasks.retrieval.cues import CueBatch
from tasks.retrieval.features import FEATURES
from tests.tasks.retrieval.conftest import VOCABULARY


def _gapped(index: Index, element: int, begin: int, gap: slice, length: int) -> np.ndarray:
    cue = index.readout.tokens(element)[begin : begin + length].astype(np.int64)
    cue[gap] = NO_TOKEN
    return cue


def test_runs_of_known_tokens_end_at_gaps() -> None:
    batch = CueBatch.of([np.array([1, 2, -1, 3, 4, 5]), np.array([6, 7])], 10, 64)
    begun = [np.flatnonzero(batch.runs(n)).tolist() for n in (1, 2, 3)]
    assert begun == [[0, 1, 3, 4, 5, 6, 7], [0, 3, 4, 6], [3]]
    assert batch.run_counts(2).tolist() == [3, 1]
    assert (batch.visible_Q.tolist(), batch.gap_Q.tolist()) == ([5, 2], [2, -1])
    assert batch.known(0).tolist() == [1, 2, 3, 4, 5]


def test_a_gap_is_no_mismatch(index: Index) -> None:
    cue = _gapped(index, 7, 40, slice(10, 18), 30)
    best = index.search(cue, 3)[0]
    assert (best.name, best.offset) == (index.readout.names[7], 70)
    assert best.agreement == 1.0
    features = {name: best.feature(name) for name in FEATURES}
    assert features["longest"] == features["ending"] == features["inside"] == 1.0
    assert features["length"] == pytest.approx(np.log(22))


def test_what_is_asked_for_may_end_the_element(index: Index) -> None:
    length = len(index.readout.tokens(3))
    whole = index.readout.tokens(3)[length - 30 :]
    gapped = _gapped(index, 3, length - 30, slice(10, 18), 30)
    [[whole_best], [gapped_best]] = index.search_many([whole, gapped], 1)
    assert whole_best.offset == gapped_best.offset == length
    assert (whole_best.feature("continues"), gapped_best.feature("continues")) == (0.0, 1.0)


def test_a_cue_s_answer_does_not_depend_on_gaps_in_others(index: Index) -> None:
    whole = index.readout.tokens(5)[30:62]
    alone = index.search(whole, 5)
    beside = index.search_many([_gapped(index, 9, 5, slice(3, 20), 40), whole], 5)[1]
    assert [(c.name, c.offset, c.score) for c in alone] == [(c.name, c.offset, c.score) for c in beside]


@pytest.mark.parametrize("cue", [[NO_TOKEN, 3, 4], [3, NO_TOKEN], [NO_TOKEN], [3, -2, 4]])
def test_a_gap_stands_between_known_tokens(index: Index, cue: list[int]) -> None:
    with pytest.raises(BadQuery):
        index.search(np.array(cue), 1)


def test_masked_spans_are_found_and_every_searcher_answers_them(
    index: Index, ids: dict[str, np.ndarray]
) -> None:
    tasks = span_tasks(ids, count=80, cue_tokens=32, span_tokens=8, generator=np.random.default_rng(4))
    charts, lexical, dense = (
        evaluate(searcher, tasks, ids, timed_queries=1)
        for searcher in (index, BM25Search(index), DenseSearch(index))
    )
    assert charts.recall_at_1 >= 0.98
    assert charts.aligned_at_1 >= 0.9
    assert charts.recall_at_1 > lexical.recall_at_1 > dense.recall_at_1
    assert index.batch([task.cue for task in tasks]).token_QL.max() < VOCABULARY
