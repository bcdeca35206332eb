"""A Prefect API server as a process of its own, with its database in a folder: short-lived or lasting."""

import fcntl
import logging
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from flows.errors import PrefectServerError
from flows.serving.import_path import NO_WORKING_FOLDER
from flows.serving.processes import die_with_parent

_LOG = logging.getLogger(__name__)

_START_TIMEOUT_S = 180.0
"""A first start makes the database: a minute on a busy machine. One that ended is noticed at once."""
_STOP_TIMEOUT_S = 5.0
_POLL_S = 0.05
URL_VARIABLE = "PREFECT_API_URL"

# A command runs its flow in its own process and ends with it: nothing is scheduled or watched.
_IDLE_SERVICES = (
    "SCHEDULER",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "CANCELLATION_CLEANUP",
    "FOREMAN",
    "TRIGGERS",
)


class ApiProcess:
    """A Prefect API on loopback, in the group of nobody and dead with its parent.

    A lasting one schedules runs, marks late ones, takes back expired slots and has pages to look at.
    """

    def __init__(self, home: Path, *, port: int = 0, lasting: bool = False) -> None:
        self._home = home
        self._lasting = lasting
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}/api"
        self.log = home / ("serve.log" if lasting else "server.log")
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Number of the running process."""
        assert self._process is not None, "the server was started"
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How the process ended, None while it runs."""
        assert self._process is not None, "the server was started"
        return self._process.poll()

    def start(self) -> None:
        """Start the process and wait until it answers; one at a time where several start in one folder.

        Raises:
            PrefectServerError: it ended, or did not answer in time.
        """
        self._home.mkdir(parents=True, exist_ok=True)
        with _alone(self._home):
            self._start()

    def _start(self) -> None:
        address = ["--host", "127.0.0.1", "--port", str(self.port), "--log-level", "error"]
        # By default uvicorn imports from the working folder before all else.
        address += ["--app-dir", str(self._home.resolve())]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603
                [
                    sys.executable,
                    "-m",
                    "uvicorn",
                    "--factory",
                    "prefect.server.api.server:create_app",
                    *address,
                ],
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=die_with_parent if sys.platform == "linux" else None,
            )
        try:
            self._wait_until_healthy()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the process, politely at first."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _environment(self) -> dict[str, str]:
        home = self._home.resolve()
        environment = {name: value for name, value in os.environ.items() if name != URL_VARIABLE}
        environment |= {
            **NO_WORKING_FOLDER,
            "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{home / 'prefect.db'}",
            "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
            "DO_NOT_TRACK": "1",
            "PREFECT__SERVER_FINAL": "1",
            # Slots are leases. Kept in files, they outlive a killed server, and the next one takes them back.
            "PREFECT_SERVER_CONCURRENCY_LEASE_STORAGE": "prefect.server.concurrency.lease_storage.filesystem",
            "PREFECT_HOME": str(home),
        }
        if self._lasting:
            return environment | {
                "PREFECT_UI_STATIC_DIRECTORY": str(home / "ui"),
                "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
            }
        environment |= {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in _IDLE_SERVICES}
        return environment | {"PREFECT_UI_ENABLED": "0"}

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + _START_TIMEOUT_S
        with httpx.Client() as client:
            while time.monotonic() < deadline:
                if self.returncode is not None:
                    raise PrefectServerError(
                        f"the Prefect server ended with code {self.returncode}; its log is {self.log}"
                    )
                try:
                    if client.get(f"{self.url}/health").status_code == httpx.codes.OK:
                        return
                except httpx.TransportError:
                    _LOG.debug("the Prefect server at %s does not answer yet", self.url)
                time.sleep(_POLL_S)
        raise PrefectServerError(
            f"the Prefect server did not answer within {_START_TIMEOUT_S:.0f} s; its log is {self.log}"
        )


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _alone(home: Path) -> Iterator[None]:
    """Hold the folder for a start: two that make one database at a time, or change it, collide."""
    with (home / "start.lock").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
