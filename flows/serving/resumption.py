"""Work that broke off with its process is taken up again, by a new run that finds what was done."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID
from zoneinfo import ZoneInfo

from flows.runs.labels import AGAIN, ATTEMPT, REFUSED
from flows.serving.registration import refusal_of

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


@dataclass(frozen=True)
class Again:
    """A run that was broken off, and the one that goes on with it; without that one, why there is none."""

    old: str
    new: str | None
    refusal: str | None = None

    @property
    def line(self) -> str:
        """What is said of it."""
        if self.new is None:
            return f"{self.old} was broken off and cannot be repeated as it was: {self.refusal}"
        return f"{self.old} was broken off; {self.new} goes on with it"


def resume(deployment_ids: Sequence[UUID]) -> list[Again]:
    """Start the last run of each deployment again if it was broken off.

    A run that failed by itself is not repeated, nor one that somebody cancelled. One whose parameters the
    flow no longer takes is tried once.
    """
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        found = [_last(client, deployment) for deployment in deployment_ids]
        return [_tried(client, last) for last in found if last is not None and _broken_off(last)]


def _tried(client: "SyncPrefectClient", run: "FlowRun") -> Again:
    from prefect.exceptions import PrefectHTTPStatusError

    try:
        new = _again(client, run)
    except PrefectHTTPStatusError as error:
        if not error.response.is_client_error:
            raise
        again = Again(str(run.id), None, refusal_of(error))
    except (KeyError, ValueError, OSError) as error:  # its time zone
        again = Again(str(run.id), None, str(error))
    else:
        return Again(str(run.id), new)
    client.update_flow_run_labels(run.id, {REFUSED: str(again.refusal)})
    return again


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
    if state is None or not {AGAIN, REFUSED}.isdisjoint(run.labels):
        return False
    if int(run.labels.get(ATTEMPT, 0)) + 1 >= ATTEMPTS:
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
