"""A plan says what a run would find done, what it would run and why, and writes nothing."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.params import Params, load_params
from flows.plan import Step, plan_chain, plan_lines, plan_update, until
from flows.settings import Settings, load_settings
from flows.updating.partitions import moment
from flows.updating.scope import Scope
from store import Store
from tasks.corpus import is_worker_shard, shard_of
from tests.e2e.workplace import Ended, Workplace


class Planned:
    """A finished chain, planned again with other parameters, texts or none."""

    def __init__(self, workplace: Workplace, folder: Path) -> None:
        self.store = workplace.store
        self.settings: Settings = load_settings(store=workplace.url, work_dir=workplace.work)
        self._workplace = workplace
        self.texts = folder / "texts"
        self.texts.mkdir()
        for path in (workplace.folder / "texts").iterdir():
            (self.texts / path.name).write_bytes(path.read_bytes())

    def params(self, *overrides: str) -> Params:
        source = f"corpus.path={self.texts}"
        return load_params(self._workplace.folder / "params.yaml", [source, *overrides])

    def chain(self, *overrides: str, store: Store | None = None) -> dict[str, Step]:
        steps = plan_chain(store or self.store, self.params(*overrides), self.settings)
        return {step.name: step for step in steps}

    def update(self, *overrides: str) -> dict[str, Step]:
        return {step.name: step for step in self.update_steps("docs", self.params(*overrides))}

    def update_steps(self, head: str, params: Params, **options: Any) -> list[Step]:
        scope = Scope.of(params, at=moment(None), **options)
        return plan_update(self.store, params, self.settings, head, scope)


@pytest.fixture
def planned(finished: Workplace, tmp_path: Path) -> Planned:
    return Planned(finished, tmp_path)


def running(steps: dict[str, Step]) -> list[str]:
    return [step.name for step in steps.values() if step.runs]


@pytest.mark.slow
def test_a_finished_chain_has_nothing_to_run(planned: Planned, finished: Workplace) -> None:
    steps = planned.chain()

    assert running(steps) == []
    made = {stage: finished.pin(stage) for stage in ("tokenizer", "codec", "core")}
    assert {stage: steps[stage].refs for stage in made} == {stage: pin.refs for stage, pin in made.items()}
    assert steps["snapshot"].refs == (finished.pin("snapshot").snapshot,)
    assert steps["evaluation"].refs[0] == finished.pin("evaluation").refs[0]
    assert set(steps["indexes"].refs) == set(finished.pin("indexes").refs)
    assert list(plan_lines(list(steps.values())))[-1].startswith("everything is done")


@pytest.mark.slow
def test_a_changed_parameter_is_named_and_what_depends_on_it_waits(planned: Planned) -> None:
    steps = planned.chain("codec.steps=120", "assembly.steps=41")

    assert running(steps) == ["codec", "memory", "indexes", "snapshot", "core", "evaluation"]
    assert steps["codec"].reasons == ("steps 60 -> 120",)
    assert steps["memory"].reasons == ("its input will change: codec",)
    assert steps["core"].reasons == ("its input will change: codec, memory", "steps 40 -> 41")
    assert steps["codec"].seconds == pytest.approx(2 * planned_seconds(planned, "codec"))
    assert steps["codec"].bytes


def planned_seconds(planned: Planned, stage: str) -> float:
    known = json.loads((planned.settings.work_dir / "seconds.json").read_text())
    [seconds] = [value for key, value in known.items() if key.startswith(f"{stage} ")]
    return float(seconds)


@pytest.mark.slow
def test_only_the_evaluation_runs_for_its_own_parameters(planned: Planned) -> None:
    assert running(planned.chain("evaluation.seed=3")) == ["evaluation"]
    assert running(planned.chain("retrieval.reranker.steps=21")) == ["indexes", "snapshot", "evaluation"]
    assert planned.chain("memory.max_steps=20")["memory"].reasons == ("max_steps 16 -> 20",)


@pytest.mark.slow
def test_a_changed_text_is_found_without_being_ingested(planned: Planned) -> None:
    [shard] = [ref for ref in planned.chain()["corpus"].refs if "/shard-01@" in ref]
    workers = {name for name, _ in _documents(planned, shard)}
    name = min(workers)
    (planned.texts / f"{name}.txt").write_text("an altogether different text " * 20)
    before = planned.store.tip()

    steps = planned.chain()
    update = planned.update()

    assert steps["corpus"].reasons == ("input corpus/docs/shard-01 changed",)
    assert [steps[stage].state for stage in ("tokenizer", "codec", "memory")] == [
        "done",
        "done",
        "partly done",
    ]
    assert (steps["memory"].to_do, steps["memory"].reasons) == (1, ("the texts of documents changed",))
    assert running(update) == ["corpus", "memory", "indexes", "snapshot"]
    assert update["memory"].reasons == (f"1 document replaced: {name}",)
    assert update["memory"].to_do == 1
    assert planned.store.tip() == before


def _documents(planned: Planned, shard: str) -> list[tuple[str, str]]:
    from tasks.corpus import preview

    found = preview(planned.store, planned.params().corpus)
    return next(documents for ref, documents in found.documents.items() if str(ref) == shard)


@pytest.mark.slow
def test_an_update_of_an_unchanged_source_has_nothing_to_run(planned: Planned) -> None:
    assert running(planned.update()) == []


@pytest.mark.slow
def test_an_update_makes_the_indexes_anew_that_other_parameters_ask_for(planned: Planned) -> None:
    charts = planned.update("retrieval.charts.window_winnow=7")
    tile = planned.update("retrieval.readout_tile=7")
    frozen = planned.update("retrieval.reranker.steps=21")

    assert running(charts) == running(tile) == ["indexes", "snapshot"]
    assert charts["indexes"].reasons == ("parameters of retrieval.charts changed",)
    assert tile["indexes"].reasons == ("other memories, codec or readout_tile than before",)
    assert running(frozen) == []


@pytest.mark.slow
def test_a_new_head_of_partitions_is_planned_as_it_would_be_built(planned: Planned, tmp_path: Path) -> None:
    for number, path in enumerate(sorted(planned.texts.iterdir())):
        part = tmp_path / "parts" / "abc"[number % 3]
        part.mkdir(parents=True, exist_ok=True)
        (part / path.name).write_bytes(path.read_bytes())
    params = planned.params("corpus.name=new", f"corpus.path={tmp_path}/parts/{{partition}}")

    steps = planned.update_steps("new", params, partitions=["a,b"])

    stages = ["corpus", "corpus", "tokenizer", "codec", "memory", "indexes", "snapshot"]
    assert [step.name for step in steps] == stages
    assert all(step.runs for step in steps)
    assert all(step.bytes for step in steps[:2])
    assert steps[4].to_do == sum(
        is_worker_shard(shard_of(f"{part}/{path.stem}", params.corpus.shards))
        for part in "ab"
        for path in (tmp_path / "parts" / part).iterdir()
    )


@pytest.mark.slow
def test_a_new_head_of_some_shards_is_planned_without_the_others(planned: Planned) -> None:
    params = planned.params()
    [_, _, _, memory, *_] = planned.update_steps("new", params, shards="1")
    [_, _, _, everything, *_] = planned.update_steps("new", params)
    assert 0 < (memory.done or 0) < (everything.done or 0)


@pytest.mark.slow
def test_without_a_store_everything_is_to_run_and_none_is_made(planned: Planned, tmp_path: Path) -> None:
    nowhere = load_settings(store=f"file:{tmp_path}/nowhere", work_dir=tmp_path / "work")

    steps = plan_chain(None, planned.params(), nowhere)

    assert all(step.state == "to run" and step.seconds is None for step in steps)
    assert steps[0].reasons == steps[1].reasons == ("never built",)
    assert [step.name for step in until(steps, "codec")] == ["corpus", "tokenizer", "codec"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["texts"]


@pytest.mark.slow
def test_the_command_prints_the_plan_and_refuses_options_of_other_flows(
    inside: Callable[..., Ended],
) -> None:
    shown = inside("plan", "codec", "--set", "codec.steps=61")
    stray = inside("plan", "codec", "--head", "docs")

    assert (shown.code, "steps 60 -> 61" in shown.out) == (0, True), shown.err
    assert shown.out.splitlines()[-1].startswith("1 of 3 steps would run, about ")
    assert (stray.code, "--head is an option of an update" in stray.err) == (2, True)
