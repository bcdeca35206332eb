"""Spreading the shards of a build over threads, processes or the workers of a Dask cluster."""

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any
from urllib.parse import quote
from uuid import UUID

from prefect import Task
from prefect.client.orchestration import get_client
from prefect.exceptions import PrefectHTTPStatusError, TerminationSignal
from prefect.futures import PrefectFuture
from prefect.states import Crashed
from prefect.task_runners import ProcessPoolTaskRunner, TaskRunner, ThreadPoolTaskRunner
from prefect.utilities.callables import get_call_parameters

from flows import watch
from flows.errors import SettingsError, WorkersLost
from flows.settings import Settings
from store.backend import open_backend
from tasks.progress import Progress, silent

_LOG = logging.getLogger(__name__)

ATTEMPTS = 4
"""Pools of worker processes that a build may use up; Dask starts a task as often whose workers die."""


def task_runner(settings: Settings) -> TaskRunner[Any]:
    """Threads, processes or Dask, as the settings say; the results are the same bytes from all of them.

    Raises:
        SettingsError: the settings do not fit together, or Dask is not installed.
        ClusterUnavailable: nothing answers at the address of the cluster.
    """
    if settings.runner == "processes":
        return ProcessPoolTaskRunner(max_workers=settings.workers, initializer=follow_parent)
    if settings.runner == "dask":
        try:
            from flows.workers import dask_cluster
        except ModuleNotFoundError as error:
            if error.name not in ("prefect_dask", "distributed", "dask"):
                raise
            raise SettingsError(
                "CELLAR_RUNNER is 'dask', which is not installed; `pip install 'cellar-lm[dask]'` brings it"
            ) from error
        return dask_cluster.task_runner(settings)
    return ThreadPoolTaskRunner(max_workers=settings.workers)


def spread(task: Task[..., Any], settings: Settings, calls: Sequence[Sequence[Any]], unit: str) -> list[Any]:
    """Results of `task(settings, *call)` for every call, in their order; to be called inside a flow.

    Calls whose worker process died are made again: what it had finished is found in the store. `unit` is
    what one call works on, in the plural, for whoever watches.

    Raises:
        WorkersLost: the workers of some calls died again and again.
    """
    if not calls:
        return []
    there = _for_workers(settings)
    results: dict[int, Any] = {}
    dead: list[UUID] = []
    with _watched(task.name, unit, settings) as progress:
        for _ in range(ATTEMPTS if settings.runner == "processes" else 1):
            missing = [number for number in range(len(calls)) if number not in results]
            with task_runner(settings) as runner:
                futures = {
                    number: runner.submit(task, get_call_parameters(task.fn, (there, *calls[number]), {}))
                    for number in missing
                }
                lost = _collect(
                    futures, results, _deaths(settings), lambda: progress(len(results), len(calls))
                )
            if not lost:
                break
            _LOG.warning("a worker process died; %d of %d %s are not done", len(lost), len(calls), unit)
            dead += lost
    _mark_crashed(dead)
    if not lost:
        return [results[number] for number in range(len(calls))]
    raise WorkersLost(
        f"workers of {len(lost)} of {len(calls)} {unit} died again and again, perhaps for want of "
        "memory; what they finished is kept: run the same command again, with fewer CELLAR_WORKERS"
    )


def _collect(
    futures: Mapping[int, PrefectFuture[Any]],
    results: dict[int, Any],
    deaths: tuple[type[BaseException], ...],
    report: Callable[[], None],
) -> list[UUID]:
    """Wait for all futures and put their results in place; returns the task runs whose worker died."""
    lost = []
    try:
        for number, future in futures.items():
            try:
                results[number] = future.result()
            except deaths:
                lost.append(future.task_run_id)
            report()
    except (KeyboardInterrupt, TerminationSignal):
        watch.interrupt()
        raise
    return lost


def _deaths(settings: Settings) -> tuple[type[BaseException], ...]:
    """The errors that say that a worker died, not that its work failed."""
    if settings.runner == "dask":
        from flows.workers.dask_cluster import DEATHS

        return DEATHS
    return (BrokenProcessPool,)


def _mark_crashed(task_runs: Sequence[UUID]) -> None:
    """Let no task run stay Running whose process is gone; what had not begun, the API does not know."""
    if task_runs:
        with get_client(sync_client=True) as client:
            for task_run in task_runs:
                with suppress(PrefectHTTPStatusError):
                    client.set_task_run_state(
                        task_run, Crashed(message="The worker process died."), force=True
                    )


def _watched(title: str, unit: str, settings: Settings) -> AbstractContextManager[Progress]:
    """Steps in threads report themselves; of steps elsewhere one sees that they end."""
    return nullcontext(silent) if settings.runner == "threads" else watch.progress(title, unit)


def _for_workers(settings: Settings) -> Settings:
    """Settings that mean the same in a process with another working directory."""
    if settings.runner == "threads":
        return settings
    folders = {name: getattr(settings, name).absolute() for name in ("work_dir", "pins")}
    kind, _, place = open_backend(settings.store).url.partition(":")
    store = f"file:{quote(place)}" if kind == "file" else settings.store
    return settings.model_copy(update={**folders, "store": store})


def follow_parent() -> None:
    """Make a worker process stop when its parent says so, and end when that dies: called once in each worker.

    Ctrl-C reaches a whole process group; the parent alone answers it (`flows.watch.interrupt`). A worker that
    lost its parent would wait for work for ever.
    """
    obey_parent()
    threading.Thread(target=_end_with_parent, name="end with parent", daemon=True).start()


def obey_parent() -> None:
    """Leave Ctrl-C to the parent, and stop at the next report when it asks for that."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: watch.interrupt())


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None, "a worker process has a parent"
    parent.join()
    os.kill(os.getpid(), signal.SIGKILL)
