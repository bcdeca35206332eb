"""Cues are cut where they say, drawn from the generator given, and laid out without loss."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tasks.retrieval import CueTask, corrupted, prefix_tasks, quote_tasks
from tasks.retrieval.cues import CueBatch

TEXTS = {f"memory/{row}": np.arange(row * 100, row * 100 + 30 * row) for row in range(1, 8)}


def _tasks(seed: int) -> list[CueTask]:
    generator = np.random.default_rng(seed)
    quotes = quote_tasks(TEXTS, count=30, cue_tokens=20, continuation_tokens=4, generator=generator)
    return quotes + prefix_tasks(
        TEXTS, count=8, cue_tokens=20, continuation_tokens=4, block_tokens=64, generator=generator
    )


def test_a_task_is_its_elements_own_text_and_begins_where_it_says() -> None:
    tasks = _tasks(0)
    assert len(tasks) == 38
    for task in tasks:
        text = TEXTS[task.name]
        assert task.cue.tolist() == text[task.offset - 20 : task.offset].tolist()
        assert task.continuation.tolist() == text[task.offset : task.offset + 4].tolist()
    assert all((task.offset - 20) % 64 == 0 for task in tasks[30:])


def test_equal_seeds_draw_equal_tasks() -> None:
    first, again, other = ([(t.name, t.offset) for t in _tasks(seed)] for seed in (1, 1, 2))
    assert first == again != other


def test_elements_too_short_give_no_task() -> None:
    generator = np.random.default_rng(0)
    span = {"count": 5, "cue_tokens": 300, "continuation_tokens": 1, "generator": generator}
    assert quote_tasks(TEXTS, **span) == []
    assert prefix_tasks(TEXTS, block_tokens=64, **span) == []


def test_corruption_changes_about_the_share_asked_for() -> None:
    cue = np.arange(2000)
    changed = corrupted(cue, 0.2, 4096, np.random.default_rng(0))
    assert 0.15 < np.mean(changed != cue) < 0.25
    assert corrupted(cue, 0.0, 4096, np.random.default_rng(0)).tolist() == cue.tolist()


@given(st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=12), max_size=5), st.integers(1, 8))
def test_a_batch_keeps_the_last_tokens_of_every_cue(cues: list[list[int]], longest: int) -> None:
    batch = CueBatch.of([np.array(cue) for cue in cues], 10, longest)
    assert [batch.known(query).tolist() for query in range(len(batch))] == [cue[-longest:] for cue in cues]
    assert batch.token_F.tolist() == [token for cue in cues for token in cue[-longest:]]
