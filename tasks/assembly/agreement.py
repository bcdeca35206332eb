"""The weight the system itself gives to aligned evidence (FEM-ASM, weights; the rule is ours).

Evidence that covers the visible prompt can be checked before it is believed: its decoded tokens either
agree with the prompt or they do not. Two unrelated texts still share frequent tokens, so agreement is
measured against what the same two bags of tokens would reach in random order.
"""

import numpy as np
from numpy.typing import NDArray


def chance_agreement(evidence_n: NDArray[np.int64], prompt_n: NDArray[np.int64]) -> float:
    """Expected share of equal pairs if one of two equally long token sequences were shuffled.

    ``sum_v count_evidence(v) * count_prompt(v) / n^2``; 0.0 for empty sequences.
    """
    count = len(prompt_n)
    if count == 0:
        return 0.0
    return float((evidence_n[:, None] == prompt_n[None, :]).sum()) / count**2


def agreement_weight(evidence_n: NDArray[np.int64], prompt_n: NDArray[np.int64], *, margin: float) -> float:
    """Weight in [0, 1] from the agreement of decoded evidence with the visible prompt.

    Args:
        evidence_n, prompt_n: equally long token ids, position by position.
        margin: standard deviations above chance that count as chance still.

    With agreement ``a``, chance ``c`` and ``u = c + margin * sqrt(c (1 - c) / n)`` the weight is
    ``max(0, (a - u) / (1 - u))``: exactly 0 at or below chance, 1 for complete agreement. Where ``u >= 1``
    (nothing to compare, or one token throughout) agreement tells nothing and the weight is 0.
    """
    if evidence_n.shape != prompt_n.shape:
        raise ValueError(f"Evidence {evidence_n.shape} and prompt {prompt_n.shape} must have equal lengths.")
    count = len(prompt_n)
    if count == 0:
        return 0.0
    chance = chance_agreement(evidence_n, prompt_n)
    upper = chance + margin * float(np.sqrt(chance * (1.0 - chance) / count))
    if upper >= 1.0:
        return 0.0
    agreement = float((evidence_n == prompt_n).mean())
    return max(0.0, (agreement - upper) / (1.0 - upper))
