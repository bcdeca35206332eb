"""Inner learning: episodes that take a few steps on real or sham feedback from a slow state."""

from collections.abc import Sequence
from enum import StrEnum

import torch
from torch import Tensor

from tasks.larc import Episode as FastState
from tasks.larc import (
    ExpectedCost,
    LarcParams,
    Learner,
    LoraLearner,
    Question,
    SlowState,
    Update,
    new_slow_state,
    update,
)


class Feedback(StrEnum):
    """What an episode learns from: its execution errors, or the same ones bound to candidates at random."""

    REAL = "real"
    SHAM = "sham"


def start(learner: Learner, larc: LarcParams, seed: int) -> SlowState:
    """The untrained slow state of a seed: a correction of nothing, where the learner makes it.

    A LoRA has the rank whose number of values is nearest to that of `larc.rank`.
    """
    rank = learner.matched_rank(larc.rank) if isinstance(learner, LoraLearner) else larc.rank
    return new_slow_state(
        learner.inputs,
        seed=seed,
        rank=rank,
        deviation=larc.deviation,
        insertion=learner.insertion,
        module=learner.module,
        outputs=learner.outputs,
    )


def adapt(
    learner: Learner,
    states: Sequence[FastState],
    questions: Sequence[Question],
    errors_NJ: Tensor,
    feedbacks: Sequence[Feedback],
    *,
    steps: int,
    rate: float,
) -> tuple[list[FastState], list[Update]]:
    """Take `steps` steps of SGD in each of N episodes, state n on question n; what each step saw and did.

    The loss of a step is sum_j pi_j error_j (LARC, equation 16) for `errors_NJ` (N, J) float32, execution
    error fractions; in a sham episode for a fresh uniform permutation of them at every step, from its private
    stream.
    """
    moved, seen = list(states), []
    for _ in range(steps):
        costs_NJ = torch.stack(
            [
                errors_J[state.stream.permutation(len(errors_J))] if kind is Feedback.SHAM else errors_J
                for state, errors_J, kind in zip(moved, errors_NJ, feedbacks, strict=True)
            ]
        )
        moved, done = update(learner, moved, questions, range(len(moved)), ExpectedCost(costs_NJ), rate=rate)
        seen.append(done)
    return moved, seen


def policy(energies_NJ: Tensor) -> Tensor:
    """Probabilities (N, J) float32 of the candidates: a softmax at temperature one (LARC, equation 15)."""
    return torch.softmax(energies_NJ.float(), -1)


def expected_error(energies_NJ: Tensor, errors_NJ: Tensor) -> Tensor:
    """Expected execution error (N,) of the policy."""
    return (policy(energies_NJ) * errors_NJ).sum(-1)
