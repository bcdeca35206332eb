"""One step of an episode: plain SGD on what arrived, with norms that tell what the step did (LARC 2.2)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from tasks.larc.feedback import Feedback, shares_of_owners
from tasks.larc.learner import Gradients, Learner
from tasks.larc.question import Question
from tasks.larc.state import Episode, check_place, on_host, stack

RATE = 0.1
"""Step of the inner SGD (LARC 2.2)."""


@dataclass(frozen=True)
class Update:
    """What one update of F episodes saw and did; float32 throughout."""

    energies_NJ: Tensor
    """Energies before the update: the read of the same questions at the factors it started from."""
    losses_F: Tensor
    """Loss of each episode on its batch before the update."""
    after_F: Tensor | None
    """The same loss on the same batch after it, where it was asked for."""
    gradient_norms_F: Tensor
    """Euclidean norm of both factors' gradients."""
    update_norms_F: Tensor
    """Euclidean norm of the change of both factors."""
    change_norms_F: Tensor
    """Frobenius norm of the change of B A, which is what the host feels."""

    @property
    def rose(self) -> Tensor | None:
        """Whether the update raised the loss of its own batch, or left no number: it did not descend."""
        return None if self.after_F is None else ~(self.after_F <= self.losses_F)


def update(
    learner: Learner,
    episodes: Sequence[Episode],
    questions: Sequence[Question],
    owners_N: Sequence[int],
    feedback: Feedback,
    *,
    rate: float = RATE,
    weights_N: Sequence[float] | None = None,
    measure: bool = False,
) -> tuple[list[Episode], Update]:
    """One functional SGD step of every episode that has feedback: no momentum, no decay, no clipping.

    An episode's loss is the mean over its own questions, or their mean by `weights_N`; episodes are summed,
    so none changes another's step. One without a question keeps its factors and its count. `measure` reads
    the batch once more, for the loss after the update.
    """
    check_place(learner, episodes)
    A_FrD, B_FDr = on_host(learner, *stack(episodes))
    weights = shares_of_owners(owners_N, weights_N)
    energies_NJ, [gradients] = learner.gradients(questions, A_FrD, B_FDr, owners_N, [feedback], weights)
    stepped = step(episodes, gradients, set(owners_N), rate)
    after_F = None
    if measure:
        with torch.no_grad():
            again_NJ = learner.energies(questions, *on_host(learner, *stack(stepped)), owners_N)
            losses_N = feedback.losses(again_NJ, torch.arange(len(questions), device=again_NJ.device))
        after_F = _by_owner(losses_N, weights, owners_N, len(episodes))
    losses_F = _by_owner(gradients.losses_N, weights, owners_N, len(episodes))
    gradient_norms_F = _norms(gradients.A_FrD, gradients.B_FDr).cpu()
    later_A, later_B = stack(stepped)
    update_norms_F = _norms(later_A - A_FrD.cpu(), later_B - B_FDr.cpu())
    change_norms_F = change_norms(A_FrD.cpu(), B_FDr.cpu(), later_A, later_B)
    return stepped, Update(
        energies_NJ.cpu(), losses_F, after_F, gradient_norms_F, update_norms_F, change_norms_F
    )


def step(
    episodes: Sequence[Episode], gradients: Gradients, moving: set[int], rate: float = RATE
) -> list[Episode]:
    """The episodes after Phi <- Phi - rate * gradient; those not in `moving` stay as they are."""
    A_FrD, B_FDr = gradients.A_FrD.cpu(), gradients.B_FDr.cpu()
    return [
        replace(
            one,
            A_rD=one.A_rD - rate * A_FrD[place],
            B_Dr=one.B_Dr - rate * B_FDr[place],
            steps=one.steps + 1,
        )
        if place in moving
        else one
        for place, one in enumerate(episodes)
    ]


def change_norms(A_FrD: Tensor, B_FDr: Tensor, later_A_FrD: Tensor, later_B_FDr: Tensor) -> Tensor:
    """Frobenius norms (F,) of B' A' - B A, from products of rank 2r: the D x D matrices are never made."""
    left_FDs = torch.cat([later_B_FDr, -B_FDr], -1).double()
    right_FsD = torch.cat([later_A_FrD, A_FrD], -2).double()
    grams_Fss = (left_FDs.mT @ left_FDs) * (right_FsD @ right_FsD.mT).mT
    return grams_Fss.sum((-2, -1)).clamp_min(0).sqrt().float()


def _norms(A_FrD: Tensor, B_FDr: Tensor) -> Tensor:
    return (A_FrD.square().sum((-2, -1)) + B_FDr.square().sum((-2, -1))).sqrt()


def _by_owner(losses_N: Tensor, weights_N: Tensor, owners_N: Sequence[int], count: int) -> Tensor:
    owners = torch.tensor(owners_N, dtype=torch.int64)
    return torch.zeros(count).index_add_(0, owners, losses_N.cpu() * weights_N)
