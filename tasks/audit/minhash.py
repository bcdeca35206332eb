"""MinHash signatures of documents and the pairs that banded locality-sensitive hashing proposes.

A signature holds, for each of P seeded permutations of the 64-bit numbers, the least image of a document's
shingles. Two documents agree in one place with the probability of their Jaccard similarity J, so with b bands
of r places they become a candidate with probability 1 - (1 - J^r)^b (Broder 1997; Indyk and Motwani 1998).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.audit.documents import AuditDocuments
from tasks.audit.params import AuditParams
from tasks.progress import Progress, silent
from tasks.retrieval import inside, ngram_hashes

_RUN_TOKENS = 1 << 16
"""Tokens whose images are computed at once: few enough for a processor's cache."""
_OVERLOOKED = 1e-6
"""Most that `promising` may add to the chance that a near-duplicate is missed."""
_PAIRS = 1 << 16


@dataclass(frozen=True)
class Candidates:
    """Pairs (K, 2) of document numbers, the smaller first, ascending; and the buckets that were too full for
    all of their pairs."""

    pair_K2: NDArray[np.int64]
    cut_buckets: int


def detection(jaccard: float, params: AuditParams) -> float:
    """The probability that a pair of this similarity becomes a candidate."""
    return float(1 - (1 - jaccard**params.band_rows) ** params.bands)


def signatures(
    documents: AuditDocuments, params: AuditParams, progress: Progress = silent
) -> NDArray[np.uint64]:
    """Signatures (D, P); those of documents without a shingle are zero. `progress` counts documents."""
    generator = np.random.default_rng([params.seed, 0])
    size = params.bands * params.band_rows
    factor_P = generator.integers(0, 1 << 64, size, dtype=np.uint64) | np.uint64(1)
    offset_P = generator.integers(0, 1 << 64, size, dtype=np.uint64)
    signature_DP = np.zeros((len(documents), size), np.uint64)
    for first, last in documents.runs(_RUN_TOKENS):
        start_D1 = documents.start_D1[first : last + 1] - documents.start_D1[first]
        tokens_N = documents.tokens_N[documents.start_D1[first] : documents.start_D1[last]]
        hashes = ngram_hashes(tokens_N, params.shingle_tokens)
        hash_M = hashes[inside(start_D1, params.shingle_tokens)[: len(hashes)]]
        shingles_D = np.maximum(np.diff(start_D1) - params.shingle_tokens + 1, 0)
        with_any = np.flatnonzero(shingles_D)
        starts = (np.cumsum(shingles_D) - shingles_D)[with_any]
        image_M = np.empty_like(hash_M)
        for place in range(size if len(with_any) else 0):
            np.multiply(hash_M, factor_P[place], out=image_M)
            np.add(image_M, offset_P[place], out=image_M)
            signature_DP[first + with_any, place] = np.minimum.reduceat(image_M, starts)
        progress(last, len(documents))
    return signature_DP


def candidates(
    documents: AuditDocuments, signature_DP: NDArray[np.uint64], params: AuditParams
) -> Candidates:
    """Pairs of documents on different sides that agree in all places of some band.

    In a bucket of more than `bucket_window` + 1 documents each is paired with that many neighbours on either
    hand, by name: a thousand copies of one text need not be compared a million times.
    """
    present = np.flatnonzero(documents.lengths >= params.shingle_tokens)
    mixer_R = np.random.default_rng([params.seed, 1]).integers(0, 1 << 64, params.band_rows, dtype=np.uint64)
    found = np.empty(0, np.int64)
    cut = 0
    for band in range(params.bands):
        places = slice(band * params.band_rows, (band + 1) * params.band_rows)
        # Other signatures may share a key, which costs a comparison and nothing else.
        key_D = (signature_DP[present, places] * (mixer_R | np.uint64(1))).sum(1, dtype=np.uint64)
        order = np.argsort(key_D, kind="stable")
        key, document = key_D[order], present[order]
        bucket = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else order
        cut += int((np.diff(np.append(bucket, len(key))) > params.bucket_window + 1).sum())
        pairs = [*_neighbours(documents, key, document, params.bucket_window), np.empty(0, np.int64)]
        found = np.union1d(found, np.concatenate(pairs))
    pair_K2 = np.stack(np.divmod(found, max(1, len(documents))), 1)
    return Candidates(pair_K2, cut)


def promising(
    signature_DP: NDArray[np.uint64], pair_K2: NDArray[np.int64], jaccard: float
) -> NDArray[np.bool_]:
    """Which pairs (K,) are worth comparing: their signatures do not agree in far too few places.

    The share of P places that agree estimates the similarity; it lies t below it with a probability of at
    most exp(-2 P t^2) (Hoeffding 1963).
    """
    least = jaccard - np.sqrt(-np.log(_OVERLOOKED) / (2 * signature_DP.shape[1]))
    worth_K = np.ones(len(pair_K2), bool)
    for first in range(0, len(pair_K2), _PAIRS):
        left, right = pair_K2[first : first + _PAIRS].T
        worth_K[first : first + _PAIRS] = (signature_DP[left] == signature_DP[right]).mean(1) >= least
    return worth_K


def _neighbours(
    documents: AuditDocuments, key: NDArray[np.uint64], document: NDArray[np.int64], window: int
) -> Iterator[NDArray[np.int64]]:
    """Pairs on different sides under one key, as one number each; documents ascend under a key."""
    place = np.arange(len(key))
    for shift in range(1, window + 1):
        place = place[place + shift < len(key)]
        place = place[key[place] == key[place + shift]]
        if not len(place):
            return
        left, right = document[place], document[place + shift]
        apart = documents.side_D[left] != documents.side_D[right]
        yield left[apart] * len(documents) + right[apart]
