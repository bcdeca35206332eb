"""Dask as the runner of a build: a cluster of worker processes on this machine, or one that is there already.

A scheduler executes whatever it is sent by whoever can connect to it. So the cluster on this machine takes
connections on loopback only, by TLS with a certificate that nobody but its own processes has.
"""

import ipaddress
import logging
import os
import signal
import socket
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit

from distributed import LocalCluster, Worker
from distributed.client import FutureCancelledError
from distributed.scheduler import KilledWorker
from prefect.settings import get_current_settings
from prefect_dask.task_runners import DaskTaskRunner

from flows.errors import ClusterUnavailable, SettingsError
from flows.settings import Settings
from flows.workers.runner import obey_parent

DEATHS = (KilledWorker, FutureCancelledError)
"""What Dask says when it gave a task up: its workers died again and again, or the scheduler went away."""

_ANSWER_S = 10.0
_CLOSE_S = 30.0


def task_runner(settings: Settings) -> DaskTaskRunner:
    """The runner on the configured cluster, or on one of `CELLAR_WORKERS` processes of one thread each.

    Raises:
        SettingsError: the workers could not find the store or the Prefect API.
        ClusterUnavailable: nothing answers at the address of the cluster.
    """
    logging.getLogger("distributed").setLevel(logging.ERROR)  # Prefect's own handler would show the rest
    if settings.dask_address is None:
        return DaskTaskRunner(cluster_class=LocalWorkers, cluster_kwargs=_local(settings))
    _check_reachable_from_afar(settings, settings.dask_address)
    _check_answers(settings.dask_address)
    return DaskTaskRunner(address=settings.dask_address)


class LocalWorkers(LocalCluster):
    """A cluster on this machine whose end never keeps a command from ending.

    Closing may wait for ever for a worker that is just started again because the one before it died.
    """

    def __exit__(self, *error: object) -> None:
        try:
            self.close(timeout=_CLOSE_S)
        except TimeoutError:
            for nanny in self.workers.values():
                if nanny.process is not None and nanny.process.pid is not None:
                    with suppress(ProcessLookupError):
                        os.kill(nanny.process.pid, signal.SIGKILL)


def dask_setup(worker: Worker) -> None:
    """Called by Dask in each worker process of the cluster on this machine as it starts."""
    obey_parent()


def _local(settings: Settings) -> dict[str, Any]:
    cores = max(1, len(os.sched_getaffinity(0)) // settings.workers)
    return {
        "n_workers": settings.workers,
        "threads_per_worker": 1,
        "processes": True,
        "security": True,
        "dashboard_address": None,
        "scheduler_kwargs": {"dashboard_address": "127.0.0.1:0"},  # pages of figures, on a port that is free
        "memory_limit": 0,  # as for threads and processes: the operating system's limits apply
        "local_directory": str(settings.work_dir / "dask"),
        "preload": [__name__],
        "env": {"OMP_NUM_THREADS": str(cores), "MKL_NUM_THREADS": str(cores)},
        "silence_logs": logging.CRITICAL,
    }


def _check_reachable_from_afar(settings: Settings, address: str) -> None:
    """Say before anything is sent away what the workers of another machine would not find."""
    if _is_here(address):
        return
    if not settings.store.startswith("s3:") and not settings.store.startswith(("/", "file:/")):
        raise SettingsError(
            f"CELLAR_STORE is {settings.store!r}, which is another folder on each worker of {address}; give "
            "an s3:// store, or the whole path of a folder on a file system that all of them share"
        )
    api = get_current_settings().api.url
    if api is None or _is_here(api):
        raise SettingsError(
            f"the workers of {address} cannot reach a Prefect server on the loopback of this machine; set "
            "PREFECT_API_URL to one that they reach"
        )


def _check_answers(address: str) -> None:
    """Connecting without this takes half a minute to fail, and says less."""
    where = urlsplit(address)
    try:
        socket.create_connection((where.hostname or "", where.port or 0), timeout=_ANSWER_S).close()
    except OSError as error:
        raise ClusterUnavailable(
            f"no Dask scheduler answers at {address} ({error}); start one, or correct CELLAR_DASK_ADDRESS"
        ) from error


def _is_here(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
