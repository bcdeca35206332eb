"""Four additive biases on a policy's energies: the calibrated control (LARC 5)."""

import numpy as np
import torch

from tasks.replay.jobs import LABELS


def fit_biases(
    energies_NJ: np.ndarray, labels_N: np.ndarray, weights_N: np.ndarray, *, l2: float
) -> np.ndarray:
    """Biases (4,) that minimise weighted cross-entropy plus `l2` times their squared norm; float64, L-BFGS.

    `weights_N` are shares that sum to one.
    """
    energies = torch.from_numpy(np.asarray(energies_NJ, np.float64))
    labels = torch.from_numpy(np.asarray(labels_N, np.int64))
    weights = torch.from_numpy(np.asarray(weights_N, np.float64))
    biases = torch.zeros(len(LABELS), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS(
        [biases], max_iter=200, tolerance_grad=1e-10, tolerance_change=1e-12, line_search_fn="strong_wolfe"
    )

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        losses = torch.nn.functional.cross_entropy(energies + biases, labels, reduction="none")
        loss = (weights * losses).sum() + l2 * biases.square().sum()
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    return biases.detach().numpy()


def energies_of(chances_NJ: np.ndarray) -> np.ndarray:
    """Energies whose softmax the chances are; one that underflowed to zero has a finite one, not -inf."""
    energies: np.ndarray = np.log(np.maximum(chances_NJ, np.finfo(np.float64).tiny))
    return energies


def softmax(energies_NJ: np.ndarray) -> np.ndarray:
    """The policy: float64 softmax at temperature one over the last axis."""
    energies = np.asarray(energies_NJ, np.float64)
    raised: np.ndarray = np.exp(energies - energies.max(-1, keepdims=True))
    raised /= raised.sum(-1, keepdims=True)
    return raised
