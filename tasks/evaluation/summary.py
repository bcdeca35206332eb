"""From samples to figures with intervals."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.bootstrap import Interval, interval, resampled_means
from tasks.evaluation.conditions import Condition
from tasks.evaluation.gains import gains
from tasks.evaluation.params import EvaluationParams
from tasks.evaluation.samples import Sample

COORDINATES = "coordinate-assisted"
QUESTION_ONLY = "question-only"
_FIGURES = ("nll", "token_accuracy", "greedy_exact")


def summarise(
    samples: Sequence[Sample], params: EvaluationParams, *, protocol: str = COORDINATES
) -> dict[str, Any]:
    """Figures of every condition with document-clustered paired intervals, and the gains.

    NLL is in nats per target token, accuracies are shares. Every condition must hold the same tasks.
    """
    conditions = [condition for condition in Condition if any(s.condition == condition for s in samples)]
    by_condition = {
        c: sorted((s for s in samples if s.condition == c), key=lambda s: s.task) for c in conditions
    }
    tasks = by_condition[conditions[0]]
    assert all([s.task for s in group] == [s.task for s in tasks] for group in by_condition.values())
    _, cluster_N = np.unique([s.element for s in tasks], return_inverse=True)
    value_NK = np.concatenate([_figures(by_condition[c]) for c in conditions], 1)
    drawn_RK = resampled_means(
        value_NK,
        cluster_N.astype(np.int64),
        resamples=params.resamples,
        generator=np.random.default_rng([params.seed, 3]),
    )
    mean_K = value_NK.mean(0)
    table = {
        condition.value: _row(by_condition[condition], mean_K, drawn_RK, 3 * n, params.confidence)
        for n, condition in enumerate(conditions)
    }
    mean = {condition: float(mean_K[3 * n]) for n, condition in enumerate(conditions)}
    drawn = {condition: drawn_RK[:, 3 * n] for n, condition in enumerate(conditions)}
    found = gains(mean, drawn, params.confidence)
    return {
        "tasks": len(tasks),
        "documents": len({s.element for s in tasks}),
        "target_tokens": sum(s.target_tokens for s in tasks),
        "kinds": {kind: sum(s.kind == kind for s in tasks) for kind in sorted({s.kind for s in tasks})},
        "protocol": protocol,
        "conditions": table,
        "nll": {condition.value: mean[condition] for condition in conditions},
        "greedy_exact": {condition: table[condition]["greedy_exact"]["value"] for condition in table},
        "gain": {
            "document_specific": found.document_specific.value,
            "generic": found.generic.value,
            "document_specific_share": found.share.value,
            "ci95": [found.share.low, found.share.high],
            "wrong_weighed_cost": found.weighed_cost.value,
            "retrieved": found.retrieved.value,
            "raw_text": found.raw_text.value,
            "retrieved_of_raw_text": found.of_raw_text.value,
            "intervals": {name: asdict(value) for name, value in vars(found).items()},
        },
    }


def _figures(samples: Sequence[Sample]) -> NDArray[np.float64]:
    """(N, 3): NLL per target token, token accuracy, greedy exact match."""
    return np.array([[s.nll, s.right_tokens / s.target_tokens, s.exact] for s in samples], np.float64)


def _row(
    samples: Sequence[Sample],
    mean_K: NDArray[np.float64],
    drawn_RK: NDArray[np.float64],
    column: int,
    confidence: float,
) -> dict[str, Any]:
    figures: dict[str, Interval] = {
        name: interval(mean_K[column + n], drawn_RK[:, column + n], confidence)
        for n, name in enumerate(_FIGURES)
    }
    return {
        "family": samples[0].family,
        **{name: asdict(value) for name, value in figures.items()},
        "mean_weight": float(np.mean([s.weight for s in samples])),
        "weight_above_zero": float(np.mean([s.weight > 0 for s in samples])),
        "bytes_read": float(np.mean([s.bytes_read for s in samples])),
        "own_document": float(np.mean([s.element in s.evidence.split() for s in samples])),
    }
