"""Plans of what a host is asked with shadows on it: made-up facts, and strings beside retrieval (ANNEAL)."""

from collections.abc import Sequence
from typing import Any

from flows.params import Params
from flows.plan.hosted import Ground, evaluation_of, of_many, partly
from flows.plan.steps import Step, waiting
from flows.settings import Settings
from store import Snapshot, Store


def plan_facts(store: Store, params: Params, settings: Settings) -> list[Step]:
    """The lessons of the parameters' facts and the questions: what `cellar anneal facts` would do.

    Raises as the command does of facts, texts and shadows.
    """
    from tasks.anneal import retention_digests
    from tasks.facts import asking_work, facts_recipe, find_lesson, made_up_facts
    from tasks.shadows import check_written_on, stack_refs

    ground, shadow, facts = Ground.of(store, params.host, settings), params.shadow, params.facts
    onto = stack_refs(store, shadow.onto)
    check_written_on(store, onto, ground.host.ref)
    made_up_facts(facts)
    digests = retention_digests(store, params.anneal)
    found = [find_lesson(store, ground.host, shadow, facts, lesson, onto) for lesson in facts.lessons]
    missing = [lesson for lesson, ref in zip(facts.lessons, found, strict=True) if ref is None]
    why = (f"never taught so: {', '.join(missing)}",)
    lessons = of_many(ground, "lessons", found, why=why, stage="teach-facts", unit="lessons")
    work: dict[str, Any] = {"units": asking_work(facts), "unit": "facts"}
    if lessons.runs:
        return [lessons, partly(waiting("evaluation", ["lessons"]), "ask-facts", ground, **work)]
    taught = [ref for ref in found if ref is not None]
    recipe = facts_recipe(
        ground.host, shadow, facts, params.anneal, taught=taught, onto=onto, digests=digests
    )
    return [lessons, evaluation_of(ground, recipe, "ask-facts", **work)]


def plan_composition(
    store: Store, params: Params, settings: Settings, names: Sequence[str], snapshot: Snapshot
) -> list[Step]:
    """The strings of a snapshot with named shadows: what `cellar anneal compose` would do.

    Shadows and snapshot have to be there. Raises as the command does of them and of texts.
    """
    from flows.provenance.evidence import check_indexed
    from flows.provenance.inputs import corpora_of, shards_of
    from tasks.composition import check_sources, composition_recipe, composition_work
    from tasks.shadows import check_written_on, read_documents, stack_refs

    ground, source = Ground.of(store, params.host, settings), params.shadow.domain
    refs = stack_refs(store, names)
    check_written_on(store, refs, ground.host.ref)
    check_indexed(snapshot)
    check_sources(store, refs, source, snapshot)
    recipe = composition_recipe(
        ground.host,
        refs,
        read_documents(store, source) if source.given else [],
        params.composition,
        snapshot=snapshot.id,
        corpus=shards_of(store, corpora_of(store, snapshot)),
    )
    work: dict[str, Any] = {"units": composition_work(params.composition, snapshot), "unit": "strings"}
    name = f"evaluation/{params.composition.name}"
    return [evaluation_of(ground, recipe, "evaluate-composition", name=name, **work)]
