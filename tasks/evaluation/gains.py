"""What evidence gains, and how much of that is the document's own doing (FEM-ASM, conditions)."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.bootstrap import Interval, interval
from tasks.evaluation.conditions import Condition


@dataclass(frozen=True)
class Gains:
    """Nats per target token, with intervals.

    ``document_specific = NLL(wrong) - NLL(right)``, ``generic = NLL(none) - NLL(wrong)``; their sum is the
    whole gain
    ``NLL(none) - NLL(right)``, of which `share` is the document-specific part. Evidence that harms when
    wrong makes `generic` negative and `share` exceed 1. `weighed_share` is the same with wrong evidence
    weighed by the system.
    """

    document_specific: Interval
    generic: Interval
    share: Interval
    weighed_share: Interval


def gains(
    mean: Mapping[Condition, float],
    resampled: Mapping[Condition, NDArray[np.float64]],
    confidence: float,
) -> Gains:
    """Gains from mean NLLs and their paired resamples."""

    def figure(minuend: Condition, subtrahend: Condition) -> Interval:
        drawn = resampled[minuend] - resampled[subtrahend]
        return interval(mean[minuend] - mean[subtrahend], drawn, confidence)

    def share(wrong: Condition) -> Interval:
        value = (mean[wrong] - mean[Condition.RIGHT]) / (mean[Condition.NONE] - mean[Condition.RIGHT])
        gain_R = resampled[Condition.NONE] - resampled[Condition.RIGHT]
        return interval(value, (resampled[wrong] - resampled[Condition.RIGHT]) / gain_R, confidence)

    return Gains(
        document_specific=figure(Condition.WRONG, Condition.RIGHT),
        generic=figure(Condition.NONE, Condition.WRONG),
        share=share(Condition.WRONG),
        weighed_share=share(Condition.WRONG_WEIGHED),
    )
