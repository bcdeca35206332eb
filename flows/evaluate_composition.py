"""Flow `evaluate-composition`: strings of a snapshot, with shadows, with retrieved text, or both."""

from typing import Any

from flows.engine import bind, flow
from flows.held import held_at_work
from flows.hosts import computing_host
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.provenance.inputs import corpora_of, shards_of
from flows.settings import Settings
from flows.timing import timed


def _evaluate(settings: Settings, params: Params, names: list[str], snapshot: str) -> dict[str, Any]:
    from tasks.composition.step import evaluate_composition as evaluate

    prepare_threads(settings)
    store = open_store(settings)
    opened = store.snapshot(snapshot)
    corpus = shards_of(store, corpora_of(store, opened))
    with (
        computing_host(settings, store, params.host) as host,
        held_at_work(
            store, opened.id, purpose="evaluation", title="continue strings", unit="strings"
        ) as progress,
        timed(settings.work_dir, store, "evaluate-composition") as work,
    ):
        found = evaluate(
            store,
            host,
            names,
            params.shadow,
            params.composition,
            snapshot=opened,
            corpus=corpus,
            progress=work.counted(progress),
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
        work.outcome = [str(found.summary_ref)]
    return {
        "snapshot": opened.id,
        "evaluation": str(found.summary_ref),
        "samples": str(found.samples_ref),
    }


evaluate_task = bind(_evaluate, name="evaluate composition")


def _flow(params: Params, settings: Settings, names: list[str], snapshot: str) -> dict[str, Any]:
    """Evaluate named shadows beside a snapshot, given by id, tag or head; returns the references."""
    found: dict[str, Any] = evaluate_task(settings, params, names, snapshot)
    return found


evaluate_composition = flow(_flow, name="evaluate-composition")
