"""The command `cellar larc replay`: CI jobs with delayed feedback, replayed by many paths."""

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.cli.evaluation import RESULTS
from flows.cli.launch import Injected, ParamsFile, Set, orchestration
from flows.cli.published import show_published
from flows.cli.replay_figures import REPLAY

Out = Annotated[Path, Parameter(help="Folder for replay.json and replay.html.")]


def replay(
    *,
    jobs: Path,
    start: str | None = None,
    out: Out = RESULTS,
    params: ParamsFile = None,
    set_: Set = None,
    session: Injected,
) -> None:
    """Predict CI jobs at their starts, learn from their labels at completion, and compare ways to do it.

    A slow state is fitted to the first jobs; those after them are replayed in the order in which they started
    and completed. Every path predicts every job.

    Parameters
    ----------
    jobs
        A CSV table of jobs (columns and labels are parameters: replay.columns, replay.labels), what `gh api
        --paginate repos/OWNER/REPO/actions/runs/RUN/jobs` prints, or a folder of such files; plain or .gz.
    start
        The slow state to start from, e.g. residual/larc/static-2026092811 of `cellar larc train`; otherwise
        an untrained one.
    """
    from flows.params import load_params
    from flows.settings import make_folder
    from tasks.hosts import find_host
    from tasks.replay import read_jobs

    chosen = load_params(params, set_ or ())
    make_folder(out, "--out")
    read_jobs(jobs, chosen.replay)  # what is wrong with them is said before a server is started
    with orchestration(
        session, session.settings, check=lambda store: find_host(store, chosen.host.name)
    ) as settings:
        from flows.replay_larc import replay_larc

        made = replay_larc(chosen, settings, jobs, start)
    show_published(session, made, out, REPLAY)
