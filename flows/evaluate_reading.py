"""Flow `evaluate-reading`: a frozen core reads in retrieved elements that nothing aligns with the prompt."""

from typing import Any

from flows import watch
from flows.engine import bind, flow
from flows.held import held_at_work
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.provenance.evidence import check_indexed, core_for
from flows.provenance.inputs import corpora_of, shards_of
from flows.settings import Settings
from store import Ref


def _find(settings: Settings, params: Params, snapshot: str, core: str | None) -> dict[str, Any]:
    """The references that training and evaluation need: the core and the shards of a snapshot's corpora."""
    store = open_store(settings)
    opened = store.snapshot(snapshot)
    check_indexed(opened)
    found = core_for(store, opened, params.assembly, core)
    shards = shards_of(store, corpora_of(store, opened))
    return {"snapshot": opened.id, "core": str(found), "shards": [str(ref) for ref in shards]}


def _train(settings: Settings, params: Params, found: dict[str, Any]) -> str:
    from tasks.assembly.step import train_reading as train

    prepare_threads(settings)
    store = open_store(settings)
    with watch.progress("train cross-reading", "updates") as progress:
        ref = train(
            store,
            params.reading,
            core=Ref.parse(found["core"]),
            snapshot=store.snapshot(found["snapshot"]),
            corpus=[Ref.parse(text) for text in found["shards"]],
            progress=progress,
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
    return str(ref)


def _evaluate(settings: Settings, params: Params, found: dict[str, Any], reading: str) -> dict[str, Any]:
    from tasks.evaluation.step import evaluate_reading as evaluate

    prepare_threads(settings)
    store = open_store(settings)
    with held_at_work(
        store, found["snapshot"], purpose="evaluation", title="evaluate reading", unit="task-conditions"
    ) as progress:
        result = evaluate(
            store,
            params.evaluation,
            params.reading.evaluation,
            snapshot=store.snapshot(found["snapshot"]),
            core=Ref.parse(found["core"]),
            reading=Ref.parse(reading),
            corpus=[Ref.parse(text) for text in found["shards"]],
            progress=progress,
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
    return {"evaluation": str(result.summary_ref), "samples": str(result.samples_ref)}


find_task = bind(_find, name="find what a reading needs")
train_task = bind(_train, name="train cross-reading")
evaluate_task = bind(_evaluate, name="evaluate reading")


def _flow(params: Params, settings: Settings, snapshot: str, core: str | None = None) -> dict[str, Any]:
    """Train the cross-reading of a core, or find it, and evaluate it; the store keeps summary and samples.

    The core is the named one, else the newest one of the same parameters that reads the snapshot's codec.
    Returns the snapshot's id and the references of `core`, `reading`, `evaluation` and `samples`.
    """
    found = find_task(settings, params, snapshot, core)
    reading = train_task(settings, params, found)
    measured = evaluate_task(settings, params, found, reading)
    return {"snapshot": found["snapshot"], "core": found["core"], "reading": reading, **measured}


evaluate_reading = flow(_flow, name="evaluate-reading")
