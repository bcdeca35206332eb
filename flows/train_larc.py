"""Flow `train-larc`: slow states of a frozen host that episodes start from, for every objective and seed."""

from typing import TYPE_CHECKING

from flows import watch
from flows.engine import bind, flow
from flows.hosts import computing_host
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from flows.timing import timed
from store import Store

if TYPE_CHECKING:
    from tasks.study import Plan


def _train(settings: Settings, params: Params) -> list[str]:
    from tasks.study import Bench
    from tasks.study.step import train_slow_states

    prepare_threads(settings)
    store = open_store(settings)
    plan = study_plan(store, params)
    with (
        computing_host(settings, store, params.host, plan.host) as host,
        watch.progress("train larc", "outer updates") as progress,
        timed(settings.work_dir, store, "slow-states") as work,
    ):
        before = store.tip().sequence
        trained = train_slow_states(
            store,
            plan,
            Bench(plan, host),
            progress=progress,
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
        work.documents = store.tip().sequence - before  # a commit for each
        work.outcome = [str(ref) for ref in trained.values()]
    return list(work.outcome)


train_task = bind(_train, name="train larc")


def study_plan(store: Store, params: Params) -> "Plan":
    """The study of some parameters on the newest host of their name."""
    from tasks.hosts import find_host
    from tasks.study import Plan

    return Plan(
        find_host(store, params.host.name).ref, params.host, params.programs, params.larc, params.study
    )


def _flow(params: Params, settings: Settings) -> list[str]:
    """Train the slow states, or find them; returns their references."""
    return train_task(settings, params)


train_larc = flow(_flow, name="train-larc")
