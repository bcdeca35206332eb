"""Flow `evaluate-replacement`: another version of one memory in a snapshot, and what changes with it."""

from typing import Any

from flows.engine import bind, flow
from flows.evaluate_reading import find_task
from flows.held import held_at_work
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from store import Ref


def _evaluate(settings: Settings, params: Params, found: dict[str, Any]) -> dict[str, Any]:
    from tasks.replacement.step import evaluate_replacement as evaluate

    prepare_threads(settings)
    store = open_store(settings)
    with held_at_work(
        store, found["snapshot"], purpose="evaluation", title="evaluate replacement", unit="task-conditions"
    ) as progress:
        result = evaluate(
            store,
            params.replacement,
            params.evaluation,
            params.memory,
            params.retrieval,
            snapshot=store.snapshot(found["snapshot"]),
            core=Ref.parse(found["core"]),
            corpus=[Ref.parse(text) for text in found["shards"]],
            progress=progress,
        )
    return {"evaluation": str(result.summary_ref), "samples": str(result.samples_ref)}


evaluate_task = bind(_evaluate, name="evaluate replacement")


def _flow(params: Params, settings: Settings, snapshot: str, core: str | None = None) -> dict[str, Any]:
    """Swap one memory's version in a snapshot, evaluate before and after, and keep both in the store.

    The core is the named one, else the newest one of the same parameters that reads the snapshot's codec.
    Returns the snapshot's id and the references of `core`, `evaluation` and `samples`.
    """
    found = find_task(settings, params, snapshot, core)
    return {
        "snapshot": found["snapshot"],
        "core": found["core"],
        **evaluate_task(settings, params, found),
    }


evaluate_replacement = flow(_flow, name="evaluate-replacement")
