"""Flow `evaluate-attachment`: a frozen core on test-split tasks, with different evidence at hand."""

from typing import Any

from flows.engine import bind, flow
from flows.held import held_at_work
from flows.notices import degraded
from flows.params import Params
from flows.pins import Pin
from flows.place import open_store, prepare_threads
from flows.settings import Settings
from store import Ref
from tasks.evaluation.params import EvaluationParams

_HEADLINES = ("nll", "greedy_exact", "gain", "retrieval", "tasks", "documents")


def _evaluate(
    settings: Settings, params: EvaluationParams, snapshot: str, core: str, corpus: list[str]
) -> dict[str, Any]:
    from tasks.evaluation.step import evaluate_attachment as evaluate

    prepare_threads(settings)
    store = open_store(settings)
    with held_at_work(
        store, snapshot, purpose="evaluation", title="evaluate attachments", unit="task-conditions"
    ) as progress:
        result = evaluate(
            store,
            params,
            snapshot=store.snapshot(snapshot),
            core=Ref.parse(core),
            corpus=[Ref.parse(text) for text in corpus],
            progress=progress,
            work_dir=settings.work_dir,
            checkpoint_s=settings.checkpoint_s,
        )
    headlines = {name: result.summary[name] for name in _HEADLINES}
    return {"refs": [str(result.summary_ref), str(result.samples_ref)], "figures": headlines}


evaluate_task = bind(_evaluate, name="evaluate attachments")


def _flow(params: Params, settings: Settings, corpus: Pin, snapshot: Pin, core: Pin) -> Pin:
    """Evaluate the core against the pinned snapshot; the store keeps the summary and every sample."""
    assert snapshot.snapshot is not None, "the snapshot stage pins a snapshot"
    found = evaluate_task(
        settings, params.evaluation, snapshot.snapshot, str(core.one("core")), list(corpus.refs)
    )
    degraded.tell_of_evaluation(settings, snapshot.snapshot, found["figures"])
    return Pin(
        stage="evaluation", refs=tuple(found["refs"]), snapshot=snapshot.snapshot, figures=found["figures"]
    )


evaluate_attachment = flow(_flow, name="evaluate-attachment")
