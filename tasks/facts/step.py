"""The facts room's door to the store: lessons written into shadows, and what a host then knows."""

import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from store import Recipe, Ref, Store
from tasks.anneal import (
    AnnealParams,
    ChunkLoss,
    chunk_losses,
    compared,
    read_retention,
    retention_digests,
    sealed_chunks,
)
from tasks.checkpoint import CHECKPOINT_S, Checkpoints, find_trained, publish_trained
from tasks.errors import StaleInputs
from tasks.evaluation import PublishedEvaluation, SubjectName, Table, find_evaluation, publish_evaluation
from tasks.facts.asking import FactSample, ask_facts, longest_asked
from tasks.facts.lesson import Taught, lesson_of
from tasks.facts.params import FactsParams, Lesson
from tasks.facts.recipes import facts_recipe, lesson_name, lesson_recipe, writing_options
from tasks.facts.summary import HOST, summarise
from tasks.facts.world import Fact, made_up_facts
from tasks.progress import Progress, silent, turn_of
from tasks.shadows import (
    KIND,
    Shadow,
    ShadowParams,
    attached,
    check_length,
    chunks_of,
    find_shadow,
    new_shadow,
    open_shadow,
    shadow_element,
    stack_refs,
    standing_on,
    write_shadow,
)
from tasks.tables import encode_records
from tasks.unfinished import Unfinished

if TYPE_CHECKING:
    from tasks.hosts import Host

SUBJECT: SubjectName = "facts"
SAMPLES_RECIPE = "evaluation.facts.samples/1"
RETENTION_RECIPE = "evaluation.facts.retention/1"


