"""Runs whose process is gone: nobody else would ever say that they ended, or give their slots back."""

import platform
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from flows.notices import notify
from flows.runs.labels import PROCESS, STORE, process_of
from flows.serving.unfinished import tasks_left, tasks_of, unfinished_runs
from store import process

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas import FlowRun, State, TaskRun

_NAMELESS = timedelta(minutes=2)
"""A run that began has its process on it at once; one that still lacks it after this time lost it."""
_TAKEN_UP = timedelta(minutes=30)
"""A process that imports slowly takes long from the call for it to the beginning of the run."""
_UNRECORDED = timedelta(seconds=30)
"""The end of a task reaches the database some seconds after that of its flow."""
_LATELY = timedelta(days=1)
_SIBLINGS = 20


@dataclass(frozen=True)
class Broken:
    """A run that was found without its process, and what is said of it."""

    id: str
    flow: str
    reason: str
    store: str | None
    told: bool
    """Whether it is one to tell somebody of: no part of another, and not cancelled."""


def recover(*, ours: bool, served: Collection[UUID] = (), alone: bool = False) -> list[Broken]:
    """End the runs of dead processes, and their tasks, in the API of this process; slots are given back.

    A run is left alone that a process of another machine or container runs, or one that never said which.

    Args:
        ours: the API is on this machine and serves nobody else, so that a run from before the last boot is
            over, one of our flows that never noted its process broke off, and tasks of ended runs are over.
        served: deployments that the caller serves.
        alone: the caller has just begun to serve, so that no process runs anything for these yet.
    """
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        broken = [
            ended
            for run in unfinished_runs(client)
            if _is_dead(run)
            or (ours and (_is_of_an_earlier_boot(run) or _was_lost(client, run, served, alone=alone)))
            for ended in [_end(client, run)]
            if ended is not None
        ]
        _end_left_tasks(client, ours=ours)
    for run in broken:  # last, since the receiver may be slow
        if run.told:
            notify.failed(flow=run.flow, run=run.id, state="Crashed", reason=run.reason, store=run.store)
    return broken


def _has_begun(run: "FlowRun") -> bool:
    """Whether the process on it is its own: a run that is to be repeated still shows the one before."""
    return PROCESS in run.labels and run.state is not None and not run.state.is_pending()


def _is_dead(run: "FlowRun") -> bool:
    return _has_begun(run) and process.is_dead(process_of(run))


def _is_of_an_earlier_boot(run: "FlowRun") -> bool:
    here, noted = process.identity(), process_of(run) or {}
    if here is None or "boot" not in noted or not _has_begun(run):
        return False
    return noted["boot"] != here["boot"] and noted.get("host") == platform.node()


def _was_lost(client: "SyncPrefectClient", run: "FlowRun", served: Collection[UUID], *, alone: bool) -> bool:
    if run.work_pool_name is not None:
        return False
    if alone and run.deployment_id in served:
        return not process.is_alive(process_of(run)) or not _has_begun(run)
    if _has_begun(run):
        return False
    assert run.state is not None, "the API returns runs with their state"
    limit = _TAKEN_UP if run.state.is_pending() else _NAMELESS
    if datetime.now(UTC) - run.state.timestamp < limit:
        return False
    return run.deployment_id in served or _notes_processes(client, run.flow_id)


def _notes_processes(client: "SyncPrefectClient", flow: UUID) -> bool:
    """Whether other runs of the flow noted their process: a flow of somebody else never does."""
    from prefect.client.schemas.filters import FlowFilter, FlowFilterId
    from prefect.client.schemas.sorting import FlowRunSort

    found = client.read_flow_runs(
        flow_filter=FlowFilter(id=FlowFilterId(any_=[flow])),
        sort=FlowRunSort.START_TIME_DESC,
        limit=_SIBLINGS,
    )
    return any(PROCESS in run.labels for run in found)


def _end(client: "SyncPrefectClient", run: "FlowRun") -> Broken | None:
    """End a run and its tasks; None if it turns out that it ended by itself before its process did."""
    from prefect.client.schemas.objects import StateType
    from prefect.states import Cancelled, Crashed

    now = client.read_flow_run(run.id).state  # what a process says last, it says before it is gone
    if now is None or now.is_final():
        return None
    what = "its process ended without a word" if _has_begun(run) else "it was never taken up by a process"
    reason = f"{what}, found at {datetime.now(UTC).isoformat(timespec='seconds')}"
    state: State[Any] = Crashed(message=reason)
    if now.type == StateType.CANCELLING:
        state = Cancelled(message=reason)
    _end_tasks(client, tasks_of(client, run.id), state)
    client.set_flow_run_state(run.id, state)
    after = client.read_flow_run(run.id).state
    if after is not None and not after.is_final():
        client.set_flow_run_state(run.id, state, force=True)
    told = run.parent_task_run_id is None and state.type == StateType.CRASHED
    store = run.labels.get(STORE)
    return Broken(
        str(run.id), client.read_flow(run.flow_id).name, reason, str(store) if store else None, told
    )


def _end_left_tasks(client: "SyncPrefectClient", *, ours: bool) -> None:
    """End the tasks that runs left behind when they ended; elsewhere those of processes that died here."""
    for run, tasks in tasks_left(client, after=_UNRECORDED, within=None if ours else _LATELY):
        if run.state is not None and (ours or process.is_dead(process_of(run))):
            _end_tasks(client, tasks, run.state)


def _end_tasks(client: "SyncPrefectClient", tasks: Iterable["TaskRun"], end: "State[Any]") -> None:
    for task in tasks:
        if task.tags:
            client.decrement_v1_concurrency_slots(task.tags, task.id, 0.0)
        client.set_task_run_state(task.id, _end_of_task(end), force=True)


def _end_of_task(run: "State[Any]") -> "State[Any]":
    """What is known of a task whose end reached nobody, from that of its run."""
    from prefect.states import Completed, Crashed

    if run.is_completed():
        return Completed(message="its end was not recorded, but its run completed")
    return Crashed(message=f"its run ended before it: {run.name}")
