"""BM25 over the terms of texts: words, or runs of characters, which meet other forms of a word halfway."""

import logging
import re
from collections.abc import Callable, Sequence

import numpy as np

Terms = Callable[[str], list[str]]
_WORD = re.compile(r"\w+")
_RUN = 4


def words(text: str) -> list[str]:
    """The words of a text in lower case."""
    return _WORD.findall(text.lower())


def character_runs(text: str) -> list[str]:
    """Runs of four characters of a text's words in lower case, with one space around each word."""
    joined = f" {' '.join(words(text))} "
    return [joined[at : at + _RUN] for at in range(len(joined) - _RUN + 1)]


class Lexicon:
    """BM25 (Lucene's variant, by bm25s) of texts for what is asked, over the terms of both."""

    def __init__(self, texts: Sequence[str], terms: Terms, *, k1: float = 1.5, b: float = 0.75) -> None:
        import bm25s

        logging.getLogger("bm25s").setLevel(logging.WARNING)  # it asks for all of its own debugging lines
        split = [terms(text) for text in texts]
        known = sorted({term for document in split for term in document})
        self._terms = terms
        self._number = {term: number for number, term in enumerate(known)}
        self._elements = len(texts)
        self._model = bm25s.BM25(k1=k1, b=b)
        documents = [[self._number[term] for term in document] for document in split]
        vocabulary = {number: number for number in range(len(known))}
        self._model.index((documents, vocabulary), create_empty_token=False, show_progress=False)

    def scores(self, asked: Sequence[str]) -> np.ndarray:
        """Scores (Q, E) float64; 0 for a text that shares no term."""
        rows = [[self._number[t] for t in self._terms(text) if t in self._number] for text in asked]
        none_E = np.zeros(self._elements, dtype=np.float64)
        found = [self._model.get_scores_from_ids(row) if row else none_E for row in rows]
        return np.stack(found).astype(np.float64)
