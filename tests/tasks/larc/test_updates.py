"""Episodes: what begin, update, read and reset do, and the identities that a first step obeys (LARC 2.1)."""

import math
from dataclasses import replace

import pytest
import torch

from tasks.errors import BadQuestion
from tasks.larc import (
    Episode,
    ExpectedCost,
    Learner,
    begin,
    change_norms,
    new_slow_state,
    plain_energies,
    read,
    reset,
    update,
)
from tests.tasks.larc.conftest import WIDTH, TinyHost, close, make_questions, random_factors

COSTS = ExpectedCost(torch.tensor([[0.0, 1.0, 0.5, 0.5], [1.0, 0.0, 0.25, 1.0], [0.5, 0.5, 0.0, 1.0]]))
QUESTIONS, OWNERS = make_questions(3, seed=8), [0, 1, 2]


def episodes(*, deviation: float = 0.2) -> list[Episode]:
    """Three episodes of states with A from their own seed and B = 0."""
    return [begin(new_slow_state(WIDTH, seed=seed, deviation=deviation), seed=seed) for seed in range(3)]


def same(one: Episode, two: Episode) -> bool:
    return torch.equal(one.A_rD, two.A_rD) and torch.equal(one.B_Dr, two.B_Dr) and one.steps == two.steps


def test_the_slow_state_follows_its_seed_and_corrects_nothing() -> None:
    slow, again, other = (new_slow_state(WIDTH, seed=seed) for seed in (4, 4, 5))
    assert torch.equal(slow.A_rD, again.A_rD)
    assert not torch.equal(slow.A_rD, other.A_rD)
    assert not slow.B_Dr.any()
    wide = new_slow_state(20_000, seed=4, rank=8)
    assert math.isclose(float(wide.A_rD.std()), 0.02, rel_tol=0.01)


def test_the_first_step_leaves_a_where_it_was_and_moves_b_by_the_dense_gradient(
    host: TinyHost, learner: Learner
) -> None:
    """With C = B A at zero: B_1 = -rate G A^T, where G is the gradient for a dense d x d correction."""
    before = episodes()
    after, _ = update(learner, before, QUESTIONS, OWNERS, COSTS, rate=0.1)
    for place, question in enumerate(QUESTIONS):
        C_DD = torch.zeros(WIDTH, WIDTH, requires_grad=True)
        energies = plain_energies(host, question, torch.eye(WIDTH), C_DD)
        loss = (torch.softmax(energies, -1) * COSTS.costs_NJ[place]).sum()
        [G_DD] = torch.autograd.grad(loss, C_DD)
        assert torch.equal(after[place].A_rD, before[place].A_rD)
        assert after[place].B_Dr.any()
        assert close(after[place].B_Dr, -0.1 * G_DD @ before[place].A_rD.T, 1e-7)


def test_two_factors_of_zero_stay_zero(learner: Learner) -> None:
    still = [replace(one, A_rD=torch.zeros_like(one.A_rD)) for one in episodes()]
    after, figures = update(learner, still, QUESTIONS, OWNERS, COSTS, measure=True)
    assert all(not one.A_rD.any() and not one.B_Dr.any() for one in after)
    assert figures.after_F is not None
    assert torch.equal(figures.after_F, figures.losses_F)
    assert not figures.update_norms_F.any()


def test_an_update_of_many_equals_updates_one_by_one(learner: Learner) -> None:
    together, alone = episodes(), episodes()
    for _ in range(2):
        together, _ = update(learner, together, QUESTIONS, OWNERS, COSTS)
        alone = [
            update(learner, [one], [question], [0], ExpectedCost(COSTS.costs_NJ[place : place + 1]))[0][0]
            for place, (one, question) in enumerate(zip(alone, QUESTIONS, strict=True))
        ]
    assert all(one.steps == 2 for one in together)
    assert all(
        close(one.B_Dr, two.B_Dr, 1e-6) and close(one.A_rD, two.A_rD, 1e-6)
        for one, two in zip(together, alone, strict=True)
    )


def test_another_episodes_feedback_changes_no_bit_of_this_one(learner: Learner) -> None:
    one, two = episodes(), episodes()
    other = COSTS.costs_NJ.clone()
    other[1] = torch.tensor([5.0, -5.0, 0.0, 1.0])
    for _ in range(3):
        one, _ = update(learner, one, QUESTIONS, OWNERS, COSTS)
        two, _ = update(learner, two, QUESTIONS, OWNERS, ExpectedCost(other))
    assert same(one[0], two[0])
    assert same(one[2], two[2])
    assert not same(one[1], two[1])


