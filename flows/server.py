"""The Prefect API that a command talks to: the configured one, or an embedded one that ends with the command.

Prefect can start a temporary server of its own, but in the process group of the caller: Ctrl-C would stop the
server before the flow can say that it was interrupted, and a killed caller would leave the server behind.
"""

import ctypes
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

_LOG = logging.getLogger(__name__)

_START_TIMEOUT_S = 60.0
_POLL_S = 0.05
_PR_SET_PDEATHSIG = 1
_URL_VARIABLE = "PREFECT_API_URL"

# Nothing here schedules, watches or reports home: the flow runs in this process and ends with it.
_IDLE_SERVICES = (
    "SCHEDULER",
    "LATE_RUNS",
    "PAUSE_EXPIRATIONS",
    "CANCELLATION_CLEANUP",
    "FOREMAN",
    "TRIGGERS",
)


@contextmanager
def prefect_api(home: Path) -> Iterator[str]:
    """Make a Prefect API available for the duration of the block and yield its URL.

    A URL configured by `PREFECT_API_URL` or a Prefect profile is used as it is. Otherwise a server is started
    on loopback with its database under `home`, so earlier runs stay readable there, and stopped at the end.

    Raises:
        PrefectServerError: the embedded server did not answer in time.
    """
    from prefect.logging.handlers import APILogHandler
    from prefect.settings import (
        PREFECT_API_URL,
        PREFECT_FLOWS_HEARTBEAT_FREQUENCY,
        get_current_settings,
        temporary_settings,
    )

    configured = get_current_settings().api.url
    if configured:
        yield configured
        return
    home.mkdir(parents=True, exist_ok=True)
    port = _free_port()
    url = f"http://127.0.0.1:{port}/api"
    address = ["--host", "127.0.0.1", "--port", str(port), "--log-level", "error"]
    with (home / "server.log").open("ab") as log:
        process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-m", "uvicorn", "--factory", "prefect.server.api.server:create_app", *address],
            env=_server_environment(home),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )
    try:
        _wait_until_healthy(process, url, home / "server.log")
        # Nobody waits for heartbeats here, and each flow would wait a second for its heart to stop.
        with (
            _inherited(url),
            temporary_settings({PREFECT_API_URL: url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}),
        ):
            yield url
    finally:
        APILogHandler().flush()
        _stop(process)


def _server_environment(home: Path) -> dict[str, str]:
    environment = {name: value for name, value in os.environ.items() if name != _URL_VARIABLE}
    environment |= {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in _IDLE_SERVICES}
    environment |= {
        "PREFECT_SERVER_DATABASE_CONNECTION_URL": f"sqlite+aiosqlite:///{home.resolve() / 'prefect.db'}",
        "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
        "PREFECT_UI_ENABLED": "0",
        "PREFECT__SERVER_EPHEMERAL": "1",
        "PREFECT__SERVER_FINAL": "1",
    }
    return environment


@contextmanager
def _inherited(url: str) -> Iterator[None]:
    """Let other threads and child processes find the server: who does not, starts one of its own."""
    from prefect.context import refresh_global_settings_context

    os.environ[_URL_VARIABLE] = url
    refresh_global_settings_context()
    try:
        yield
    finally:
        del os.environ[_URL_VARIABLE]
        refresh_global_settings_context()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _die_with_parent() -> None:
    """Ask the kernel to end the server when this process dies, even by SIGKILL."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _wait_until_healthy(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + _START_TIMEOUT_S
    with httpx.Client() as client:
        while time.monotonic() < deadline:
            if process.poll() is not None:
                raise PrefectServerError(
                    f"the embedded Prefect server ended with code {process.returncode}; its log is {log}"
                )
            try:
                if client.get(f"{url}/health").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                _LOG.debug("the embedded Prefect server at %s does not answer yet", url)
            time.sleep(_POLL_S)
    raise PrefectServerError(
        f"the embedded Prefect server did not answer within {_START_TIMEOUT_S:.0f} s; its log is {log}"
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
