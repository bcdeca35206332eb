"""Making deployments known to a Prefect API: for the workers of a pool, or for a process that runs them."""

import difflib
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from flows.errors import DeploymentNotFound, ScheduleError
from flows.serving.deployments import Deployment

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas.objects import ConcurrencyLimitConfig
    from prefect.client.schemas.responses import DeploymentResponse
    from prefect.deployments.runner import RunnerDeployment
    from prefect.exceptions import PrefectHTTPStatusError

_MISSED = "missed while nothing was serving; the newest missed run is made up for"
_PAGE = 200


def served(deployment: Deployment) -> "RunnerDeployment":
    """The deployment as a Prefect runner on this machine takes it."""
    from prefect.deployments.runner import RunnerDeployment

    made = RunnerDeployment.from_entrypoint(
        deployment.module_path,
        deployment.name,
        schedules=[schedule.created() for schedule in deployment.schedules],
        concurrency_limit=_limit(deployment),
        paused=deployment.paused,
        parameters=deployment.parameters,
        description=deployment.description,
        tags=deployment.tags,
        version=deployment.version,
        enforce_parameter_schema=deployment.enforce_parameter_schema,
    )
    # Set afterwards, so that an earlier registration for a pool is overwritten.
    made.work_pool_name = None
    made.work_queue_name = None
    return made


def deploy(deployments: Sequence[Deployment], pool: str | None) -> dict[str, str]:
    """Register deployments for the workers of a pool, by default that of the file; returns ids by full name.

    Raises:
        ScheduleError: no pool is given, or there is no such pool.
    """
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        chosen = [(deployment, _pool(client, deployment, pool)) for deployment in deployments]
        return {
            f"{deployment.flow().name}/{deployment.name}": str(_create(client, deployment, name))
            for deployment, name in chosen
        }


def _pool(client: "SyncPrefectClient", deployment: Deployment, pool: str | None) -> str:
    from prefect.exceptions import ObjectNotFound

    name = pool or deployment.work_pool.name
    if name is None:
        raise ScheduleError(
            f"deployment {deployment.name} names no work pool; give one with --pool, or write work_pool.name"
        )
    try:
        client.read_work_pool(name)
    except ObjectNotFound:
        raise ScheduleError(
            f"there is no work pool {name!r} at {client.api_url}; make one with "
            f"`prefect work-pool create {name} --type process`"
        ) from None
    return name


def _create(client: "SyncPrefectClient", deployment: Deployment, pool: str) -> UUID:
    from prefect.client.schemas.objects import ConcurrencyOptions
    from prefect.utilities.callables import parameter_schema

    flow = deployment.flow()
    limit = _limit(deployment)
    options = None
    if limit is not None:
        options = ConcurrencyOptions(
            collision_strategy=limit.collision_strategy, grace_period_seconds=limit.grace_period_seconds
        )
    here: list[dict[str, Any]] = [
        {"prefect.deployments.steps.set_working_directory": {"directory": str(Path.cwd())}}
    ]
    return client.create_deployment(
        client.create_flow_from_name(flow.name),
        deployment.name,
        version=deployment.version,
        schedules=[schedule.created() for schedule in deployment.schedules],
        concurrency_limit=limit.limit if limit else None,
        concurrency_options=options,
        parameters=deployment.parameters,
        description=deployment.description,
        work_pool_name=pool,
        work_queue_name=deployment.work_pool.work_queue_name,
        tags=deployment.tags,
        entrypoint=deployment.module_path,
        parameter_openapi_schema=parameter_schema(flow).model_dump_for_openapi(),
        paused=deployment.paused,
        pull_steps=here if deployment.pull is None else deployment.pull,
        enforce_parameter_schema=deployment.enforce_parameter_schema,
        job_variables=deployment.work_pool.job_variables,
    )


def _limit(deployment: Deployment) -> "ConcurrencyLimitConfig | None":
    from prefect.client.schemas.objects import ConcurrencyLimitConfig, ConcurrencyLimitStrategy

    limit = deployment.concurrency_limit
    if limit is None:
        return None
    return ConcurrencyLimitConfig(
        limit=limit.limit,
        collision_strategy=ConcurrencyLimitStrategy(limit.collision_strategy),
        grace_period_seconds=limit.grace_period_seconds,
    )


