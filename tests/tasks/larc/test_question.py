"""The tree of a question: who sees whom, where positions continue, and what is refused."""

import numpy as np
import pytest

from tasks.errors import BadQuestion
from tasks.larc import Question
from tasks.larc.question import MOST_TOKENS, Tree


def test_answers_share_their_beginning_and_part_after_it() -> None:
    tree = Tree.of(Question((5, 6), ((7, 8, 1), (7, 9, 1), (1,))))
    assert tree.ids_T.tolist() == [5, 6, 7, 8, 9]
    assert tree.positions_T.tolist() == [0, 1, 2, 3, 3]
    expected = np.array(
        [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 0, 1]], bool
    )
    assert (tree.sees_TT == expected).all()


def test_the_last_token_of_an_answer_is_scored_and_never_read() -> None:
    tree = Tree.of(Question((5, 6), ((7, 8, 1), (7, 9, 1), (1,))))
    scored = tree.predictors_P[tree.scored_JL]
    assert scored[0].tolist() == [1, 2, 3]
    assert scored[1].tolist() == [1, 2, 4]
    assert scored[2, 0] == 1
    assert tree.targets_JL.tolist() == [[7, 8, 1], [7, 9, 1], [1, 0, 0]]
    assert tree.lengths_J.tolist() == [3, 3, 1]
    assert len(set(tree.predictors_P.tolist())) == len(tree.predictors_P)


def test_an_answer_that_another_continues_ends_where_it_does() -> None:
    tree = Tree.of(Question((5,), ((7, 1), (7, 1, 8, 1))))
    assert tree.ids_T.tolist() == [5, 7, 1, 8]
    assert tree.predictors_P[tree.scored_JL[0, :2]].tolist() == [0, 1]
    assert tree.predictors_P[tree.scored_JL[1]].tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("prompt", "candidates", "said"),
    [
        ((), ((1,),), "needs a prompt"),
        ((1,), (), "needs a prompt"),
        ((1,), ((1,), ()), "end every candidate"),
        ((1,) * MOST_TOKENS, ((1,),), "tokens with its candidates"),
        ((1,), ((1,),) * 2_000, "2,000 candidates"),
    ],
)
def test_what_is_no_question_is_refused(
    prompt: tuple[int, ...], candidates: tuple[tuple[int, ...], ...], said: str
) -> None:
    with pytest.raises(BadQuestion, match=said):
        Question(prompt, candidates)
