"""One batch of arrived labels moves every path as the text defines it, and none moves another."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from tasks.larc import Episode, RightCandidate, SlowState, begin, update
from tasks.replay.learning import Arrival, learn_batch
from tasks.replay.params import PathName
from tasks.replay.paths import FAST
from tasks.replay.policy import Policy
from tasks.replay.prompts import Prompts
from tests.tasks.replay.conftest import small

PARAMS = small()
ARRIVALS = [
    Arrival(Prompts("octo CI one:", "octo CI one: failure\nocto CI one:"), 1),
    Arrival(Prompts("octo CI two:", "octo CI x: other\nocto CI two:"), 2),
]
Moved = dict[PathName, Episode]


@pytest.fixture
def moved(task: SlowState, original: SlowState) -> Moved:
    """Every learning path, a little off its slow state so that carrying and starting anew differ."""
    generator = torch.Generator().manual_seed(4)
    made: Moved = {}
    for number, (path, spec) in enumerate(FAST.items()):
        one = begin(task if spec.start == "task" else original, seed=number)
        off_rD = 0.01 * torch.randn(one.A_rD.shape, generator=generator)
        made[path] = replace(one, A_rD=one.A_rD + off_rD, steps=1)
    return made


def alone(policy: Policy, episode: Episode, view: str, labels: list[int], rate: float) -> Episode:
    """One path's step by the learner's own update, as the reference."""
    texts = [one.prompts.memory if view == "memory" else one.prompts.plain for one in ARRIVALS]
    questions = [policy.question(text) for text in texts]
    feedback = RightCandidate(torch.tensor(labels))
    [stepped], _ = update(policy.learner, [episode], questions, [0, 0], feedback, rate=rate)
    return stepped


def same(found: Episode, expected: Episode) -> bool:
    pairs = ((found.A_rD, expected.A_rD), (found.B_Dr, expected.B_Dr))
    return all(torch.allclose(one, other, atol=1e-6) for one, other in pairs)


def test_every_path_takes_its_own_step_as_if_it_were_alone(
    policy: Policy, task: SlowState, moved: Moved
) -> None:
    after, updates = learn_batch(policy, moved, ARRIVALS, PARAMS)
    carrying: tuple[PathName, ...] = ("keep", "keep_memory", "original", "carry_tenth")
    for path in carrying:
        spec = FAST[path]
        rate = PARAMS.rate * (PARAMS.tenth if spec.tenth else 1)
        assert same(after[path], alone(policy, moved[path], spec.view, [1, 2], rate)), path
    slow = begin(task, seed=0)
    assert same(after["latest_full"], alone(policy, slow, "memory", [1, 2], 0.1))
    assert same(after["latest_tenth"], alone(policy, slow, "memory", [1, 2], 0.01))
    assert [one.path for one in updates] == list(moved)
    for one in updates:
        assert one.jobs == 2
        assert np.isfinite([one.before, one.after, one.gradient_norm, one.update_norm, one.distance]).all()
    assert {one.steps for path, one in after.items() if path != "controller"} == {2}


def test_a_permuted_path_draws_a_fresh_permutation_for_each_job_and_learns_through_its_inverse(
    policy: Policy, moved: Moved
) -> None:
    before = moved["permuted"]
    draws = np.random.Generator(np.random.PCG64(0))
    draws.bit_generator.state = before.stream.bit_generator.state
    orders = [draws.permutation(4) for _ in ARRIVALS]
    labels = [int(np.argsort(order)[one.label]) for order, one in zip(orders, ARRIVALS, strict=True)]
    assert [order[label] for order, label in zip(orders, labels, strict=True)] == [1, 2]
    after, _ = learn_batch(policy, {"permuted": before}, ARRIVALS, PARAMS)
    assert same(after["permuted"], alone(policy, before, "memory", labels, PARAMS.rate))
    assert before.stream.bit_generator.state == draws.bit_generator.state


def test_the_losses_before_and_after_are_those_of_the_same_batch(policy: Policy, moved: Moved) -> None:
    before: Moved = {"keep_memory": moved["keep_memory"]}
    after, [made] = learn_batch(policy, before, ARRIVALS, PARAMS)
    _, [again] = learn_batch(policy, after, ARRIVALS, PARAMS)
    assert again.before == pytest.approx(made.after, abs=1e-5)
    assert made.after < made.before
    _, [unread] = learn_batch(policy, before, ARRIVALS, PARAMS, measure=False)
    assert np.isnan(unread.after)


def test_the_controller_never_leaves_the_batch_worse(policy: Policy, moved: Moved) -> None:
    before: Moved = {"controller": moved["controller"]}
    wild = small(controller={"rate": 10.0, "step_norm": 50.0, "radius": 100.0, "halvings": 2})
    _, [made] = learn_batch(policy, before, ARRIVALS, wild)
    assert made.after <= made.before


def test_without_an_arrival_or_a_path_nothing_moves(policy: Policy, moved: Moved) -> None:
    assert learn_batch(policy, moved, [], PARAMS) == (moved, [])
    assert learn_batch(policy, {}, ARRIVALS, PARAMS) == ({}, [])
