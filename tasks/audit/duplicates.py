"""Near-duplicates: verified pairs of documents on different sides, and what each document has of them."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.audit.documents import AuditDocuments, Side
from tasks.audit.jaccard import common_shingles
from tasks.audit.minhash import candidates, promising, signatures
from tasks.audit.params import AuditParams
from tasks.progress import Progress, silent


@dataclass(frozen=True)
class NearDuplicates:
    """K pairs of document numbers, the smaller first, ascending, with their exact shingle counts.

    Of `candidates` as many as `compared` were compared exactly; `cut_buckets` were too full for all of their
    pairs.
    """

    pair_K2: NDArray[np.int64]
    common_K: NDArray[np.int64]
    union_K: NDArray[np.int64]
    candidates: int
    compared: int
    cut_buckets: int

    @property
    def jaccard(self) -> NDArray[np.float64]:
        """Common shingles as a share (K,) of all shingles of both."""
        similarity: NDArray[np.float64] = self.common_K / self.union_K
        return similarity

    def having(self, documents: AuditDocuments, sides: Iterable[Side]) -> NDArray[np.bool_]:
        """Which documents (D,) have a near-duplicate on one of some sides other than their own."""
        eligible = documents.on(sides)
        having_D = np.zeros(len(documents), bool)
        for own, other in (self.pair_K2.T, self.pair_K2.T[::-1]):
            having_D[own[eligible[other]]] = True
        return having_D

    def nearest(
        self, documents: AuditDocuments, sides: Iterable[Side]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The most similar near-duplicate (D,) of each document on one of some sides and the similarity.

        -1 and 0 where there is none; of equally similar ones the first by name.
        """
        eligible = documents.on(sides)
        own = np.concatenate([self.pair_K2[:, 0], self.pair_K2[:, 1]])
        other = np.concatenate([self.pair_K2[:, 1], self.pair_K2[:, 0]])
        jaccard = np.concatenate([self.jaccard, self.jaccard])
        own, other, jaccard = (values[eligible[other]] for values in (own, other, jaccard))
        order = np.lexsort((other, -jaccard, own))
        firsts = order[np.unique(own[order], return_index=True)[1]]
        nearest_D, jaccard_D = np.full(len(documents), -1, np.int64), np.zeros(len(documents))
        nearest_D[own[firsts]], jaccard_D[own[firsts]] = other[firsts], jaccard[firsts]
        return nearest_D, jaccard_D


def near_duplicates(
    documents: AuditDocuments, params: AuditParams, progress: Progress = silent
) -> NearDuplicates:
    """Find the pairs on different sides whose Jaccard similarity is `params.jaccard` or more.

    No pair below it is reported; one at it is missed with the probability 1 - `minhash.detection`. `progress`
    is in percent: half for the signatures, half for comparing candidates.
    """

    def half(place: int) -> Progress:
        return lambda done, total, **_: progress(50 * place + 50 * done // max(1, total), 100)

    signature_DP = signatures(documents, params, half(0))
    proposed = candidates(documents, signature_DP, params)
    pair_K2 = proposed.pair_K2[promising(signature_DP, proposed.pair_K2, params.jaccard)]
    common_K, union_K = common_shingles(documents, pair_K2, params.shingle_tokens, half(1))
    near = common_K >= params.jaccard * union_K
    return NearDuplicates(
        pair_K2[near],
        common_K[near],
        union_K[near],
        len(proposed.pair_K2),
        len(pair_K2),
        proposed.cut_buckets,
    )
