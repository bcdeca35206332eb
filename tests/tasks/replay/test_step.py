"""The replay room's door: what is published is found, and an interrupted replay goes on."""

from pathlib import Path

import pytest
import torch

from store import Element, Store
from store.errors import ElementNotFound
from tasks.errors import BadPayload, SessionFull
from tasks.hosts import prepare_host, publish_host
from tasks.larc import LarcParams, SlowState, load_residual, residual_element
from tasks.replay import session_file
from tasks.replay.jobs import BadJobs
from tasks.replay.params import ReplayParams
from tasks.replay.paths import FAST
from tasks.replay.session_file import check_room
from tasks.replay.step import (
    Bench,
    Inputs,
    fit_task,
    load_jobs,
    load_replay_samples,
    load_update_samples,
    publish_jobs,
    replay,
    start_state,
)
from tests.host_parts import closed
from tests.tasks.replay.conftest import jobs, small
from tests.tiny_host import write_tiny_host

PARAMS = small(
    name="small",
    training_jobs=8,
    audit_jobs=8,
    resamples=100,
    fit={"jobs": 4},
    paths=["reset_memory", "keep_memory", "controller", "hedge4", "hedge5"],
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(f"file:{tmp_path / 'store'}")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rows = ["job_id,repository,job_name,status,head_sha,started_at,completed_at"]
    for one in jobs(20, seed=1):
        times = (
            f"2026-05-14T01:{us // 60_000_000 % 60:02}:{us // 1_000_000 % 60:02}Z"
            for us in (one.started_us - jobs_start, one.completed_us - jobs_start)
        )
        rows.append(
            f"{one.id},o/r,{one.name},{one.label.replace('other', 'skipped')},{one.commit},{','.join(times)}"
        )
    path = tmp_path / "jobs.csv"
    path.write_text("\n".join([*rows, "99,o/r,x,nonsense,c,2026-05-14T01:00:00Z,2026-05-14T01:00:00Z"]))
    return path


jobs_start = min(one.started_us for one in jobs(20, seed=1))


@pytest.fixture
def bench(store: Store, tmp_path: Path) -> Bench:
    ref = publish_host(store, write_tiny_host(tmp_path / "tiny"), "tiny")
    return Bench(prepare_host(store, tmp_path, ref, dtype="float32"), LarcParams())


def inputs(store: Store, bench: Bench, table: Path, params: ReplayParams = PARAMS) -> Inputs:
    published = publish_jobs(store, params, table)
    start = start_state(store, params, bench)
    return Inputs(published, start, fit_task(store, params, bench, jobs=published, start=start))


def test_all_of_it_is_computed_once_and_then_found_without_opening_the_host(
    store: Store, bench: Bench, table: Path
) -> None:
    made = inputs(store, bench, table)
    first = replay(store, PARAMS, bench, made)
    tip = store.tip()
    unopened = Bench(closed(bench.host), bench.larc)
    again = inputs(store, unopened, table)
    assert again == made
    second = replay(store, PARAMS, unopened, again)
    assert second.reused
    assert (second.summary, second.summary_ref, store.tip()) == (first.summary, first.summary_ref, tip)
    row = store.catalog().get(made.task.version)
    assert row is not None
    assert bench.ref.version in row.requires


def test_the_summary_counts_everything_and_the_tables_hold_every_prediction(
    store: Store, bench: Bench, table: Path
) -> None:
    found = replay(store, PARAMS, bench, inputs(store, bench, table))
    summary = found.summary
    assert list(summary["replay"]) == sorted(PARAMS.paths)
    assert summary["jobs"]["rows"] == 21
    assert summary["jobs"]["excluded"]["unknown conclusion"] == 1
    assert summary["jobs"]["audit"]["jobs"] == 8
    gained, paths = summary["differences"]["controller over reset"], summary["replay"]
    assert gained["value"] == pytest.approx(paths["reset_memory"]["nested"] - paths["controller"]["nested"])
    assert gained["low"] <= gained["high"]
    [course] = summary["courses"].values()
    assert course["jobs"] == list(range(1, 9))
    samples = load_replay_samples(store.read(found.samples_ref))
    assert len(samples) == 8 * len(PARAMS.paths)
    for path, scores in summary["replay"].items():
        losses = [one.half_brier for one in samples if one.path == path]
        assert scores["jobs"] == pytest.approx(sum(losses) / len(losses))
        assert course["half_brier"][path][-1] == pytest.approx(scores["jobs"])
    updates_row = store.catalog().latest("evaluation/small/updates")
    assert updates_row is not None
    updates = load_update_samples(store.read(updates_row))
    assert {one.path for one in updates} == {"keep_memory", "controller"}
    assert sum(one.jobs for one in updates if one.path == "controller") == 8
    assert all(one.after <= one.before for one in updates if one.path == "controller")


def test_an_interrupted_replay_ends_as_one_that_was_left_alone(
    store: Store, bench: Bench, table: Path, tmp_path: Path
) -> None:
    made = inputs(store, bench, table)
    alone = Store.create(f"file:{tmp_path / 'alone'}")
    publish_host(alone, tmp_path / "tiny", "tiny")
    expected = replay(alone, PARAMS, bench, inputs(alone, bench, table))

    def interrupted(done: int, total: int, **_: float) -> None:
        if done == total // 2:
            raise KeyboardInterrupt

    work = tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        replay(store, PARAMS, bench, made, progress=interrupted, work_dir=work, checkpoint_s=0)
    assert list(work.iterdir())
    found = replay(store, PARAMS, bench, made, work_dir=work, checkpoint_s=0)
    assert found.summary_ref == expected.summary_ref
    assert found.costs["resumed"] is True
    assert not list(work.iterdir())


def test_a_named_slow_state_is_where_the_replay_starts(store: Store, bench: Bench, table: Path) -> None:
    made = inputs(store, bench, table)
    assert start_state(store, PARAMS, bench, "small.task") == made.task
    with pytest.raises(ElementNotFound, match="has no residual/absent"):
        start_state(store, PARAMS, bench, "absent")


def test_a_slow_state_of_a_named_module_stays_one(store: Store, bench: Bench, table: Path) -> None:
    slow = SlowState(torch.full((2, 32), 0.02), torch.zeros(32, 2), insertion=1, module="self_attn.q_proj")
    store.publish([residual_element("lora", slow, host=bench.ref)], message="LoRA")
    published, start = publish_jobs(store, PARAMS, table), start_state(store, PARAMS, bench, "lora")
    task = fit_task(store, PARAMS, bench, jobs=published, start=start)
    fitted = load_residual(store.read(task))
    assert (fitted.module, fitted.insertion, fitted.version) == ("self_attn.q_proj", 1, 1)
    assert not torch.equal(fitted.B_Dr, slow.B_Dr)
    summary = replay(store, PARAMS, bench, Inputs(published, start, task)).summary
    assert summary["updates"]["controller"]["batches"] > 0


def test_factors_that_no_session_holds_are_refused_before_anything_is_computed(
    store: Store, bench: Bench, table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = SlowState(torch.zeros(256, 512), torch.zeros(512, 256))
    with pytest.raises(SessionFull, match=r"8 learning paths of rank 256 take 16,777,216 bytes.* larc\.rank"):
        check_room(list(FAST), slow)
    check_room(["reset", "keep", "hedge4"], slow)

    published, start = publish_jobs(store, PARAMS, table), start_state(store, PARAMS, bench)
    task = fit_task(store, PARAMS, bench, jobs=published, start=start)
    monkeypatch.setattr(session_file, "LIVE_BYTES", 4000)
    with pytest.raises(SessionFull, match="2 learning paths of rank 4 take 4,096 bytes"):
        replay(store, PARAMS, bench, Inputs(published, start, task), progress=lambda *_: pytest.fail("began"))
    other = small(**{**PARAMS.model_dump(), "training_jobs": 6})
    with pytest.raises(SessionFull, match="2 learning paths of rank 4"):
        fit_task(store, other, bench, jobs=published, start=start, progress=lambda *_: pytest.fail("began"))


def test_what_decides_a_fit_makes_another_one_and_what_does_not_does_not(
    store: Store, bench: Bench, table: Path
) -> None:
    made = inputs(store, bench, table)
    same = small(**{**PARAMS.model_dump(), "audit_jobs": 4, "rate": 0.3})
    assert inputs(store, Bench(closed(bench.host), bench.larc), table, same) == made
    other = small(**{**PARAMS.model_dump(), "training_jobs": 6})
    assert inputs(store, bench, table, other).task != made.task


def test_jobs_of_another_kind_are_refused(store: Store, bench: Bench, table: Path) -> None:
    made = inputs(store, bench, table)
    with pytest.raises(BadPayload, match="CI jobs"):
        load_jobs(store, made.task)
    table.write_text("job_id\n")
    with pytest.raises(BadJobs):
        publish_jobs(store, PARAMS, table)


@pytest.mark.parametrize("facts", [{"excluded": 5}, {"excluded": {"odd": "x"}}, {"rows": None}, {"rows": -1}])
def test_jobs_whose_record_counts_no_rows_are_refused(
    store: Store, table: Path, facts: dict[str, object]
) -> None:
    row = store.catalog().get(publish_jobs(store, PARAMS, table).version)
    assert row is not None
    forged = Element("corpus", "forged", store.read(row), media=row.media, facts=facts)
    [ref] = store.publish([forged], message="forged")
    with pytest.raises(BadPayload, match="does not say how many rows"):
        load_jobs(store, ref)
