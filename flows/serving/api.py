"""The Prefect API that a command talks to: the configured one, that of `cellar serve`, or one of its own.

Prefect can start a temporary server of its own, but in the process group of the caller: Ctrl-C would stop the
server before the flow can say that it was interrupted, and a killed caller would leave the server behind.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from flows.errors import PrefectServerError
from flows.serving.api_process import URL_VARIABLE, ApiProcess
from flows.serving.lock import serving


@contextmanager
def prefect_api(home: Path) -> Iterator[str]:
    """Make a Prefect API available for the duration of the block and yield its URL.

    A URL configured by `PREFECT_API_URL` or a Prefect profile is used as it is, and so is the API of a
    `cellar serve` that serves `home`. Otherwise a server is started on loopback with its database under
    `home`, so earlier runs stay readable there, and stopped at the end. Runs that a killed process left
    behind are marked crashed.

    Raises:
        PrefectServerError: the configured API does not answer, or the embedded one did not in time.
    """
    configured = configured_url()
    if configured:
        _recover_elsewhere(configured)
        yield configured
        return
    served = serving(home)
    if served is not None:
        with using(served.url):
            yield served.url
        return
    from prefect.logging.handlers import APILogHandler

    from flows.serving.recovery import recover

    server = ApiProcess(home)
    try:
        server.start()
        with using(server.url):
            recover(ours=True)
            yield server.url
    finally:
        APILogHandler().flush()
        server.stop()


def _recover_elsewhere(url: str) -> None:
    """End what died on this machine in an API that serves others too."""
    from flows.serving.recovery import recover

    with answering(url):
        recover(ours=False)


@contextmanager
def answering(url: str) -> Iterator[None]:
    """Say in one sentence that an API does not answer what the block asks it.

    Raises:
        PrefectServerError: it does not, or refuses.
    """
    import httpx

    try:
        yield
    except httpx.HTTPError as error:
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise PrefectServerError(
            f"the Prefect API at {url} does not answer as it should ({reason}); look at PREFECT_API_URL, or "
            "start it"
        ) from error


def configured_url() -> str | None:
    """The API that `PREFECT_API_URL` or a Prefect profile names."""
    from prefect.settings import get_current_settings

    return get_current_settings().api.url


@contextmanager
def using(url: str) -> Iterator[None]:
    """Send everything of this process and its children to the API at `url`."""
    from prefect.settings import PREFECT_API_URL, PREFECT_FLOWS_HEARTBEAT_FREQUENCY, temporary_settings

    # Nobody waits for heartbeats on one machine, and each flow would wait a second for its heart to stop.
    with (
        _inherited(url),
        temporary_settings({PREFECT_API_URL: url, PREFECT_FLOWS_HEARTBEAT_FREQUENCY: None}),
    ):
        yield


@contextmanager
def _inherited(url: str) -> Iterator[None]:
    """Let other threads and child processes find the server: who does not, starts one of its own."""
    from prefect.context import refresh_global_settings_context

    os.environ[URL_VARIABLE] = url
    refresh_global_settings_context()
    try:
        yield
    finally:
        del os.environ[URL_VARIABLE]
        refresh_global_settings_context()
