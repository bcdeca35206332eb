"""Exact Jaccard similarities of candidate pairs, so that no pair is reported on the word of a hash.

A shingle of at most four ids of sixteen bits is one 64-bit number: equal numbers are equal shingles.
"""

from functools import lru_cache
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from tasks.audit.documents import AuditDocuments
from tasks.progress import Progress, silent

_KEPT_SETS = 4096
"""Documents whose sets of shingles are kept between comparisons."""


def shingles(tokens_N: NDArray[np.uint16], n: int) -> NDArray[np.uint64]:
    """The distinct runs of n <= 4 tokens, each as one number (uint64), ascending."""
    count = max(0, len(tokens_N) - n + 1)
    packed = np.zeros(count, np.uint64)
    for offset in range(n):
        packed = (packed << np.uint64(16)) | tokens_N[offset : offset + count].astype(np.uint64)
    return np.unique(packed)


def common_shingles(
    documents: AuditDocuments, pair_K2: NDArray[np.int64], n: int, progress: Progress = silent
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sizes of intersection and union (K,) of the sets of shingles of pairs of documents.

    `progress` counts pairs; those that follow each other with one first document cost one look-up.
    """

    @lru_cache(maxsize=_KEPT_SETS)
    def of(document: int) -> NDArray[np.uint64]:
        return shingles(documents.tokens(document), n)

    common_K, union_K = np.zeros(len(pair_K2), np.int64), np.zeros(len(pair_K2), np.int64)
    done = 0
    for left, group in groupby(pair_K2.tolist(), key=lambda pair: pair[0]):
        own = of(left)
        for place, (_, right) in enumerate(group, done):
            other = of(right)
            small, large = (own, other) if len(own) <= len(other) else (other, own)
            at = np.searchsorted(large, small)
            at[at == len(large)] = 0
            common_K[place] = np.count_nonzero(large[at] == small) if len(large) else 0
            union_K[place] = len(own) + len(other) - common_K[place]
            done = place + 1
        progress(done, len(pair_K2))
    return common_K, union_K
