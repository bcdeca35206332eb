"""Search finds quotes and prefixes where they stand, also damaged ones, whatever is asked beside them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.errors import BadQuery
from tasks.retrieval import Charts, CueTask, Index, Readout, Sources, corrupted, prefix_tasks, quote_tasks
from tasks.retrieval.readout import DecodedMemory
from tests.tasks.retrieval.conftest import PARAMS, VOCABULARY

CUE = {"cue_tokens": 32, "continuation_tokens": 8}


def _index_of(elements: list[np.ndarray]) -> Index:
    """Charts alone over these token runs, named by their place."""
    decoded = [
        DecodedMemory(f"memory/{row:03d}", f"{row:064x}", ids.astype(np.uint16), np.zeros(1, np.float32))
        for row, ids in enumerate(elements)
    ]
    readout = Readout.of(decoded)
    charts = Charts.of(readout.tokens_N, readout.start_E1, VOCABULARY, PARAMS.charts)
    return Index(Sources(readout, charts, None, None), None, PARAMS.search)


def _stored(index: Index) -> dict[str, np.ndarray]:
    return {name: index.readout.tokens(row) for name, row in index.readout.row_of.items()}


def _tasks(index: Index, count: int) -> list[CueTask]:
    stored = _stored(index)
    generator = np.random.default_rng(11)
    return quote_tasks(stored, count=count, **CUE, generator=generator) + prefix_tasks(
        stored, count=count, **CUE, block_tokens=64, generator=generator
    )


def test_a_quote_or_prefix_is_answered_with_what_follows_it(index: Index) -> None:
    stored = _stored(index)
    tasks = _tasks(index, 150)
    right = []
    for task, (best, *_) in zip(tasks, index.search_many([task.cue for task in tasks], 3), strict=True):
        follows = stored[best.name][best.offset : best.offset + len(task.continuation)]
        right.append(np.array_equal(follows, task.continuation))
    assert np.mean(right) >= 0.99


def test_cues_with_every_fifth_token_changed_still_find_their_element(index: Index) -> None:
    tasks = _tasks(index, 150)
    generator = np.random.default_rng(5)
    cues = [corrupted(task.cue, 0.2, VOCABULARY, generator) for task in tasks]
    answers = index.search_many(cues, 8)
    named = [any(c.name == task.name for c in found) for found, task in zip(answers, tasks, strict=True)]
    assert np.mean(named) >= 0.99


def test_an_answer_does_not_depend_on_the_cues_beside_it(index: Index) -> None:
    generator = np.random.default_rng(6)
    cues = [
        corrupted(task.cue[-length:], share, VOCABULARY, generator)
        for task, length, share in zip(
            _tasks(index, 40), [3, 9, 32, 20] * 20, [0, 0.1, 0.5, 0.9] * 20, strict=True
        )
    ]
    together = index.search_many(cues, 4)
    for cue, found in zip(cues, together, strict=True):
        alone = index.search(cue, 4)
        assert [(c.name, c.offset) for c in alone] == [(c.name, c.offset) for c in found]
        np.testing.assert_allclose([c.score for c in alone], [c.score for c in found], atol=1e-5)


elements = st.lists(
    st.lists(st.integers(2, 9), max_size=40).map(lambda ids: np.array(ids, dtype=np.int64)),
    min_size=1,
    max_size=6,
)


@settings(max_examples=60, deadline=None)
@given(elements, st.lists(st.integers(2, 9), min_size=1, max_size=40))
def test_every_candidate_says_truly_how_far_it_agrees(stored: list[np.ndarray], cue: list[int]) -> None:
    index = _index_of(stored)
    for candidate in index.search(np.array(cue), 10):
        ids = index.readout.tokens(index.readout.row_of[candidate.name])
        assert 0 <= candidate.offset <= len(ids)
        assert 0 <= candidate.agreement <= 1
        if candidate.agreement == 1:
            assert ids[candidate.offset - len(cue) : candidate.offset].tolist() == cue


@settings(max_examples=60, deadline=None)
@given(elements, st.data())
def test_a_run_of_an_element_long_enough_for_the_charts_is_always_found(
    stored: list[np.ndarray], data: st.DataObject
) -> None:
    long = PARAMS.charts.ngram_tokens + PARAMS.charts.ngram_winnow - 1
    fitting = [ids for ids in stored if len(ids) >= long]
    if not fitting:
        return
    source = data.draw(st.sampled_from(fitting))
    begin = data.draw(st.integers(0, len(source) - long))
    cue = source[begin : data.draw(st.integers(begin + long, len(source)))]
    best = _index_of(stored).search(cue, 1)[0]
    assert best.agreement == 1


def test_a_cue_that_overhangs_the_end_of_an_element_matches_only_inside_it() -> None:
    first, second = np.arange(10, 60), np.arange(100, 150)
    best = _index_of([first, second]).search(np.concatenate([first[-20:], second[:4]]), 2)
    assert (best[0].name, best[0].offset) == ("memory/000", 50)
    assert best[0].agreement == pytest.approx(20 / 24)
    assert best[1].name == "memory/001"
    assert best[1].agreement == pytest.approx(4 / 24)


def test_equal_passages_come_in_name_order() -> None:
    passage = np.arange(50, 90)
    index = _index_of([np.arange(200, 230), passage, passage, passage])
    assert [c.name for c in index.search(passage[:32], 3)] == ["memory/001", "memory/002", "memory/003"]


def test_a_passage_shared_by_more_elements_than_the_cap_still_answers() -> None:
    shared = np.arange(300, 340)
    index = _index_of([np.concatenate([np.full(3, 2 + row % 7), shared]) for row in range(150)])
    found = index.search(shared[:32], 200)
    assert len(found) == PARAMS.search.max_postings
    assert {c.agreement for c in found} == {1.0}


def test_words_too_few_for_any_run_are_found_by_the_token_bag() -> None:
    index = _index_of([np.arange(10 * row, 10 * row + 40) for row in range(2, 30)])
    best = index.search(np.array([245, 246]), 3)[0]
    ids = index.readout.tokens(index.readout.row_of[best.name])
    assert ids[best.offset - 2 : best.offset].tolist() == [245, 246]
    assert best.feature("bag") > 0


@pytest.mark.parametrize("cue", [[], [VOCABULARY], [5, -1]])
def test_a_cue_that_means_nothing_here_is_refused(index: Index, cue: list[int]) -> None:
    with pytest.raises(BadQuery):
        index.search(np.array(cue, dtype=np.int64), 1)


def test_no_cue_and_no_element_give_no_answer(index: Index) -> None:
    assert index.search_many([], 3) == []
    assert _index_of([]).search(np.array([3, 4]), 3) == []
