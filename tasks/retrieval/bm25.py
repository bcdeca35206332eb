"""BM25 over the decoded tokens: the lexical baseline, on the very ids that the charts are made of."""

import logging

import numpy as np

from tasks.retrieval.arrays import best_first
from tasks.retrieval.baseline import ElementSearch
from tasks.retrieval.cues import CueBatch
from tasks.retrieval.index import Index


class BM25Search(ElementSearch):
    """Elements in the order of their BM25 score, by bm25s in Lucene's variant.

    score(q, e) = sum over the cue's known tokens t of idf_t f_te / (f_te + k1 (1 - b + b |e| / mean |e|)),
    f_te the times that t occurs in e. Gaps are closed; every occurrence in the cue counts.
    """

    def __init__(self, index: Index, *, k1: float = 1.5, b: float = 0.75) -> None:
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it asks for all of its own debugging lines
        super().__init__(index)
        documents = [index.readout.tokens(row).tolist() for row in range(len(index.readout))]
        self.model = bm25s.BM25(k1=k1, b=b)
        vocabulary = {token: token for token in range(index.vocab_size)}
        self.model.index((documents, vocabulary), create_empty_token=False, show_progress=False)

    def scores(self, cues: CueBatch, k: int) -> tuple[np.ndarray, np.ndarray]:
        """BM25 scores and elements; equal scores keep store order."""
        rows = [
            best_first(self.model.get_scores_from_ids(cues.known(query).tolist()), k)
            for query in range(len(cues))
        ]
        return np.stack([score for score, _ in rows]), np.stack([element for _, element in rows])
