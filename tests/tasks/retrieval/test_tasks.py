"""Restoration tasks hide exactly what they ask for, and changed cues change exactly what they say."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.retrieval import (
    NO_TOKEN,
    Candidate,
    CueTask,
    changed_cues,
    holds_cue,
    is_right,
    rare_tokens,
    span_tasks,
    value_tasks,
)

TEXTS = {f"memory/{row}": np.arange(row * 100, row * 100 + 30 * row) for row in range(1, 8)}


def _check(task: CueTask, known: int) -> None:
    text = TEXTS[task.name]
    begin = task.offset - len(task.cue)
    assert task.passage.tolist() == text[begin : task.offset].tolist()
    hidden = task.cue == NO_TOKEN
    assert task.answer.tolist() == text[begin : task.offset][hidden].tolist()
    assert (~hidden).sum() == known


def test_a_span_is_hidden_in_the_middle_of_its_cue() -> None:
    tasks = span_tasks(TEXTS, count=40, cue_tokens=13, span_tokens=5, generator=np.random.default_rng(0))
    assert len(tasks) == 40
    for task in tasks:
        _check(task, 13)
        assert np.flatnonzero(task.cue == NO_TOKEN).tolist() == [6, 7, 8, 9, 10]


def test_values_are_whole_runs_of_value_tokens() -> None:
    value_V = np.zeros(1000, dtype=bool)
    value_V[[220, 221, 240, 250, 251, 252, 301, 907]] = True
    tasks = value_tasks(
        TEXTS, count=99, cue_tokens=10, longest=2, value_V=value_V, generator=np.random.default_rng(0)
    )
    # 250-252 is too long, 301 and 907 stand too near to an end.
    assert [task.answer.tolist() for task in tasks] == [[220, 221], [240]]
    for task in tasks:
        _check(task, 10)
    one = value_tasks(
        TEXTS, count=1, cue_tokens=10, longest=2, value_V=value_V, generator=np.random.default_rng(1)
    )
    assert len(one) == 1


def test_rare_tokens_are_counted_by_elements() -> None:
    texts = {"memory/a": np.array([1, 1, 1, 2]), "memory/b": np.array([2, 3])}
    assert np.flatnonzero(rare_tokens(texts, 6, 1)).tolist() == [1, 3]
    assert np.flatnonzero(rare_tokens(texts, 6, 2)).tolist() == [1, 2, 3]


@pytest.mark.parametrize(("place", "right"), [(7, True), (6, False)])
def test_another_element_is_right_only_with_the_same_answer_in_the_gap(place: int, right: bool) -> None:
    text = np.arange(40)
    task = CueTask(np.array([3, 4, NO_TOKEN, 6]), "memory/a", 7, masked=np.array([5]))
    same = {"memory/a": text, "memory/b": text.copy()}
    candidate = Candidate("memory/b", "0" * 64, 0.5, place, 1.0, np.zeros(1))
    assert is_right(candidate, task, same) is right
    same["memory/b"][5] = 99
    assert not is_right(candidate, task, same)
    assert holds_cue(candidate, task, same) is right
    same["memory/b"][4] = 99
    assert not holds_cue(candidate, task, same)


@given(st.lists(st.integers(-1, 9), min_size=1, max_size=40), st.integers(0, 99))
def test_changed_cues_change_exactly_their_share_of_known_tokens_and_keep_gaps(
    cue: list[int], seed: int
) -> None:
    given_L = np.array(cue)
    known = int((given_L != NO_TOKEN).sum())
    none, some, more = changed_cues(given_L, (0.0, 0.1, 0.3), 10, np.random.default_rng(seed))
    assert none.tolist() == cue
    for share, copy in ((0.1, some), (0.3, more)):
        assert (copy != given_L).sum() == round(share * known)
        assert ((copy == NO_TOKEN) == (given_L == NO_TOKEN)).all()
        assert copy.max(initial=0) < 10
    changed = some != given_L
    assert (more[changed] == some[changed]).all()
