"""Runs and tasks that a Prefect API believes to be at work at this moment, each listed once."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas import FlowRun, TaskRun
    from prefect.client.schemas.filters import FlowRunFilter
    from prefect.client.schemas.objects import StateType

_PAGE = 200


def unfinished_runs(client: "SyncPrefectClient") -> list["FlowRun"]:
    """Runs of flows that are pending, running or being cancelled."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterState, FlowRunFilterStateType
    from prefect.client.schemas.sorting import FlowRunSort

    chosen = FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=_at_work())))
    found: dict[UUID, FlowRun] = {}  # runs begin and end while pages are read, so that some come twice
    offset = 0
    while page := client.read_flow_runs(
        flow_run_filter=chosen, sort=FlowRunSort.ID_DESC, limit=_PAGE, offset=offset
    ):
        found |= {run.id: run for run in page}
        offset += len(page)
    return list(found.values())


def tasks_of(client: "SyncPrefectClient", run: UUID) -> list["TaskRun"]:
    """Unfinished tasks of a run."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

    return _tasks(client, FlowRunFilter(id=FlowRunFilterId(any_=[run])))


def tasks_left(
    client: "SyncPrefectClient", *, after: timedelta, within: timedelta | None
) -> list[tuple["FlowRun", list["TaskRun"]]]:
    """Unfinished tasks of runs that ended so long ago, at most `within`, by run."""
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterEndTime,
        FlowRunFilterId,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.objects import TERMINAL_STATES

    now = datetime.now(UTC)
    over = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=list(TERMINAL_STATES))),
        end_time=FlowRunFilterEndTime(before_=now - after, after_=now - within if within else None),
    )
    left: dict[UUID, list[TaskRun]] = {}
    for task in _tasks(client, over):
        if task.flow_run_id is not None:
            left.setdefault(task.flow_run_id, []).append(task)
    ids = list(left)
    runs = [
        run
        for start in range(0, len(ids), _PAGE)
        for run in client.read_flow_runs(
            flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=ids[start : start + _PAGE])), limit=_PAGE
        )
    ]
    return [(run, left[run.id]) for run in runs]


def _tasks(client: "SyncPrefectClient", runs: "FlowRunFilter") -> list["TaskRun"]:
    from prefect.client.schemas.filters import TaskRunFilter, TaskRunFilterState, TaskRunFilterStateType
    from prefect.client.schemas.sorting import TaskRunSort

    chosen = TaskRunFilter(state=TaskRunFilterState(type=TaskRunFilterStateType(any_=_at_work())))
    found: dict[UUID, TaskRun] = {}
    offset = 0
    while page := client.read_task_runs(
        task_run_filter=chosen, flow_run_filter=runs, sort=TaskRunSort.ID_DESC, limit=_PAGE, offset=offset
    ):
        found |= {task.id: task for task in page}
        offset += len(page)
    return list(found.values())


def _at_work() -> list["StateType"]:
    from prefect.client.schemas.objects import StateType

    return [StateType.RUNNING, StateType.PENDING, StateType.CANCELLING]
