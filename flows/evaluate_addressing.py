"""Flow `evaluate-addressing`: how well the index of a snapshot finds its memories, beside two baselines."""

from typing import Any

from flows.engine import bind, flow
from flows.held import held_at_work
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.provenance.inputs import corpora_of, shards_of
from flows.settings import Settings
from store import Ref
from tasks.addressing.params import AddressingParams


def _evaluate(
    settings: Settings, params: AddressingParams, snapshot: str, corpus: list[str] | None
) -> dict[str, Any]:
    from tasks.addressing.step import evaluate_addressing as evaluate

    prepare_threads(settings)
    store = open_store(settings)
    opened = store.snapshot(snapshot)
    shards = shards_of(store, corpora_of(store, opened)) if corpus is None else map(Ref.parse, corpus)
    with held_at_work(
        store, opened.id, purpose="evaluation", title="evaluate addressing", unit="samples"
    ) as progress:
        result = evaluate(store, params, snapshot=opened, corpus=list(shards), progress=progress)
    return {
        "snapshot": opened.id,
        "evaluation": str(result.summary_ref),
        "samples": str(result.samples_ref),
    }


evaluate_task = bind(_evaluate, name="evaluate addressing")


def _flow(
    params: Params, settings: Settings, snapshot: str, corpus: list[str] | None = None
) -> dict[str, Any]:
    """Evaluate addressing on a snapshot, given by id, tag or head; the store keeps summary and samples.

    `corpus` are the shards that its memories were built from, otherwise what the store says about them.
    Returns the snapshot's id and the references of `evaluation` and `samples`.
    """
    found: dict[str, Any] = evaluate_task(settings, params.addressing, snapshot, corpus)
    return found


evaluate_addressing = flow(_flow, name="evaluate-addressing")
