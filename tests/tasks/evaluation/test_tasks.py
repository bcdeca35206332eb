"""Tasks: real tokens, capped per document, equal for equal seeds."""

from collections import Counter

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tasks.evaluation import PREFIX, AttachmentTask, EvaluationParams, make_tasks
from tests.tasks.evaluation.conftest import PARAMS


def test_cue_and_target_are_the_documents_own_tokens(
    tasks: list[AttachmentTask], texts: dict[str, np.ndarray]
) -> None:
    for task in tasks:
        ids = texts[task.element]
        window = ids[task.offset - PARAMS.cue_tokens : task.offset + PARAMS.target_tokens]
        assert np.array_equal(np.concatenate([task.cue, task.target]), window)
        assert task.kind != PREFIX or task.offset == PARAMS.cue_tokens


@settings(deadline=None, max_examples=40)
@given(
    lengths=st.lists(st.integers(0, 60), max_size=12),
    prefix=st.integers(0, 8),
    quote=st.integers(0, 30),
    cap=st.integers(1, 5),
)
def test_counts_stay_within_their_limits(lengths: list[int], prefix: int, quote: int, cap: int) -> None:
    assume(prefix or quote)
    params = EvaluationParams(
        prefix_tasks=prefix, quote_tasks=quote, per_document=cap, cue_tokens=6, target_tokens=3
    )
    texts = {f"memory/{n}": np.arange(length) for n, length in enumerate(lengths)}
    made = make_tasks(texts, params)
    usable = sum(length >= 9 for length in lengths)
    assert sum(task.kind == PREFIX for task in made) == min(prefix, usable)
    assert sum(task.kind != PREFIX for task in made) <= quote
    assert max(Counter(task.element for task in made).values(), default=0) <= cap
    assert len({task.name for task in made}) == len(made)


def test_equal_seeds_give_equal_tasks_and_other_seeds_others(texts: dict[str, np.ndarray]) -> None:
    names = [task.name for task in make_tasks(texts, PARAMS)]
    assert [task.name for task in make_tasks(dict(reversed(texts.items())), PARAMS)] == names
    assert [task.name for task in make_tasks(texts, PARAMS.model_copy(update={"seed": 12}))] != names
