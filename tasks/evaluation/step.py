"""The evaluation room's door to the store: evaluate attachments to a core against a pinned snapshot."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np

from store import Recipe, Ref, Snapshot, Store
from tasks.assembly import ReadingEvaluationParams
from tasks.checkpoint import CHECKPOINT_S, Checkpoints, discard
from tasks.evaluation.accounting import Costs, peak_rss_bytes
from tasks.evaluation.addressing import address
from tasks.evaluation.params import EvaluationParams
from tasks.evaluation.publication import PublishedEvaluation, Table, find_evaluation, publish_evaluation
from tasks.evaluation.reading import ReadingEvaluator, plan_reading
from tasks.evaluation.recipes import evaluation_recipe
from tasks.evaluation.run import Evaluator
from tasks.evaluation.samples import encode_samples
from tasks.evaluation.setting import EvaluationSetting
from tasks.evaluation.summary import QUESTION_ONLY, summarise
from tasks.progress import Progress, silent
from tasks.retrieval import Index, TextSearch, audit

READING_RECIPE = "evaluation.reading/2"
SAMPLES_RECIPE = "evaluation.samples/1"


def evaluate_attachment(
    store: Store,
    params: EvaluationParams,
    *,
    snapshot: Snapshot,
    core: Ref,
    corpus: Sequence[Ref],
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> PublishedEvaluation:
    """Evaluate a core on tasks from a snapshot's test-split memories under every evidence condition.

    Publishes `evaluation/<name>` (the summary as JSON: settings, counts, figures with intervals, gains,
    standalone perplexity, accounting) and `evaluation/<name>/samples` (Parquet, one row per task and
    condition), or returns what is already published for the same parameters, snapshot, core and corpus.
    Both are reproducible; seconds and peak memory are facts beside them. Retrieval is the index pinned in
    the snapshot. `progress` counts task-conditions. With `work_dir` an interrupted evaluation goes on with
    the samples that it kept every `checkpoint_s` seconds, and ends with the same bytes.

    Raises `TooLittleText` when no test-split document is long enough for a task, `StaleIndex` when the
    snapshot's index does not fit its memories.
    """
    shards = sorted(corpus, key=lambda ref: ref.name)
    recipe = evaluation_recipe(params, snapshot.id, core, shards).fingerprint
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe, checkpoint_s)
    if (found := find_evaluation(store, recipe)) is not None:
        discard(checkpoints)
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
    samples, seconds = evaluator.run(tasks, plan, progress, checkpoints)
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
    published = publish_evaluation(
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
    discard(checkpoints)
    return published


def evaluate_reading(
    store: Store,
    params: EvaluationParams,
    reads: ReadingEvaluationParams,
    *,
    snapshot: Snapshot,
    core: Ref,
    reading: Ref,
    corpus: Sequence[Ref],
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> PublishedEvaluation:
    """Evaluate a core that reads in retrieved elements without any alignment (question-only).

    The tasks are those of `evaluate_attachment`, asked by the text of their cues alone; the conditions are
    alike and of families of their own. Publishes `evaluation/<name>` and `evaluation/<name>/samples`, or
    returns what is already published for the same inputs. `progress` counts task-conditions; `work_dir` and
    `checkpoint_s` are as for `evaluate_attachment`.

    Raises as `evaluate_attachment` does, and `StaleInputs` for a cross-reading of another core.
    """
    shards = sorted(corpus, key=lambda ref: ref.name)
    settings = {"tasks": params.model_dump(mode="json"), "reading": reads.model_dump(mode="json")}
    inputs = (snapshot.id, core.version, reading.version, *(ref.version for ref in shards))
    recipe = Recipe(READING_RECIPE, settings, inputs).fingerprint
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe, checkpoint_s)
    if (found := find_evaluation(store, recipe)) is not None:
        discard(checkpoints)
        return found
    setting = EvaluationSetting.open(store, snapshot, core, shards)
    reader = setting.open_reading(store, core, reading)
    search = TextSearch.over(
        Index.open(store, snapshot),
        setting.tokenizer,
        scrambled=reads.scrambled,
        generator=np.random.default_rng([params.seed, 7]),
    )
    tasks = setting.tasks(params)
    began = time.perf_counter()
    # One more than is read, so that as many others are left without a task's own.
    answers = search.elements([setting.tokenizer.decode(task.cue) for task in tasks], reads.elements + 1)
    retrieval_seconds = time.perf_counter() - began
    plan = plan_reading(tasks, answers, list(setting.test_texts()), reads, seed=params.seed)
    evaluator = ReadingEvaluator(
        setting.core,
        reader,
        setting.shelf(plan, reader, params),
        lambda ids: setting.tokenizer.decode(ids),
        params.batch_tasks,
    )
    samples, seconds = evaluator.run(tasks, plan, progress, checkpoints)
    costs = Costs(
        seconds=seconds,
        milliseconds_per_task={key: 1000 * value / len(tasks) for key, value in seconds.items()},
        single_task_milliseconds=evaluator.single_task_milliseconds(tasks, plan),
        retrieval_seconds=retrieval_seconds,
        addressing={},
        peak_rss_bytes=peak_rss_bytes(),
    )
    summary = summarise(samples, params, protocol=QUESTION_ONLY)
    summary["settings"] = {**params.model_dump(mode="json"), "name": reads.name}
    summary["elements"], summary["wrong"] = reads.elements, reads.wrong
    summary["snapshot"] = snapshot.id
    summary["core"], summary["reading"] = str(core), str(reading)
    summary["accounting"] = setting.reading_accounts(store, core, reader, plan, samples)
    summary["storage"] = setting.storage(samples)
    published = publish_evaluation(
        store,
        reads.name,
        summary,
        {"samples": Table(encode_samples(samples), len(samples), SAMPLES_RECIPE)},
        recipe=recipe,
        requires=(core.version, reading.version),
        provenance={
            "subject": "reading",
            "snapshot": snapshot.id,
            "core": str(core),
            "reading": str(reading),
        },
        costs=asdict(costs),
        message=f"Evaluate reading with {reading.name}: {summary['tasks']} tasks",
    )
    discard(checkpoints)
    return published
