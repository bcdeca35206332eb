"""Whatever is killed with -9 leaves no run, slot or process behind, and the work goes on to the same end."""

import os
import signal
from collections.abc import Iterator

import psutil
import pytest

from flows.pins import Stage
from tests.e2e.serving import (
    QUICK,
    is_gone,
    processes_of,
    run_of,
    runs,
    served_states,
    server_of,
    slots_taken,
)
from tests.e2e.workplace import TRAINED, Workplace, ended, servers_of, wait_for

pytestmark = pytest.mark.slow

SERVE = ("serve", "--port", "0", "--file", "deployments.yaml")
DEPLOYMENTS = """
deployments:
- name: chain
  entrypoint: ENTRYPOINT
  concurrency_limit: {limit: 1, collision_strategy: CANCEL_NEW}
"""
MEMORIES = """
from flows.build_memory import build_memory
from flows.engine import flow
from flows.params import load_params
from flows.pins import read_pin, write_pin
from flows.serving.served import follow_server
from flows.settings import load_settings

def _run() -> dict[str, str]:
    follow_server()
    settings = load_settings(quiet=True)
    inputs = [read_pin(settings.pins, stage) for stage in ("corpus", "tokenizer", "codec")]
    made = build_memory(load_params(), settings, *inputs)
    write_pin(settings.pins, made)
    return {"snapshot": made.snapshot}

run = flow(_run, name="memories")
"""
"""A user's own flow, which is the chain as far as it is needed to break it off."""
REBUILT: tuple[Stage, ...] = ("memory", "indexes", "snapshot", "core", "evaluation")


@pytest.fixture
def served(copy: Workplace) -> Iterator[Workplace]:
    """A workplace with a codec, no memories yet and a file of deployments; nothing of it runs afterwards."""
    copy.rewind(TRAINED)
    for stage in REBUILT:
        (copy.folder / "build" / "demo" / "pins" / f"{stage}.json").unlink()
    (copy.folder / "memories.py").write_text(MEMORIES)
    yield copy
    for pid in processes_of(copy):
        os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("entrypoint", "rebuilt"),
    [
        pytest.param("memories.run", REBUILT[:1], id="memories"),
        pytest.param("flows.scheduled.build", REBUILT, marks=pytest.mark.nightly, id="chain"),
    ],
)
def test_a_served_build_survives_the_death_of_its_run_its_server_and_whoever_serves(
    finished: Workplace, served: Workplace, entrypoint: str, rebuilt: tuple[Stage, ...]
) -> None:
    (served.folder / "deployments.yaml").write_text(DEPLOYMENTS.replace("ENTRYPOINT", entrypoint))
    log = served.folder / "serve.log"
    process = served.start(*SERVE, "--now", "chain", log=log, **QUICK)
    wait_for(served.parts, process)

    [run] = run_of(process)
    run.kill()
    wait_for(lambda: log.read_text().count("for flow 'build-memory'") == 2, process, every=0.1)

    server = server_of(served)
    assert server is not None
    os.kill(server, signal.SIGKILL)
    wait_for(lambda: server_of(served) not in (None, server), process, every=0.1)

    [run] = run_of(process)
    process.kill()
    process.wait()
    left = [pid for pid in (run.pid, server_of(served)) if pid is not None]
    again = served.start(*SERVE, log=log, **QUICK)
    wait_for(lambda: all(map(is_gone, left)), again, every=0.1)
    wait_for(lambda: "Completed" in served_states(served) and not run_of(again), again, every=0.2)
    again.send_signal(signal.SIGTERM)
    assert again.wait(timeout=60) == 0

    assert processes_of(served) == []
    assert slots_taken(served) == 0
    for stage in rebuilt:
        assert served.pin(stage) == finished.pin(stage)
    assert served.store.verify(full=True).ok
    listed = runs(served, "--parts")
    assert {run["state"] for run in listed} == {"Completed", "Crashed"}
    newest, second, first = [run for run in listed if run["deployment"] == "chain"]
    assert newest["snapshot"] == served.pin("snapshot" if "snapshot" in rebuilt else "memory").snapshot
    assert (first["again"], second["again"]) == (second["id"], newest["id"])
    assert first["reason"] == "its process was ended by SIGKILL"
    assert second["reason"].startswith("its process ended without a word, found at")


@pytest.mark.nightly
def test_a_worker_process_that_is_killed_leaves_nothing_behind(finished: Workplace, copy: Workplace) -> None:
    copy.rewind(TRAINED)
    spread = {"CELLAR_RUNNER": "processes", "CELLAR_WORKERS": "2"}

    process = copy.start("memory", "build", **spread)
    wait_for(copy.parts, process)
    workers = [
        child
        for child in psutil.Process(process.pid).children(recursive=True)
        if "--multiprocessing-fork" in child.cmdline()
    ]
    workers[0].kill()
    ended(process)

    assert servers_of(copy) == []
    assert runs(copy, "--parts", "--state", "running", "--state", "pending") == []
    assert slots_taken(copy) == 0
    again = copy.cellar("memory", "build", "--quiet", **spread)
    assert (again.code, again.err) == (0, "")
    assert copy.pin("memory") == finished.pin("memory")
    assert processes_of(copy) == []