def start_run(name: str, parameters: dict[str, Any]) -> str:
    """Ask for a run of a deployment now; returns its id.

    Args:
        name: that of the deployment, or `flow/deployment`.

    Raises:
        DeploymentNotFound: there is no such deployment.
        ScheduleError: there is more than one, or its flow takes no such parameters.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterName,
        FlowFilter,
        FlowFilterName,
    )

    flow, _, deployment = name.rpartition("/")
    with get_client(sync_client=True) as client:
        found = client.read_deployments(
            deployment_filter=DeploymentFilter(name=DeploymentFilterName(any_=[deployment])),
            flow_filter=FlowFilter(name=FlowFilterName(any_=[flow])) if flow else None,
        )
        if not found:
            known = sorted(deployment.name for deployment in client.read_deployments())
            raise DeploymentNotFound(
                f"there is no deployment {name!r}; known are {', '.join(known) or 'none'}: `cellar serve` "
                "and `cellar deploy` register those of a file"
            )
        if len(found) > 1:
            flows = sorted(client.read_flow(each.flow_id).name for each in found)
            raise ScheduleError(
                f"{len(found)} flows have a deployment {deployment!r}; say which: "
                f"{', '.join(f'{flow}/{deployment}' for flow in flows)}"
            )
    return start_run_of(found[0].id, parameters)


def start_run_of(deployment: UUID, parameters: dict[str, Any]) -> str:
    """Ask for a run of the deployment with that id now; returns the run's id.

    Raises:
        ScheduleError: its flow takes no such parameters.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import PrefectHTTPStatusError

    with get_client(sync_client=True) as client:
        if parameters:
            _check_names(client.read_deployment(deployment), parameters)
        try:
            return str(client.create_flow_run_from_deployment(deployment, parameters=parameters).id)
        except PrefectHTTPStatusError as error:
            name = client.read_deployment(deployment).name
            raise ScheduleError(f"deployment {name} refuses these parameters: {refusal_of(error)}") from error


def _check_names(deployment: "DeploymentResponse", parameters: dict[str, Any]) -> None:
    known = list((deployment.parameter_openapi_schema or {}).get("properties", {}))
    unknown = [name for name in parameters if name not in known]
    if unknown and deployment.enforce_parameter_schema:  # of names alone a Prefect API enforces nothing
        near = difflib.get_close_matches(unknown[0], known, n=2, cutoff=0.75)
        hint = f"did you mean {' or '.join(near)}?" if near else f"it has {', '.join(known) or 'none'}"
        raise ScheduleError(f"deployment {deployment.name} has no parameter {unknown[0]!r}; {hint}")


def refusal_of(error: "PrefectHTTPStatusError") -> str:
    """What a Prefect API says of a request that it refuses."""
    try:
        return str(error.response.json()["detail"])
    except (ValueError, KeyError, TypeError):
        return " ".join(str(error).split())


def drop_missed(deployment_ids: Sequence[UUID]) -> int:
    """Of the runs that a schedule wanted while nobody served, keep the newest of each deployment."""
    from prefect.client.orchestration import get_client
    from prefect.states import Cancelled

    with get_client(sync_client=True) as client:
        missed = [run for identity in deployment_ids for run in _overdue(client, identity)[1:]]
        for run in missed:
            client.set_flow_run_state(run, Cancelled(message=_MISSED), force=True)
    return len(missed)


def _overdue(client: "SyncPrefectClient", deployment: UUID) -> list[UUID]:
    from prefect.client.schemas.filters import (
        DeploymentFilter,
        DeploymentFilterId,
        FlowRunFilter,
        FlowRunFilterExpectedStartTime,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.objects import StateType
    from prefect.client.schemas.sorting import FlowRunSort

    chosen = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=[StateType.SCHEDULED])),
        expected_start_time=FlowRunFilterExpectedStartTime(before_=datetime.now(UTC)),
    )
    runs = client.read_flow_runs(
        flow_run_filter=chosen,
        deployment_filter=DeploymentFilter(id=DeploymentFilterId(any_=[deployment])),
        sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        limit=_PAGE,
    )
    return [run.id for run in runs if run.auto_scheduled]
