"""What evidence gains, and how much of that is the document's own doing (FEM-ASM, conditions)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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

    What the system itself makes of evidence: `weighed_cost = NLL(wrong_weighed) - NLL(none)` is what wrong
    evidence costs once it is weighed, `retrieved = NLL(none) - NLL(retrieved)` and `raw_text` (the same of
    the retrieved documents' own tokens) are what found evidence gains. `of_raw_text` is their ratio, 0 where
    raw text changes nothing.
    """

    document_specific: Interval
    generic: Interval
    share: Interval
    weighed_share: Interval
    weighed_cost: Interval
    retrieved: Interval
    raw_text: Interval
    of_raw_text: Interval


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

    def of_raw_text(values: Mapping[Condition, Any]) -> Any:
        none_R = values[Condition.NONE]
        raw_R = none_R - values[Condition.RAW_TEXT]
        ratio_R = (none_R - values[Condition.RETRIEVED]) / np.where(raw_R == 0, 1, raw_R)
        return np.where(raw_R == 0, 0, ratio_R)

    return Gains(
        document_specific=figure(Condition.WRONG, Condition.RIGHT),
        generic=figure(Condition.NONE, Condition.WRONG),
        share=share(Condition.WRONG),
        weighed_share=share(Condition.WRONG_WEIGHED),
        weighed_cost=figure(Condition.WRONG_WEIGHED, Condition.NONE),
        retrieved=figure(Condition.NONE, Condition.RETRIEVED),
        raw_text=figure(Condition.NONE, Condition.RAW_TEXT),
        of_raw_text=interval(
            float(of_raw_text({c: np.float64(value) for c, value in mean.items()})),
            of_raw_text(resampled),
            confidence,
        ),
    )
