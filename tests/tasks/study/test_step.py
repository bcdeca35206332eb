"""A tiny study through the store: trained once, sealed before it is scored, the same when done again."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from store import Ref, Store
from store.errors import ElementNotFound
from tasks.checkpoint import checkpoint_path
from tasks.errors import BadPayload
from tasks.programs import Split, groups
from tasks.programs.groups import reserved_groups
from tasks.study import (
    Cell,
    Plan,
    development,
    evaluate_selection,
    load_selection_samples,
    predict_development,
    train_slow_states,
)
from tasks.study import predictions as predictions_module
from tasks.study import scores as scores_module
from tasks.study.outer import OuterTrainer
from tasks.study.visits import Visits
from tests.tasks.study.conftest import STUDY, Finished, bench_of


@pytest.fixture
def short(plan: Plan) -> Plan:
    """One objective and one seed, trained not at all: enough to seal and to score."""
    outer = STUDY.outer.model_copy(update={"updates": 0})
    study = STUDY.model_copy(update={"seeds": (5,), "objectives": ("static",), "outer": outer})
    return replace(plan, study=study)


def test_a_study_is_trained_sealed_and_scored(finished: Finished) -> None:
    plan, catalog = finished.plan, finished.store.catalog()

    assert [str(ref).partition("@")[0] for ref in finished.trained.values()] == [
        "residual/tiny/static-5",
        "residual/tiny/adapted-5",
        "residual/tiny/static-6",
        "residual/tiny/adapted-6",
    ]
    for ref in finished.trained.values():
        row = catalog.get(ref.version)
        assert row is not None
        assert row.requires == (plan.host.version,)
        assert [point["update"] for point in row.facts["curve"]] == [0, 4]
        assert [entry["update"] for entry in row.facts["log"]] == [3, 4]
    row = catalog.get(finished.made.summary_ref.version)
    assert row is not None
    assert {ref.version for ref in finished.sealed.values()} < set(row.requires)
    samples = load_selection_samples(finished.store.read(finished.made.samples_ref))
    assert len(samples) == 16 * (len(plan.arms) * len(Cell) + 1) == 16 * 31


def test_what_is_published_is_found_and_nothing_computed(finished: Finished) -> None:
    class Unused:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError("nothing has to be computed again")

    store, plan, unused = finished.store, finished.plan, Unused()
    bench: Any = unused

    assert train_slow_states(store, plan, bench) == finished.trained
    assert predict_development(store, plan, bench, finished.trained) == finished.sealed
    assert evaluate_selection(store, plan, finished.sealed).reused


def test_the_summary_agrees_with_the_samples(finished: Finished) -> None:
    summary = finished.made.summary
    samples = load_selection_samples(finished.store.read(finished.made.samples_ref))

    def mean(arm: str, cell: Cell) -> float:
        chosen = [s.error for s in samples if (s.arm, s.cell) == (arm, cell.value)]
        return sum(chosen) / len(chosen)

    for arm in ("static", "adapted"):
        for cell in Cell:
            assert summary["conditions"][arm][cell.value]["error"]["value"] == pytest.approx(mean(arm, cell))
        gain = mean(arm, Cell.REAL_RESET) - mean(arm, Cell.REAL_KEEP)
        sham = mean(arm, Cell.SHAM_RESET) - mean(arm, Cell.SHAM_KEEP)
        assert summary["contrasts"][f"{arm}.G"]["value"] == pytest.approx(gain)
        assert summary["contrasts"][f"{arm}.D"]["value"] == pytest.approx(gain - sham)
    json.dumps(summary, allow_nan=False)


def test_predictions_are_published_before_any_query_is_scored(
    store: Store, short: Plan, hosts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_of(store, short, hosts)
    trained = train_slow_states(store, short, bench)
    assert not hasattr(predictions_module, "query_errors")

    def scored(*_: Any) -> Any:
        published = [row.ref.name for row in store.catalog().rows("evaluation")]
        assert published == [f"evaluation/tiny/predictions/{arm}-5" for arm in ("static", "untrained")]
        raise RuntimeError("scored")

    monkeypatch.setattr(scores_module, "query_errors", scored)
    sealed = predict_development(store, short, bench, trained)
    with pytest.raises(RuntimeError, match="scored"):
        evaluate_selection(store, short, sealed)


def test_what_was_not_sealed_is_not_scored(finished: Finished) -> None:
    store, plan, sealed = finished.store, finished.plan, finished.sealed
    [*_, last] = sealed
    missing = {arm: ref for arm, ref in sealed.items() if arm != last}
    unknown = {**sealed, last: Ref(sealed[last].name, "0" * 64)}

    for offered in (missing, unknown):
        with pytest.raises(ElementNotFound, match=r"has no sealed predictions .*untrained-6"):
            evaluate_selection(store, plan, offered)
    other = replace(plan, programs=plan.programs.model_copy(update={"seed": 1}))
    with pytest.raises(BadPayload):
        evaluate_selection(store, other, sealed)


@pytest.mark.parametrize("stop", [1, 2, 3])
def test_an_interrupted_training_continues_to_the_same_bytes(
    store: Store,
    plan: Plan,
    hosts: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    stop: int,
) -> None:
    short = STUDY.model_copy(update={"seeds": (5,), "objectives": ("adapted",)})
    plan = replace(plan, study=short)
    bench, recipe = bench_of(store, plan, hosts), plan.training("adapted", 5).fingerprint
    step = OuterTrainer.step

    def interrupted(trainer: OuterTrainer) -> float:
        if trainer.finished == stop:
            raise KeyboardInterrupt
        return step(trainer)

    with monkeypatch.context() as patch:
        patch.setattr(OuterTrainer, "step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            train_slow_states(store, plan, bench, work_dir=tmp_path, checkpoint_s=0)
    assert checkpoint_path(tmp_path, recipe).exists()
    [continued] = train_slow_states(store, plan, bench, work_dir=tmp_path).values()
    assert not checkpoint_path(tmp_path, recipe).exists()

    other = Store.open_or_create(f"file:{tmp_path / 'other'}")
    [straight] = train_slow_states(other, plan, bench).values()
    assert straight == continued
    rows = [one.catalog().get(continued.version) for one in (store, other)]
    assert rows[0] is not None
    assert rows[1] is not None
    assert rows[0].facts == rows[1].facts


def test_a_training_depends_neither_on_judgement_nor_on_development(plan: Plan) -> None:
    judged = plan.study.judge.model_copy(update={"resamples": 300})
    other = replace(plan, study=plan.study.model_copy(update={"judge": judged, "name": "other"}))

    assert other.training("static", 5).fingerprint == plan.training("static", 5).fingerprint
    assert plan.training("adapted", 5).fingerprint != plan.training("static", 5).fingerprint
    assert plan.training("static", 6).fingerprint != plan.training("static", 5).fingerprint


def test_training_and_evaluation_open_their_own_groups_alone(plan: Plan) -> None:
    developed = {episode.group for episode in development(plan)}
    visits = Visits(groups(plan.programs, Split.TRAIN), plan.study.outer.episodes, seed=5)
    trained = {episode.group for number in range(40) for episode in visits.of(number)}

    assert developed == set(groups(plan.programs, Split.DEVELOPMENT))
    assert trained == set(groups(plan.programs, Split.TRAIN))
    assert not (developed | trained) & set(reserved_groups(plan.programs))
