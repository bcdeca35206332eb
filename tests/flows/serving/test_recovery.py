"""A run whose process was killed ends as crashed, and its slots are free; one that lives is left alone."""

import json
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas import FlowRun
from prefect.flows import Flow
from prefect.states import Completed, Running, State

from flows.runs.details import details_of
from flows.runs.labels import PROCESS
from flows.runs.listing import find_run, list_runs
from flows.serving import recovery
from flows.serving.recovery import recover
from store.process import identity

HANG = """
import sys, time
from flows.engine import bind, flow

def step() -> None:
    print("at work", flush=True)
    time.sleep(600)

task = bind(step, name="hang", tags=("slot",))

def inner() -> None:
    task()

inner_flow = flow(inner, name="inner")

def outer() -> None:
    inner_flow()

flow(outer, name=sys.argv[1])()
"""


@pytest.fixture
def hanging(prefect_server: str, request: pytest.FixtureRequest) -> Iterator["subprocess.Popen[str]"]:
    """A process in the middle of a task that holds the one slot of its tag."""
    with get_client(sync_client=True) as client:
        client.create_concurrency_limit("slot", 1)
    process = subprocess.Popen(
        [sys.executable, "-c", HANG, f"hanging-{request.node.name}"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PREFECT_API_URL": prefect_server, "CELLAR_STORE": "file:/srv/store"},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "at work\n"
    yield process
    process.kill()
    process.communicate()


def slots_taken() -> int:
    with get_client(sync_client=True) as client:
        limit = client.request(
            "GET", "/v2/concurrency_limits/{id_or_name}", path_params={"id_or_name": "tag:slot"}
        )
        return int(limit.json()["active_slots"])


def recorded(run: str) -> list[str]:
    """States of the tasks of a run, once the server has written them down."""
    while not (tasks := details_of(find_run(run)).tasks):
        os.sched_yield()
    return [task["state"] for task in tasks]


def test_a_killed_run_is_ended_with_its_parts_and_gives_its_slot_back(
    hanging: "subprocess.Popen[str]", request: pytest.FixtureRequest
) -> None:
    flow = f"hanging-{request.node.name}"
    [running] = list_runs(flow=flow)
    assert running.state == "Running"
    assert recorded(running.id) == ["Running"]
    assert slots_taken() == 1
    assert recover(ours=False) == []  # it lives

    hanging.send_signal(signal.SIGKILL)
    hanging.wait()
    found = recover(ours=False)
    assert {broken.flow for broken in found} == {flow, "inner"}
    assert {broken.store for broken in found} == {"file:/srv/store"}

    [crashed] = list_runs(flow=flow)
    assert crashed.state == "Crashed"
    assert crashed.reason is not None
    assert crashed.reason.startswith("its process ended without a word, found at 20")
    assert list_runs(states=["running"], parts=True) == []
    assert recorded(crashed.id) == ["Crashed"]
    assert slots_taken() == 0
    assert recover(ours=False) == []


def run_by(client: SyncPrefectClient, process: dict[str, object] | None, flow: str = "") -> FlowRun:
    """A run that goes on, as the API knows it, with what it noted of its process."""
    named: Flow[[], None] = Flow(fn=lambda: None, name=flow or f"noted-{uuid4().hex[:8]}")
    run = client.create_flow_run(named)
    client.set_flow_run_state(run.id, Running(), force=True)
    if process is not None:
        client.update_flow_run_labels(run.id, {PROCESS: json.dumps(process)})
    return client.read_flow_run(run.id)


def end(client: SyncPrefectClient, *runs: FlowRun) -> None:
    for run in runs:
        client.set_flow_run_state(run.id, Completed(), force=True)


def state_of(client: SyncPrefectClient, run: FlowRun) -> str | None:
    state: State[object] | None = client.read_flow_run(run.id).state
    return state.name if state is not None else None


DEAD = {**(identity() or {}), "started": 1, "host": platform.node()}


def test_a_run_that_completed_meanwhile_stays_completed(
    prefect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with get_client(sync_client=True) as client:
        seen = run_by(client, DEAD)
        end(client, seen)
        monkeypatch.setattr(recovery, "unfinished_runs", lambda client: [seen])
        assert recover(ours=True) == []
        assert state_of(client, seen) == "Completed"


def test_what_runs_elsewhere_is_left_alone_whatever_its_machine_is_called(prefect_server: str) -> None:
    with get_client(sync_client=True) as client:
        container = run_by(client, {**DEAD, "space": "pid:[1]"})
        restarted = run_by(client, {**DEAD, "boot": "the last one"})
        machine = run_by(client, {**DEAD, "boot": "another", "host": "elsewhere"})
        assert recover(ours=False) == []
        assert [broken.id for broken in recover(ours=True)] == [str(restarted.id)]
        assert state_of(client, restarted) == "Crashed"
        end(client, container, machine)


def test_a_run_without_its_process_is_judged_only_if_its_flow_notes_them(
    prefect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recovery, "_NAMELESS", timedelta(0))
    flow = f"noted-{uuid4().hex[:8]}"
    with get_client(sync_client=True) as client:
        end(client, run_by(client, DEAD, flow))
        lost, plain = run_by(client, None, flow), run_by(client, None)
        assert recover(ours=False) == []
        assert [broken.id for broken in recover(ours=True)] == [str(lost.id)]
        assert state_of(client, plain) == "Running"
        end(client, plain)
