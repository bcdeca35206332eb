"""All that speaks for the candidates of a batch of cues: chart hits first, token bag and dense keys where
needed."""

from dataclasses import dataclass

import numpy as np

from tasks.codec import Codec
from tasks.errors import BadPayload
from tasks.retrieval.alignment import Alignments, bag_mass, find, locate
from tasks.retrieval.arrays import best_first
from tasks.retrieval.charts import Charts
from tasks.retrieval.cues import CueBatch
from tasks.retrieval.dense import CueEncoder, DenseIndex
from tasks.retrieval.features import Verified, feature_matrix, verify
from tasks.retrieval.params import SearchParams
from tasks.retrieval.readout import Readout


@dataclass(frozen=True)
class Sources:
    """Where candidates come from: one set of memories, decoded, sketched and (optionally) densely keyed."""

    readout: Readout
    charts: Charts
    dense: DenseIndex | None
    encoder: CueEncoder | None


def check_sources(sources: Sources, codec: Codec) -> None:
    """Raise `BadPayload` unless the parts of an index speak of the same elements, tokens and cells."""
    elements, tokens = len(sources.readout), len(sources.readout.tokens_N)
    charts, dense = sources.charts, sources.dense
    hashed = (charts.prefix, charts.window, charts.ngram)
    fitting = (
        len(charts.bag.damping_E) == elements
        and len(charts.bag.idf_V) == codec.vocab_size
        and all(chart.position_P.max(initial=0) < max(tokens, 1) for chart in hashed)
        and sources.readout.tokens_N.max(initial=0) < codec.vocab_size
        and (dense is None or dense.key_EC.shape == (elements, codec.architecture.cell_width))
    )
    if not fitting:
        raise BadPayload("the parts of the index do not fit one another; build the index again")


@dataclass(frozen=True)
class Evidence:
    """The alignments of a batch, verified, with their features_AF (float64)."""

    alignments: Alignments
    verified: Verified
    features_AF: np.ndarray


def gather(cues: CueBatch, sources: Sources, search: SearchParams) -> Evidence:
    """Evidence for a batch of cues.

    The token bag and the dense index are asked only for cues that no chart aligned with confidence: they
    cost more, and a verified run of equal tokens leaves them nothing to add.
    """
    readout, charts = sources.readout, sources.charts
    found = find(cues, charts, readout, search)
    verified = verify(cues, found, readout)
    best_Q = np.zeros(len(cues))
    np.maximum.at(best_Q, found.query_A, verified.agreement_A)
    unsure = np.flatnonzero(best_Q < search.confident_agreement)
    if not len(unsure):
        none_A = np.zeros(len(found))
        features_AF = feature_matrix(cues, found, verified, charts, readout, none_A, none_A, none_A)
        return Evidence(found, verified, features_AF)
    mass_UE = bag_mass(cues, unsure, charts, search.bag_probes)
    pairs = [
        query * len(readout) + _most(mass_E, search.bag_elements)
        for query, mass_E in zip(unsure.tolist(), mass_UE, strict=True)
    ]
    query_QC = None
    if sources.dense is not None and sources.encoder is not None:
        own_UC = sources.dense.queries(sources.encoder([cues.known(query) for query in unsure.tolist()]))
        _, near_Uk = sources.dense.search(own_UC, search.dense_elements)
        pairs.append(np.repeat(unsure, near_Uk.shape[1]) * len(readout) + near_Uk.ravel())
        query_QC = np.zeros((len(cues), own_UC.shape[1]), dtype=np.float32)
        query_QC[unsure] = own_UC
    query_P, element_P = np.divmod(np.unique(np.concatenate(pairs)), len(readout))
    found = found.joined(locate(cues, query_P, element_P, charts, readout))
    verified = verify(cues, found, readout)
    unsure_A = np.isin(found.query_A, unsure)
    cosine_A = np.zeros(len(found))
    if sources.dense is not None and query_QC is not None:
        key_AC = sources.dense.keys(found.element_A[unsure_A])
        cosine_A[unsure_A] = np.einsum("ac,ac->a", key_AC, query_QC[found.query_A[unsure_A]])
    row_Q = np.zeros(len(cues), dtype=np.int64)
    row_Q[unsure] = np.arange(len(unsure))
    bag_A = np.where(unsure_A, np.maximum(mass_UE[row_Q[found.query_A], found.element_A], 0.0), 0.0)
    features_AF = feature_matrix(cues, found, verified, charts, readout, bag_A, cosine_A, unsure_A)
    return Evidence(found, verified, features_AF)


def _most(mass_E: np.ndarray, limit: int) -> np.ndarray:
    """The elements of greatest mass, among those that have any."""
    # Rounded, because equal sums in another order differ in their last bits.
    mass, element = best_first(np.round(mass_E, 9), limit)
    held: np.ndarray = element[mass >= 0]
    return held
