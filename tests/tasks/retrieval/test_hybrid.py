"""Signals are weighed without a question, and the weights are those of the least loss."""

import numpy as np
import pytest

from tasks.corpus import Tokenizer
from tasks.retrieval import Index, Lexicon, Signals, character_runs, scrambled_sentences, words
from tasks.retrieval.hybrid import _softmax_regression

TEXTS = ["The cat sat on a mat. It slept there all day long.", "Dogs bark at night, and cats listen to them."]


def test_terms_are_words_or_runs_of_their_characters() -> None:
    assert words("It's A-1 ärger") == ["it", "s", "a", "1", "ärger"]
    assert character_runs("Cats!") == [" cat", "cats", "ats "]
    assert character_runs("") == []


def test_character_runs_meet_other_forms_of_a_word() -> None:
    asked = ["sleeping cat", "xyzzy"]
    whole, runs = (Lexicon(TEXTS, terms).scores(asked) for terms in (words, character_runs))
    assert whole.shape == runs.shape == (2, 2)
    assert whole[0, 1] == 0 < runs[0, 1]
    assert whole[1].tolist() == runs[1].tolist() == [0, 0]


def test_scrambled_sentences_are_half_of_a_sentence_s_words() -> None:
    rows, cues = scrambled_sentences(TEXTS, 9, np.random.default_rng(0))
    assert rows.tolist() == [0, 0, 1]
    for row, cue in zip(rows, cues, strict=True):
        assert 3 <= len(cue.split()) <= 5
        assert all(any(known.startswith(word) for known in words(TEXTS[row])) for word in cue.split())


def test_signals_are_standard_and_a_sentence_speaks_for_its_text(index: Index, tokenizer: Tokenizer) -> None:
    signals = Signals.of(index, tokenizer)
    text = tokenizer.decode(index.readout.tokens(4)[30:60])
    value_QES = signals.standard([text, "zzzz"])
    assert value_QES.shape == (2, len(index.readout), 4)
    assert np.abs(value_QES.mean(1)).max() < 1e-9
    assert value_QES[0].argmax(0)[:3].tolist() == [4, 4, 4]


def test_weights_have_the_least_loss_of_all_near_ones() -> None:
    draw = np.random.default_rng(1)
    signal_QES = draw.standard_normal((80, 12, 3))
    right_Q = (signal_QES @ np.array([2.0, 0.5, 0.0]) + draw.gumbel(size=(80, 12))).argmax(1)

    def loss(weight_S: np.ndarray) -> float:
        logit_QE = signal_QES @ weight_S
        share_Q = np.exp(logit_QE[np.arange(80), right_Q]) / np.exp(logit_QE).sum(1)
        return float(-np.log(share_Q).mean() + 0.005 * weight_S @ weight_S)

    found = _softmax_regression(signal_QES, right_Q)
    assert found[0] > found[1] > found[2] - 0.3
    for nudge in draw.standard_normal((30, 3)) * 0.05:
        assert loss(found) < loss(found + nudge)


def test_separable_signals_do_not_run_away() -> None:
    signal_QES = np.zeros((20, 5, 2))
    signal_QES[:, 0, 0] = 2.0
    found = _softmax_regression(signal_QES, np.zeros(20, dtype=np.int64))
    assert 0 < found[0] < 20
    assert found[1] == pytest.approx(0)
