"""What the reranker sees of an alignment: its chart hits and its verification against the decoded tokens."""

from dataclasses import dataclass

import numpy as np

from tasks.retrieval.alignment import Alignments
from tasks.retrieval.charts import Charts
from tasks.retrieval.cues import NO_TOKEN, CueBatch
from tasks.retrieval.readout import Readout

FEATURES = (
    "prefix",  # 1 where the cue's first tokens begin a block here
    "window",  # share of the cue's windows found here
    "ngram",  # share of the cue's n-grams found here
    "information",  # of all those hits, per cue token, relative to the log of the store's size
    "agreement",  # share of the cue's known tokens equal to the decoded ones
    "distinctive_agreement",  # the same, weighted by idf
    "longest",  # longest run of equal tokens, as a share of the cue; a gap neither ends nor lengthens it
    "ending",  # run of equal tokens that ends with the cue, as a share of it
    "inside",  # share of the cue that lies inside the element
    "continues",  # 1 where the element has what is asked for: tokens after the cue, or in its gap
    "behind",  # agreement below the query's best
    "ties",  # log of one more than the query's other alignments with this agreement
    "bag",  # token-bag mass (0 where the fallback was not needed)
    "cosine",  # dense score (0 where the fallback was not needed)
    "fallback",  # 1 where no chart gave a confident alignment
    "length",  # log of the cue's known tokens
)


@dataclass(frozen=True)
class Verified:
    """Alignments compared with the decoded tokens: match_AL (bool, per cue token) and offset_A (int64), the
    token of the element right after the cue, kept inside the element. continues_A (bool) tells whether the
    element has what is asked for there; shares are of the cue's known tokens."""

    match_AL: np.ndarray
    inside_A: np.ndarray
    continues_A: np.ndarray
    offset_A: np.ndarray
    agreement_A: np.ndarray


def verify(cues: CueBatch, alignments: Alignments, readout: Readout) -> Verified:
    """Read the decoded tokens under every cue token; those outside the element, and gaps, never match."""
    cue_AL = cues.token_QL[alignments.query_A]
    length_A = cues.length_Q[alignments.query_A]
    known_A = cues.visible_Q[alignments.query_A]
    gap_A = cues.gap_Q[alignments.query_A]
    start_A = readout.start_E1[alignments.element_A]
    stop_A = readout.start_E1[alignments.element_A + 1]
    position_AL = alignments.diagonal_A[:, None] + np.arange(cue_AL.shape[1])
    inside_AL = (cue_AL >= 0) & (position_AL >= start_A[:, None]) & (position_AL < stop_A[:, None])
    stored_AL = readout.at(np.where(inside_AL, position_AL, 0)) if readout.size else cue_AL
    match_AL = inside_AL & (stored_AL == cue_AL)
    offset_A = np.clip(alignments.diagonal_A + length_A - start_A, 0, stop_A - start_A)
    asked_A = alignments.diagonal_A + gap_A
    return Verified(
        match_AL=match_AL,
        inside_A=inside_AL.sum(1) / known_A,
        continues_A=np.where(
            gap_A < 0, offset_A < stop_A - start_A, (asked_A >= start_A) & (asked_A < stop_A)
        ),
        offset_A=offset_A,
        agreement_A=match_AL.sum(1) / known_A,
    )


def feature_matrix(
    cues: CueBatch,
    alignments: Alignments,
    verified: Verified,
    charts: Charts,
    readout: Readout,
    bag_A: np.ndarray,
    cosine_A: np.ndarray,
    fallback_A: np.ndarray,
) -> np.ndarray:
    """Features (A, F) float64 in the order of FEATURES."""
    length_A = cues.visible_Q[alignments.query_A]
    last_A = cues.length_Q[alignments.query_A] - 1
    params = charts.params
    windows_A = np.maximum(cues.run_counts(params.window_tokens), 1)[alignments.query_A]
    ngrams_A = np.maximum(cues.run_counts(params.ngram_tokens), 1)[alignments.query_A]
    run_AL = _runs(verified.match_AL, cues.token_QL[alignments.query_A] == NO_TOKEN)
    idf_AL = np.where(cues.token_QL >= 0, charts.bag.idf_V[cues.token_QL], 0.0)[alignments.query_A]
    behind_A, ties_A = _against_the_best(alignments.query_A, verified.match_AL.sum(1), length_A)
    columns = (
        alignments.hits_AC[:, 0] > 0,
        alignments.hits_AC[:, 1] / windows_A,
        alignments.hits_AC[:, 2] / ngrams_A,
        alignments.weight_A / (length_A * np.log(1 + max(readout.size, 1))),
        verified.agreement_A,
        (idf_AL * verified.match_AL).sum(1) / np.maximum(idf_AL.sum(1), 1e-9),
        run_AL.max(1, initial=0) / length_A,
        run_AL[np.arange(len(alignments)), last_A] / length_A,
        verified.inside_A,
        verified.continues_A,
        behind_A,
        ties_A,
        bag_A,
        cosine_A,
        fallback_A,
        np.log(length_A),
    )
    return np.stack([np.asarray(column, dtype=np.float64) for column in columns], axis=1)


def _runs(match_AL: np.ndarray, unknown_AL: np.ndarray) -> np.ndarray:
    """Length of the run of matches that ends at each token, passing over those that are not known."""
    matches_AL = np.cumsum(match_AL, axis=1)
    miss_AL = ~match_AL & ~unknown_AL
    return matches_AL - np.maximum.accumulate(np.where(miss_AL, matches_AL, 0), axis=1)


def _against_the_best(
    query_A: np.ndarray, matches_A: np.ndarray, length_A: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Agreement below the query's best, and the log of one more than its other alignments of equal
    agreement."""
    best_Q = np.zeros(int(query_A.max(initial=-1)) + 1, dtype=np.int64)
    np.maximum.at(best_Q, query_A, matches_A)
    pair_A = query_A * (int(length_A.max(initial=0)) + 1) + matches_A
    _, owner_A, count = np.unique(pair_A, return_inverse=True, return_counts=True)
    return (best_Q[query_A] - matches_A) / length_A, np.log(count[owner_A])
