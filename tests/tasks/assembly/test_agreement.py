"""The system's own weight: zero at chance, one for full agreement."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.assembly import agreement_weight, chance_agreement

tokens = st.lists(st.integers(0, 50), min_size=1, max_size=40)


@given(st.lists(st.integers(0, 4095), min_size=8, max_size=64, unique=True))
def test_full_agreement_of_varied_tokens_weighs_one(ids: list[int]) -> None:
    prompt = np.array(ids)
    assert agreement_weight(prompt, prompt, margin=1.0) == pytest.approx(1.0)


@given(tokens, st.integers(0, 10**6), st.floats(0, 8))
def test_the_weight_lies_between_zero_and_one_and_is_zero_at_or_below_chance(
    ids: list[int], seed: int, margin: float
) -> None:
    prompt = np.array(ids)
    evidence = np.random.default_rng(seed).permutation(prompt)
    weight = agreement_weight(evidence, prompt, margin=margin)
    assert 0 <= weight <= 1
    if (evidence == prompt).mean() <= chance_agreement(evidence, prompt):
        assert weight == 0


def test_chance_is_the_mean_agreement_over_all_shifts() -> None:
    evidence, prompt = np.array([1, 1, 2, 3]), np.array([1, 2, 2, 4])
    shifts = [(np.roll(evidence, k) == prompt).mean() for k in range(4)]
    assert chance_agreement(evidence, prompt) == pytest.approx(np.mean(shifts))


def test_evidence_of_one_token_throughout_tells_nothing() -> None:
    dashes = np.full(32, 7)
    assert agreement_weight(dashes, dashes, margin=4.0) == 0.0


def test_unrelated_texts_that_share_frequent_tokens_weigh_nothing() -> None:
    rng = np.random.default_rng(0)
    draw = rng.zipf(1.3, (400, 2, 32)) % 4096
    weights = [agreement_weight(evidence, prompt, margin=4.0) for evidence, prompt in draw]
    assert np.mean(np.array(weights) > 0) < 0.01


def test_nothing_to_compare_weighs_nothing_and_unequal_lengths_are_refused() -> None:
    empty = np.zeros(0, np.int64)
    assert agreement_weight(empty, empty, margin=1.0) == 0.0
    with pytest.raises(ValueError, match="equal lengths"):
        agreement_weight(np.array([1]), empty, margin=1.0)
