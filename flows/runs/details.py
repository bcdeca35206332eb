"""Everything that is known of one run: resolved parameters, settings, parts, tasks, and what it published."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from flows.runs.listing import Run, named

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas import FlowRun

    from store import Commit

_PAGE = 200


@dataclass(frozen=True)
class Details:
    """One run with its parts.

    `parameters` are those that the run was started with; `params` and `settings` what they resolved to: what
    was computed, and where. `parts` are the runs it started, directly or not. `tasks` and `artifacts` are
    those of all of them.
    """

    run: Run
    parameters: dict[str, Any]
    params: dict[str, Any] | None
    settings: dict[str, Any] | None
    parts: tuple[Run, ...]
    tasks: tuple[dict[str, Any], ...]
    artifacts: tuple[dict[str, Any], ...]

    @property
    def ids(self) -> frozenset[str]:
        """The ids of the run and its parts, as commits record them."""
        return frozenset({self.run.id, *(part.id for part in self.parts)})

    def to_dict(self) -> dict[str, Any]:
        """JSON values."""
        return {
            **self.run.to_dict(),
            "parameters": self.parameters,
            "params": self.params,
            "settings": self.settings,
            "parts": [part.to_dict() for part in self.parts],
            "tasks": list(self.tasks),
            "artifacts": list(self.artifacts),
        }


def details_of(run: "FlowRun") -> Details:
    """Gather what the API of this process knows of a run."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        family = [run, *_descendants(client, run.id)]
        flows = {member.id: made for member in family for made in [named(member)]}
        resolved = [member for member in family if isinstance(member.parameters.get("params"), dict)]
        own = {name: value for name, value in run.parameters.items() if name not in ("params", "settings")}
        return Details(
            run=flows[run.id],
            parameters=own,
            params=resolved[0].parameters["params"] if resolved else None,
            settings=_settings(family),
            parts=tuple(flows[member.id] for member in family[1:]),
            tasks=tuple(_tasks(client, flows)),
            artifacts=tuple(_artifacts(client, list(flows))),
        )


def commits_of(details: Details, log: Iterable["Commit"]) -> list["Commit"]:
    """The commits of a store that a run or a part of it made."""
    return [commit for commit in log if commit.run.get("flow_run") in details.ids]


def _settings(family: Sequence["FlowRun"]) -> dict[str, Any] | None:
    found = [member.parameters.get("settings") for member in family]
    return next((settings for settings in found if isinstance(settings, dict)), None)


def _descendants(client: "SyncPrefectClient", parent: UUID) -> list["FlowRun"]:
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterParentFlowRunId
    from prefect.client.schemas.sorting import FlowRunSort

    chosen = FlowRunFilter(parent_flow_run_id=FlowRunFilterParentFlowRunId(any_=[parent]))
    children = client.read_flow_runs(flow_run_filter=chosen, sort=FlowRunSort.START_TIME_ASC, limit=_PAGE)
    return [run for child in children for run in [child, *_descendants(client, child.id)]]


def _tasks(client: "SyncPrefectClient", flows: dict[UUID, Run]) -> Iterable[dict[str, Any]]:
    """Tasks in the order of their start, without those that stand for a part."""
    from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
    from prefect.client.schemas.sorting import TaskRunSort

    chosen = FlowRunFilter(id=FlowRunFilterId(any_=list(flows)))
    offset = 0
    while page := client.read_task_runs(
        flow_run_filter=chosen, sort=TaskRunSort.EXPECTED_START_TIME_ASC, limit=_PAGE, offset=offset
    ):
        offset += len(page)
        for task in page:
            if task.flow_run_id is None or (task.state and task.state.state_details.child_flow_run_id):
                continue
            yield {
                "flow": flows[task.flow_run_id].flow,
                "task": task.name,
                "state": (task.state.name if task.state else None) or "Unknown",
                "seconds": round(task.total_run_time.total_seconds(), 3),
                "attempts": task.run_count,
                "message": (task.state.message if task.state else None) or None,
            }


def _artifacts(client: "SyncPrefectClient", flow_runs: list[UUID]) -> Iterable[dict[str, Any]]:
    import json

    from prefect.client.schemas.filters import ArtifactFilter, ArtifactFilterFlowRunId

    chosen = ArtifactFilter(flow_run_id=ArtifactFilterFlowRunId(any_=flow_runs))
    for artifact in client.read_artifacts(artifact_filter=chosen, limit=_PAGE):
        if artifact.type == "result":
            continue
        data = artifact.data
        if artifact.type == "table" and isinstance(data, str):
            data = json.loads(data)
        yield {
            "key": artifact.key,
            "type": artifact.type,
            "description": artifact.description,
            "data": data,
        }
