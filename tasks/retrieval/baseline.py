"""Baselines that stand beside the charts: searchers that order elements by one score and nothing else."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from tasks.retrieval.alignment import locate
from tasks.retrieval.cues import CueBatch
from tasks.retrieval.features import FEATURES, verify
from tasks.retrieval.index import Candidate, Index

_BATCH = 128


class ElementSearch(ABC):
    """Elements of an index in the order of one score.

    The cue is laid over each element found at its best single-token alignment, so that a baseline too can say
    where the answer lies; that does not change the order, and is no part of `nearest`.
    """

    def __init__(self, index: Index) -> None:
        self.index = index

    @abstractmethod
    def scores(self, cues: CueBatch, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Scores (float) and numbers (int64) of the best elements of each cue, best first, (Q, at most k)."""

    def nearest(self, cues: Sequence[np.ndarray], k: int) -> np.ndarray:
        """Numbers (int64) of the k best elements of each cue, best first: the search alone."""
        found = [
            self.scores(self.index.batch(cues[begin : begin + _BATCH]), k)[1]
            for begin in range(0, len(cues), _BATCH)
        ]
        numbers_Qk: np.ndarray = np.concatenate(found)
        return numbers_Qk

    def search(self, cue_ids: np.ndarray, k: int) -> list[Candidate]:
        """The k best elements of one cue."""
        return self.search_many([cue_ids], k)[0]

    def search_many(self, cues: Sequence[np.ndarray], k: int) -> list[list[Candidate]]:
        """The k best elements of each cue; a candidate's `score` is the baseline's own."""
        answers = []
        for begin in range(0, len(cues), _BATCH):
            batch = self.index.batch(cues[begin : begin + _BATCH])
            answers += self._laid_over(batch, *self.scores(batch, k))
        return answers

    def _laid_over(
        self, batch: CueBatch, score_Qk: np.ndarray, element_Qk: np.ndarray
    ) -> list[list[Candidate]]:
        readout, (count, width) = self.index.readout, element_Qk.shape
        query_P = np.repeat(np.arange(count), width)
        found = locate(batch, query_P, element_Qk.ravel(), self.index.sources.charts, readout)
        verified = verify(batch, found, readout)
        none_F = np.zeros(len(FEATURES))
        candidates = [
            Candidate(readout.names[element], readout.versions[element], score, offset, agreement, none_F)
            for element, score, offset, agreement in zip(
                element_Qk.ravel().tolist(),
                score_Qk.ravel().tolist(),
                verified.offset_A.tolist(),
                verified.agreement_A.tolist(),
                strict=True,
            )
        ]
        return [candidates[row * width : (row + 1) * width] for row in range(count)]


class DenseSearch(ElementSearch):
    """The learned mean-pooled retriever: the cosine of an element's key with the cue's, by FAISS."""

    def __init__(self, index: Index) -> None:
        super().__init__(index)
        if index.sources.dense is None or index.sources.encoder is None:
            raise ValueError("the index has no dense keys to search; open one that was built with them")
        self._dense = index.sources.dense
        self._encoder = index.sources.encoder

    def scores(self, cues: CueBatch, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Cosines and elements; the gaps of a cue are closed before it is encoded."""
        rows = [cues.known(query) for query in range(len(cues))]
        return self._dense.search(self._dense.queries(self._encoder(rows)), k)
