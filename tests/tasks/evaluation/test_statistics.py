"""Bootstrap, gains, samples and accounts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.evaluation import (
    Condition,
    EvaluationParams,
    Sample,
    encode_samples,
    gains,
    interval,
    load_samples,
    resampled_means,
    summarise,
)


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@settings(deadline=None, max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 5), st.floats(-9, 9)), min_size=1, max_size=40))
def test_resampled_means_keep_a_document_together_and_conditions_paired(
    tasks: list[tuple[int, float]],
) -> None:
    _, cluster_N = np.unique([document for document, _ in tasks], return_inverse=True)
    value_N = np.array([value for _, value in tasks])
    drawn = resampled_means(np.stack([value_N, value_N + 2.5], 1), cluster_N, resamples=200, generator=rng())
    assert drawn.shape == (200, 2)
    np.testing.assert_allclose(drawn[:, 1] - drawn[:, 0], 2.5)
    assert drawn[:, 0].min() >= value_N.min() - 1e-9
    if cluster_N.max() == 0:
        np.testing.assert_allclose(drawn[:, 0], value_N.mean())


def test_intervals_of_clustered_values_are_as_wide_as_their_documents_and_not_their_tasks() -> None:
    document_C = rng().normal(size=40)
    cluster_N = np.repeat(np.arange(40), 25)
    value_N1 = document_C[cluster_N][:, None]
    clustered = resampled_means(value_N1, cluster_N, resamples=4000, generator=rng())
    assert clustered.std() == pytest.approx(document_C.std() / np.sqrt(40), rel=0.1)


def test_a_percentile_interval_of_a_normal_mean_has_its_known_width() -> None:
    found = interval(0.0, rng().normal(size=200_000), 0.95)
    assert (found.low, found.high) == pytest.approx((-1.96, 1.96), abs=0.03)


def test_gains_split_the_whole_gain_into_a_documents_and_a_generic_part() -> None:
    mean = {Condition.NONE: 7.2544, Condition.WRONG: 6.7726, Condition.RIGHT: 6.6930}
    mean[Condition.WRONG_WEIGHED] = mean[Condition.NONE]
    mean[Condition.RETRIEVED], mean[Condition.RAW_TEXT] = 6.7, 6.6
    found = gains(mean, {c: np.full(10, value) for c, value in mean.items()}, 0.95)
    assert found.document_specific.value == pytest.approx(0.0796)
    assert found.generic.value == pytest.approx(0.4818)
    assert found.share.value == pytest.approx(0.0796 / 0.5614)
    assert found.weighed_share.value == pytest.approx(1.0)


def test_what_weighed_evidence_costs_and_what_found_evidence_gains_beside_raw_text() -> None:
    mean = dict.fromkeys(Condition, 4.0) | {Condition.WRONG_WEIGHED: 4.03}
    mean |= {Condition.RETRIEVED: 1.0, Condition.RAW_TEXT: 0.5, Condition.RIGHT: 0.2}
    noise_R = rng().normal(size=1000)
    drawn = {c: value + noise_R for c, value in mean.items()}
    found = gains(mean, drawn, 0.95)
    for figure, value in [
        (found.weighed_cost, 0.03),
        (found.retrieved, 3.0),
        (found.raw_text, 3.5),
        (found.of_raw_text, 6 / 7),
    ]:  # paired: what all conditions share leaves no width
        assert (figure.low, figure.value, figure.high) == pytest.approx((value,) * 3)
    same = drawn | {Condition.RAW_TEXT: drawn[Condition.NONE]}
    assert gains(mean | {Condition.RAW_TEXT: 4.0}, same, 0.95).of_raw_text.value == 0


def sample(task: int, condition: Condition, nll: float) -> Sample:
    return Sample(
        task=f"task {task}",
        kind="quote_continuation",
        condition=condition.value,
        family=condition.family.value,
        element=f"memory/{task % 3}",
        evidence="memory/0",
        evidence_start=-2,
        weight=1.0,
        attached=9,
        nll=nll,
        target_tokens=4,
        right_tokens=3,
        exact=False,
        bytes_read=12,
        cue="Brot backen wir",
        target="täglich",
        written="",
    )


def test_samples_survive_their_file_and_equal_samples_give_equal_bytes() -> None:
    samples = [sample(n, condition, n / 7) for condition in Condition for n in range(5)]
    assert load_samples(encode_samples(samples)) == samples
    assert encode_samples(samples) == encode_samples(list(samples))


def test_a_summary_gives_means_over_tasks_and_intervals_around_them() -> None:
    level = {c: float(n) for n, c in enumerate((*Condition,))}
    samples = [sample(n, c, level[c] + 0.01 * (n % 3)) for c in Condition for n in range(12)]
    summary = summarise(samples, EvaluationParams(resamples=200))
    assert (summary["tasks"], summary["documents"], summary["target_tokens"]) == (12, 3, 48)
    assert summary["nll"]["wrong"] == pytest.approx(level[Condition.WRONG] + 0.01)
    row = summary["conditions"]["wrong"]["nll"]
    assert row["low"] <= row["value"] <= row["high"]
    assert summary["gain"]["document_specific"] == pytest.approx(
        level[Condition.WRONG] - level[Condition.RIGHT]
    )
    assert summary == summarise(samples[::-1], EvaluationParams(resamples=200))
