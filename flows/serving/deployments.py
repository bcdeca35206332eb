"""Deployments: what runs when and with which parameters, as a file in Prefect's own format says it."""

import importlib
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal
from zoneinfo import ZoneInfo

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from flows.errors import ScheduleError
from flows.runs.labels import notes_its_process
from flows.serving.import_path import check_working_folder
from flows.yaml_file import read_yaml

if TYPE_CHECKING:
    from prefect import Flow
    from prefect.client.schemas.actions import DeploymentScheduleCreate

DEPLOYMENTS_FILE = Path("prefect.yaml")
_REMEDY = (
    "start from the one in the source of cellar or in docs/scheduling.md, and give its place with --file"
)
_YEARS_S = 10 * 366 * 86400.0
_NAME = r"[^/%&<>\x00-\x1f\x7f]+"
"""What Prefect takes in a name; its API has it in addresses."""


def known_zone(name: str) -> str:
    """A name, if it is that of a time zone; raises ValueError otherwise."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # the last of a folder, or a name too long for a file
        raise ValueError(f"{name!r} is no time zone; write e.g. Europe/Berlin or UTC") from None
    return name


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Schedule(_Strict):
    """When runs start: by a cron expression in a time zone, or every so many seconds."""

    cron: str | None = None
    interval: float | None = Field(default=None, ge=1, le=_YEARS_S)
    timezone: Annotated[str, AfterValidator(known_zone)] = "UTC"
    active: bool = True
    parameters: dict[str, Any] = {}
    """Of runs that this schedule starts; they win over those of the deployment."""
    slug: str | None = None

    @field_validator("cron")
    @classmethod
    def _valid_cron(cls, value: str) -> str:
        from prefect.client.schemas.schedules import CronSchedule

        try:
            CronSchedule(cron=value)
        except ValidationError:
            raise ValueError(f"{value!r} is no cron expression; five fields such as '0 2 * * *'") from None
        return value

    @model_validator(mode="after")
    def _one_way(self) -> "Schedule":
        if (self.cron is None) == (self.interval is None):
            raise ValueError("a schedule has either cron or interval")
        return self

    def created(self) -> "DeploymentScheduleCreate":
        """The schedule as Prefect takes it."""
        from datetime import timedelta

        from prefect.client.schemas.actions import DeploymentScheduleCreate
        from prefect.client.schemas.schedules import CronSchedule, IntervalSchedule

        when = (
            CronSchedule(cron=self.cron, timezone=self.timezone)
            if self.cron is not None
            else IntervalSchedule(interval=timedelta(seconds=self.interval or 0), timezone=self.timezone)
        )
        return DeploymentScheduleCreate(
            schedule=when, active=self.active, parameters=self.parameters, slug=self.slug
        )


class Concurrency(_Strict):
    """How many runs of a deployment there are at a time, and what happens to one too many."""

    limit: int = Field(gt=0)
    collision_strategy: Literal["ENQUEUE", "CANCEL_NEW"] = "ENQUEUE"
    grace_period_seconds: int | None = Field(default=None, ge=60, le=86400)


class WorkPool(_Strict):
    """Where workers take runs from; `cellar serve` runs them itself."""

    name: str | None = None
    work_queue_name: str | None = None
    job_variables: dict[str, Any] = {}


class Deployment(_Strict):
    """One entry of the file."""

    name: str = Field(min_length=1, max_length=200)
    entrypoint: str
    """The flow, as `package.module.flow` or `path/of/module.py:flow`."""
    description: str | None = None
    version: str | None = None
    tags: list[str] = []
    parameters: dict[str, Any] = {}
    schedules: list[Schedule] = []
    paused: bool = False
    concurrency_limit: Concurrency | None = None
    work_pool: WorkPool = WorkPool()
    enforce_parameter_schema: bool = True
    pull: list[dict[str, Any]] | None = None

    @field_validator("concurrency_limit", mode="before")
    @classmethod
    def _a_number_is_a_limit(cls, value: Any) -> Any:
        return {"limit": value} if isinstance(value, int) else value

    @field_validator("name")
    @classmethod
    def _fit_for_an_address(cls, value: str) -> str:
        if re.fullmatch(_NAME, value) is None:
            raise ValueError(f"{value!r} is no name: it must be one line without / % & < >")
        return value

    @field_validator("schedules")
    @classmethod
    def _distinct_slugs(cls, value: list[Schedule]) -> list[Schedule]:
        slugs = [schedule.slug for schedule in value if schedule.slug is not None]
        twice = sorted({slug for slug in slugs if slugs.count(slug) > 1})
        if twice:
            raise ValueError(f"two schedules have the slug {twice[0]}")
        return value

    @property
    def module_path(self) -> str:
        """The flow as `package.module.flow`, which needs no checkout where the package is installed."""
        path, colon, function = self.entrypoint.rpartition(":")
        if not colon:
            return self.entrypoint
        return f"{path.removesuffix('.py').removeprefix('./').replace('/', '.')}.{function}"

    def flow(self) -> "Flow[..., Any]":
        """The flow itself.

        Raises:
            ScheduleError: there is no such flow, or one whose dead runs nobody would notice.
        """
        from prefect import Flow

        if str(Path.cwd()) not in sys.path:  # as in the processes that run it
            sys.path.append(str(Path.cwd()))
        module, _, function = self.module_path.rpartition(".")
        try:
            found = getattr(importlib.import_module(module), function, None)
        except (ModuleNotFoundError, TypeError, ValueError):  # the last two of what is no path of a module
            found = None
        except (Exception, SystemExit) as error:  # whatever a user's module does
            raise ScheduleError(
                f"deployment {self.name}: {module} cannot be imported: {type(error).__name__}: "
                f"{str(error).partition(chr(10))[0]}"
            ) from error
        if not isinstance(found, Flow):
            raise ScheduleError(
                f"deployment {self.name}: there is no flow at {self.entrypoint}; give e.g. "
                "flows.scheduled.update or flows/scheduled.py:update"
            )
        if not notes_its_process(found):
            raise ScheduleError(
                f"deployment {self.name}: runs of {self.entrypoint} would not say which process they are, so "
                "that nobody could tell when one broke off; make it with flows.engine.flow"
            )
        return found


class _File(BaseModel):
    """What Prefect's file holds besides deployments concerns `prefect deploy` alone."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    pull: list[dict[str, Any]] | None = None
    deployments: list[Deployment]

    @field_validator("deployments")
    @classmethod
    def _distinct(cls, value: list[Deployment]) -> list[Deployment]:
        names = [deployment.name for deployment in value]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"two deployments are called {twice[0]}")
        if not value:
            raise ValueError("there is no deployment")
        return value


