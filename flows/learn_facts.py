"""Flow `learn-facts`: made-up facts taught to a frozen host in several framings and in one, and asked for."""

from typing import Any

from flows import watch
from flows.engine import bind, flow
from flows.hosts import computing_host
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from flows.timing import timed
from store import Ref


def _teach(settings: Settings, params: Params) -> list[str]:
    from tasks.facts.step import check_lessons, teach

    prepare_threads(settings)
    store = open_store(settings)
    made = []
    with computing_host(settings, store, params.host) as host:
        check_lessons(store, host, params.shadow, params.facts, params.anneal)
        for lesson in params.facts.lessons:
            with (
                watch.progress(f"teach {lesson}", "chunks") as progress,
                timed(settings.work_dir, store, "teach-facts") as work,
            ):
                ref = teach(
                    store,
                    host,
                    params.shadow,
                    params.facts,
                    lesson,
                    progress=progress,
                    work_dir=settings.work_dir,
                    checkpoint_s=settings.checkpoint_s,
                )
                work.documents, work.outcome = 1, [str(ref)]
            made.append(str(ref))
    return made


def _evaluate(settings: Settings, params: Params, taught: list[str]) -> dict[str, Any]:
    from tasks.facts.step import evaluate_facts

    prepare_threads(settings)
    store = open_store(settings)
    with (
        computing_host(settings, store, params.host) as host,
        watch.progress("ask for facts", "facts") as progress,
        timed(settings.work_dir, store, "ask-facts") as work,
    ):
        found = evaluate_facts(
            store,
            host,
            params.shadow,
            params.facts,
            params.anneal,
            taught=[Ref.parse(one) for one in taught],
            progress=work.counted(progress),
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
        work.outcome = [str(found.summary_ref)]
    return {"evaluation": str(found.summary_ref), "samples": str(found.samples_ref)}


teach_task = bind(_teach, name="teach facts")
evaluate_task = bind(_evaluate, name="evaluate facts")


def _flow(params: Params, settings: Settings) -> dict[str, Any]:
    """Teach each lesson to the untouched host and ask for the facts, or find what is published."""
    taught = teach_task(settings, params)
    return {"shadows": taught, **evaluate_task(settings, params, taught)}


learn_facts = flow(_flow, name="learn-facts")
