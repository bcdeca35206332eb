"""Work that broke off with its process is taken up again, by a new run that finds what was done."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID
from zoneinfo import ZoneInfo

from flows.runs.labels import AGAIN, ATTEMPT

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas import FlowRun

ATTEMPTS = 3
"""Runs that one piece of work gets: what breaks off so often needs somebody to look at it."""
_STOPPED = "Runner is shutting down."
"""What Prefect's runner says of runs that it ends because it was asked to stop."""
_RECENT = timedelta(days=7)
_MOMENT = "at"
"""Parameter of flows whose work depends on the moment that they were scheduled for."""


def resume(deployment_ids: Sequence[UUID]) -> list[tuple[str, str]]:
    """Start the last run of each deployment again if it was broken off; returns pairs of old and new ids.

    A run that failed by itself is not repeated, nor one that somebody cancelled.
    """
    from prefect.client.orchestration import get_client

    started = []
    with get_client(sync_client=True) as client:
        for deployment in deployment_ids:
            last = _last(client, deployment)
            if last is not None and _broken_off(last):
                started.append((str(last.id), _again(client, last)))
    return started


def _last(client: "SyncPrefectClient", deployment: UUID) -> "FlowRun | None":
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterId,
        FlowRunFilter,
        FlowRunFilterStartTime,
    )
    from prefect.client.schemas.sorting import FlowRunSort

    found = client.read_flow_runs(
        flow_run_filter=FlowRunFilter(
            start_time=FlowRunFilterStartTime(after_=datetime.now(UTC) - _RECENT, is_null_=False)
        ),
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])),
        sort=FlowRunSort.START_TIME_DESC,
        limit=1,
    )
    return found[0] if found else None


def _broken_off(run: "FlowRun") -> bool:
    state = run.state
    if state is None or AGAIN in run.labels or int(run.labels.get(ATTEMPT, 0)) + 1 >= ATTEMPTS:
        return False
    return state.is_crashed() or (state.is_cancelled() and state.message == _STOPPED)


def _again(client: "SyncPrefectClient", run: "FlowRun") -> str:
    assert run.deployment_id is not None, "only runs of deployments are asked for"
    # A polite stop of the server is no fault of the work.
    faults = int(run.labels.get(ATTEMPT, 0)) + (run.state is not None and run.state.is_crashed())
    parameters = dict(run.parameters)
    taken = client.read_deployment(run.deployment_id).parameter_openapi_schema or {}
    if _MOMENT in taken.get("properties", {}) and parameters.get(_MOMENT) is None and run.expected_start_time:
        zone = ZoneInfo(str(parameters.get("timezone", "UTC")))  # "yesterday" stays the day that was meant
        parameters[_MOMENT] = run.expected_start_time.astimezone(zone).isoformat()
    new = client.create_flow_run_from_deployment(
        run.deployment_id,
        parameters=parameters,
        labels={ATTEMPT: faults},
        idempotency_key=f"again-{run.id}",
    )
    client.update_flow_run_labels(run.id, {AGAIN: str(new.id)})
    return str(new.id)
