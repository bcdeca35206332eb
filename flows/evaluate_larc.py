"""Flow `evaluate-larc`: what feedback gains on development episodes, from predictions sealed beforehand."""

from typing import Any

from flows import watch
from flows.engine import bind, flow
from flows.hosts import computing_host
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from flows.timing import timed
from flows.train_larc import study_plan, train_task
from store import Ref


def _predict(settings: Settings, params: Params, trained: list[str]) -> list[str]:
    from tasks.study import Bench
    from tasks.study.step import predict_development

    prepare_threads(settings)
    store = open_store(settings)
    plan = study_plan(store, params)
    with (
        computing_host(settings, store, params.host, plan.host) as host,
        watch.progress("seal predictions", "episodes") as progress,
        timed(settings.work_dir, store, "predictions") as work,
    ):
        states: dict[tuple[str, int], Ref] = dict(zip(plan.trainings, map(Ref.parse, trained), strict=True))
        before = store.tip().sequence
        sealed = predict_development(store, plan, Bench(plan, host), states, progress=progress)
        work.documents = store.tip().sequence - before  # a commit for each
        work.outcome = [str(ref) for ref in sealed.values()]
    return list(work.outcome)


def _evaluate(settings: Settings, params: Params, sealed: list[str]) -> dict[str, Any]:
    from tasks.study.step import evaluate_selection

    store = open_store(settings)
    plan = study_plan(store, params)
    refs = dict(zip(plan.arms, map(Ref.parse, sealed), strict=True))
    result = evaluate_selection(store, plan, refs)
    return {"evaluation": str(result.summary_ref), "samples": str(result.samples_ref)}


predict_task = bind(_predict, name="seal predictions")
evaluate_task = bind(_evaluate, name="evaluate larc")


def _flow(params: Params, settings: Settings) -> dict[str, Any]:
    """Train what is missing, seal the predictions, and only then score them.

    Returns the references of the slow states (`trained`), the `predictions`, the `evaluation` and its
    `samples`.
    """
    trained = train_task(settings, params)
    sealed = predict_task(settings, params, trained)
    return {"trained": trained, "predictions": sealed, **evaluate_task(settings, params, sealed)}


evaluate_larc = flow(_flow, name="evaluate-larc")
