"""The controller (ours): it keeps, shrinks or drops each update, and trusts the kept state by what it earned.

A step is capped in norm, held inside a ball around the slow state, and halved until it does not raise the
loss of its own batch; one that never gets there is dropped. A read mixes the kept and the slow state's
predictions for the same prompt by trust: log-odds that follow the difference of their prediction-time
half-Brier losses as labels arrive, and lean back to the prior. Half-Brier is convex, so the mixture never
loses more than the same mixture of both losses, and a kept state that does harm is soon not read. Where trust
is gone, the kept state itself is dropped for the slow one. The price is one read more for each job, at the
slow state.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from tasks.errors import BadPayload
from tasks.larc import Episode
from tasks.replay.params import ControllerParams

Decision = Literal["kept", "shrunk", "dropped"]
_MOST_LOG_ODDS = 12.0


@dataclass(frozen=True)
class Trust:
    """How far the kept state is trusted; `era` counts how often it was dropped."""

    log_odds: float
    era: int = 0

    @classmethod
    def new(cls, params: ControllerParams) -> "Trust":
        """Trust before any label."""
        return cls(_log_odds(params.prior))

    @property
    def share(self) -> float:
        """Weight of the kept state's prediction, in (0, 1)."""
        return 1 / (1 + math.exp(-self.log_odds))

    def mix(self, kept_C: np.ndarray, slow_C: np.ndarray) -> np.ndarray:
        """The prediction: both reads' probabilities by trust."""
        mixed_C: np.ndarray = self.share * kept_C + (1 - self.share) * slow_C
        return mixed_C

    def learn(self, kept: float, slow: float, era: int, params: ControllerParams) -> "Trust":
        """Trust after a label arrived; `kept` and `slow` are what the reads of era `era` lost on it.

        What a state lost that has been dropped since does not count.
        """
        if era != self.era:
            return self
        prior = _log_odds(params.prior)
        leaning = prior + (1 - params.forget) * (self.log_odds - prior)
        moved = leaning + params.trust_rate * (slow - kept)
        return replace(self, log_odds=max(-_MOST_LOG_ODDS, min(_MOST_LOG_ODDS, moved)))

    def gone(self, params: ControllerParams) -> bool:
        """Whether the kept state is to be dropped."""
        return self.share < params.drop_below

    def restarted(self, params: ControllerParams) -> "Trust":
        """Trust after the kept state was dropped."""
        return Trust(_log_odds(params.prior), self.era + 1)

    def record(self) -> dict[str, Any]:
        """For a session file."""
        return {"log_odds": self.log_odds, "era": self.era}

    @classmethod
    def from_record(cls, record: Any) -> "Trust":
        """The trust behind a record; raises `BadPayload` when it is none."""
        try:
            odds, era = float(record["log_odds"]), int(record["era"])
        except (LookupError, TypeError, ValueError) as error:
            raise BadPayload("the session's trust is damaged; start the replay again") from error
        if not abs(odds) <= _MOST_LOG_ODDS or era < 0:
            raise BadPayload("the session's trust is out of bounds; start the replay again")
        return cls(odds, era)


@dataclass(frozen=True)
class Step:
    """What the controller made of a proposed update."""

    episode: Episode
    decision: Decision
    after: float
    """Loss of the batch at the episode's factors."""


def controlled_step(
    episode: Episode,
    gradient_rD: Tensor,
    gradient_Dr: Tensor,
    before: float,
    measure: Callable[[Episode], float],
    params: ControllerParams,
) -> Step:
    """The episode after one controlled update on a batch whose loss was `before`.

    `measure` reads the loss of the same batch at an episode's factors. A gradient or loss that is not finite
    drops the update.
    """
    scale = max(norm(episode.bound.A_rD, episode.bound.B_Dr), torch.finfo(torch.float32).tiny)
    length = params.rate * norm(gradient_rD, gradient_Dr)
    if not (math.isfinite(length) and math.isfinite(before)) or length == 0:
        return Step(episode, "dropped", before)
    size = min(1.0, params.step_norm * scale / length)
    shrunk = size < 1
    for _ in range(params.halvings + 1):
        tried, inside = _moved(episode, size * params.rate, gradient_rD, gradient_Dr, params.radius * scale)
        after = measure(tried)
        if after <= before:
            return Step(tried, "kept" if inside and not shrunk else "shrunk", after)
        size, shrunk = size / 2, True
    return Step(episode, "dropped", before)


def norm(A_rD: Tensor, B_Dr: Tensor) -> float:
    """Euclidean norm of both factors together."""
    return float((A_rD.double().square().sum() + B_Dr.double().square().sum()).sqrt())


def distance(episode: Episode) -> float:
    """Euclidean distance of an episode's factors from its slow state."""
    return norm(episode.A_rD - episode.bound.A_rD, episode.B_Dr - episode.bound.B_Dr)


def _moved(
    episode: Episode, step: float, gradient_rD: Tensor, gradient_Dr: Tensor, radius: float
) -> tuple[Episode, bool]:
    """The episode one step on, pulled back into the ball around its slow state; whether it was inside."""
    A_rD, B_Dr = episode.A_rD - step * gradient_rD, episode.B_Dr - step * gradient_Dr
    tried = replace(episode, A_rD=A_rD, B_Dr=B_Dr, steps=episode.steps + 1)
    far = distance(tried)
    if far <= radius:
        return tried, True
    share = radius / far
    bound = episode.bound
    return (
        replace(
            tried,
            A_rD=bound.A_rD + share * (A_rD - bound.A_rD),
            B_Dr=bound.B_Dr + share * (B_Dr - bound.B_Dr),
        ),
        False,
    )


def _log_odds(share: float) -> float:
    return math.log(share / (1 - share))
