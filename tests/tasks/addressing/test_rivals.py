"""Rivals of a task: other elements that hold its cue word for word, and its answer nowhere."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tasks.addressing.rivals import rival_counts
from tasks.retrieval import NO_TOKEN, CueTask

TEXTS = {
    "own": [1, 2, 3, 4, 5, 6],
    "copy": [9, 1, 2, 3, 4, 5, 6, 9],
    "other answer": [1, 2, 3, 4, 7, 8],
    "cut short": [8, 1, 2, 3, 4, 5],
    "both": [1, 2, 3, 4, 9, 9, 1, 2, 3, 4, 5, 6],
    "twice": [1, 2, 3, 4, 7, 1, 2, 3, 4, 8, 8],
    "other cue": [1, 2, 9, 4, 5, 6],
    "too short": [1, 2],
    "nothing": [],
}


def texts(given: dict[str, list[int]]) -> dict[str, np.ndarray]:
    return {name: np.array(ids, np.uint16) for name, ids in given.items()}


def test_an_element_with_the_cue_and_another_answer_is_a_rival_and_a_copy_is_none() -> None:
    task = CueTask(np.array([1, 2, 3, 4]), "own", 4, continuation=np.array([5, 6]))

    assert rival_counts([task], texts(TEXTS)) == [3]  # other answer, cut short, twice


def test_what_the_gap_hides_tells_rivals_apart() -> None:
    task = CueTask(np.array([1, 2, NO_TOKEN, 4]), "own", 4, masked=np.array([3]))

    assert rival_counts([task], texts(TEXTS)) == [1]  # other cue


def test_no_cue_runs_over_the_end_of_an_element() -> None:
    task = CueTask(np.array([5, 6]), "own", 6, continuation=np.array([7]))

    assert rival_counts([task], texts({"own": [5, 6, 7], "a": [1, 5], "b": [6, 2]})) == [0]


@given(
    st.lists(st.lists(st.integers(0, 2), max_size=12), min_size=1, max_size=5),
    st.integers(2, 4),
    st.integers(1, 2),
    st.booleans(),
)
def test_counts_are_those_of_looking_everywhere(
    ids: list[list[int]], length: int, answer: int, gapped: bool
) -> None:
    held = texts({f"e{number}": row for number, row in enumerate(ids)})
    tasks = []
    for name, row in held.items():
        for begin in range(len(row) - length - answer + 1):
            cue = row[begin : begin + length + answer].astype(np.int64)
            if gapped:
                masked = cue[1 : 1 + answer].copy()
                cue[1 : 1 + answer] = NO_TOKEN
                tasks.append(CueTask(cue, name, begin + len(cue), masked=masked))
            else:
                after = begin + length
                tasks.append(CueTask(cue[:length], name, after, continuation=row[after : after + answer]))

    assert rival_counts(tasks, held) == [looked_for(task, held) for task in tasks]


def looked_for(task: CueTask, held: dict[str, np.ndarray]) -> int:
    rivals = 0
    for name, row in held.items():
        places = [
            row[begin : begin + len(task.passage)].tolist()
            for begin in range(len(row) - len(task.cue) + 1)
            if all(own in (NO_TOKEN, token) for own, token in zip(task.cue, row[begin:], strict=False))
        ]
        rivals += name != task.name and bool(places) and task.passage.tolist() not in places
    return rivals
