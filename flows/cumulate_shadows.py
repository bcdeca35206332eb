"""Flow `cumulate-shadows`: several domains learned by one host one after another, and what it forgets."""

from typing import Any

from flows import watch
from flows.consolidate_shadow import consolidate_task
from flows.engine import bind, flow
from flows.hosts import computing_host
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from flows.timing import timed
from flows.write_shadow import write_task
from store import Ref


def _evaluate(settings: Settings, params: Params, kept: list[str]) -> dict[str, Any]:
    from tasks.anneal import evaluate_stages

    prepare_threads(settings)
    store = open_store(settings)
    with (
        computing_host(settings, store, params.host) as host,
        watch.progress("evaluate domains", "chunks") as progress,
        timed(settings.work_dir, store, "evaluate-domains") as work,
    ):
        found = evaluate_stages(
            store,
            host,
            params.shadow,
            params.anneal,
            kept=[Ref.parse(one) for one in kept],
            progress=work.counted(progress),
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
        work.outcome = [str(found.summary_ref)]
    return {"evaluation": str(found.summary_ref), "samples": str(found.samples_ref)}


evaluate_task = bind(_evaluate, name="evaluate stages")


def _flow(params: Params, settings: Settings) -> dict[str, Any]:
    """Write and consolidate each domain on top of those before it, then evaluate all after each."""
    from tasks.anneal import stages

    made: list[str] = []
    learned = stages(params.shadow, params.anneal)
    for place, stage in enumerate(learned):
        # The versions just made, which need not be the newest of their names.
        below = (*params.shadow.onto, *made)
        chosen = params.model_copy(update={"shadow": stage.model_copy(update={"onto": below})})
        # What a later domain lacks is said before an earlier one is written.
        written = write_task(settings, chosen, learned[place:], sealed=True)
        made.append(consolidate_task(settings, chosen, written, sealed=True))
    return {"shadows": made, **evaluate_task(settings, params, made)}


cumulate_shadows = flow(_flow, name="cumulate-shadows")
