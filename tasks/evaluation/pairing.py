"""Figures of several conditions on the same tasks, and how far they are apart, with intervals."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tasks.evaluation.bootstrap import interval, resampled_means

Floats = NDArray[np.float64]


def paired_figures(
    values: Mapping[str, Floats],
    names: Sequence[str],
    cluster_N: NDArray[np.int64],
    pairs: Sequence[tuple[str, str]],
    *,
    resamples: int,
    confidence: float,
    generator: np.random.Generator,
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Means by condition and figure, and differences of pairs of conditions, all over the same resamples.

    Args:
        values: for each condition F figures of N tasks, (N, F); tasks are the same and in one order.
        names: of the F figures.
        cluster_N: which tasks are not independent of one another, numbered from 0 without gaps.
        pairs: conditions to compare, the first less the second.
    """
    place = {condition: number for number, condition in enumerate(values)}
    value_NK = np.concatenate(list(values.values()), axis=1)
    drawn_RK = resampled_means(value_NK, cluster_N, resamples=resamples, generator=generator)
    mean_K = value_NK.mean(0)

    def shown(value: float, drawn_R: Floats) -> dict[str, float]:
        return asdict(interval(value, drawn_R, confidence))

    def at(condition: str, figure: int) -> int:
        return place[condition] * len(names) + figure

    figures = {
        condition: {
            name: shown(mean_K[at(condition, f)], drawn_RK[:, at(condition, f)])
            for f, name in enumerate(names)
        }
        for condition in values
    }
    differences = [
        {
            "of": one,
            "less": other,
            **{
                name: shown(
                    mean_K[at(one, f)] - mean_K[at(other, f)],
                    drawn_RK[:, at(one, f)] - drawn_RK[:, at(other, f)],
                )
                for f, name in enumerate(names)
            },
        }
        for one, other in pairs
    ]
    return figures, differences
