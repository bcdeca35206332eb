"""A run whose process was killed ends as crashed, and its slots are free; one that lives is left alone."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from prefect.client.orchestration import get_client

from flows.runs.details import details_of
from flows.runs.listing import find_run, list_runs
from flows.serving.recovery import recover

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
        env=os.environ | {"PREFECT_API_URL": prefect_server},
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
    assert {broken.flow for broken in recover(ours=False)} == {flow, "inner"}

    [crashed] = list_runs(flow=flow)
    assert crashed.state == "Crashed"
    assert crashed.reason is not None
    assert crashed.reason.startswith("its process ended without a word, found at 20")
    assert list_runs(states=["running"], parts=True) == []
    assert recorded(crashed.id) == ["Crashed"]
    assert slots_taken() == 0
    assert recover(ours=False) == []
