"""Recall is reported with both credits: the very element, and any element with the same text."""

import numpy as np
import pytest

from tasks.errors import BadQuery
from tasks.retrieval import Candidate, CueTask, Index, evaluate, is_right, quote_tasks

TEXT = np.arange(100, 160)
TEXTS = {"memory/a": TEXT, "memory/b": np.concatenate([np.arange(9), TEXT]), "memory/c": TEXT[::-1]}
TASK = CueTask(cue=TEXT[10:20], name="memory/a", offset=20, continuation=TEXT[20:24])


def _candidate(name: str, offset: int) -> Candidate:
    return Candidate(name, "0" * 64, 0.5, offset, 1.0, np.zeros(1))


@pytest.mark.parametrize(
    ("name", "offset", "right"),
    [
        ("memory/a", 20, True),
        ("memory/a", 3, True),  # the element itself, wherever it points: `aligned_at_1` counts that apart
        ("memory/b", 29, True),
        ("memory/b", 28, False),
        ("memory/c", 20, False),
        ("memory/b", 2, False),
        ("memory/unknown", 20, False),
    ],
)
def test_another_element_is_right_only_with_the_same_text_at_its_offset(
    name: str, offset: int, right: bool
) -> None:
    assert is_right(_candidate(name, offset), TASK, TEXTS) is right


def test_figures_keep_both_credits_apart(index: Index, ids: dict[str, np.ndarray]) -> None:
    tasks = quote_tasks(
        ids, count=120, cue_tokens=32, continuation_tokens=8, generator=np.random.default_rng(2)
    )
    figures = evaluate(index, tasks, ids, timed_queries=20)
    assert figures.tasks == 120
    assert figures.candidate_recall >= figures.candidate_recall_named >= 0.99
    assert figures.recall_at_1 >= figures.recall_at_1_named >= figures.aligned_at_1 >= 0.9
    assert figures.recall_at_1 >= 0.98
    assert figures.queries_per_second > 0
    assert figures.p99_ms >= figures.p50_ms > 0


def test_there_is_nothing_to_measure_without_tasks(index: Index) -> None:
    with pytest.raises(BadQuery):
        evaluate(index, [], {})
