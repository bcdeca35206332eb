"""The controller: which steps it takes, how far it trusts, and that it cannot do much harm."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import BadPayload
from tasks.larc import Episode, SlowState, begin
from tasks.replay.controller import Trust, controlled_step, distance, norm
from tasks.replay.hedge import half_brier
from tasks.replay.params import ControllerParams

PARAMS = ControllerParams(rate=0.1, step_norm=0.5, radius=1.0, halvings=3)


@pytest.fixture
def episode(task: SlowState) -> Episode:
    return begin(task, seed=0)


def toward(episode: Episode, length: float) -> tuple[torch.Tensor, torch.Tensor]:
    """A gradient of that norm."""
    A_rD, B_Dr = torch.ones_like(episode.A_rD), torch.ones_like(episode.B_Dr)
    return A_rD * length / norm(A_rD, B_Dr), B_Dr * length / norm(A_rD, B_Dr)


def test_a_small_step_that_lowers_its_loss_is_kept_whole(episode: Episode) -> None:
    gradient = toward(episode, 1.0)
    made = controlled_step(episode, *gradient, 1.0, lambda tried: 0.5, PARAMS)
    assert (made.decision, made.after, made.episode.steps) == ("kept", 0.5, 1)
    assert torch.equal(made.episode.A_rD, episode.A_rD - 0.1 * gradient[0])
    assert torch.equal(made.episode.B_Dr, episode.B_Dr - 0.1 * gradient[1])


def test_a_long_step_is_capped_and_one_that_raises_its_loss_is_halved(episode: Episode) -> None:
    scale = norm(episode.bound.A_rD, episode.bound.B_Dr)
    made = controlled_step(episode, *toward(episode, 1e3), 1.0, lambda tried: 1.0, PARAMS)
    assert made.decision == "shrunk"
    assert distance(made.episode) == pytest.approx(0.5 * scale, rel=1e-4)

    made = controlled_step(
        episode, *toward(episode, 1.0), 1.0, lambda tried: 0.9 if distance(tried) < 0.03 else 1.1, PARAMS
    )
    assert made.decision == "shrunk"
    assert distance(made.episode) == pytest.approx(0.025, rel=1e-4)


def test_a_step_that_never_lowers_its_loss_is_dropped(episode: Episode) -> None:
    sizes: list[float] = []

    def worse(tried: Episode) -> float:
        sizes.append(distance(tried))
        return 1.001

    made = controlled_step(episode, *toward(episode, 1.0), 1.0, worse, PARAMS)
    assert (made.decision, made.after) == ("dropped", 1.0)
    assert made.episode is episode
    assert sizes == pytest.approx([0.1, 0.05, 0.025, 0.0125], rel=1e-4)


@pytest.mark.parametrize("length", [math.nan, math.inf, 0.0])
def test_a_gradient_that_leads_nowhere_is_dropped_unread(episode: Episode, length: float) -> None:
    gradient = tuple(torch.full_like(part, length) for part in (episode.A_rD, episode.B_Dr))
    made = controlled_step(episode, *gradient, 1.0, lambda tried: pytest.fail("read"), PARAMS)
    assert made.decision == "dropped"


def test_a_loss_that_is_no_number_after_the_step_is_never_kept(episode: Episode) -> None:
    made = controlled_step(episode, *toward(episode, 1.0), 1.0, lambda tried: math.nan, PARAMS)
    assert made.decision == "dropped"


def test_the_state_stays_in_the_ball_around_its_slow_state(episode: Episode) -> None:
    scale = norm(episode.bound.A_rD, episode.bound.B_Dr)
    for _ in range(8):
        made = controlled_step(episode, *toward(episode, 1e3), 1.0, lambda tried: 1.0, PARAMS)
        episode = made.episode
        assert distance(episode) <= scale * (1 + 1e-5)
    assert made.decision == "shrunk"


def test_trust_follows_the_reads_losses_and_leans_back_to_its_prior() -> None:
    params = ControllerParams(prior=0.2, trust_rate=2.0, forget=0.1)
    start = Trust.new(params)
    assert start.share == pytest.approx(0.2)
    assert start.learn(0.1, 0.5, 0, params).share > 0.2 > start.learn(0.5, 0.1, 0, params).share
    high = Trust(5.0)
    for _ in range(200):
        high = high.learn(0.3, 0.3, 0, params)
    assert high.share == pytest.approx(0.2)


def test_losses_of_a_state_that_was_dropped_since_do_not_count() -> None:
    params = ControllerParams()
    now = Trust.new(params).restarted(params)
    assert now.learn(1.0, 0.0, 0, params) == now
    assert now.learn(1.0, 0.0, 1, params) != now


def test_trust_that_is_gone_asks_for_a_restart() -> None:
    params = ControllerParams(prior=0.2, drop_below=0.1)
    trust = Trust.new(params)
    while not trust.gone(params):
        trust = trust.learn(0.6, 0.2, trust.era, params)
    again = trust.restarted(params)
    assert (again.share, again.era) == (pytest.approx(0.2), trust.era + 1)


chances = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(lambda row: np.array(row) / sum(row))


@given(st.lists(st.tuples(chances, chances, st.integers(0, 3)), min_size=1, max_size=200))
def test_whatever_the_kept_state_says_mixing_costs_no_more_than_a_fraction_of_one_job(
    rows: list[tuple[np.ndarray, np.ndarray, int]],
) -> None:
    """With immediate labels and nothing forgotten the harm is bounded by -ln(1 - prior) / rate."""
    params = ControllerParams(prior=0.2, trust_rate=1.0, forget=0.0, drop_below=0.0)
    trust, lost = Trust.new(params), 0.0
    for kept, slow, label in rows:
        mixed, at_kept, at_slow = half_brier(np.stack([trust.mix(kept, slow), kept, slow]), np.full(3, label))
        lost += float(mixed - at_slow)
        trust = trust.learn(float(at_kept), float(at_slow), 0, params)
    assert lost <= -math.log(1 - params.prior) + 1e-9


def test_trust_is_restored_from_its_record_and_from_no_other() -> None:
    trust = Trust(1.25, 3)
    assert Trust.from_record(trust.record()) == trust
    for bad in (
        None,
        {},
        {"log_odds": "x", "era": 0},
        {"log_odds": math.nan, "era": 0},
        {"log_odds": 99.0, "era": 0},
        {"log_odds": 0.0, "era": -1},
    ):
        with pytest.raises(BadPayload):
            Trust.from_record(bad)


def test_an_update_leaves_the_slow_state_alone(episode: Episode) -> None:
    before = replace(episode.bound, A_rD=episode.bound.A_rD.clone(), B_Dr=episode.bound.B_Dr.clone())
    controlled_step(episode, *toward(episode, 9.0), 1.0, lambda tried: 0.0, PARAMS)
    assert torch.equal(before.A_rD, episode.bound.A_rD)
    assert torch.equal(before.B_Dr, episode.bound.B_Dr)
