"""Physical batches: every question in one of them, within the budget, and padding that nobody sees."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.larc.batch import cut, lay, order
from tasks.larc.question import Tree
from tests.tasks.larc.conftest import CPU, make_questions


@given(st.lists(st.integers(1, 60), min_size=1, max_size=40), st.integers(1, 200))
def test_batches_hold_every_row_once_within_the_budget(sizes: list[int], tokens: int) -> None:
    ordered = sorted(range(len(sizes)), key=sizes.__getitem__)
    batches = cut(ordered, sizes, tokens)
    assert [row for batch in batches for row in batch] == ordered
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(sizes[row] for row in batch) <= tokens


def test_the_order_follows_length_then_content_then_owner() -> None:
    questions = make_questions(3)
    questions = [*questions, *questions]
    sizes = [len(Tree.of(question)) for question in questions]
    found = order(questions, sizes, [1, 1, 1, 0, 0, 0])
    assert [sizes[row] for row in found] == sorted(sizes)
    assert [row % 3 for row in found[::2]] == [row % 3 for row in found[1::2]]
    assert all(row >= 3 for row in found[::2])


def test_padding_sees_itself_and_is_seen_by_nobody() -> None:
    trees = [Tree.of(question) for question in make_questions(4)]
    batch = lay([3, 0, 2, 1], trees, torch.float32, CPU)
    longest = max(len(tree) for tree in trees)
    sees_nTT = batch.mask_n1TT[:, 0] == 0
    for row, tree in enumerate(trees):
        size = len(tree)
        assert torch.equal(sees_nTT[row, :size, :size], torch.from_numpy(tree.sees_TT))
        assert not sees_nTT[row, :size, size:].any()
        assert torch.equal(sees_nTT[row, size:], torch.eye(longest, dtype=torch.bool)[size:])
    assert batch.rows_n == [3, 0, 2, 1]
    assert torch.allclose(batch.weights_nJL.sum(-1), torch.ones(4, 4))
