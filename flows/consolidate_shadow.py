"""Flow `consolidate-shadow`: how much of a written shadow is kept, by a search over forward passes."""

from flows import watch
from flows.engine import bind, flow
from flows.hosts import computing_host
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from flows.timing import timed
from flows.write_shadow import write_task
from store import Ref


def _consolidate(settings: Settings, params: Params, written: str, sealed: bool = False) -> str:
    """Consolidate; what a report lacks that follows, if it is `sealed`, is said before the search."""
    from tasks.anneal.step import consolidate

    prepare_threads(settings)
    store = open_store(settings)
    with (
        computing_host(settings, store, params.host) as host,
        watch.progress(f"consolidate {params.shadow.name}", "alphas") as progress,
        timed(settings.work_dir, store, "consolidate-shadow") as work,
    ):
        ref = consolidate(
            store,
            host,
            params.shadow,
            params.anneal,
            written=Ref.parse(written),
            sealed=sealed,
            progress=work.counted(progress),
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
        work.outcome = [str(ref)]
    return str(ref)


consolidate_task = bind(_consolidate, name="consolidate shadow")


def _flow(params: Params, settings: Settings) -> str:
    """Write the domain if it is not written, and consolidate it; returns the reference of `shadow/<name>`."""
    return consolidate_task(settings, params, write_task(settings, params, [params.shadow]))


consolidate_shadow = flow(_flow, name="consolidate-shadow")
"""Writes what is missing, then searches."""
