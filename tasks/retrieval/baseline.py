"""The mean-pooled dense retriever alone: the learned baseline that stands beside the charts."""

from collections.abc import Sequence

import numpy as np

from tasks.retrieval.alignment import locate
from tasks.retrieval.features import FEATURES, verify
from tasks.retrieval.index import Candidate, Index

_BATCH = 128


class DenseSearch:
    """Elements ordered by the cosine of their key with the cue's, and nothing else.

    The cue is laid over each element found at its best single-token alignment, so that the baseline too can
    say where the continuation begins; that does not change the order.
    """

    def __init__(self, index: Index) -> None:
        if index.sources.dense is None or index.sources.encoder is None:
            raise ValueError("the index has no dense keys to search; open one that was built with them")
        self._index = index
        self._dense = index.sources.dense
        self._encoder = index.sources.encoder

    def search(self, cue_ids: np.ndarray, k: int) -> list[Candidate]:
        """The k nearest elements of one cue."""
        return self.search_many([cue_ids], k)[0]

    def search_many(self, cues: Sequence[np.ndarray], k: int) -> list[list[Candidate]]:
        """The k nearest elements of each cue; `score` is the cosine, and the only feature."""
        readout = self._index.readout
        answers = []
        for begin in range(0, len(cues), _BATCH):
            batch = self._index.batch(cues[begin : begin + _BATCH])
            rows = [batch.row(query) for query in range(len(batch))]
            cosine_Qk, element_Qk = self._dense.search(self._dense.queries(self._encoder(rows)), k)
            query_P = np.repeat(np.arange(len(batch)), element_Qk.shape[1])
            found = locate(batch, query_P, element_Qk.ravel(), self._index.sources.charts, readout)
            verified = verify(batch, found, readout)
            features_PF = np.zeros((len(found), len(FEATURES)))
            features_PF[:, FEATURES.index("cosine")] = cosine_Qk.ravel()
            candidates = [
                Candidate(
                    readout.names[element], readout.versions[element], score, offset, agreement, features_F
                )
                for element, score, offset, agreement, features_F in zip(
                    element_Qk.ravel().tolist(),
                    cosine_Qk.ravel().tolist(),
                    verified.offset_A.tolist(),
                    verified.agreement_A.tolist(),
                    features_PF,
                    strict=True,
                )
            ]
            width = element_Qk.shape[1]
            answers += [candidates[row * width : (row + 1) * width] for row in range(len(batch))]
        return answers
