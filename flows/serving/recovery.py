"""Runs whose process is gone: nobody else would ever say that they ended, or give their slots back."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from flows.notices import notify
from flows.runs.labels import PROCESS
from flows.serving.processes import is_gone

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas import FlowRun, State, TaskRun

_PAGE = 200
_NAMELESS = timedelta(minutes=2)
"""A run that began has its process on it at once; one that still lacks it after this time lost it."""
_UNRECORDED = timedelta(seconds=30)
"""The end of a task reaches the database some seconds after that of its flow."""


@dataclass(frozen=True)
class Broken:
    """A run that was found without its process, and what is said of it."""

    id: str
    flow: str
    reason: str


def recover(*, ours: bool, alone: bool = False) -> list[Broken]:
    """End the runs of dead processes, and the tasks of ended runs, in the API of this process.

    A run that a process on another machine runs is left alone. Slots that tasks of dead runs hold are given
    back.

    Args:
        ours: the API serves nobody else, so that a run that never noted its process is one that broke off.
        alone: nothing but the caller can have started runs that are not in a process yet.
    """
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        broken = [_end(client, run) for run in _unfinished(client) if _is_dead(run, ours=ours, alone=alone)]
        _end_tasks(client, {UUID(run.id) for run in broken})
    return broken


def _is_dead(run: "FlowRun", *, ours: bool, alone: bool) -> bool:
    process = run.labels.get(PROCESS)
    if process is not None:
        return is_gone(str(process)) is True
    assert run.state is not None, "the API returns runs with their state"
    age = datetime.now(UTC) - run.state.timestamp
    return ours and run.work_pool_name is None and (alone or age > _NAMELESS)


def _end(client: "SyncPrefectClient", run: "FlowRun") -> Broken:
    from prefect.client.schemas.objects import StateType
    from prefect.states import Cancelled, Crashed

    now = datetime.now(UTC).isoformat(timespec="seconds")
    began = run.labels.get(PROCESS) is not None
    what = "its process ended without a word" if began else "it was never taken up by a process"
    reason = f"{what}, found at {now}"
    state: State[Any] = Crashed(message=reason)
    if run.state_type == StateType.CANCELLING:
        state = Cancelled(message=reason)
    client.set_flow_run_state(run.id, state)
    if client.read_flow_run(run.id).state_type != state.type:
        client.set_flow_run_state(run.id, state, force=True)
    flow = client.read_flow(run.flow_id).name
    if run.parent_task_run_id is None and state.type == StateType.CRASHED:
        notify.failed(flow=flow, run=str(run.id), state="Crashed", reason=reason)
    return Broken(str(run.id), flow, reason)


def _end_tasks(client: "SyncPrefectClient", dead: set[UUID]) -> None:
    for task in list(_unfinished_tasks(client)):
        run = client.read_flow_run(task.flow_run_id) if task.flow_run_id else None
        if run is None or run.state is None or not run.state.is_final():
            continue
        if run.id not in dead and datetime.now(UTC) - run.state.timestamp < _UNRECORDED:
            continue
        if task.tags:
            client.decrement_v1_concurrency_slots(task.tags, task.id, 0.0)
        client.set_task_run_state(task.id, _end_of_task(run.state), force=True)


def _end_of_task(run: "State[Any]") -> "State[Any]":
    """What is known of a task whose end reached nobody, from that of its run."""
    from prefect.states import Completed, Crashed

    if run.is_completed():
        return Completed(message="its end was not recorded, but its run completed")
    return Crashed(message=f"its run ended before it: {run.name}")


def _unfinished(client: "SyncPrefectClient") -> list["FlowRun"]:
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
    from prefect.client.schemas.objects import StateType

    types = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
    chosen = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=types)))
    found: list[FlowRun] = []
    while page := client.read_flow_runs(flow_run_filter=chosen, limit=_PAGE, offset=len(found)):
        found += page
    return found


def _unfinished_tasks(client: "SyncPrefectClient") -> Iterator["TaskRun"]:
    from prefect.client.schemas.filters import TaskRunFilter, TaskRunFilterState, TaskRunFilterStateType
    from prefect.client.schemas.objects import StateType

    types = [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
    chosen = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=types)))
    offset = 0
    while page := client.read_task_runs(task_run_filter=chosen, limit=_PAGE, offset=offset):
        yield from page
        offset += len(page)
