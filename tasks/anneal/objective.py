"""What a search of alpha maximises: the domain's gain, less a penalty on what gets worse elsewhere."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.anneal.population import Population

Floats = NDArray[np.float64]
_LOST = -1e9
"""The score of an alpha whose losses are not finite."""


@dataclass(frozen=True)
class Scored:
    """P alphas with what they do to selection text and probes, in nats per token."""

    alphas_PL: Floats
    gain_P: Floats
    """How much lower the domain's loss is than the host's."""
    rise_P: Floats
    """How much higher the probes' losses are: the mean over probes of what is above zero."""
    drift_P: Floats
    """The mean change of the probes' losses, better ones counted as well."""
    score_P: Floats
    """Gain minus penalty times rise."""


class Objective:
    """Scores alphas on the first `domain` passages of a population, the others being retention probes."""

    def __init__(self, population: Population, domain: int, penalty: float, layers: int) -> None:
        self._population = population
        self._domain = domain
        self._penalty = penalty
        self._host_N = population.losses(np.zeros((1, layers)))[0]

    def __call__(self, alphas_PL: Floats) -> Scored:
        """The scores of rows of alphas."""
        change_PN = self._population.losses(alphas_PL) - self._host_N
        domain_PN, probes_PN = change_PN[:, : self._domain], change_PN[:, self._domain :]
        gain_P = -domain_PN.mean(1)
        # A mean would let one probe that gets better hide another that gets worse.
        rise_P = np.maximum(probes_PN, 0).mean(1)
        score_P = gain_P - self._penalty * rise_P
        score_P = np.where(np.isfinite(score_P), score_P, _LOST)
        return Scored(alphas_PL, gain_P, rise_P, probes_PN.mean(1), score_P)


def joined(parts: list[Scored]) -> Scored:
    """Batches of scored alphas as one."""
    return Scored(
        np.vstack([part.alphas_PL for part in parts]),
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("gain_P", "rise_P", "drift_P", "score_P")
        ),
    )
