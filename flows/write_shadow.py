"""Flow `write-shadow`: a domain's text into shadows of a frozen host, at full strength."""

from collections.abc import Sequence

from flows import watch
from flows.engine import bind, flow
from flows.hosts import computing_host
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from flows.timing import timed
from tasks.shadows.params import ShadowParams


def _write(
    settings: Settings, params: Params, ahead: Sequence[ShadowParams] = (), sealed: bool = False
) -> str:
    """Write the domain; what the search of those `ahead`, `sealed` their report too, lacks is said first."""
    from tasks.shadows.step import find_written, write_domain

    prepare_threads(settings)
    store = open_store(settings)
    with (
        computing_host(settings, store, params.host) as host,
        watch.progress(f"write {params.shadow.name}", "chunks") as progress,
        timed(settings.work_dir, store, "write-shadow") as work,
    ):
        if ahead and find_written(store, host, params.shadow) is None:
            from tasks.anneal import check_texts

            check_texts(store, host, ahead, params.anneal, sealed=sealed)
        ref = write_domain(
            store,
            host,
            params.shadow,
            progress=work.counted(progress),
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
        work.outcome = [str(ref)]
    return str(ref)


write_task = bind(_write, name="write shadow")


def _flow(params: Params, settings: Settings) -> str:
    """Write the domain, or find it written; returns the reference of `shadow/<name>.written`."""
    return write_task(settings, params)


write_shadow = flow(_flow, name="write-shadow")
