"""Outer and inner learning: which gradients move what, and what pairs one training with another."""

import pytest
import torch
from torch import Tensor

from tasks.hosts import Host
from tasks.larc import Learner, LoraLearner, SlowState, begin, stack
from tasks.programs import Family, Split, groups, query_errors, support
from tasks.study import Questioner
from tasks.study.inner import Feedback, adapt, expected_error
from tasks.study.outer import OuterTrainer
from tasks.study.params import Objective
from tasks.study.visits import Visits
from tests.tasks.study.conftest import LARC, PROGRAMS, STUDY

TRAIN = groups(PROGRAMS, Split.TRAIN)


def _trainer(learner: Learner, questioner: Questioner, objective: Objective) -> OuterTrainer:
    trainer = OuterTrainer(learner, questioner, objective, 5, PROGRAMS, LARC, STUDY)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():  # beyond the start, where a zero B hides half of the gradient
        trainer.slow.B_Dr.copy_(0.05 * torch.randn(trainer.slow.B_Dr.shape, generator=generator))
    return trainer


@pytest.mark.parametrize("objective", ["static", "adapted"])
def test_the_outer_gradient_is_that_of_the_first_order_definition(
    learner: Learner, questioner: Questioner, objective: Objective
) -> None:
    trainer = _trainer(learner, questioner, objective)
    slow = trainer.state
    visited = trainer.visits.of(0)
    questions = [questioner.ask(episode.group) for episode in visited]
    errors_NJ = torch.tensor([support(episode, PROGRAMS).errors for episode in visited])
    query_NJ = torch.tensor([query_errors(episode, PROGRAMS) for episode in visited])

    A_rD, B_Dr = slow.A_rD.clone().requires_grad_(), slow.B_Dr.clone().requires_grad_()
    A_FrD, B_FDr = A_rD[None].repeat(2, 1, 1), B_Dr[None].repeat(2, 1, 1)
    if objective == "adapted":
        for _ in range(2):  # SGD by hand, each episode on its own loss
            at_A, at_B = A_FrD.detach().requires_grad_(), B_FDr.detach().requires_grad_()
            loss = expected_error(learner.energies(questions, at_A, at_B, range(2)), errors_NJ).sum()
            by_A, by_B = torch.autograd.grad(loss, (at_A, at_B))
            fast_A, fast_B = at_A.detach() - LARC.rate * by_A, at_B.detach() - LARC.rate * by_B
            A_FrD, B_FDr = fast_A + (A_rD - A_rD.detach()), fast_B + (B_Dr - B_Dr.detach())
    energies_NJ = learner.energies(questions, A_FrD, B_FDr, range(2))
    wanted_A, wanted_B = torch.autograd.grad(expected_error(energies_NJ, query_NJ).mean(), (A_rD, B_Dr))

    loss = trainer.step()

    norm = torch.stack([wanted_A.norm(), wanted_B.norm()]).norm()
    scale = min(1.0, STUDY.outer.clip / (float(norm) + 1e-6))
    assert trainer.slow.A_rD.grad is not None
    assert trainer.slow.B_Dr.grad is not None
    assert loss == pytest.approx(float(expected_error(energies_NJ, query_NJ).mean().detach()), abs=1e-6)
    for found, wanted in ((trainer.slow.A_rD.grad, wanted_A), (trainer.slow.B_Dr.grad, wanted_B)):
        assert torch.allclose(found, scale * wanted, atol=1e-6 * float(norm), rtol=1e-3)


def test_both_objectives_of_a_seed_start_alike_and_see_the_same_episodes(
    learner: Learner, questioner: Questioner
) -> None:
    static, adapted = (
        OuterTrainer(learner, questioner, objective, 5, PROGRAMS, LARC, STUDY)
        for objective in ("static", "adapted")
    )

    assert torch.equal(static.state.A_rD, adapted.state.A_rD)
    assert [static.visits.of(n) for n in range(9)] == [adapted.visits.of(n) for n in range(9)]


def test_an_update_sees_both_families_and_a_pass_every_episode_once() -> None:
    visits = Visits(TRAIN, 2, seed=5)
    passes = [[episode for n in range(8 * p, 8 * p + 8) for episode in visits.of(n)] for p in range(2)]

    for number, seen in enumerate(passes, start=1):
        assert {(e.group, e.recipe) for e in seen} == {(g, recipe) for g in TRAIN for recipe in range(4)}
        assert {e.draw for e in seen} == {number}
        assert [e.group.family for e in seen[:2]] == [Family.ARITHMETIC, Family.LIST]
    assert [(e.group, e.recipe) for e in passes[0]] != [(e.group, e.recipe) for e in passes[1]]
    assert Visits(TRAIN, 2, seed=6).of(0) != visits.of(0) or Visits(TRAIN, 2, seed=6).of(1) != visits.of(1)


def _adapted(
    learner: Learner, questioner: Questioner, kinds: list[Feedback], errors_NJ: Tensor, seeds: list[int]
) -> tuple[Tensor, Tensor]:
    slow = SlowState(torch.randn(2, 32, generator=torch.Generator().manual_seed(3)), torch.zeros(32, 2))
    begun = [begin(slow, seed=seed) for seed in seeds]
    questions = [questioner.ask(TRAIN[0])] * len(begun)
    moved, _ = adapt(learner, begun, questions, errors_NJ, kinds, steps=2, rate=0.5)
    return stack(moved)


def test_sham_feedback_is_real_feedback_bound_at_random(learner: Learner, questioner: Questioner) -> None:
    errors_J = torch.tensor([0.0, 1.0, 0.5, 0.25])
    kinds = [Feedback.SHAM, Feedback.SHAM, Feedback.REAL]
    A_FrD, B_FDr = _adapted(learner, questioner, kinds, errors_J.repeat(3, 1), [1, 2, 1])
    again_A, again_B = _adapted(learner, questioner, kinds[:1], errors_J[None], [1])

    assert torch.equal(A_FrD[0], again_A[0])
    assert torch.equal(B_FDr[0], again_B[0])
    assert not torch.equal(B_FDr[0], B_FDr[1])
    assert not torch.equal(B_FDr[0], B_FDr[2])


def test_sham_feedback_that_is_the_same_for_all_candidates_moves_nothing(
    learner: Learner, questioner: Questioner
) -> None:
    _, B_FDr = _adapted(learner, questioner, [Feedback.SHAM], torch.full((1, 4), 0.5), [1])

    assert float(B_FDr.abs().max()) < 1e-6


def test_a_named_module_is_corrected_instead_by_as_many_values(host: Host, questioner: Questioner) -> None:
    lora = LoraLearner(host, module="self_attn.q_proj")
    trainer = OuterTrainer(lora, questioner, "adapted", 5, PROGRAMS, LARC, STUDY)
    before = trainer.state

    trainer.step()

    assert before.module == "self_attn.q_proj"
    assert before.A_rD.numel() + before.B_Dr.numel() == 2 * LARC.rank * host.width
    assert not torch.equal(trainer.state.B_Dr, before.B_Dr)
