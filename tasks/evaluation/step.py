"""The evaluation room's door to the store: evaluate attachments to a core against a pinned snapshot."""

import time
from collections.abc import Sequence
from dataclasses import asdict

from store import Recipe, Ref, Snapshot, Store
from tasks.evaluation.accounting import Costs, peak_rss_bytes
from tasks.evaluation.addressing import address
from tasks.evaluation.params import EvaluationParams
from tasks.evaluation.publication import PublishedEvaluation, Table, find_evaluation, publish_evaluation
from tasks.evaluation.run import Evaluator
from tasks.evaluation.samples import encode_samples
from tasks.evaluation.setting import EvaluationSetting
from tasks.evaluation.summary import summarise
from tasks.progress import Progress, silent
from tasks.retrieval import Index, audit

RECIPE = "evaluation.attachment/2"
SAMPLES_RECIPE = "evaluation.samples/1"


def evaluate_attachment(
    store: Store,
    params: EvaluationParams,
    *,
    snapshot: Snapshot,
    core: Ref,
    corpus: Sequence[Ref],
    progress: Progress = silent,
) -> PublishedEvaluation:
    """Evaluate a core on tasks from a snapshot's test-split memories under every evidence condition.

    Publishes `evaluation/<name>` (the summary as JSON: settings, counts, figures with intervals, gains,
    standalone perplexity, accounting) and `evaluation/<name>/samples` (Parquet, one row per task and
    condition), or returns what is already published for the same parameters, snapshot, core and corpus.
    Both are reproducible; seconds and peak memory are facts beside them. Retrieval is the index pinned in
    the snapshot. `progress` counts task-conditions.

    Raises `TooLittleText` when no test-split document is long enough for a task, `StaleIndex` when the
    snapshot's index does not fit its memories.
    """
    shards = sorted(corpus, key=lambda ref: ref.name)
    recipe = evaluation_recipe(params, snapshot.id, core, shards).fingerprint
    if (found := find_evaluation(store, recipe)) is not None:
        return found
    setting = EvaluationSetting.open(store, snapshot, core, shards)
    index = Index.open(store, snapshot)
    began = time.perf_counter()
    tasks, plan = setting.prepare(index, params)
    retrieval_seconds = time.perf_counter() - began
    evaluator = Evaluator(
        setting.core,
        setting.reader(plan, params),
        lambda ids: setting.tokenizer.decode(ids),
        params.batch_tasks,
    )
    samples, seconds = evaluator.run(tasks, plan, progress)
    block_tokens = setting.codec.architecture.block_tokens
    shares, rates = address(index, setting.texts, setting.test_texts(), block_tokens, params)
    costs = Costs(
        seconds=seconds,
        milliseconds_per_task={name: 1000 * value / len(tasks) for name, value in seconds.items()},
        single_task_milliseconds=evaluator.single_task_milliseconds(tasks, plan),
        retrieval_seconds=retrieval_seconds,
        addressing=rates,
        peak_rss_bytes=peak_rss_bytes(),
    )
    summary = summarise(samples, params)
    summary["settings"] = params.model_dump(mode="json")
    summary["snapshot"] = snapshot.id
    summary["core"] = str(core)
    summary["retrieval"] = shares
    summary["reconstruction"] = setting.reconstructions(index)
    summary["standalone"] = setting.standalone(params)
    summary["accounting"] = setting.accounting(store, core, samples)
    summary["readout"] = asdict(audit(index.readout))
    summary["storage"] = setting.storage(samples)
    return publish_evaluation(
        store,
        params.name,
        summary,
        {"samples": Table(encode_samples(samples), len(samples), SAMPLES_RECIPE)},
        recipe=recipe,
        requires=(core.version,),
        provenance={"snapshot": snapshot.id, "core": str(core)},
        costs=asdict(costs),
        message=f"Evaluate attachments to {core.name}: {summary['tasks']} tasks",
    )


def evaluation_recipe(params: EvaluationParams, snapshot: str, core: Ref, corpus: Sequence[Ref]) -> Recipe:
    """How the evaluation of the snapshot of an id is made against a core, with the shards of its corpus."""
    shards = sorted(corpus, key=lambda ref: ref.name)
    inputs = (snapshot, core.version, *(ref.version for ref in shards))
    return Recipe(RECIPE, params.model_dump(mode="json"), inputs)
