"""Work that broke off with its process is taken up again, by a new run that finds what was done."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID
from zoneinfo import ZoneInfo

from flows.runs.exits import ended_by_itself
from flows.runs.labels import AGAIN, ATTEMPT, REFUSED
from flows.serving.registration import refusal_of

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas import FlowRun
    from prefect.client.schemas.objects import StateType

ATTEMPTS = 3
"""Runs that one piece of work gets: what breaks off so often needs somebody to look at it."""
_STOPPED = "Runner is shutting down."
"""What Prefect's runner says of runs that it ends because it was asked to stop."""
_ONE_TOO_MANY = "Deployment concurrency limit reached."
"""What Prefect says of runs that a deployment with CANCEL_NEW refuses."""
_RECENT = timedelta(days=7)
_NEWEST = 200
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
    """Start runs of deployments again that were broken off, unless a later one did the same work.

    A run that failed by itself is not repeated, nor one that somebody cancelled. One whose parameters the
    flow no longer takes is tried once. Where a deployment refuses a run while another works, the repetition
    waits for that.
    """
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        return [
            _tried(client, run)
            for deployment in deployment_ids
            for run in _broken_off(client, deployment)
            if not _would_be_refused(client, deployment)
        ]


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


def _broken_off(client: "SyncPrefectClient", deployment: UUID) -> list["FlowRun"]:
    """Runs to go on with, in the order of their start."""
    from prefect.client.schemas.objects import StateType

    ended = [StateType.CRASHED, StateType.CANCELLED]
    broken = [run for run in _recent(client, deployment, ended) if _goes_on(run)]
    if not broken:
        return []
    started = _recent(client, deployment, list(StateType))
    return [run for run in broken if not any(_replaces(other, run) for other in started)]


def _recent(client: "SyncPrefectClient", deployment: UUID, states: "list[StateType]") -> list["FlowRun"]:
    """The newest runs that started or ended without a start, in the order of that."""
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterId,
        FlowRunFilter,
        FlowRunFilterStartTime,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.sorting import FlowRunSort

    found = client.read_flow_runs(
        flow_run_filter=FlowRunFilter(
            start_time=FlowRunFilterStartTime(after_=datetime.now(UTC) - _RECENT, is_null_=False),
            state=FlowRunFilterState(type=FlowRunFilterStateType(any_=states)),
        ),
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])),
        sort=FlowRunSort.START_TIME_DESC,
        limit=_NEWEST,
    )
    return found[::-1]


def _goes_on(run: "FlowRun") -> bool:
    if not _is_broken(run) or not {AGAIN, REFUSED}.isdisjoint(run.labels):
        return False
    return int(run.labels.get(ATTEMPT, 0)) + 1 < ATTEMPTS and not ended_by_itself(run)


def _is_broken(run: "FlowRun") -> bool:
    """Whether a run ended though nobody wanted it to, and not by an error of its own."""
    state = run.state
    if state is None or not state.is_cancelled():
        return state is not None and state.is_crashed()
    return state.message == _STOPPED or (state.message == _ONE_TOO_MANY and ATTEMPT in run.labels)


def _replaces(other: "FlowRun", run: "FlowRun") -> bool:
    """Whether a run does the work of one that was broken off: it is later, and nobody cancelled it."""
    assert run.start_time is not None, "only such runs were asked for"
    return (
        other.start_time is not None
        and other.start_time > run.start_time
        and other.parameters == run.parameters
        and other.state is not None
        and (not other.state.is_cancelled() or _is_broken(other))
    )


def _would_be_refused(client: "SyncPrefectClient", deployment: UUID) -> bool:
    """Whether the deployment cancels a new run at this moment, since as many as it allows are at work."""
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterId,
        FlowRunFilter,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.objects import ConcurrencyLimitStrategy, StateType

    found = client.read_deployment(deployment)
    limit, options = found.global_concurrency_limit, found.concurrency_options
    if limit is None or options is None:
        return False
    if options.collision_strategy != ConcurrencyLimitStrategy.CANCEL_NEW:
        return False
    working = [StateType.SCHEDULED, StateType.PENDING, StateType.RUNNING, StateType.CANCELLING]
    runs = client.read_flow_runs(
        flow_run_filter=FlowRunFilter(state=FlowRunFilterState(type=FlowRunFilterStateType(any_=working))),
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])),
    )
    return sum(map(_is_due, runs)) >= limit.limit


def _is_due(run: "FlowRun") -> bool:
    """Whether an unfinished run has begun, or is about to."""
    planned = run.next_scheduled_start_time
    return planned is None or planned <= datetime.now(UTC)


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
