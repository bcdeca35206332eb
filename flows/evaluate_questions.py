"""Flow `evaluate-questions`: paragraphs become memories and are asked for by questions on them."""

from pathlib import Path
from typing import Any

from flows.engine import bind, flow
from flows.held import held_at_work
from flows.params import Params
from flows.place import open_store, prepare_threads
from flows.settings import Settings


def _evaluate(settings: Settings, params: Params, snapshot: str, path: str) -> dict[str, Any]:
    from tasks.addressing.step import evaluate_questions as evaluate

    prepare_threads(settings)
    store = open_store(settings)
    opened = store.snapshot(snapshot)
    with held_at_work(
        store, opened.id, purpose="evaluation", title="remember paragraphs", unit="groups of blocks"
    ) as progress:
        result = evaluate(
            store,
            params.questions,
            params.memory,
            params.retrieval,
            snapshot=opened,
            path=Path(path),
            longest=params.corpus.max_characters,
            progress=progress,
        )
    return {
        "snapshot": opened.id,
        "evaluation": str(result.summary_ref),
        "samples": str(result.samples_ref),
    }


evaluate_task = bind(_evaluate, name="ask questions")


def _flow(params: Params, settings: Settings, snapshot: str, path: Path) -> dict[str, Any]:
    """Ask the questions of a file in the SQuAD layout, with codec and tokenizer of a snapshot.

    Returns the snapshot's id and the references of `evaluation` and `samples`.
    """
    found: dict[str, Any] = evaluate_task(settings, params, snapshot, str(path))
    return found


evaluate_questions = flow(_flow, name="evaluate-questions")