def test_an_episode_without_feedback_stays_as_it_is(learner: Learner) -> None:
    before = episodes()
    after, figures = update(
        learner, before, QUESTIONS[:1], [1], ExpectedCost(COSTS.costs_NJ[:1]), measure=True
    )
    assert after[0] is before[0]
    assert after[2] is before[2]
    assert [one.steps for one in after] == [0, 1, 0]
    assert figures.losses_F[0] == figures.losses_F[2] == 0
    assert figures.rose is not None


def test_an_update_averages_within_an_episode_and_sums_over_episodes(learner: Learner) -> None:
    """Two questions of one episode count half each; a weight moves the mean."""
    [slow, *_] = episodes()
    halves = ExpectedCost(COSTS.costs_NJ[:2])
    [both], _ = update(learner, [slow], QUESTIONS[:2], [0, 0], halves)
    steps = [
        update(learner, [slow], [QUESTIONS[place]], [0], ExpectedCost(COSTS.costs_NJ[place : place + 1]))[0][
            0
        ].B_Dr
        for place in range(2)
    ]
    assert close(both.B_Dr, (steps[0] + steps[1]) / 2, 1e-7)
    [mostly], _ = update(learner, [slow], QUESTIONS[:2], [0, 0], halves, weights_N=[3.0, 1.0])
    assert close(mostly.B_Dr, (3 * steps[0] + steps[1]) / 4, 1e-7)


def test_reading_changes_nothing_and_reset_returns_to_the_bound_state(learner: Learner) -> None:
    start = episodes()
    first = read(learner, start, QUESTIONS, OWNERS)
    kept, _ = update(learner, start, QUESTIONS, OWNERS, COSTS)
    kept[0].stream.random(3)
    changed = read(learner, kept, QUESTIONS, OWNERS)
    assert not torch.equal(changed, first)
    back = [reset(one) for one in kept]
    assert torch.equal(read(learner, back, QUESTIONS, OWNERS), first)
    assert all(same(one, two) for one, two in zip(back, start, strict=True))
    drawn = begin(start[0].bound, seed=0).stream.random(4)
    assert back[0].stream.random() == drawn[3]


def test_an_episode_owns_its_factors_and_its_stream() -> None:
    slow = new_slow_state(WIDTH, seed=0)
    one, two = begin(slow, seed=1), begin(slow, seed=2)
    for tensor in (slow.A_rD, slow.B_Dr, one.A_rD, one.B_Dr):
        tensor.fill_(7.0)
    fresh = new_slow_state(WIDTH, seed=0)
    assert torch.equal(two.A_rD, fresh.A_rD)
    assert torch.equal(reset(one).A_rD, fresh.A_rD)
    assert one.stream.random() != two.stream.random()


def test_the_read_before_an_update_comes_with_it(learner: Learner) -> None:
    start = episodes()
    _, figures = update(learner, start, QUESTIONS, OWNERS, COSTS)
    assert close(figures.energies_NJ, read(learner, start, QUESTIONS, OWNERS), 1e-6)


def test_norms_and_the_same_batch_tell_what_a_step_did(learner: Learner) -> None:
    start = episodes()
    small, figures = update(learner, start, QUESTIONS, OWNERS, COSTS, rate=0.1, measure=True)
    assert figures.rose is not None
    assert not figures.rose.any()
    again, _ = update(learner, small, QUESTIONS, OWNERS, COSTS, rate=0.1)
    assert again[0].steps == 2
    assert close(figures.update_norms_F, 0.1 * figures.gradient_norms_F, 1e-6)
    dense = torch.stack([one.B_Dr @ one.A_rD for one in small])
    assert close(figures.change_norms_F, torch.linalg.matrix_norm(dense), 1e-6)
    _, wild = update(learner, start, QUESTIONS, OWNERS, COSTS, rate=3_000.0, measure=True)
    assert wild.rose is not None
    assert wild.rose.any()
    _, lost = update(learner, start, QUESTIONS, OWNERS, COSTS, rate=1e37, measure=True)
    assert lost.rose is not None
    assert lost.rose.all()


def test_the_norm_of_a_change_equals_the_dense_one() -> None:
    (A, B), (later_A, later_B) = random_factors(3), random_factors(3, seed=9)
    dense = torch.linalg.matrix_norm((later_B.double() @ later_A.double()) - B.double() @ A.double())
    assert close(change_norms(A, B, later_A, later_B), dense.float(), 1e-6)
    assert close(change_norms(A, B, A, B), torch.zeros(3), 1e-6)


def test_factors_for_another_layer_are_refused(learner: Learner) -> None:
    wrong = [begin(new_slow_state(WIDTH, seed=0, insertion=1), seed=0)]
    with pytest.raises(BadQuestion, match="act before layer 1"):
        read(learner, wrong, QUESTIONS[:1], [0])
