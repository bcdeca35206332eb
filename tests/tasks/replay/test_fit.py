"""The task fit: causal prompts, weights, and a training that resumes bit for bit."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tasks.checkpoint import Checkpoints
from tasks.larc import SlowState
from tasks.replay.fit import fit_slow_state, training_set
from tasks.replay.policy import Policy
from tests.tasks.replay.conftest import job, jobs, small

PARAMS = small(fit={"jobs": 4, "epochs": 2})


def test_prompts_of_the_training_are_causal_and_weights_average_one() -> None:
    made = [
        job(1, commit="x"),
        job(
            2, commit="x", label="failure", started_us=job().completed_us, completed_us=job().completed_us + 5
        ),
        job(3, commit="y", started_us=job().completed_us + 1, completed_us=job().completed_us + 9),
    ]
    found = training_set(made, PARAMS)
    assert [one.memory.count("\n") for one in found.prompts] == [1, 1, 2]
    assert found.weights_N.mean() == pytest.approx(1)
    assert found.weights_N[2] == pytest.approx(2 * found.weights_N[0])


def test_the_fit_lowers_the_loss_and_counts_its_updates(policy: Policy, original: SlowState) -> None:
    params = small(fit={"jobs": 8, "epochs": 10, "rate": 0.03})
    fitted, losses = fit_slow_state(policy, original, training_set(jobs(16, seed=1), params), params)
    assert (fitted.version, len(losses)) == (20, 20)
    assert np.mean(losses[-4:]) < 0.9 * np.mean(losses[:4])
    assert not torch.equal(fitted.B_Dr, original.B_Dr)
    assert torch.equal(original.B_Dr, torch.zeros_like(original.B_Dr))


def test_a_fit_killed_at_any_update_ends_with_the_same_bits(
    policy: Policy, original: SlowState, tmp_path: Path
) -> None:
    training = training_set(jobs(10, seed=2), PARAMS)
    whole, losses = fit_slow_state(policy, original, training, PARAMS)
    assert len(losses) == 6
    for kill in range(1, 6):
        checkpoints = Checkpoints(tmp_path / str(kill), "e" * 64, seconds=0)

        def progress(done: int, total: int, kill: int = kill, **_: float) -> None:
            if done == kill:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fit_slow_state(policy, original, training, PARAMS, progress=progress, checkpoints=checkpoints)
        again, relosses = fit_slow_state(policy, original, training, PARAMS, checkpoints=checkpoints)
        assert torch.equal(again.A_rD, whole.A_rD)
        assert torch.equal(again.B_Dr, whole.B_Dr)
        assert relosses == losses
