"""What fingerprints of lessons and of their evaluation consist of: no host is needed to say so."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from store import Recipe, Ref, Store
from tasks.anneal import AnnealParams
from tasks.facts.params import FactsParams, Lesson
from tasks.shadows import KIND, WRITTEN, ShadowParams

if TYPE_CHECKING:
    from tasks.hosts import HostIdentity

_OF_SENTENCES = ("relations", "facts_each", "untaught", "passes", "seed")
"""Parameters that decide which sentences a lesson consists of."""


def lesson_name(params: FactsParams, lesson: Lesson) -> str:
    """What the shadow of a lesson is called, without its kind."""
    return f"{params.name}.{lesson}{WRITTEN}"


def lesson_recipe(host: "HostIdentity", shadow: ShadowParams, digest: str, onto: Sequence[Ref]) -> Recipe:
    """How a lesson of this digest is taught to a host that other shadows are on already."""
    inputs = (host.ref.version, digest, *(ref.version for ref in onto))
    return Recipe("facts.teach/1", writing_options(host, shadow), inputs)


def find_lesson(
    store: Store,
    host: "HostIdentity",
    shadow: ShadowParams,
    params: FactsParams,
    lesson: Lesson,
    onto: Sequence[Ref],
) -> Ref | None:
    """The newest shadow of a lesson whose record names these facts, steps, host and shadows below.

    For plans: what teaching would find hangs on the tokens of the sentences, which only the host can count.
    """
    wanted = {
        "host": str(host.ref),
        "lesson": lesson,
        "params": writing_options(host, shadow),
        "onto": [str(ref) for ref in onto],
    }
    facts = params.identity()
    for row in reversed(store.catalog().versions(f"{KIND}{lesson_name(params, lesson)}")):
        recorded = row.provenance.get("facts")
        said = isinstance(recorded, dict) and all(recorded.get(name) == facts[name] for name in _OF_SENTENCES)
        if said and all(row.provenance.get(name) == value for name, value in wanted.items()):
            return row.ref
    return None


def facts_recipe(
    host: "HostIdentity",
    shadow: ShadowParams,
    params: FactsParams,
    anneal: AnnealParams,
    *,
    taught: Sequence[Ref],
    onto: Sequence[Ref],
    digests: Sequence[str],
) -> Recipe:
    """How lessons are asked for, beside retention texts of these digests."""
    options = {
        **params.identity(),
        "sealed": anneal.sealed.model_dump(mode="json"),
        "held": anneal.held.model_dump(mode="json"),
        "order": shadow.seed,
        "dtype": _dtype(host),
    }
    inputs = (host.ref.version, *(ref.version for ref in (*onto, *taught)), *digests)
    return Recipe("facts.evaluate/1", options, inputs)


def writing_options(host: "HostIdentity", shadow: ShadowParams) -> dict[str, Any]:
    """What decides the steps of a lesson."""
    names = {"layers", "chunk_tokens", "step_size", "normalise", "most_rise"}
    return {**shadow.model_dump(mode="json", include=names), "dtype": _dtype(host)}


def asking_work(params: FactsParams) -> int:
    """Facts that are asked for, once untaught and once after each lesson, as progress counts them."""
    return (1 + len(params.lessons)) * params.relations * params.facts_each


def _dtype(host: "HostIdentity") -> str:
    return str(host.dtype).removeprefix("torch.")
