"""What a run knows of its schedule: the moment it was meant for, and the runs that come after it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from prefect.logging import get_run_logger
from prefect.runtime import flow_run

from flows.errors import DeploymentNotFound, ScheduleError
from flows.serving.deployments import known_zone
from flows.serving.registration import start_run


def scheduled_for(timezone: str) -> str:
    """When the present run was to start, in a time zone: a late run means the day that it was scheduled for.

    Raises:
        ScheduleError: there is no such time zone.
    """
    try:
        zone = ZoneInfo(known_zone(timezone))
    except ValueError as error:
        raise ScheduleError(str(error)) from None
    meant: datetime | None = flow_run.scheduled_start_time
    return (meant or datetime.now(UTC)).astimezone(zone).isoformat(timespec="seconds")


def start_all(deployments: Sequence[str]) -> dict[str, str | None]:
    """Ask for runs of deployments and return their ids; None, with a warning, for one that is unknown."""
    started: dict[str, str | None] = {}
    for name in deployments:
        try:
            started[name] = start_run(name, {})
        except (DeploymentNotFound, ScheduleError) as error:  # the work of this run is done all the same
            get_run_logger().warning("%s was not started: %s", name, error)
            started[name] = None
    return started
