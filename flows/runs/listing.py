"""Runs of flows as the Prefect API of this process knows them: how each went and what came out."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from uuid import UUID

from flows.errors import RunNotFound, UsageError
from flows.runs.exits import exit_code, reason_of_exit
from flows.runs.labels import AGAIN, SNAPSHOT

if TYPE_CHECKING:
    from prefect.client.orchestration import SyncPrefectClient
    from prefect.client.schemas import FlowRun
    from prefect.client.schemas.filters import FlowFilter

_PAGE = 200
_LEAST_DIGITS = 4
_RAISED = "Flow run encountered an exception: "


@dataclass(frozen=True)
class Run:
    """One run of a flow. Times are ISO 8601; `duration` is in seconds, so far for a run that goes on.

    `reason` says why a run did not complete, `again` is the run that went on where this one broke off.
    """

    id: str
    name: str
    flow: str
    deployment: str | None
    state: str
    expected: str | None
    started: str | None
    duration: float | None
    snapshot: str | None
    reason: str | None
    again: str | None

    def to_dict(self) -> dict[str, Any]:
        """The run as JSON values."""
        return asdict(self)


def list_runs(
    *,
    states: Sequence[str] = (),
    flow: str | None = None,
    since: timedelta | None = None,
    limit: int = 20,
    parts: bool = False,
) -> list[Run]:
    """Runs that have begun or failed to, the newest first.

    Args:
        states: only runs in these states, such as `failed` or `running`; `scheduled` lists what is to come.
        flow: only runs of this flow, or of this deployment.
        since: only runs that were to start within this time.
        limit: this many at most; 0 for all.
        parts: also the runs that are part of another.

    Raises:
        UsageError: there is no such state.
    """
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        names = _Names(client)
        found: list[Run] = []
        for run in _read(client, states, since, parts=parts):
            made = names.run(run)
            if flow is None or flow in (made.flow, made.deployment):
                found.append(made)
            if limit and len(found) == limit:
                break
    return found


def failures(flow: str, parameter: str) -> Counter[str]:
    """How often runs of a flow failed or crashed, by the value of one of their parameters."""
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.filters import FlowFilter, FlowFilterName

    of_the_flow = FlowFilter(name=FlowFilterName(any_=[flow]))
    with get_client(sync_client=True) as client:
        runs = _read(client, ("failed", "crashed"), None, parts=True, flows=of_the_flow)
        return Counter(str(run.parameters.get(parameter)) for run in runs)


def find_run(identity: str) -> "FlowRun":
    """The run with an id that begins so; at least four digits.

    Raises:
        RunNotFound: there is none.
        UsageError: the digits are too few, or there are several.
    """
    from prefect.client.orchestration import get_client
    from prefect.exceptions import ObjectNotFound

    wanted = identity.lower().strip()
    with get_client(sync_client=True) as client:
        try:
            return client.read_flow_run(UUID(wanted))
        except (ValueError, ObjectNotFound):
            pass
        if len(wanted) < _LEAST_DIGITS:
            raise UsageError(f"{identity!r} is too short for the id of a run; give {_LEAST_DIGITS} digits")
        found = [run for run in _read(client, (), None, parts=True) if str(run.id).startswith(wanted)]
    if not found:
        raise RunNotFound(f"no run has an id that begins with {identity}; `cellar runs --limit 0` lists all")
    if len(found) > 1:
        raise UsageError(f"{len(found)} runs have ids that begin with {identity}; give more digits")
    return found[0]


class _Names:
    """Names of flows and deployments, each asked for once."""

    def __init__(self, client: "SyncPrefectClient") -> None:
        self._client = client
        self._flows: dict[UUID, str] = {}
        self._deployments: dict[UUID, str] = {}

    def run(self, run: "FlowRun") -> Run:
        """The run with names in place of ids."""
        if run.flow_id not in self._flows:
            self._flows[run.flow_id] = self._client.read_flow(run.flow_id).name
        return to_run(run, self._flows[run.flow_id], self._deployment(run.deployment_id))

    def _deployment(self, identity: UUID | None) -> str | None:
        from prefect.exceptions import ObjectNotFound

        if identity is None:
            return None
        if identity not in self._deployments:
            try:
                self._deployments[identity] = self._client.read_deployment(identity).name
            except ObjectNotFound:  # it was deleted since
                self._deployments[identity] = "deleted"
        return self._deployments[identity]


def named(run: "FlowRun") -> Run:
    """One run with the names of its flow and deployment."""
    from prefect.client.orchestration import get_client

    with get_client(sync_client=True) as client:
        return _Names(client).run(run)


def to_run(run: "FlowRun", flow: str, deployment: str | None) -> Run:
    """What is shown of a run of Prefect."""
    state = run.state
    ended = run.end_time or (datetime.now(UTC) if state is not None and state.is_running() else None)
    duration = (ended - run.start_time).total_seconds() if run.start_time and ended else None
    snapshot = run.labels.get(SNAPSHOT)
    again = run.labels.get(AGAIN)
    return Run(
        id=str(run.id),
        name=run.name,
        flow=flow,
        deployment=deployment,
        state=state.name or state.type.value.capitalize() if state is not None else "Unknown",
        expected=_time(run.expected_start_time),
        started=_time(run.start_time),
        duration=duration,
        snapshot=str(snapshot) if snapshot else None,
        reason=_reason(run),
        again=str(again) if again else None,
    )


def _time(value: datetime | None) -> str | None:
    return value.astimezone(UTC).isoformat(timespec="seconds") if value is not None else None


def _reason(run: "FlowRun") -> str | None:
    """Why a run did not complete, or has not begun."""
    state = run.state
    if state is None or state.is_completed() or state.is_scheduled() or state.is_running():
        return None
    code = exit_code(state.message)
    if code is not None:
        return reason_of_exit(run.id, code)
    if state.message:
        return _one_line(state.message)
    return "no reason was recorded" if state.is_final() else None


def _one_line(message: str) -> str:
    """A reason without the words that Prefect puts before and the class of the error."""
    line = " ".join(message.split()).removeprefix(_RAISED)
    kind, colon, rest = line.partition(": ")
    return rest if colon and kind.isidentifier() and kind[:1].isupper() and rest else line


def _read(
    client: "SyncPrefectClient",
    states: Sequence[str],
    since: timedelta | None,
    *,
    parts: bool,
    flows: "FlowFilter | None" = None,
) -> Iterator["FlowRun"]:
    """Runs page by page, the newest first; each once, though pages shift when another run begins."""
    from prefect.client.schemas.filters import (
        FlowRunFilter,
        FlowRunFilterExpectedStartTime,
        FlowRunFilterParentTaskRunId,
        FlowRunFilterState,
        FlowRunFilterStateType,
    )
    from prefect.client.schemas.objects import StateType
    from prefect.client.schemas.sorting import FlowRunSort

    known = {kind.value.lower(): kind for kind in StateType}
    for name in states:
        if name.lower() not in known:
            raise UsageError(f"no run is ever {name!r}; states are {', '.join(known)}")
    begun = [kind for kind in known.values() if kind != StateType.SCHEDULED]
    wanted = [known[name.lower()] for name in states] or begun
    chosen = FlowRunFilter(
        state=FlowRunFilterState(type=FlowRunFilterStateType(any_=wanted)),
        expected_start_time=None
        if since is None
        else FlowRunFilterExpectedStartTime(after_=datetime.now(UTC) - since),
        parent_task_run_id=None if parts else FlowRunFilterParentTaskRunId(is_null_=True),
    )
    seen: set[UUID] = set()
    offset = 0
    while page := client.read_flow_runs(
        flow_filter=flows,
        flow_run_filter=chosen,
        sort=FlowRunSort.EXPECTED_START_TIME_DESC,
        limit=_PAGE,
        offset=offset,
    ):
        yield from (run for run in page if run.id not in seen)
        seen |= {run.id for run in page}
        offset += len(page)
