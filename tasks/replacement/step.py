"""The replacement room's door: put another version of one element into a snapshot and see what changes."""

from collections.abc import Sequence
from dataclasses import replace

from store import Recipe, Ref, Snapshot, Store
from tasks.evaluation import (
    EvaluationParams,
    EvaluationSetting,
    PublishedEvaluation,
    Table,
    encode_samples,
    find_evaluation,
    publish_evaluation,
)
from tasks.memory import MemoryParams
from tasks.progress import Progress, silent
from tasks.replacement.dependents import changed, concerned, expected
from tasks.replacement.figures import by_condition, edited, follows, reading
from tasks.replacement.pair import Pair
from tasks.replacement.params import ReplacementParams
from tasks.replacement.swap import Swap, pin_swapped
from tasks.retrieval import Index, RetrievalParams

RECIPE = "replacement.evaluate/2"
TABLE_RECIPE = "replacement.samples/1"


def evaluate_replacement(
    store: Store,
    params: ReplacementParams,
    evaluation: EvaluationParams,
    memory: MemoryParams,
    retrieval: RetrievalParams,
    *,
    snapshot: Snapshot,
    core: Ref,
    corpus: Sequence[Ref],
    progress: Progress = silent,
) -> PublishedEvaluation:
    """Swap one memory's version in a snapshot, evaluate before and after, and compare every result.

    The new version is a named one of the store, or is made: the same document with other tokens where its
    tasks have their answers, worked by `memory` as any other. The snapshot with it and with its index, built
    anew, is pinned; the reranker stays. Tasks, conditions and core are those of `evaluate_attachment`, and a
    task keeps asking for what its document said first. Publishes `evaluation/<name>` with the tables `before`
    and `samples` (after), or returns what is published for the same inputs. `progress` counts
    task-conditions.

    Raises as `evaluate_attachment` does, and `ElementNotFound` for an element that is nowhere.
    """
    shards = sorted(corpus, key=lambda ref: ref.name)
    settings = {
        **params.model_dump(mode="json"),
        "evaluation": evaluation.model_dump(mode="json"),
        "memory": memory.identity(),
        "retrieval": retrieval.model_dump(mode="json"),
    }
    inputs = (snapshot.id, core.version, *(ref.version for ref in shards))
    recipe = Recipe(RECIPE, settings, inputs).fingerprint
    if (found := find_evaluation(store, recipe)) is not None:
        return found
    setting = EvaluationSetting.open(store, snapshot, core, shards)
    tasks, plan = setting.prepare(Index.open(store, snapshot), evaluation)
    swap = Swap.make(store, setting, tasks, params, memory)
    swapped, index_seconds = pin_swapped(store, setting, swap, retrieval)
    text = setting.texts[swap.old.name] if swap.ids is None else swap.ids
    other = replace(setting, snapshot=swapped, texts={**setting.texts, swap.old.name: text})
    # Tasks are the same; what is laid beside them is found in the new index.
    other_plan = other.plan(tasks, Index.open(store, swapped), evaluation)
    pair = Pair(setting, other, tasks, plan, other_plan, evaluation)
    near = concerned(tasks, plan, other_plan, swap.old.name)
    done = pair.run(near, progress)
    change = swap.change(setting)
    results = list(zip(done.before, done.after, strict=True))
    differing, due = changed(results), expected(tasks, plan, other_plan, results, change)
    summary = {
        "protocol": "coordinate-assisted",
        "replaced": swap.old.name,
        "versions": {"before": swap.old.version, "after": swap.new.version},
        "snapshots": {"before": snapshot.id, "after": swapped.id},
        "core": str(core),
        "settings": settings,
        "tasks": len(tasks),
        "results": len(results),
        "blocks": {"all": swap.blocks, "different": swap.different_blocks},
        "reading_the_element": len(reading(plan, other_plan, tasks, swap.old.name)),
        "expected_to_change": len(due),
        "changed": len(differing),
        "changed_unexpectedly": sorted(map(list, differing - due)),
        "unchanged_unexpectedly": sorted(map(list, due - differing)),
        "exact": differing == due,
        "re_evaluated_tasks": sum(near),
        "elsewhere": {"results": (len(tasks) - sum(near)) * len(plan), "changed": done.elsewhere_changed},
        "by_condition": by_condition(results, differing, due),
        "edited": edited(swap, setting, tasks),
        "follows": follows(swap, setting, tasks, results),
    }
    return publish_evaluation(
        store,
        params.name,
        summary,
        {
            "samples": Table(encode_samples(done.after), len(done.after), TABLE_RECIPE),
            "before": Table(encode_samples(done.before), len(done.before), TABLE_RECIPE + "/before"),
        },
        recipe=recipe,
        requires=(core.version,),
        provenance={
            "subject": "replacement",
            "snapshot": snapshot.id,
            "core": str(core),
            "replaced_by": str(swap.new.ref),
        },
        costs={"seconds": done.seconds, "index_seconds": index_seconds},
        message=f"Replace {swap.old.name} and evaluate: {len(differing)} of {len(results)} results change",
    )
