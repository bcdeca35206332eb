"""Which Prefect task runner spreads the shards of a build over this machine."""

from typing import Any

from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner

from flows.settings import Settings


def task_runner(settings: Settings) -> TaskRunner[Any]:
    """Threads or processes, as many as `CELLAR_WORKERS` says; the results are the same bytes either way."""
    if settings.runner == "processes":
        return ProcessPoolTaskRunner(max_workers=settings.workers)
    return ThreadPoolTaskRunner(max_workers=settings.workers)
