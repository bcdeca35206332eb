"""A tiny host in a store, and a study small enough to run whole."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from store import Ref, Store
from tasks.evaluation import PublishedEvaluation
from tasks.hosts import Host, HostParams, open_host, prepare_host, publish_host
from tasks.larc import LarcParams, Learner
from tasks.programs import ProgramsParams
from tasks.study import (
    Bench,
    Plan,
    Questioner,
    StudyParams,
    evaluate_selection,
    predict_development,
    train_slow_states,
)
from tests.tasks.threads import one_thread  # noqa: F401 - of the whole room
from tests.tiny_host import write_tiny_host

PROGRAMS = ProgramsParams(train=2, development=2, reserved=1, preflight=1, support=3, query=5)
LARC = LarcParams(rank=2, rate=2.0)
STUDY = StudyParams.model_validate(
    {
        "name": "tiny",
        "seeds": [5, 6],
        "outer": {"updates": 4, "rate": 0.01, "curve_every": 4, "log_every": 3},
        "judge": {"resamples": 200},
        "prompt_tokens": 1000,
        "answer_tokens": 64,
    }
)


@pytest.fixture(scope="package")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hosts")
    write_tiny_host(folder / "tiny")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open_or_create(f"file:{tmp_path / 'store'}")


@pytest.fixture
def plan(store: Store, hosts: Path) -> Plan:
    return make_plan(store, hosts)


def make_plan(store: Store, hosts: Path) -> Plan:
    """The tiny study of a store, which gets the tiny host."""
    ref = publish_host(store, hosts / "tiny", "tiny")
    return Plan(ref, HostParams(name="tiny", dtype="float32"), PROGRAMS, LARC, STUDY)


def bench_of(store: Store, plan: Plan, hosts: Path) -> Bench:
    return Bench(plan, prepare_host(store, hosts, plan.host, dtype=plan.host_params.dtype))


@dataclass(frozen=True)
class Finished:
    """A study that ran whole."""

    store: Store
    plan: Plan
    trained: dict[tuple[str, int], Ref]
    sealed: dict[tuple[str, int], Ref]
    made: PublishedEvaluation


@pytest.fixture(scope="package")
def finished(tmp_path_factory: pytest.TempPathFactory, hosts: Path) -> Finished:
    store = Store.open_or_create(f"file:{tmp_path_factory.mktemp('finished') / 'store'}")
    plan = make_plan(store, hosts)
    bench = bench_of(store, plan, hosts)
    trained = train_slow_states(store, plan, bench)
    sealed = predict_development(store, plan, bench, trained)
    return Finished(store, plan, trained, sealed, evaluate_selection(store, plan, sealed))


@pytest.fixture(scope="package")
def host(tmp_path_factory: pytest.TempPathFactory, hosts: Path) -> Host:
    store = Store.open_or_create(f"file:{tmp_path_factory.mktemp('stores') / 'store'}")
    ref = publish_host(store, hosts / "tiny", "tiny")
    return open_host(store, hosts, ref, device="cpu", dtype="float32")


@pytest.fixture(scope="package")
def learner(host: Host) -> Learner:
    return Learner(host)


@pytest.fixture(scope="package")
def questioner(host: Host) -> Questioner:
    return Questioner(host.encode, host.end, PROGRAMS, STUDY)
