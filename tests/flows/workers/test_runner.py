"""The shards of a build in threads, processes and Dask workers: the same versions, whoever dies meanwhile."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import active_children
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import TaskRunFilter, TaskRunFilterName

from flows.build_memory import build_memory
from flows.engine import bind, flow
from flows.errors import ClusterUnavailable, SettingsError, WorkersLost
from flows.ingest_corpus import ingest_corpus
from flows.params import Params, load_params
from flows.pins import Pin, write_pin
from flows.settings import Settings, load_settings
from flows.train_codec import train_codec
from flows.workers import runner
from flows.workers.runner import spread
from store import Store
from tests.e2e.workplace import PROGRAM, ROOT, TINY

SHARDS, LIMIT_S = 8, 120.0


@dataclass(frozen=True)
class Inputs:
    """What a memory build needs, and the snapshot that it gives in one thread."""

    folder: Path
    params: Params
    corpus: Pin
    tokenizer: Pin
    codec: Pin
    snapshot: str

    def copy(self, folder: Path, **settings: Any) -> Settings:
        """Settings for a store in `folder` that holds the inputs and no memories."""
        shutil.copytree(self.folder / "store", folder / "store", dirs_exist_ok=True)
        place = {"store": f"file:{folder / 'store'}", "work_dir": folder / "work", "threads": 1}
        return load_settings(**{**place, **settings})

    def build(self, settings: Settings) -> str | None:
        return build_memory(self.params, settings, self.corpus, self.tokenizer, self.codec).snapshot


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("CELLAR_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory, prefect_server: str) -> Inputs:
    folder = tmp_path_factory.mktemp("inputs")
    (folder / "texts").mkdir()
    for name, text in topics.items():
        if len(text) >= 800:
            (folder / "texts" / f"{name}.txt").write_text(text[:800], encoding="utf-8")
    overrides = [f"corpus.path={folder / 'texts'}", f"corpus.shards={SHARDS}", "codec.steps=20"]
    overrides += ["memory.token_recall=0", "memory.loss=99", "memory.unit_documents=1"]
    params = load_params(TINY, overrides)
    settings = load_settings(store=f"file:{folder / 'store'}", work_dir=folder / "work", threads=1)
    Store.create(settings.store)
    corpus, tokenizer = ingest_corpus(params, settings)
    codec = train_codec(params, settings, corpus, tokenizer)
    undone = Inputs(folder, params, corpus, tokenizer, codec, "")
    reference = folder / "reference"
    snapshot = undone.build(undone.copy(reference))
    assert snapshot is not None
    return Inputs(folder, params, corpus, tokenizer, codec, snapshot)


def parts(settings: Settings) -> list[Path]:
    """The finished units of a build."""
    return sorted(Path(settings.store.removeprefix("file:")).glob("builds/memory-*/parts/*"))


@pytest.mark.parametrize(
    "kind", ["threads", *(pytest.param(kind, marks=pytest.mark.nightly) for kind in ("processes", "dask"))]
)
def test_the_snapshot_does_not_depend_on_who_built_it(kind: str, inputs: Inputs, tmp_path: Path) -> None:
    settings = inputs.copy(tmp_path, runner=kind, workers=2, threads=0)

    assert inputs.build(settings) == inputs.snapshot
    assert Store.open(settings.store).verify(full=True).ok
    assert active_children() == []


def kill_a_worker(when: Callable[[], object]) -> threading.Thread:
    """Kill one worker process of this process with -9 as soon as something is true."""

    def work() -> None:
        deadline = time.monotonic() + LIMIT_S
        while not when() and time.monotonic() < deadline:
            time.sleep(0.002)  # polling what other processes do: there is nothing to wait on
        victim = active_children()[0]
        assert victim.pid is not None
        os.kill(victim.pid, signal.SIGKILL)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


@pytest.mark.parametrize("kind", ["processes", pytest.param("dask", marks=pytest.mark.nightly)])
def test_a_worker_that_is_killed_loses_nothing(
    kind: str, inputs: Inputs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = inputs.copy(tmp_path, runner=kind, workers=2)
    kept: dict[Path, int] = {}

    def enough() -> bool:
        kept.update({part: part.stat().st_ino for part in parts(settings)})
        return len(kept) > 2

    killer = kill_a_worker(enough)
    snapshot = inputs.build(settings.model_copy(update={"store": "store"}))
    killer.join()

    assert snapshot == inputs.snapshot
    assert active_children() == []
    assert 2 < len(kept) < len(parts(settings))
    # A unit that is done again would be another file: what was finished before the kill was not.
    assert {part: part.stat().st_ino for part in kept} == kept
    assert Store.open(settings.store).verify(full=True).ok
    assert [run.state_name for run in shard_runs() if run.state_name == "Running"] == []


def shard_runs() -> list[Any]:
    with get_client(sync_client=True) as client:
        named = TaskRunFilter(name=TaskRunFilterName(like_="build shard"))
        return client.read_task_runs(task_run_filter=named, limit=200)


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["processes", "dask"])
def test_work_that_kills_every_worker_is_given_up_in_one_sentence(
    kind: str, prefect_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def step(settings: Settings, number: int) -> int:
        if number == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return number

    monkeypatch.setattr(runner, "ATTEMPTS", 2)
    settings = load_settings(runner=kind, work_dir=tmp_path, store=str(tmp_path))
    with pytest.raises(WorkersLost, match=r"of 1 of 2 shards died again and again") as lost:
        flow(lambda: spread(bind(step, name="step"), settings, [[0], [1]], "shards"), name="poisoned")()
    assert lost.value.exit_code == 6
    assert active_children() == []


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A Dask scheduler with two workers, in processes of their own that know nothing of this one."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{probe.getsockname()[1]}"
    foreign = ("CELLAR_", "PREFECT_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    environment |= {"PYTHONPATH": str(ROOT), "PREFECT_HOME": str(folder / "home")}
    schedule = ["scheduler", "--host", address, "--no-dashboard"]
    work = ["worker", address, "--nworkers", "2", "--nthreads", "1", "--no-dashboard"]
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "dask", *command],
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        for command in (schedule, work)
    ]
    try:
        host, port = address.removeprefix("tcp://").split(":")
        while True:
            with socket.socket() as probe:
                if probe.connect_ex((host, int(port))) == 0:
                    break
            assert started[0].poll() is None
            time.sleep(0.02)
        yield address
    finally:
        for process in started:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def test_a_cluster_that_is_there_builds_with_the_settings_it_is_sent(inputs: Inputs, tmp_path: Path) -> None:
    with cluster(tmp_path) as address:
        settings = inputs.copy(tmp_path, runner="dask", dask_address=address)
        assert inputs.build(settings) == inputs.snapshot


def test_an_address_where_nothing_answers_is_named(inputs: Inputs, tmp_path: Path) -> None:
    with socket.socket() as taken:  # bound, but not listening
        taken.bind(("127.0.0.1", 0))
        address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(ClusterUnavailable, match=f"no Dask scheduler answers at {address}"):
            inputs.build(inputs.copy(tmp_path, runner="dask", dask_address=address))


@pytest.mark.parametrize(
    ("store", "sentence"),
    [
        ("file:build/store", "another folder on each worker"),
        ("build/store", "another folder on each worker"),
        ("file:/srv/store", "cannot reach a Prefect server on the loopback"),
        ("s3://bucket", "cannot reach a Prefect server on the loopback"),
    ],
)
def test_what_a_worker_elsewhere_would_not_find_is_refused(
    store: str, sentence: str, prefect_server: str
) -> None:
    settings = load_settings(runner="dask", dask_address="tcp://192.0.2.1:8786", store=store)
    with pytest.raises(SettingsError, match=sentence) as refused:
        runner.task_runner(settings)
    assert refused.value.exit_code == 3


@pytest.mark.parametrize(
    "address", ["192.0.2.1:8786", "http://h:1", "tcp://h", "tcp://u:p@h:1", "tcp://h:65536"]
)
def test_a_bad_address_is_named(address: str) -> None:
    with pytest.raises(SettingsError, match=r"--dask-address is .*: use tcp://host:port or tls://host:port"):
        load_settings(dask_address=address)


def test_a_missing_dask_is_said_with_the_way_to_get_it(
    monkeypatch: pytest.MonkeyPatch, prefect_server: str
) -> None:
    monkeypatch.delitem(sys.modules, "flows.workers.dask_cluster", raising=False)
    monkeypatch.delattr("flows.workers.dask_cluster", raising=False)
    monkeypatch.setitem(sys.modules, "distributed", None)  # as Python marks what cannot be imported
    with pytest.raises(SettingsError, match=r"pip install 'cellar-lm\[dask\]'"):
        runner.task_runner(load_settings(runner="dask"))


def processes_with(mark: str) -> set[int]:
    """Processes whose environment holds a text."""
    found = set()
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                if mark.encode() in (process / "environ").read_bytes():
                    found.add(int(process.name))
            except OSError:  # it ended meanwhile, or is another user's
                continue
    return found


@pytest.mark.parametrize(
    "how",
    [
        pytest.param(signal.SIGINT, marks=pytest.mark.nightly, id="Ctrl-C"),
        pytest.param(signal.SIGKILL, id="kill -9"),
    ],
)
def test_no_worker_of_dask_outlives_its_command(
    how: signal.Signals, inputs: Inputs, tmp_path: Path, prefect_server: str
) -> None:
    settings = inputs.copy(tmp_path, runner="dask", workers=2)
    for pin in (inputs.corpus, inputs.tokenizer, inputs.codec):
        write_pin(tmp_path / "pins", pin)
    (tmp_path / "params.yaml").write_text(inputs.params.model_dump_json())
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [*PROGRAM, "memory", "build"],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("PREFECT_LOGGING")},
            "PYTHONPATH": str(ROOT),
            "PREFECT_API_URL": prefect_server,
            "CELLAR_STORE": settings.store,
            "CELLAR_WORK_DIR": str(settings.work_dir),
            "CELLAR_RUNNER": "dask",
            "CELLAR_WORKERS": "2",
            "MARK": mark,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    deadline = time.monotonic() + LIMIT_S
    while len(parts(settings)) < 2:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.005)  # polling another process: there is nothing to wait on
    assert len(processes_with(mark)) > 2

    if how == signal.SIGINT:
        os.killpg(process.pid, how)
    else:
        process.kill()
    _, said = process.communicate(timeout=60)

    if how == signal.SIGINT:
        assert process.returncode == 130, said
        assert said.splitlines()[-1].startswith("cellar: interrupted; the store is consistent")
        assert "Traceback" not in said
    while processes_with(mark):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert Store.open(settings.store).catalog().rows("memory") == []
