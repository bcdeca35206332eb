"""Which runs of n tokens documents share with each side: exact, since equal hashes are compared by token.

The hashes of the whole stream are sorted in parts of their range, so that memory holds one part beside them.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tasks.audit.documents import AuditDocuments, Side
from tasks.progress import Progress, silent
from tasks.retrieval import inside, ngram_hashes

_PART = 1 << 20
"""About how many n-grams are sorted at once."""
_MOST_BITS = 8
_RUN_TOKENS = 1 << 20
_SETS = 1 << len(Side)

Hasher = Callable[[NDArray[np.uint16], int], NDArray[np.uint64]]


@dataclass(frozen=True)
class SharedNgrams:
    """Distinct n-grams of D documents, counted by the set of sides that hold them.

    by_sides_DM (int64): column m counts a document's n-grams that exactly the sides of the bits of m hold;
    its own side is always among them.
    """

    by_sides_DM: NDArray[np.int64]

    @property
    def distinct(self) -> NDArray[np.int64]:
        """Distinct n-grams (D,) of each document."""
        total: NDArray[np.int64] = self.by_sides_DM.sum(1)
        return total

    def shared_with(self, sides: Iterable[Side]) -> NDArray[np.int64]:
        """Distinct n-grams (D,) of each document that at least one of some sides holds.

        Says nothing of documents that are on one of these sides themselves.
        """
        bits = sum(1 << side for side in set(sides))
        held = [column for column in range(_SETS) if column & bits]
        shared: NDArray[np.int64] = self.by_sides_DM[:, held].sum(1)
        return shared


def shared_ngrams(
    documents: AuditDocuments,
    n: int,
    *,
    hasher: Hasher = ngram_hashes,
    part: int = _PART,
    progress: Progress = silent,
) -> SharedNgrams:
    """Count the distinct n-grams of each document by the sides that hold them.

    Any `hasher` gives the same counts: n-grams of one hash are told apart by their tokens. `progress` counts
    parts.
    """
    hash_M, position_M = _hashes(documents, n, hasher)
    counts_DM = np.zeros((len(documents), _SETS), np.int64)
    bits = min(_MOST_BITS, (len(hash_M) // part).bit_length())
    part_M = np.empty(len(hash_M), np.uint8)
    np.right_shift(hash_M, np.uint64(64 - _MOST_BITS), out=part_M, casting="unsafe")
    np.right_shift(part_M, _MOST_BITS - bits, out=part_M)
    for number in range(1 << bits):
        chosen = np.flatnonzero(part_M == number)
        _count(documents, n, hash_M[chosen], position_M[chosen], counts_DM)
        progress(number + 1, 1 << bits)
    return SharedNgrams(counts_DM)


def _hashes(
    documents: AuditDocuments, n: int, hasher: Hasher
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Hash and first position of every n-gram that lies inside a document, positions ascending."""
    count = int(np.maximum(documents.lengths - n + 1, 0).sum())
    assert len(documents.tokens_N) < 1 << 32, "positions are kept in 32 bits"
    hash_M, position_M = np.empty(count, np.uint64), np.empty(count, np.uint32)
    done = 0
    for first, last in documents.runs(_RUN_TOKENS):
        start_D1 = documents.start_D1[first : last + 1]
        tokens_N = documents.tokens_N[start_D1[0] : start_D1[-1]]
        hashes = hasher(tokens_N, n)
        place = np.flatnonzero(inside(start_D1 - start_D1[0], n)[: len(hashes)])
        hash_M[done : done + len(place)] = hashes[place]
        position_M[done : done + len(place)] = place + start_D1[0]
        done += len(place)
    assert done == count
    return hash_M, position_M


def _count(
    documents: AuditDocuments,
    n: int,
    hash_K: NDArray[np.uint64],
    position_K: NDArray[np.uint32],
    counts_DM: NDArray[np.int64],
) -> None:
    """Add what the n-grams of one part, all of those with their hashes, say of each document."""
    if not len(hash_K):
        return
    order_K, new_K = _told_apart(documents.tokens_N, n, hash_K, position_K)
    # Positions rise and so do their documents, which makes the search quick.
    document_K = (np.searchsorted(documents.start_D1, position_K, side="right") - 1)[order_K]
    # Under one n-gram, too: the first occurrence in each document is kept.
    kept_K = new_K.copy()
    kept_K[1:] |= document_K[1:] != document_K[:-1]
    gram_K, document_K = (np.cumsum(new_K) - 1)[kept_K], document_K[kept_K]
    side_bit_K = np.left_shift(1, documents.side_D[document_K])
    starts = np.flatnonzero(np.diff(gram_K, prepend=-1))
    sides_G = np.bitwise_or.reduceat(side_bit_K, starts)
    cell_K = document_K * _SETS + sides_G[gram_K]
    counts_DM += np.bincount(cell_K, minlength=counts_DM.size).reshape(counts_DM.shape)


def _told_apart(
    tokens_N: NDArray[np.uint16], n: int, hash_K: NDArray[np.uint64], position_K: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """An order in which equal n-grams follow each other, by position, and where each of them begins."""
    order_K, new_K = _by_hash(hash_K)
    next_ = np.flatnonzero(~new_K)
    left, right = (position_K[order_K[places]].astype(np.int64) for places in (next_ - 1, next_))
    differs = np.zeros(len(next_), bool)
    for offset in range(n):
        differs |= tokens_N[left + offset] != tokens_N[right + offset]
    if not differs.any():
        return order_K, new_K
    run_K = np.cumsum(new_K)
    mixed = np.flatnonzero(np.isin(run_K, run_K[next_[differs]]))
    run, entry = run_K[mixed], order_K[mixed]
    windows = tokens_N[position_K[entry].astype(np.int64)[:, None] + np.arange(n)]
    sorted_ = np.lexsort((entry, *windows.T, run))
    order_K[mixed], windows = entry[sorted_], windows[sorted_]
    new_K[mixed[1:]] = (run[1:] != run[:-1]) | (windows[1:] != windows[:-1]).any(1)
    return order_K, new_K


def _by_hash(hash_K: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """A stable order of hashes, and where each of them begins; quicker than numpy's, as most occur once."""
    order_K = np.argsort(hash_K)
    sorted_K = hash_K[order_K]
    new_K = np.ones(len(hash_K), bool)
    new_K[1:] = sorted_K[1:] != sorted_K[:-1]
    several = np.flatnonzero(~(new_K & np.append(new_K[1:], True)))
    run = np.cumsum(new_K)[several] * len(hash_K)
    order_K[several] = np.sort(run + order_K[several]) - run
    return order_K, new_K
