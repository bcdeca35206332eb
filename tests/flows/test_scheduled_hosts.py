"""The flows on hosts that a schedule starts do what the commands do, and find it done the next time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prefect.exceptions import FailedRun

from flows import scheduled_hosts
from flows.runs.details import details_of
from flows.runs.listing import find_run, list_runs
from store import Ref, Store
from tasks.errors import BadCorpus, UnknownHost
from tasks.hosts.step import add_host
from tests.tiny_host import write_tiny_host

PARAMS = """
host: {name: tiny, dtype: float32}
larc: {rank: 2}
programs: {train: 2, development: 2, reserved: 1, preflight: 1, support: 3, query: 5}
study:
  seeds: [5]
  objectives: [adapted]
  outer: {updates: 2, curve_every: 2}
  judge: {resamples: 100}
  prompt_tokens: 1000
  answer_tokens: 64
replay: {training_jobs: 12, audit_jobs: 8, resamples: 100, paths: [reset, keep], fit: {jobs: 6}}
shadow:
  layers: [1]
  chunk_tokens: 32
  chunks: 3
  held: {selection_tokens: 256, guard_tokens: 256, sealed_tokens: 512}
anneal:
  retention: [{path: squares.txt}]
  held: {selection_tokens: 256, guard_tokens: 256, sealed_tokens: 512}
  evaluations: 6
  passages: 2
  passage_tokens: 64
  scored: 32
  sealed: {chunk_tokens: 96, cards: 0, resamples: 100}
"""
JOBS = "job_id,repository,job_name,status,head_sha,started_at,completed_at\n" + "".join(
    f"{n},o/r,job{n % 3},{'COMPLETED' if n % 4 else 'FAILED'},c{n // 6},2026-05-14T01:{n:02}:00Z,"
    f"2026-05-14T01:{n + n % 3:02}:30Z\n"
    for n in range(24)
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefect_server: str) -> Store:
    """A store with a tiny host, and a working folder with texts, jobs and parameters."""
    for name, place in (("STORE", "file:store"), ("WORK_DIR", "work"), ("HOSTS", "hosts")):
        monkeypatch.setenv(f"CELLAR_{name}", place)
    monkeypatch.chdir(tmp_path)
    Path("params.yaml").write_text(PARAMS)
    Path("ci-jobs").mkdir()
    Path("ci-jobs/jobs.csv").write_text(JOBS)
    Path("squares.txt").write_text("".join(f"{n * n} IS A SQUARE, {n} IS NOT?\n" for n in range(200)))
    Path("casks.txt").write_text("".join(f"the {n}th cask is cool; keep it shut.\n" for n in range(200)))
    store = Store.create("file:store")
    add_host(store, Path("hosts"), "tiny", write_tiny_host(tmp_path / "tiny", layers=2))
    return store


CASES: dict[str, tuple[Callable[..., dict[str, Any]], dict[str, Any], str]] = {
    "larc-eval": (scheduled_hosts.larc_eval, {}, "evaluation"),
    "larc-replay": (scheduled_hosts.larc_replay, {"jobs": "ci-jobs"}, "evaluation"),
    "anneal-eval": (scheduled_hosts.anneal_eval, {"source": "casks.txt", "name": "casks"}, "evaluation"),
    "anneal-cumulate": (
        scheduled_hosts.anneal_cumulate,
        {"overrides": ['anneal.domains={"a": {"path": "casks.txt"}, "b": {"path": "squares.txt"}}']},
        "evaluation",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_run_publishes_and_the_next_one_finds_it_published(store: Store, name: str) -> None:
    run, parameters, made = CASES[name]
    first = run(**parameters)
    tip = store.tip()
    again = run(**parameters)

    assert again == first
    assert store.tip() == tip
    assert store.catalog().get(Ref.parse(first[made]).version) is not None
    shown = details_of(find_run(list_runs(flow=name, limit=1)[0].id))
    assert parameters.items() <= shown.parameters.items()
    assert shown.params is not None
    assert shown.params["host"]["name"] == "tiny"


def test_the_parts_of_an_evaluation_can_be_scheduled_alone(store: Store) -> None:
    trained = scheduled_hosts.larc_train()["trained"]
    text = {"source": "casks.txt", "name": "casks"}
    written = scheduled_hosts.anneal_write(**text)["shadow"]
    kept = scheduled_hosts.anneal_consolidate(**text)["shadow"]

    assert [ref.partition("@")[0] for ref in trained] == ["residual/selection/adapted-5"]
    assert [ref.partition("@")[0] for ref in (written, kept)] == ["shadow/casks.written", "shadow/casks"]


def test_a_host_that_is_not_there_fails_the_run_with_what_brings_it(store: Store) -> None:
    with pytest.raises((UnknownHost, FailedRun), match="has no host other; `cellar host fetch`"):
        scheduled_hosts.larc_train(overrides=["host.name=other"])
    with pytest.raises((BadCorpus, FailedRun), match="cumulate learns two domains or more"):
        scheduled_hosts.anneal_cumulate()
