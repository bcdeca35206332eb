"""Feedback on a question's candidates, and the loss that it gives the policy (LARC, equations 15 to 17).

The policy is a softmax at temperature one over the energies of the candidates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from tasks.errors import BadQuestion


class Feedback(Protocol):
    """What came back on N questions with J candidates each."""

    def losses(self, energies_nJ: Tensor, rows_n: Tensor) -> Tensor:
        """Losses (n,) float32 of the questions `rows_n` (int64) of the N, which have these energies."""

    def check(self, questions: int, candidates: int) -> None:
        """Raise `BadQuestion` unless it is feedback on so many questions with so many candidates each."""


@dataclass(frozen=True)
class ExpectedCost:
    """Every candidate's cost is known, so the loss is its expectation: sum_j pi_j cost_j."""

    costs_NJ: Tensor
    """float32, finite; for executed programs the share of inputs they get wrong."""

    def losses(self, energies_nJ: Tensor, rows_n: Tensor) -> Tensor:
        costs_nJ = self.costs_NJ.to(energies_nJ)[rows_n]
        return (torch.softmax(energies_nJ, -1) * costs_nJ).sum(-1)

    def check(self, questions: int, candidates: int) -> None:
        if tuple(self.costs_NJ.shape) != (questions, candidates) or not self.costs_NJ.isfinite().all():
            raise BadQuestion(
                f"the costs are {tuple(self.costs_NJ.shape)}; give {questions} questions a finite cost for "
                f"each of {candidates} candidates"
            )


@dataclass(frozen=True)
class RightCandidate:
    """The right candidate is known, so the loss is its cross-entropy in nats."""

    labels_N: Tensor
    """int64 index of the right candidate."""

    def losses(self, energies_nJ: Tensor, rows_n: Tensor) -> Tensor:
        return F.cross_entropy(energies_nJ, self.labels_N.to(energies_nJ.device)[rows_n], reduction="none")

    def check(self, questions: int, candidates: int) -> None:
        labels_N = self.labels_N
        fits = tuple(labels_N.shape) == (questions,) and labels_N.dtype == torch.int64
        if not fits or not bool(((labels_N >= 0) & (labels_N < candidates)).all()):
            raise BadQuestion(f"give {questions} questions a label from 0 to {candidates - 1} each, as int64")


def shares_of_owners(owners_N: Sequence[int], weights_N: Sequence[float] | None = None) -> Tensor:
    """Weights (N,) float32 by which the losses of an owner's questions average, equal or as `weights_N`.

    Owners are never averaged with each other: each has its own sum of one.
    """
    owners = torch.tensor(owners_N, dtype=torch.int64)
    plain = torch.ones(len(owners)) if weights_N is None else torch.tensor(weights_N, dtype=torch.float32)
    if plain.shape != owners.shape or not bool((plain.isfinite() & (plain >= 0)).all()):
        raise BadQuestion("give every question one finite weight that is not negative")
    sums = torch.zeros(int(owners.max()) + 1 if len(owners) else 0).index_add_(0, owners, plain)
    return plain / sums[owners].clamp_min(torch.finfo(torch.float32).tiny)
