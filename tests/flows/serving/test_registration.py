"""Deployments at a real API: the same from `cellar deploy` and `prefect deploy`, and what becomes of runs."""

import os
import shutil
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from prefect.client.orchestration import SyncPrefectClient, get_client
from prefect.client.schemas.actions import WorkPoolCreate
from prefect.client.schemas.responses import DeploymentResponse
from prefect.states import Cancelled, Completed, Crashed, Failed, Pending, Running, State

from flows.errors import DeploymentNotFound, ScheduleError
from flows.runs.labels import AGAIN
from flows.serving.deployments import Deployment, load_deployments
from flows.serving.registration import deploy, drop_missed, start_run
from flows.serving.resumption import ATTEMPTS, resume

ROOT = Path(__file__).parents[3]


@pytest.fixture
def pool(prefect_server: str) -> str:
    """The pool of the shipped file."""
    with get_client(sync_client=True) as client:
        client.create_work_pool(WorkPoolCreate(name="cellar", type="process"), overwrite=True)
    return "cellar"


@pytest.fixture
def deployment(pool: str) -> UUID:
    """A deployment of its own for each test."""
    return deployed(f"test-{uuid4().hex[:8]}")


def deployed(name: str, **changes: object) -> UUID:
    schedules = [{"cron": "0 2 * * *", "timezone": "Europe/Berlin"}]
    made = Deployment.model_validate(
        {
            "name": name,
            "entrypoint": "flows.scheduled.update",
            "parameters": {"head": "docs", "timezone": "Asia/Tokyo"},
            "schedules": schedules,
            **changes,
        }
    )
    [identity] = deploy([made], "cellar").values()
    return UUID(identity)


def registered() -> dict[str, DeploymentResponse]:
    with get_client(sync_client=True) as client:
        names = [deployment.name for deployment in load_deployments(ROOT / "prefect.yaml")]
        return {d.name: d for d in client.read_deployments(limit=200) if d.name in names}


def compared(deployment: DeploymentResponse) -> tuple[object, ...]:
    schedules = [(when.schedule.cron, when.schedule.timezone, when.active) for when in deployment.schedules]
    limit = deployment.global_concurrency_limit
    fields = ("entrypoint", "parameters", "concurrency_options", "work_pool_name", "pull_steps")
    return (*(getattr(deployment, field) for field in fields), schedules, limit.limit if limit else None)


