"""HEDGE4's experts, the mixtures, the calibrated control and the scores, against what the text defines."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tasks.errors import BadPayload
from tasks.replay.calibration import energies_of, fit_biases, softmax
from tasks.replay.experts import Experts, KeyedMap
from tasks.replay.hedge import Hedge, half_brier
from tasks.replay.params import ExpertParams
from tasks.replay.score import calibration_error, calibration_table, commit_weights, nested_weights, scores
from tests.tasks.replay.conftest import job

PARAMS = ExpertParams()


def learned(*labels: str, **changes: Any) -> Experts:
    experts = Experts(PARAMS)
    for label in labels:
        experts.learn(job(label=label, **changes))
    return experts


def test_before_any_label_every_expert_is_uniform() -> None:
    assert np.allclose(Experts(PARAMS).predict(job()), 0.25)


def test_the_prior_is_the_workflows_frequencies_with_one_of_each_label_added() -> None:
    experts = learned("success", "success", "failure")
    assert np.allclose(experts.predict(job())[0], [3 / 7, 2 / 7, 1 / 7, 1 / 7])
    assert np.allclose(experts.predict(job(workflow_id="8"))[0], 0.25)


def test_last_labels_count_by_job_and_by_commit_and_unknown_keys_fall_back_to_the_prior() -> None:
    experts = learned("success", "failure")
    _, by_job, by_commit, _ = experts.predict(job())
    assert np.allclose(by_job, [0.1, 0.7, 0.1, 0.1])
    assert np.allclose(by_commit, [0.01, 0.97, 0.01, 0.01])
    prior, by_job, by_commit, _ = experts.predict(job(name="new"))
    assert np.array_equal(by_job, prior)
    assert np.array_equal(by_commit, prior)
    prior, by_job, by_commit, _ = experts.predict(job(commit="new"))
    assert np.allclose(by_job, [0.1, 0.7, 0.1, 0.1])
    assert np.array_equal(by_commit, prior)


def test_the_regression_takes_a_gradient_step_on_its_cross_entropy() -> None:
    experts = Experts(PARAMS)
    features = experts._features(job())
    experts.learn(job(label="failure"))
    expected = torch.zeros(PARAMS.buckets, 4, dtype=torch.float64, requires_grad=True)
    torch.nn.functional.cross_entropy(expected[features].sum(0), torch.tensor(1)).backward()
    assert expected.grad is not None
    assert np.allclose(experts.weights_KC, -0.1 * expected.grad.numpy())
    again = experts.weights_KC.copy()
    experts.learn(
        job(label="failure", name="other", commit="x", repository="y/z", workflow_id="1", event="e")
    )
    untouched = sorted(
        set(features)
        - set(experts._features(job(name="other", commit="x", repository="y/z", workflow_id="1", event="e")))
    )
    assert np.allclose(experts.weights_KC[untouched], again[untouched] * (1 - 0.1 * 1e-4))


def test_a_map_forgets_the_key_that_was_learned_longest_ago() -> None:
    found = KeyedMap(2)
    for key in ("a", "b", "a", "c"):
        found.put((key,), key)
    assert (found.get(("a",)), found.get(("b",)), found.get(("c",)), len(found)) == ("a", None, "c", 2)


def test_experts_are_restored_bit_for_bit_and_damaged_records_refused() -> None:
    experts = learned("success", "failure", "other")
    record = experts.record()
    again = Experts.from_record(record, PARAMS)
    assert np.array_equal(again.predict(job()), experts.predict(job()))
    assert again.record() == record
    for bad in (
        None,
        {},
        {**record, "counts": [["k", [1, 2]]]},
        {**record, "by_job": [["k", 9]]},
        {**record, "regression": [[99_999, 0.0, 0.0, 0.0, 0.0]]},
        {**record, "regression": [[1, math.nan, 0.0, 0.0, 0.0]]},
    ):
        with pytest.raises(BadPayload):
            Experts.from_record(bad, PARAMS)


def test_half_brier_is_nothing_for_certainty_and_one_for_certain_error() -> None:
    chances = np.array([[1.0, 0, 0, 0], [1.0, 0, 0, 0], [0.25, 0.25, 0.25, 0.25]])
    assert np.allclose(half_brier(chances, np.array([0, 1, 2])), [0, 1, 0.375])


@given(st.lists(st.lists(st.floats(0.01, 1), min_size=16, max_size=16), min_size=1, max_size=60), st.data())
def test_a_mixture_loses_little_more_than_its_best_expert(
    rows: list[list[float]], data: st.DataObject
) -> None:
    hedge, mixed, alone = Hedge([0.0] * 4), 0.0, np.zeros(4)
    for row in rows:
        chances = np.array(row).reshape(4, 4)
        chances /= chances.sum(-1, keepdims=True)
        label = data.draw(st.integers(0, 3))
        mixed += half_brier(hedge.mix(chances)[None], np.array([label]))[0]
        hedge.learn(chances, label)
        alone += half_brier(chances, np.full(4, label))
    assert np.allclose(hedge.weights(), np.exp(-alone) / np.exp(-alone).sum())
    assert mixed <= alone.min() + math.log(4) + 1e-9  # half-Brier is exp-concave at rate one


def test_biases_turn_uniform_energies_into_the_label_shares() -> None:
    labels = np.array([0] * 70 + [1] * 20 + [2] * 8 + [3] * 2)
    weights = np.full(100, 0.01)
    biases = fit_biases(np.zeros((100, 4)), labels, weights, l2=1e-9)
    assert biases.dtype == np.float64
    assert np.allclose(softmax(biases[None])[0], [0.7, 0.2, 0.08, 0.02], atol=1e-4)
    strong = fit_biases(np.zeros((100, 4)), labels, weights, l2=1.0)
    assert np.abs(strong).max() < np.abs(biases).max()


@pytest.mark.parametrize("l2", [1e-300, 1e-4, 1e6])
def test_biases_are_numbers_where_a_chance_underflowed(l2: float) -> None:
    chances = np.array([[1.0, 0.0, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]])
    biases = fit_biases(energies_of(chances), np.array([2, 1]), np.array([0.5, 0.5]), l2=l2)
    assert np.isfinite(biases).all()
    assert np.allclose(softmax(energies_of(chances)), chances)


def test_scores_average_jobs_then_commits_then_repositories() -> None:
    made = [
        job(1, repository="a/a", commit="x"),
        job(2, repository="a/a", commit="x"),
        job(3, repository="a/a", commit="y"),
        job(4, repository="b/b", commit="z"),
    ]
    losses = np.array([0.0, 0.2, 0.4, 0.8])
    assert np.allclose(nested_weights(made), [0.125, 0.125, 0.25, 0.5])
    assert np.allclose(commit_weights(made), [1 / 6, 1 / 6, 1 / 3, 1 / 3])
    assert scores(made, losses) == pytest.approx({"nested": 0.525, "commits": 1.3 / 3, "jobs": 0.35})


def test_calibration_compares_the_likeliest_labels_chance_with_how_often_it_is_right() -> None:
    chances = np.array([[0.95, 0.05, 0, 0]] * 4 + [[0.5, 0.3, 0.2, 0]] * 2 + [[1.0, 0, 0, 0]])
    table = calibration_table(chances, np.array([0, 0, 0, 1, 0, 0, 0]))
    assert [(row["n"], row["chance"], row["right"]) for row in table] == [
        (2, 0.5, 1.0),
        (5, pytest.approx(0.96), 0.8),
    ]
    assert calibration_error(table) == pytest.approx((2 * 0.5 + 5 * 0.16) / 7)
