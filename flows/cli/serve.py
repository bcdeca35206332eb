"""Commands on schedules: serve them on this machine, or register them for the workers of a pool."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from flows.cli.launch import Injected
from flows.formatting import columns

_FILE = Path("prefect.yaml")
_Names = Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)]


def serve(
    *,
    file: Path = _FILE,
    only: _Names = None,
    now: _Names = None,
    port: Annotated[int | None, Parameter(validator=Number(gte=0, lte=65535))] = None,
    session: Injected,
) -> None:
    """Keep a Prefect API on this machine and run deployments when they are due, until Ctrl-C.

    Runs whose process was killed are marked crashed and taken up again, here and after a restart.

    Parameters
    ----------
    file
        The file of deployments.
    only
        Serve this deployment alone; may be repeated.
    now
        Run this deployment at once as well; may be repeated.
    port
        Where the API and its pages answer, on loopback; otherwise CELLAR_SERVE_PORT or 4200, 0 for any.
    """
    from flows.errors import ScheduleError
    from flows.serving.lock import check_free

    settings = session.settings
    check_free(settings.work_dir / "prefect")  # before the seconds that Prefect takes to be imported

    from flows.serving.deployments import load_deployments
    from flows.serving.serve import serve as run
    from flows.settings import make_folder

    if port is not None:
        settings = settings.model_copy(update={"serve_port": port})
    deployments = load_deployments(file, only or ())
    for name in now or ():
        if name not in {deployment.name for deployment in deployments}:
            raise ScheduleError(f"--now {name}: no such deployment is served")
    make_folder(settings.work_dir, "CELLAR_WORK_DIR")
    run(settings, deployments, now=now or (), say=lambda line: print(line, flush=True))


def deploy(*, file: Path = _FILE, only: _Names = None, pool: str | None = None, session: Injected) -> None:
    """Register deployments at a Prefect API for the workers of a work pool.

    Parameters
    ----------
    file
        The file of deployments.
    only
        Register this deployment alone; may be repeated.
    pool
        The work pool; otherwise work_pool.name in the file.
    """
    from flows.errors import SettingsError
    from flows.serving.api import configured_url, prefect_api
    from flows.serving.lock import serving

    home = session.settings.work_dir / "prefect"
    if configured_url() is None and serving(home) is None:
        raise SettingsError(
            "no Prefect API is configured; set PREFECT_API_URL to the one that the workers use"
        )

    from flows.serving.deployments import load_deployments
    from flows.serving.registration import deploy as register

    deployments = load_deployments(file, only or ())
    with prefect_api(home) as url:
        registered = register(deployments, pool)
    session.emit(
        {"api": url, "deployments": registered}, [*columns(list(registered.items())), f"registered at {url}"]
    )
