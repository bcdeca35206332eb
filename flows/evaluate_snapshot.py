"""Flow `evaluate-snapshot`: a pinned snapshot is evaluated with what the store alone says about it."""

from typing import Any

from flows.engine import bind, flow
from flows.evaluate_attachment import evaluate_task
from flows.notices import degraded
from flows.params import Params
from flows.place import open_store
from flows.provenance.evidence import check_indexed
from flows.provenance.inputs import core_of, corpora_of, named_core, shards_of
from flows.settings import Settings
from flows.train_core import train_task
from tasks.assembly.params import AssemblyParams


def _find(settings: Settings, params: AssemblyParams, snapshot: str, core: str | None) -> dict[str, Any]:
    """The references that an evaluation of a snapshot needs; no core where one has to be trained."""
    store = open_store(settings)
    opened = store.snapshot(snapshot)
    check_indexed(opened)  # before a core is trained for it
    chosen = core_of(store, opened, params) if core is None else named_core(store, opened, core)
    corpora = corpora_of(store, opened)
    return {
        "snapshot": opened.id,
        "core": None if chosen is None else str(chosen),
        "corpus": [str(ref) for ref in corpora],
        "shards": [str(ref) for ref in shards_of(store, corpora)],
    }


_find_task = bind(_find, name="find what a snapshot was made from")


def _flow(params: Params, settings: Settings, snapshot: str, core: str | None = None) -> dict[str, Any]:
    """Evaluate a snapshot, given by id, tag or head, against a core; the store keeps what was measured.

    The core is the named one, else the newest one of the same parameters that reads the snapshot's codec;
    where there is none, one is trained on the snapshot's train-split memories. Returns the snapshot's id, the
    references of `core`, `corpus`, `evaluation` and `samples`, the headline `figures`, and `trained`: whether
    the core was made for this evaluation.
    """
    found = _find_task(settings, params.assembly, snapshot, core)
    identity, shards = found["snapshot"], found["shards"]
    chosen = found["core"] or train_task(settings, params.assembly, identity, shards)
    measured = evaluate_task(settings, params.evaluation, identity, chosen, shards)
    degraded.tell_of_evaluation(settings, identity, measured["figures"])
    evaluation, samples = measured["refs"]
    return {
        "snapshot": identity,
        "core": chosen,
        "trained": found["core"] is None,
        "corpus": found["corpus"],
        "evaluation": evaluation,
        "samples": samples,
        "figures": measured["figures"],
    }


evaluate_snapshot = flow(_flow, name="evaluate-snapshot")
