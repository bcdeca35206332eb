"""Flow `replay-larc`: CI jobs predicted at their starts and learned at their completions, by many paths."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows import watch
from flows.engine import bind, flow
from flows.hosts import computing_host
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from flows.timing import timed
from store import Ref, Store

if TYPE_CHECKING:
    from tasks.replay.step import Bench


def _publish(settings: Settings, params: Params, jobs: Path) -> str:
    from tasks.replay.step import publish_jobs

    return str(publish_jobs(open_store(settings), params.replay, jobs))


def _fit(settings: Settings, params: Params, jobs: str, start: str | None) -> list[str]:
    from tasks.replay.step import fit_task, start_state

    store = open_store(settings)
    with _bench(settings, params, store) as bench, watch.progress("fit task", "updates") as progress:
        begun = start_state(store, params.replay, bench, start)
        with timed(settings.work_dir, store, "fit-task") as work:
            work.documents = params.replay.training_jobs
            fitted = fit_task(
                store,
                params.replay,
                bench,
                jobs=Ref.parse(jobs),
                start=begun,
                progress=progress,
                work_dir=settings.work_dir,
                checkpoint_s=settings.checkpoint_s,
            )
            work.outcome = [str(fitted)]
    return [str(begun), str(fitted)]


def _replay(settings: Settings, params: Params, jobs: str, start: str, task: str) -> dict[str, Any]:
    from tasks.replay.step import Inputs, replay

    store = open_store(settings)
    with (
        _bench(settings, params, store) as bench,
        watch.progress("replay", "events") as progress,
        timed(settings.work_dir, store, "replay") as work,
    ):
        work.documents = params.replay.audit_jobs
        result = replay(
            store,
            params.replay,
            bench,
            Inputs(Ref.parse(jobs), Ref.parse(start), Ref.parse(task)),
            progress=progress,
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
        work.outcome = [str(result.summary_ref)]
    return {"evaluation": str(result.summary_ref), "samples": str(result.samples_ref)}


@contextmanager
def _bench(settings: Settings, params: Params, store: Store) -> Iterator["Bench"]:
    """The host of the parameters, on a device that is this computation's own."""
    from tasks.replay.step import Bench

    prepare_threads(settings)
    with computing_host(settings, store, params.host) as host:
        yield Bench(host, params.larc)


publish_task = bind(_publish, name="publish jobs")
fit_task_ = bind(_fit, name="fit task")
replay_task = bind(_replay, name="replay")


def _flow(params: Params, settings: Settings, jobs: Path, start: str | None = None) -> dict[str, Any]:
    """Read the jobs, fit a slow state to the first of them, and replay the rest; what is there is found.

    `start` names the slow state to start from, e.g. one that `train-larc` made; otherwise an untrained one.
    Returns the references of `jobs`, `start`, `task`, `evaluation` and `samples`.
    """
    published = publish_task(settings, params, jobs)
    begun, task = fit_task_(settings, params, published, start)
    return {
        "jobs": published,
        "start": begun,
        "task": task,
        **replay_task(settings, params, published, begun, task),
    }


replay_larc = flow(_flow, name="replay-larc")