def load_deployments(path: Path = DEPLOYMENTS_FILE, only: Sequence[str] = ()) -> list[Deployment]:
    """The deployments of a file, all or those named in `only`, with flows and parameters that exist.

    Raises:
        ScheduleError: the file is missing or no YAML, a deployment is unknown, something in it is wrong, or
            the working folder hides the flows.
    """
    check_working_folder()
    file = _parse(path, read_yaml(path, ScheduleError, remedy=_REMEDY))
    known = {deployment.name: deployment for deployment in file.deployments}
    for name in only:
        if name not in known:
            raise ScheduleError(f"{path} has no deployment {name!r}; it has {', '.join(known)}")
    chosen = [known[name] for name in dict.fromkeys(only)] or list(known.values())
    for deployment in chosen:
        _check_parameters(path, deployment, deployment.parameters)
        for schedule in deployment.schedules:
            _check_parameters(path, deployment, {**deployment.parameters, **schedule.parameters})
    return [_with_pull(deployment, file.pull) for deployment in chosen]


def _with_pull(deployment: Deployment, pull: list[dict[str, Any]] | None) -> Deployment:
    return deployment if deployment.pull is not None else deployment.model_copy(update={"pull": pull})


def _parse(path: Path, tree: Any) -> _File:
    try:
        return _File.model_validate(tree)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in _named(first["loc"], tree)) or "the file"
        what = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            what = "cellar knows no such setting"
        raise ScheduleError(f"{path}: {place}: {what[:1].lower()}{what[1:]}") from error


def _named(location: tuple[int | str, ...], tree: Any) -> tuple[int | str, ...]:
    """A place in the file, with the name of a deployment instead of its number."""
    if len(location) > 1 and location[0] == "deployments" and isinstance(location[1], int):
        entries = tree["deployments"]
        entry = entries[location[1]] if isinstance(entries, list) else None
        name = entry.get("name") if isinstance(entry, dict) else None
        if isinstance(name, str) and re.fullmatch(_NAME, name):
            return name, *location[2:]
    return location


def _check_parameters(path: Path, deployment: Deployment, parameters: dict[str, Any]) -> None:
    from prefect.exceptions import ParameterTypeError, SignatureMismatchError

    flow = deployment.flow()
    unknown = sorted(parameters.keys() - flow.parameters.properties.keys())
    if unknown:
        raise ScheduleError(
            f"{path}: {deployment.name}.parameters: {deployment.entrypoint} takes no {unknown[0]!r} but "
            f"{', '.join(flow.parameters.properties)}"
        )
    missing = sorted(set(flow.parameters.required) - parameters.keys())
    if missing:
        raise ScheduleError(
            f"{path}: {deployment.name}.parameters: {deployment.entrypoint} needs {missing[0]!r}"
        )
    try:
        flow.validate_parameters(parameters)
    except (ParameterTypeError, SignatureMismatchError) as error:
        raise ScheduleError(f"{path}: {deployment.name}.parameters: {_first_problem(error)}") from error


def _first_problem(error: Exception) -> str:
    """The problem as one line: Prefect lists them, each with its name and what is wrong below."""
    lines = [line.strip(" -") for line in str(error).splitlines() if line.strip()]
    return ": ".join(lines[1:3]) or lines[0]
