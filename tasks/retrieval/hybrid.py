"""Asking for memories without a cue of theirs: charts, BM25 over decoded text and dense keys together.

Question-only protocol: nothing of what is asked was cut from an element, and no offset is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tasks.corpus import Tokenizer
from tasks.errors import BadQuery
from tasks.retrieval.alignment import find
from tasks.retrieval.index import Index
from tasks.retrieval.lexicon import Lexicon, character_runs, words

SIGNALS = ("words", "characters", "charts", "dense")
_NEWTON_STEPS = 25
_AT_ONCE = 128
_SMALLEST_STEP = 1e-6
_RIDGE = 1e-2
_CUT_SHARE, _ENDING = 0.5, 2


@dataclass(frozen=True)
class Signals:
    """What speaks for the elements of an index when a question is asked."""

    index: Index
    tokenizer: Tokenizer
    words: Lexicon
    characters: Lexicon

    @classmethod
    def of(cls, index: Index, tokenizer: Tokenizer) -> "Signals":
        """Signals over what an index's memories decode to; raises BadQuery where it has no dense keys."""
        if index.sources.dense is None or index.sources.encoder is None:
            raise BadQuery("the index has no dense keys; build one with them to ask it questions")
        texts = decoded_texts(index, tokenizer)
        return cls(index, tokenizer, Lexicon(texts, words), Lexicon(texts, character_runs))

    def standard(self, asked: Sequence[str]) -> np.ndarray:
        """Signals (Q, E, S) float64 in the order of SIGNALS, each of mean 0 and deviation 1 over the elements
        of a question (0 where it tells them not apart)."""
        parts = [
            self.words.scores(asked),
            self.characters.scores(asked),
            *(np.stack(part) for part in zip(*map(self._of_tokens, asked), strict=True)),
        ]
        value_QES = np.stack(parts, axis=2)
        spread_Q1S = value_QES.std(1, keepdims=True)
        centred_QES = value_QES - value_QES.mean(1, keepdims=True)
        standard: np.ndarray = np.where(spread_Q1S > 1e-9, centred_QES / np.maximum(spread_Q1S, 1e-9), 0.0)
        return standard

    def _of_tokens(self, text: str) -> tuple[np.ndarray, np.ndarray]:
        """Information of the chart hits of a question in each element, in nats, and cosines (both (E,))."""
        index, elements = self.index, len(self.index.readout)
        ids = self.tokenizer.encode(text)
        if not len(ids):
            raise BadQuery("a question has no tokens; ask for something")
        batch = index.batch([ids])
        found = find(batch, index.sources.charts, index.readout, index.params)
        hits_E = np.bincount(found.element_A, weights=found.weight_A, minlength=elements)
        dense, encoder = index.sources.dense, index.sources.encoder
        assert dense is not None, "checked when the signals were made"
        assert encoder is not None, "checked when the signals were made"
        query_1C = dense.queries(encoder([batch.known(0)]))
        cosine_E = dense.keys(np.arange(elements)).astype(np.float64) @ query_1C[0].astype(np.float64)
        return hits_E, cosine_E


@dataclass(frozen=True)
class Hybrid:
    """Signals and the weight of each: score = sum of weight times standardised signal."""

    signals: Signals
    weight_S: np.ndarray

    @classmethod
    def fit(cls, signals: Signals, *, asked: int, generator: np.random.Generator) -> "Hybrid":
        """Weigh the signals so that scrambled sentences find the text that they are from.

        No question is needed: `asked` cues come from `scrambled_sentences`. The weights are those of a
        softmax regression over the elements, with a small ridge.
        """
        texts = decoded_texts(signals.index, signals.tokenizer)
        right_Q, cues = scrambled_sentences(texts, asked, generator)
        if not cues:
            raise BadQuery("no text has a sentence to learn from; index longer texts")
        return cls(signals, _softmax_regression(signals.standard(cues), right_Q))

    def scores(self, asked: Sequence[str]) -> np.ndarray:
        """Scores (Q, E) float64 of all elements for each question."""
        parts = [
            self.signals.standard(asked[begin : begin + _AT_ONCE]) @ self.weight_S
            for begin in range(0, len(asked), _AT_ONCE)
        ]
        return np.concatenate(parts)


def decoded_texts(index: Index, tokenizer: Tokenizer) -> list[str]:
    """What the elements of an index decode to, as text."""
    return [tokenizer.decode(index.readout.tokens(row)) for row in range(len(index.readout))]


def scrambled_sentences(
    texts: Sequence[str], count: int, generator: np.random.Generator
) -> tuple[np.ndarray, list[str]]:
    """At most `count` sentences with half of their words left, shuffled, and which text each is from.

    Every other long word loses its ending, since who asks uses other forms of words.
    """
    sentences = [
        (row, found)
        for row, text in enumerate(texts)
        for sentence in text.split(". ")
        if len(found := words(sentence)) >= 6
    ]
    chosen = sorted(generator.permutation(len(sentences))[:count].tolist())
    cues = [_scrambled(sentences[one][1], generator) for one in chosen]
    return np.array([sentences[one][0] for one in chosen], dtype=np.int64), cues


def _scrambled(sentence: Sequence[str], generator: np.random.Generator) -> str:
    kept = generator.permutation(list(sentence))[: (len(sentence) + 1) // 2].tolist()
    cut = generator.random(len(kept)) < _CUT_SHARE
    return " ".join(
        word[:-_ENDING] if loses and len(word) > 2 * _ENDING else word
        for word, loses in zip(kept, cut.tolist(), strict=True)
    )


def _softmax_regression(signal_QES: np.ndarray, right_Q: np.ndarray) -> np.ndarray:
    """Weights (S,) that minimise the mean of -log softmax over the elements, plus a ridge.

    Newton's method from zero; a step is halved until the loss does not rise.
    """
    queries, _, signals = signal_QES.shape
    right_QS = signal_QES[np.arange(queries), right_Q]

    def loss(weight_S: np.ndarray) -> float:
        logit_QE = signal_QES @ weight_S
        most_Q1 = logit_QE.max(1, keepdims=True)
        total_Q = np.log(np.exp(logit_QE - most_Q1).sum(1)) + most_Q1[:, 0]
        return float((total_Q - right_QS @ weight_S).mean() + _RIDGE / 2 * weight_S @ weight_S)

    weight_S = np.zeros(signals)
    for _ in range(_NEWTON_STEPS):
        logit_QE = signal_QES @ weight_S
        share_QE = np.exp(logit_QE - logit_QE.max(1, keepdims=True))
        share_QE /= share_QE.sum(1, keepdims=True)
        mean_QS = np.einsum("qe,qes->qs", share_QE, signal_QES)
        gradient_S = (mean_QS - right_QS).mean(0) + _RIDGE * weight_S
        second_SS = np.einsum("qe,qes,qet->st", share_QE, signal_QES, signal_QES) / queries
        second_SS += _RIDGE * np.eye(signals) - mean_QS.T @ mean_QS / queries
        step_S = np.linalg.solve(second_SS, gradient_S)
        before, scale = loss(weight_S), 1.0
        while scale > _SMALLEST_STEP and loss(weight_S - scale * step_S) > before:
            scale /= 2
        if scale <= _SMALLEST_STEP:
            break
        weight_S = weight_S - scale * step_S
    return weight_S
