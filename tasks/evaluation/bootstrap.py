"""Document-clustered, paired bootstrap: documents are resampled, every condition on the same resample.

Tasks of one document are not independent, so a resample draws documents with replacement and keeps all
their tasks. Differences between conditions are formed inside each resample.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_CHUNK_VALUES = 1 << 23


@dataclass(frozen=True)
class Interval:
    """A figure and its percentile interval."""

    value: float
    low: float
    high: float


def resampled_means(
    value_NK: NDArray[np.float64],
    cluster_N: NDArray[np.int64],
    *,
    resamples: int,
    generator: np.random.Generator,
) -> NDArray[np.float64]:
    """Means (R, K) of K paired figures of N tasks over `resamples` draws of whole clusters.

    `cluster_N` numbers each task's document from 0 without gaps. Means weigh tasks equally, as in the plain
    mean.
    """
    clusters = int(cluster_N.max()) + 1
    sum_CK = np.zeros((clusters, value_NK.shape[1]))
    np.add.at(sum_CK, cluster_N, value_NK)
    size_C = np.bincount(cluster_N, minlength=clusters).astype(np.float64)
    share = np.full(clusters, 1.0 / clusters)
    chunk = max(1, _CHUNK_VALUES // clusters)
    parts = []
    for start in range(0, resamples, chunk):
        drawn_RC = generator.multinomial(clusters, share, size=min(chunk, resamples - start)).astype(
            np.float64
        )
        parts.append(drawn_RC @ sum_CK / (drawn_RC @ size_C)[:, None])
    return np.concatenate(parts)


def interval(value: float, resampled_R: NDArray[np.float64], confidence: float) -> Interval:
    """The central percentile interval of resampled values."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(resampled_R, [tail, 1 - tail])
    return Interval(float(value), float(low), float(high))