def teach(
    store: Store,
    host: "Host",
    shadow: ShadowParams,
    params: FactsParams,
    lesson: Lesson,
    *,
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> Ref:
    """Publish `shadow/<name>.<lesson>.written`, a lesson at full strength, or find it.

    It is written as any text is, with the layers, chunks and steps of `shadow`, on top of `shadow.onto`. With
    `work_dir` an interrupted lesson continues, bit for bit. `progress` counts chunks.
    """
    taught = lesson_of(lesson, made_up_facts(params), host.encode, params)
    onto = stack_refs(store, shadow.onto)
    recipe = lesson_recipe(host, shadow, taught.digest, onto)
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe.fingerprint, checkpoint_s)
    name = lesson_name(params, lesson)
    there = find_trained(store, recipe.fingerprint, checkpoints, name=f"{KIND}{name}")
    if there is not None:
        return there
    zero = new_shadow(host, shadow.layers, document=taught.digest, seeds={"facts": params.seed})
    writing = shadow.model_copy(update={"chunks": len(taught.tokens_T) // shadow.chunk_tokens + 1})
    with standing_on(store, host, onto):
        written = write_shadow(
            host, zero, taught.tokens_T, writing, progress=progress, checkpoints=checkpoints
        )
    element = shadow_element(
        name,
        written,
        host=host.ref,
        requires=tuple(ref.version for ref in onto),
        provenance={
            "recipe": recipe.fingerprint,
            "params": recipe.params,
            "lesson": lesson,
            "facts": params.identity(),
            "onto": [str(ref) for ref in onto],
        },
        facts={
            "chunks": len(written.losses),
            "mentions": taught.mentions,
            "tokens": len(taught.tokens_T),
            "stopped": written.stopped,
        },
    )
    message = f"Teach {lesson} lesson {params.name} in {len(written.losses)} chunks"
    return publish_trained(store, element, checkpoints, message=message)


def check_lessons(
    store: Store, host: "Host", shadow: ShadowParams, params: FactsParams, anneal: AnnealParams
) -> None:
    """Raise what teaching and asking would of parameters and texts, so that it is said before any lesson.

    Where all lessons are published nothing is left to be said. Raises `TooLittleText` for facts that cannot
    be made up, a lesson without a chunk and short retention text, `BadCorpus` and `ElementNotFound` for
    retention text that is not there, and `UnfitHost` for lengths that the host does not read.
    """
    facts, onto = made_up_facts(params), stack_refs(store, shadow.onto)
    lessons = {lesson: lesson_of(lesson, facts, host.encode, params) for lesson in params.lessons}
    recipes = {one: lesson_recipe(host, shadow, taught.digest, onto) for one, taught in lessons.items()}
    if all(_is_taught(store, recipe, params, lesson) for lesson, recipe in recipes.items()):
        return
    check_length(host, "shadow.chunk_tokens", shadow.chunk_tokens)
    _check_asking(host, facts, params, anneal)
    sealed_chunks(read_retention(store, host, anneal, seed=shadow.seed), anneal.sealed.chunk_tokens)
    for taught in lessons.values():
        chunks_of(taught.tokens_T, shadow)


def evaluate_facts(
    store: Store,
    host: "Host",
    shadow: ShadowParams,
    params: FactsParams,
    anneal: AnnealParams,
    *,
    taught: Sequence[Ref] = (),
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> PublishedEvaluation:
    """Ask the host for every fact, untaught and with each lesson at full strength, and score retention text.

    Publishes `evaluation/<name>.facts` with its `samples` (one row per condition, fact and framing) and
    `retention` (the loss of every sealed chunk), or returns what is published for the same. With `work_dir`
    an interrupted evaluation continues, bit for bit, from the answers and losses that it kept. `progress`
    counts facts. The lessons are the newest of their names, or the versions `taught`, in the order of
    `params.lessons`.

    Raises `ElementNotFound` when a lesson is not written, `StaleInputs` when it is of other facts,
    `BadCorpus` where no retention text is named, and `UnfitHost` for lengths that the host does not read.
    """
    facts = made_up_facts(params)
    onto = stack_refs(store, shadow.onto)
    named: Sequence[Ref | str] = taught or [lesson_name(params, lesson) for lesson in params.lessons]
    refs = [find_shadow(store, one) for one in named]
    sealed = anneal.sealed
    digests = retention_digests(store, anneal)
    how = facts_recipe(host, shadow, params, anneal, taught=refs, onto=onto, digests=digests)
    recipe = how.fingerprint
    unfinished = Unfinished(work_dir, recipe, checkpoint_s)
    if (known := find_evaluation(store, recipe)) is not None:
        unfinished.remove()
        return known
    _check_asking(host, facts, params, anneal)
    began = time.monotonic()
    lessons = {lesson: lesson_of(lesson, facts, host.encode, params) for lesson in params.lessons}
    opened = {one: open_shadow(store, ref, host) for one, ref in zip(lessons, refs, strict=True)}
    for lesson, (ref, written) in opened.items():
        if written.document != lessons[lesson].digest:
            raise StaleInputs(f"{ref} was taught other facts; run `cellar anneal facts` again")
    retention = read_retention(store, host, anneal, seed=shadow.seed)
    chunks_NT = sealed_chunks(retention, sealed.chunk_tokens)
    samples: list[FactSample] = []
    losses = {}
    conditions: dict[str, Shadow | None] = {HOST: None}
    conditions |= {lesson: written for lesson, (_, written) in opened.items()}
    with standing_on(store, host, onto):
        for done, (condition, lesson_shadow) in enumerate(conditions.items()):
            report = turn_of(progress, done, len(conditions))
            with ExitStack() as stack:
                if lesson_shadow is not None:
                    stack.enter_context(attached(host, lesson_shadow))
                samples += ask_facts(
                    host,
                    facts,
                    condition,
                    said_tokens=params.said_tokens,
                    unfinished=unfinished,
                    progress=report,
                )
                losses[condition] = chunk_losses(
                    host, chunks_NT, unfinished=unfinished, part=f"{condition} retention"
                )
    chunk_samples = [
        ChunkLoss("retention", condition, chunk, float(loss))
        for condition, losses_N in losses.items()
        for chunk, loss in enumerate(losses_N)
    ]
    summary = {
        "protocol": "made-up facts asked for in framings that no lesson uses, shadows at full strength",
        "host": str(host.ref),
        "facts": [_shown(fact) for fact in facts],
        "lessons": {lesson: _told(store, ref, lessons[lesson]) for lesson, (ref, _) in opened.items()},
        **summarise(samples, params),
        "retention": {"chunks": len(chunks_NT), "host_loss": float(losses[HOST].mean())},
        "drift": compared(losses, sealed, sign=1, seed=params.seed),
        "settings": {"facts": dict(how.params), "shadow": writing_options(host, shadow)},
    }
    made = publish_evaluation(
        store,
        f"{params.name}.facts",
        summary,
        {
            "samples": Table(encode_records(FactSample, samples), len(samples), SAMPLES_RECIPE),
            "retention": Table(
                encode_records(ChunkLoss, chunk_samples), len(chunk_samples), RETENTION_RECIPE
            ),
        },
        recipe=recipe,
        requires=[host.ref.version, *(ref.version for ref in (*onto, *refs))],
        provenance={"subject": SUBJECT, "host": str(host.ref)},
        costs={"seconds": time.monotonic() - began},
        message=f"Ask for {len(facts)} facts after {len(refs)} lessons",
    )
    unfinished.remove()
    return made


def _check_asking(host: "Host", facts: Sequence[Fact], params: FactsParams, anneal: AnnealParams) -> None:
    """Raise `UnfitHost` for sealed chunks or questions that are longer than the host reads."""
    check_length(host, "anneal.sealed.chunk_tokens", anneal.sealed.chunk_tokens)
    longest = longest_asked(host, facts, said_tokens=params.said_tokens)
    check_length(host, "asking for a fact", longest, "lower facts.said_tokens")


def _is_taught(store: Store, recipe: Recipe, params: FactsParams, lesson: Lesson) -> bool:
    name = f"{KIND}{lesson_name(params, lesson)}"
    return find_trained(store, recipe.fingerprint, None, name=name) is not None


def _shown(fact: Fact) -> dict[str, Any]:
    return {"kind": fact.kind, "attribute": fact.attribute, "entity": fact.entity, "value": fact.value}


def _told(store: Store, ref: Ref, taught: Taught) -> dict[str, Any]:
    row = store.catalog().get(ref.version)
    facts = {} if row is None else dict(row.facts)
    return {
        "shadow": str(ref),
        "tokens": len(taught.tokens_T),
        "mentions": taught.mentions,
        "chunks": facts.get("chunks"),
        "stopped": facts.get("stopped", ""),
    }
