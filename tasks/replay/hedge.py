"""A mixture by exponential weights over prediction-time losses (LARC 5): HEDGE4."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from tasks.errors import BadPayload


def half_brier(chances_NC: np.ndarray, labels_N: np.ndarray) -> np.ndarray:
    """1/2 sum_c (p_c - y_c)^2 for each of N predictions; float64, 0 for certain and right, 1 at worst."""
    right = np.take_along_axis(chances_NC, np.asarray(labels_N)[..., None], -1)[..., 0]
    losses_N: np.ndarray = 0.5 * ((chances_NC**2).sum(-1) - 2 * right + 1)
    return losses_N


class Hedge:
    """Weights of experts proportional to exp(-cumulative half-Brier)."""

    def __init__(self, losses: Sequence[float] | np.ndarray) -> None:
        self.losses_E = np.array(losses, np.float64)

    def weights(self) -> np.ndarray:
        """Weights (E,) float64 that sum to one."""
        raised_E: np.ndarray = np.exp(self.losses_E.min() - self.losses_E)
        raised_E /= raised_E.sum()
        return raised_E

    def mix(self, chances_EC: np.ndarray) -> np.ndarray:
        """The experts' probabilities (E, 4) as one prediction (4,)."""
        mixed_C: np.ndarray = self.weights() @ chances_EC
        return mixed_C

    def learn(self, chances_EC: np.ndarray, label: int) -> None:
        """Charge each expert what its own prediction lost, which was made when the job started."""
        self.losses_E = self.losses_E + half_brier(chances_EC, np.full(len(chances_EC), label))

    def record(self) -> list[float]:
        """The cumulative losses, for a session file."""
        return [float(loss) for loss in self.losses_E]

    @classmethod
    def from_record(cls, record: Any, experts: int) -> "Hedge":
        """The mixture behind a record; raises `BadPayload` when it is none."""
        fits = isinstance(record, list) and len(record) == experts
        if not fits or not all(isinstance(loss, float) and np.isfinite(loss) for loss in record):
            raise BadPayload("the session's mixture is damaged; start the replay again")
        return cls(record)