def test_prefect_s_own_command_registers_the_same(
    pool: str, prefect_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(ROOT / "prefect.yaml", tmp_path)
    monkeypatch.chdir(tmp_path)
    deploy(load_deployments(), None)
    ours = {name: compared(found) for name, found in registered().items()}

    done = subprocess.run(
        [sys.executable, "-m", "prefect", "--no-prompt", "deploy", "--all"],
        env={**os.environ, "PREFECT_API_URL": prefect_server, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert {name: compared(found) for name, found in registered().items()} == ours
    assert len(ours) == len(load_deployments())


def test_an_unknown_pool_is_refused(pool: str) -> None:
    with pytest.raises(ScheduleError, match="there is no work pool 'nowhere' at http"):
        deploy(load_deployments(ROOT / "prefect.yaml"), "nowhere")


def test_a_run_is_asked_for_by_name(deployment: UUID) -> None:
    with get_client(sync_client=True) as client:
        name = client.read_deployment(deployment).name
        run = client.read_flow_run(UUID(start_run(name, {"head": "notes"})))
    assert run.deployment_id == deployment
    assert run.parameters == {"head": "notes", "timezone": "Asia/Tokyo"}
    with pytest.raises(DeploymentNotFound, match="there is no deployment 'other'; known are"):
        start_run("other", {})
    with pytest.raises(ScheduleError, match=f"deployment {name} refuses these parameters"):
        start_run(name, {"wait_minutes": "long"})
    with pytest.raises(ScheduleError, match="has no parameter 'wait_minuets'; did you mean wait_minutes"):
        start_run(name, {"wait_minuets": 1})


def test_of_two_flows_with_a_deployment_of_that_name_one_is_to_be_named(pool: str) -> None:
    name = f"test-{uuid4().hex[:8]}"
    ours = deployed(name)
    deploy([Deployment(name=name, entrypoint="flows.scheduled.verify")], pool)
    with pytest.raises(ScheduleError, match=f"2 flows have .* say which: update/{name}, verify/{name}"):
        start_run(name, {})
    with get_client(sync_client=True) as client:
        assert client.read_flow_run(UUID(start_run(f"update/{name}", {}))).deployment_id == ours


def test_of_missed_runs_the_newest_is_kept(deployment: UUID) -> None:
    now = datetime.now(UTC)
    with get_client(sync_client=True) as client:
        times = {
            "start_time": (now - timedelta(days=4)).isoformat(),
            "end_time": now.isoformat(),
            "min_runs": 4,
        }
        client.request(
            "POST", "/deployments/{id}/schedule", path_params={"id": deployment}, json=times
        ).raise_for_status()
        assert drop_missed([deployment]) == 3
        assert drop_missed([deployment]) == 0


def broken_off(client: SyncPrefectClient, run: UUID, end: "State[object]") -> None:
    client.set_flow_run_state(run, Running(), force=True)
    client.set_flow_run_state(run, end, force=True)


@pytest.mark.parametrize(
    ("end", "goes_on"),
    [
        (Crashed(message="its process ended without a word"), True),
        (Crashed(message="Process exited with status code: -9. It was killed."), True),
        (Crashed(message="Process exited with status code: 1. A general error."), False),
        (Cancelled(message="Runner is shutting down."), True),
        (Cancelled(message="somebody did not want it"), False),
        (Failed(message="bad input"), False),
        (Completed(), False),
    ],
    ids=["crashed", "killed", "ended", "stopped", "cancelled", "failed", "completed"],
)
def test_only_what_broke_off_goes_on(deployment: UUID, end: "State[object]", goes_on: bool) -> None:
    with get_client(sync_client=True) as client:
        run = client.create_flow_run_from_deployment(deployment, parameters={"head": "notes"})
        broken_off(client, run.id, end)
        started = resume([deployment])
        assert len(started) == goes_on
        assert resume([deployment]) == []
        for repeated in started:
            assert repeated.old == str(run.id)
            assert repeated.new is not None
            assert client.read_flow_run(run.id).labels[AGAIN] == repeated.new
            again = client.read_flow_run(UUID(repeated.new))
            assert again.parameters["head"] == "notes"
            meant = datetime.fromisoformat(again.parameters["at"])
            assert meant == client.read_flow_run(run.id).expected_start_time
            assert meant.utcoffset() == timedelta(hours=9)


def test_a_later_run_replaces_one_that_broke_off_only_if_it_does_the_same(deployment: UUID) -> None:
    with get_client(sync_client=True) as client:
        parameters = [{"head": "notes"}, {"head": "notes"}, {"head": "other"}]
        first, second, third = (
            client.create_flow_run_from_deployment(deployment, parameters=given).id for given in parameters
        )
        broken_off(client, first, Crashed(message="gone"))
        broken_off(client, second, Crashed(message="gone"))
        broken_off(client, third, Cancelled(message="somebody did not want it"))
        assert [again.old for again in resume([deployment])] == [str(second)]
        assert resume([deployment]) == []


def test_what_goes_on_waits_for_a_run_that_would_have_it_refused(pool: str) -> None:
    limit = {"limit": 1, "collision_strategy": "CANCEL_NEW"}
    deployment = deployed(f"test-{uuid4().hex[:8]}", concurrency_limit=limit)

    def began(run: UUID) -> str | None:
        client.set_flow_run_state(run, Pending())
        state: State[object] | None = client.read_flow_run(run).state
        return state.message if state is not None else None

    with get_client(sync_client=True) as client:
        broken, other = (
            client.create_flow_run_from_deployment(deployment, parameters={"head": head}).id
            for head in ("notes", "other")
        )
        assert not began(broken)
        client.set_flow_run_state(broken, Crashed(message="gone"), force=True)
        assert not began(other)
        assert resume([deployment]) == []

        client.set_flow_run_state(other, Completed(), force=True)
        [again] = resume([deployment])
        assert (again.old, again.new is not None) == (str(broken), True)

        quicker = client.create_flow_run_from_deployment(deployment, parameters={"head": "quicker"}).id
        assert not began(quicker)
        assert began(UUID(again.new)) == "Deployment concurrency limit reached."
        assert resume([deployment]) == []
        client.set_flow_run_state(quicker, Completed(), force=True)
        [last] = resume([deployment])
        assert last.old == again.new
        assert client.read_flow_run(UUID(last.new)).parameters["head"] == "notes"


def test_what_breaks_off_again_and_again_is_left_alone(deployment: UUID) -> None:
    with get_client(sync_client=True) as client:
        run = client.create_flow_run_from_deployment(deployment).id
        for _ in range(ATTEMPTS - 1):
            broken_off(client, run, Crashed(message="gone"))
            [again] = resume([deployment])
            assert again.new is not None
            run = UUID(again.new)
        broken_off(client, run, Crashed(message="gone"))
        assert resume([deployment]) == []


def test_a_run_that_cannot_be_repeated_is_tried_once_and_keeps_nobody_else_waiting(deployment: UUID) -> None:
    other = deployed(f"test-{uuid4().hex[:8]}")
    with get_client(sync_client=True) as client:
        refused, fine = (client.create_flow_run_from_deployment(each).id for each in (deployment, other))
        for run in (refused, fine):
            broken_off(client, run, Crashed(message="gone"))
        schema = {"type": "object", "properties": {"head": {"type": "integer"}}}
        before = client.read_deployment(deployment)
        client.create_deployment(
            before.flow_id,
            before.name,
            parameter_openapi_schema=schema,
            work_pool_name="cellar",
        )
        first, second = resume([deployment, other])
    assert (first.old, first.new, second.old) == (str(refused), None, str(fine))
    assert first.refusal is not None
    assert "cannot be repeated as it was: " in first.line
    assert "Validation failed for field 'head'" in first.line
    assert second.new is not None
    assert resume([deployment, other]) == []
