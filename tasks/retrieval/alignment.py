"""From chart hits to alignments: the ways a cue can be laid over a stored element.

A cue token j that meets stream position p lies on the diagonal p - j. Hits of one cue in one element on one
diagonal support the same alignment, whose answer begins right after the cue, at diagonal + cue length.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tasks.retrieval.charts import Charts
from tasks.retrieval.cues import NO_TOKEN, CueBatch
from tasks.retrieval.hashing import ngram_hashes
from tasks.retrieval.params import SearchParams
from tasks.retrieval.readout import Readout

# Hashed charts, in the order of `Alignments.hits_AC`.
_CHARTS = 3


@dataclass(frozen=True)
class Alignments:
    """A alignments: query_A, element_A, diagonal_A (int64; stream position of the cue's first token, which
    may lie before the element), hits_AC (int64; postings found in the prefix, window and n-gram chart) and
    weight_A (float64, nats; the information of those postings)."""

    query_A: np.ndarray
    element_A: np.ndarray
    diagonal_A: np.ndarray
    hits_AC: np.ndarray
    weight_A: np.ndarray

    def __len__(self) -> int:
        return len(self.query_A)

    def take(self, rows: np.ndarray) -> "Alignments":
        """The alignments of these rows."""
        return Alignments(
            self.query_A[rows],
            self.element_A[rows],
            self.diagonal_A[rows],
            self.hits_AC[rows],
            self.weight_A[rows],
        )

    def joined(self, other: "Alignments") -> "Alignments":
        """Both, without those of `other` that are here already."""
        both = Alignments(
            np.concatenate([self.query_A, other.query_A]),
            np.concatenate([self.element_A, other.element_A]),
            np.concatenate([self.diagonal_A, other.diagonal_A]),
            np.concatenate([self.hits_AC, other.hits_AC]),
            np.concatenate([self.weight_A, other.weight_A]),
        )
        order = np.lexsort((both.diagonal_A, both.element_A, both.query_A))
        place_3A = np.stack([both.query_A, both.element_A, both.diagonal_A])[:, order]
        repeated = np.zeros(len(order), dtype=bool)
        repeated[1:] = (place_3A[:, 1:] == place_3A[:, :-1]).all(0)
        # The sort is stable, so the first of equal places is the one that has hits.
        return both.take(np.sort(order[~repeated]))


class _Places:
    """One integer per (query, element, diagonal): elements lie a cue apart, so no two share a diagonal."""

    def __init__(self, readout: Readout, cues: CueBatch) -> None:
        self.readout = readout
        self.gap = cues.token_QL.shape[1]
        self.span = int(readout.start_E1[-1]) + (len(readout) + 2) * self.gap

    def pack(self, query_H: np.ndarray, element_H: np.ndarray, diagonal_H: np.ndarray) -> np.ndarray:
        packed: np.ndarray = query_H * self.span + diagonal_H + (element_H + 1) * self.gap
        return packed

    def unpack(self, place_A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        query_A, shifted_A = np.divmod(place_A, self.span)
        shifted_A -= self.gap
        # A shifted diagonal reaches at most one gap before its element's shifted start.
        element_starts = self.readout.start_E1[:-1] + np.arange(len(self.readout)) * self.gap - self.gap
        element_A = np.searchsorted(element_starts, shifted_A, side="right") - 1
        return query_A, element_A, shifted_A - element_A * self.gap


def find(cues: CueBatch, charts: Charts, readout: Readout, search: SearchParams) -> Alignments:
    """The best supported alignments of each cue by its runs in the prefix, window and n-gram charts.

    Every run of the cue is probed (only the stored side is winnowed), so a stored run that was kept is found
    whenever its tokens are intact in the cue.
    """
    begin_F = np.repeat(cues.start_Q1[:-1], cues.length_Q)
    query_F = np.repeat(np.arange(len(cues)), cues.length_Q)
    within_F = np.arange(len(cues.token_F)) - begin_F
    places = _Places(readout, cues)
    params = charts.params
    sketches = (
        (charts.prefix, params.prefix_tokens, within_F == 0),
        (charts.window, params.window_tokens, True),
        (charts.ngram, params.ngram_tokens, True),
    )
    place_parts, kind_parts, weight_parts = [], [], []
    for kind, (chart, length, asked) in enumerate(sketches):
        probe_M = np.flatnonzero(cues.runs(length) & asked)
        hits = chart.probe(ngram_hashes(cues.token_F, length)[probe_M], search.max_postings)
        flat_H = probe_M[hits.probe_H]
        element_H = readout.element_of(hits.position_H)
        place_parts.append(places.pack(query_F[flat_H], element_H, hits.position_H - within_F[flat_H]))
        kind_parts.append(np.full(len(flat_H), kind))
        weight_parts.append(np.log(1 + readout.size / hits.found_H))
    place_A, owner_H = np.unique(np.concatenate(place_parts), return_inverse=True)
    kind_H = np.concatenate(kind_parts)
    hits_AC = np.bincount(owner_H * _CHARTS + kind_H, minlength=_CHARTS * len(place_A)).reshape(-1, _CHARTS)
    weight_A = np.bincount(owner_H, weights=np.concatenate(weight_parts), minlength=len(place_A))
    found = Alignments(*places.unpack(place_A), hits_AC, weight_A)
    return found.take(_heaviest(found.query_A, weight_A, search.max_alignments))


def _heaviest(query_A: np.ndarray, weight_A: np.ndarray, limit: int) -> np.ndarray:
    """Rows of the `limit` greatest weights of each query; equal weights keep store order."""
    order = np.lexsort((-weight_A, query_A))
    first_A = np.searchsorted(query_A[order], query_A[order], side="left")
    return np.sort(order[np.arange(len(order)) - first_A < limit])


def bag_mass(cues: CueBatch, queries: np.ndarray, charts: Charts, probes: int) -> np.ndarray:
    """Token-bag support (U, E) float64 of the given queries: -1 for elements that share none of the tokens.

    The mass is the share of the idf of the cue's `probes` rarest distinct tokens that the element holds,
    times the element's damping.
    """
    bag = charts.bag
    query_T, token_T = _distinct_tokens(cues, queries)
    kept = _heaviest(query_T, bag.idf_V[token_T], probes)
    query_T, token_T = query_T[kept], token_T[kept]
    idf_T = bag.idf_V[token_T].astype(np.float64)
    total_Q = np.maximum(np.bincount(query_T, weights=idf_T, minlength=len(cues)), 1e-9)
    mass_UE = np.full((len(queries), len(bag.damping_E)), -1.0)
    for mass_E, query in zip(mass_UE, queries.tolist(), strict=True):
        begin, end = np.searchsorted(query_T, [query, query + 1]).tolist()
        held = [bag.held(token) for token in token_T[begin:end].tolist()]
        element_H = np.concatenate(held)
        weight_H = np.repeat(idf_T[begin:end], list(map(len, held)))
        sum_E = np.bincount(element_H, weights=weight_H, minlength=len(mass_E))
        mass_E[element_H] = (sum_E / total_Q[query] * bag.damping_E)[element_H]
    return mass_UE


def _distinct_tokens(cues: CueBatch, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    rows_QL = cues.token_QL[queries]
    row, column = np.nonzero(rows_QL >= 0)
    vocabulary = int(rows_QL.max(initial=0)) + 1
    pair = np.unique(queries[row] * vocabulary + rows_QL[row, column])
    query_T, token_T = np.divmod(pair, vocabulary)
    return query_T, token_T


def locate(
    cues: CueBatch, query_P: np.ndarray, element_P: np.ndarray, charts: Charts, readout: Readout
) -> Alignments:
    """The best alignment of each (query, element) pair by its single tokens, weighted by their idf.

    A pair without a common token is laid right before the element's start. Of a token that stands in a cue
    several times the last place counts, of equally good alignments the first.
    """
    bounds = np.flatnonzero(np.diff(query_P, prepend=-1, append=-1)).tolist()
    parts = [
        _single_tokens(cues, int(query_P[begin]), element_P[begin:end], charts.bag.idf_V, readout)
        for begin, end in pairwise(bounds)
    ]
    diagonal_P = np.concatenate([*parts, np.empty(0, dtype=np.int64)])
    none = np.zeros(len(query_P))
    return Alignments(query_P, element_P, diagonal_P, np.zeros((len(query_P), _CHARTS), dtype=np.int64), none)


def _single_tokens(
    cues: CueBatch, query: int, element_P: np.ndarray, idf_V: np.ndarray, readout: Readout
) -> np.ndarray:
    """The diagonals (int64) of one cue in some elements, for `locate`."""
    width = cues.token_QL.shape[1]
    start_P = readout.start_E1[element_P]
    length_P = readout.start_E1[element_P + 1] - start_P
    column_V = np.full(len(idf_V), NO_TOKEN, dtype=np.int16)
    known = np.flatnonzero(cues.token_QL[query] != NO_TOKEN)
    column_V[cues.token_QL[query, known]] = known
    token_N = np.concatenate([readout.tokens(element) for element in element_P.tolist()])
    column_N = column_V[token_N]
    met = np.flatnonzero(column_N >= 0)
    owner_H = np.repeat(np.arange(len(element_P)), length_P)[met]
    # Each element has a bin for every diagonal from `width` before its start to its end.
    bins_P = length_P + width
    first_P = np.cumsum(bins_P) - bins_P
    bin_H = met + (owner_H + 1) * width - column_N[met]
    # A small constant lets tokens without distinction decide where nothing else does.
    mass_B = np.bincount(bin_H, weights=idf_V[token_N[met]] + 1e-3, minlength=int(bins_P.sum()))
    peak_P = np.maximum.reduceat(mass_B, first_P)
    peaks = np.flatnonzero(mass_B == np.repeat(peak_P, bins_P))
    best_P = peaks[np.searchsorted(peaks, first_P)] - first_P - width
    diagonal_P: np.ndarray = np.where(peak_P > 0, start_P + best_P, start_P - cues.length_Q[query])
    return diagonal_P
