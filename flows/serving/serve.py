"""One process that keeps a Prefect API up on this machine and runs what is due, until it is told to stop."""

import asyncio
import logging
import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import httpx

from flows.errors import PrefectServerError, SettingsError
from flows.notices import notify
from flows.serving.api import answering, configured_url, using
from flows.serving.api_process import ApiProcess, free_port
from flows.serving.deployments import Deployment
from flows.serving.import_path import import_variables
from flows.serving.lock import ServeLock, serve_lock
from flows.serving.recovery import recover
from flows.serving.registration import drop_missed, served, start_run_of
from flows.serving.resumption import resume
from flows.serving.served import SERVED_BY
from flows.settings import Settings
from flows.workers.gpu import provide_limit

if TYPE_CHECKING:
    from prefect.runner import Runner

_LOG = logging.getLogger(__name__)

Say = Callable[[str], None]
"""Told what happens, a line at a time."""

WATCH_S = 5.0
"""Seconds between two looks at the server and at what runs."""
_SHARED_WATCH_S = 30.0
"""The same where the API serves others too."""
_STARTS = 3
"""In a row that a server may fail to start before serving ends."""


def serve(
    settings: Settings, deployments: Sequence[Deployment], *, now: Sequence[str] = (), say: Say
) -> None:
    """Register deployments and run them when they are due, until SIGTERM or Ctrl-C.

    Uses the API that is configured, or keeps one of its own under the work directory. Runs are processes of
    their own, which end with this one, however that ends. A run whose process ended without a word is marked
    crashed and taken up again.

    Args:
        now: deployments to run at once, besides their schedule.

    Raises:
        AlreadyServed: another process serves the same work directory.
        SettingsError: the port is taken.
        PrefectServerError: the API does not start, or ended again and again.
    """
    home = settings.work_dir / "prefect"
    with serve_lock(home) as lock, _environment(settings), _api(home, settings, lock) as server:
        url = server.url if server else str(configured_url())
        with answering(url):
            runner, ids = _register(deployments)
            served_ids = list(ids.values())
            for broken in recover(ours=server is not None, served=served_ids, alone=server is not None):
                say(f"{broken.flow} {broken.id}: {broken.reason}")
            provide_limit(settings, owner=server is not None)
            drop_missed(served_ids)
            say(f"serving {', '.join(d.name for d in deployments)} at {url}; Ctrl-C stops")
            for name in now:
                say(f"{name} {start_run_of(ids[name], {})}: starts now")
        _run(runner, _Watcher(runner, served_ids, server, lock, say))
    say("stopped; runs that were broken off go on at the next start")


@contextmanager
def _environment(settings: Settings) -> Iterator[None]:
    """Hand the settings of this command to the processes of runs, and let these keep their logs."""
    given = settings.model_dump(mode="json", exclude={"quiet"}, exclude_none=True)
    before = dict(os.environ)
    os.environ |= {f"CELLAR_{name.upper()}": str(value) for name, value in given.items()}
    os.environ |= {SERVED_BY: str(os.getpid()), **import_variables()}
    if os.environ.get("PREFECT_LOGGING_LEVEL") == "CRITICAL":  # set by the command line for itself
        os.environ["PREFECT_LOGGING_LEVEL"] = "INFO"
    try:
        yield
    finally:
        os.environ.clear()
        os.environ |= before


@contextmanager
def _api(home: Path, settings: Settings, lock: ServeLock) -> Iterator[ApiProcess | None]:
    """The API for the duration of the block; None where one is configured, which is not ours."""
    configured = configured_url()
    if configured:
        with using(configured):
            lock.announce(configured, None)
            yield None
        return
    server = ApiProcess(home, port=_checked_port(settings.serve_port), lasting=True)
    try:
        server.start()
        lock.announce(server.url, server.pid)
        with using(server.url):
            yield server
    finally:
        server.stop()


def _checked_port(port: int) -> int:
    if port == 0:
        return free_port()
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise SettingsError(
                f"port {port} cannot be used ({error.strerror}); choose another with --port or "
                "CELLAR_SERVE_PORT"
            ) from error
    return port


def _register(deployments: Sequence[Deployment]) -> tuple["Runner", dict[str, UUID]]:
    """Prefect's runner of the deployments, and their ids by name."""
    from flows.serving.stoppable_runner import StoppableRunner

    runner = StoppableRunner(name="cellar serve", pause_on_shutdown=False)
    ids = {deployment.name: runner.add_deployment(served(deployment)) for deployment in deployments}
    return runner, {name: identity for name, identity in ids.items() if isinstance(identity, UUID)}


def _run(runner: "Runner", watcher: "_Watcher") -> None:
    previous = signal.signal(signal.SIGINT, runner.handle_sigterm)
    watcher.start()
    try:
        asyncio.run(runner.start())
    except (RuntimeError, httpx.HTTPError, ExceptionGroup) as error:
        raise PrefectServerError(
            "the Prefect API did not answer for too long; look at it and start `cellar serve` again"
        ) from error
    finally:
        watcher.stop()
        notify.stopping.clear()
        signal.signal(signal.SIGINT, previous)
    if watcher.error is not None:
        raise watcher.error


class _Watcher(threading.Thread):
    """Restarts a server that died, and ends and repeats runs whose process is gone; not during a stop."""

    def __init__(
        self, runner: "Runner", ids: Sequence[UUID], server: ApiProcess | None, lock: ServeLock, say: Say
    ) -> None:
        super().__init__(name="watch runs", daemon=True)
        self.error: PrefectServerError | None = None
        self._runner, self._ids, self._server, self._lock, self._say = runner, ids, server, lock, say
        self._over = threading.Event()

    def stop(self) -> None:
        """End the watch and wait for it."""
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.is_set() and not self._runner.stopping:
            try:
                self._revive()
                for broken in recover(ours=self._server is not None, served=self._ids):
                    self._say(f"{broken.flow} {broken.id}: {broken.reason}")
                for again in resume(self._ids):
                    self._say(again.line)
            except PrefectServerError as error:
                self.error = error
                os.kill(os.getpid(), signal.SIGTERM)
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, a watch that ends leaves all unwatched
                _LOG.warning("a look at the runs failed and is repeated: %s", error)
            self._over.wait(WATCH_S if self._server is not None else _SHARED_WATCH_S)

    def _revive(self) -> None:
        if self._server is None or self._server.returncode is None:
            return
        self._say(f"the Prefect server ended with code {self._server.returncode}; it is started again")
        for left in reversed(range(_STARTS)):
            try:
                self._server.start()
                break
            except PrefectServerError:
                if not left:
                    raise
        self._lock.announce(self._server.url, self._server.pid)
