"""Flow `evaluate-shadow`: what a consolidated shadow does to sealed text and sealed probes."""

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


def _evaluate(settings: Settings, params: Params, written: str, kept: str) -> dict[str, Any]:
    from tasks.anneal import evaluate_shadow as evaluate

    prepare_threads(settings)
    store = open_store(settings)
    with (
        computing_host(settings, store, params.host) as host,
        watch.progress(f"evaluate {params.shadow.name}", "alphas and chunks") as progress,
        timed(settings.work_dir, store, "evaluate-shadow") as work,
    ):
        found = evaluate(
            store,
            host,
            params.shadow,
            params.anneal,
            kept=Ref.parse(kept),
            written=Ref.parse(written),
            progress=work.counted(progress),
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
        work.outcome = [str(found.summary_ref)]
    return {"evaluation": str(found.summary_ref), "samples": str(found.samples_ref)}


evaluate_task = bind(_evaluate, name="evaluate shadow")


def _flow(params: Params, settings: Settings) -> dict[str, Any]:
    """Write, consolidate and evaluate the domain, or find what is published; returns the references."""
    written = write_task(settings, params, [params.shadow], sealed=True)
    kept = consolidate_task(settings, params, written, sealed=True)
    return {"shadows": [written, kept], **evaluate_task(settings, params, written, kept)}


evaluate_shadow = flow(_flow, name="evaluate-shadow")
