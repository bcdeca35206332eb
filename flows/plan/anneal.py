"""Plans of the flows of ANNEAL: texts written into shadows, consolidated, evaluated, one after another."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flows.formatting import section
from flows.params import Params
from flows.plan.hosted import Ground, made
from flows.plan.larc import NEVER
from flows.plan.steps import Step, changed_inputs, changed_params, differences, waiting
from flows.settings import Settings
from store import Recipe, Ref, Row, Store
from tasks.shadows.params import ShadowParams


def plan_shadow(store: Store, params: Params, settings: Settings, *, until: str = "eval") -> list[Step]:
    """Writing, consolidation and evaluation of the parameters' domain, as far as `until` says.

    Raises `UnknownHost`, `BadCorpus` and `ElementNotFound` where the flows would.
    """
    from tasks.anneal import sealed_recipe
    from tasks.shadows import stack_refs

    domain = _Domain(Ground.of(store, params.host, settings), params)
    shadow, onto = params.shadow, stack_refs(store, params.shadow.onto)
    steps = [domain.write(shadow, onto)]
    if until == "write":
        return steps
    steps.append(domain.consolidate(shadow, onto, made(steps[0])))
    if until == "consolidate":
        return steps
    written, kept = map(made, steps)
    seconds = domain.ground.estimates.seconds("evaluate-shadow")
    if written is None or kept is None:
        return [*steps, waiting("evaluation", ["consolidation"], seconds=seconds)]
    host = domain.ground.host.ref
    recipe = sealed_recipe(kept, written, params.anneal, domain.digests(shadow), host)
    return [*steps, domain.evaluation(recipe, seconds)]


def plan_cumulation(store: Store, params: Params, settings: Settings) -> list[Step]:
    """Every domain of the parameters written and consolidated on those before it, then their evaluation.

    Raises as `plan_shadow`, and `BadCorpus` where fewer than two domains are named.
    """
    from tasks.anneal import stages, stages_recipe
    from tasks.shadows import stack_refs

    learned = stages(params.shadow, params.anneal)
    domain = _Domain(Ground.of(store, params.host, settings), params, labelled=True)
    below = stack_refs(store, params.shadow.onto)
    onto: tuple[Ref, ...] | None = below
    steps: list[Step] = []
    for shadow in learned:
        written = domain.write(shadow, onto)
        kept = domain.consolidate(shadow, onto, made(written))
        steps += [written, kept]
        ref = made(kept)
        onto = None if onto is None or ref is None else (*onto, ref)
    seconds = domain.ground.estimates.seconds("evaluate-domains")
    if onto is None:
        return [*steps, waiting("evaluation", ["domains"], seconds=seconds)]
    digests = [digest for shadow in learned for digest in domain.digests(shadow)]
    recipe = stages_recipe(onto, params.anneal, digests, domain.ground.host.ref)
    return [*steps, domain.evaluation(recipe, seconds)]


@dataclass
class _Domain:
    """The steps of one domain after another; texts are read once."""

    ground: Ground
    params: Params
    labelled: bool = False
    """Whether steps name their shadow, since there are several."""
    _digests: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def write(self, shadow: ShadowParams, onto: tuple[Ref, ...] | None) -> Step:
        """`shadow/<name>.written`; `onto` is None where what it stands on would be made anew."""
        from tasks.shadows import WRITTEN, digest_of, read_documents, writing_recipe

        name = self._label("writing", shadow)
        full_name = f"shadow/{shadow.name}{WRITTEN}"
        estimate: dict[str, Any] = {
            "seconds": self.ground.estimates.each("write-shadow", shadow.chunks),
            "bytes": self.ground.estimates.bytes(full_name),
        }
        if onto is None:
            return waiting(name, ["domains before it"], **estimate)
        digest = digest_of(read_documents(self.ground.store, shadow.domain))
        recipe = writing_recipe(self.ground.host, shadow, digest, onto)
        if (row := self.ground.known.find(recipe, name=full_name)) is not None:
            return Step(name, "done", refs=(str(row.ref),))
        before = self.ground.known.latest(full_name)
        reasons = tuple(self._rewritten(before, recipe, digest, onto))
        return Step(name, "to run", reasons=reasons, **estimate)

    def consolidate(self, shadow: ShadowParams, onto: tuple[Ref, ...] | None, written: Ref | None) -> Step:
        """`shadow/<name>`, the written one with searched alphas."""
        from tasks.anneal import consolidation_recipe

        name, full_name = self._label("consolidation", shadow), f"shadow/{shadow.name}"
        estimate: dict[str, Any] = {
            "seconds": self.ground.estimates.each("consolidate-shadow", self.params.anneal.evaluations),
            "bytes": self.ground.estimates.bytes(full_name),
        }
        digests = self.digests(shadow)
        if written is None or onto is None:
            return waiting(name, [self._label("writing", shadow)], **estimate)
        recipe = consolidation_recipe(written, self.params.anneal, digests, self.ground.host)
        if (row := self.ground.known.find(recipe, name=full_name)) is not None:
            return Step(name, "done", refs=(str(row.ref),))
        before = self.ground.known.latest(full_name)
        inputs = [written, self.ground.host.ref, *onto]
        reasons = differences(self.ground.known, before, recipe, inputs)
        if before is not None and "recipe is" in reasons[0]:  # neither parameters nor elements: the texts
            reasons = ("other texts than before",)
        return Step(name, "to run", reasons=reasons, **estimate)

    def evaluation(self, recipe: Recipe, seconds: float | None) -> Step:
        """The evaluation by a recipe."""
        row = self.ground.known.find(recipe)
        if row is not None:
            return Step("evaluation", "done", refs=(str(row.ref),))
        return Step("evaluation", "to run", reasons=NEVER, seconds=seconds)

    def digests(self, shadow: ShadowParams) -> tuple[str, ...]:
        """Of the domain and the texts on which the host must not get worse."""
        from tasks.anneal import text_digests

        if shadow.name not in self._digests:
            found = text_digests(self.ground.store, shadow, self.params.anneal)
            self._digests[shadow.name] = found
        return self._digests[shadow.name]

    def _rewritten(
        self, before: Row | None, recipe: Recipe, digest: str, onto: tuple[Ref, ...]
    ) -> Iterator[str]:
        """Why a text is to be written."""
        known, inputs = self.ground.known, [self.ground.host.ref, *onto]
        if before is None or before.provenance.get("document") == digest:
            yield from differences(known, before, recipe, inputs)
            return
        yield "its text changed"
        yield from changed_params(section(before.provenance, "params"), recipe.params)
        yield from changed_inputs(known, before, inputs)

    def _label(self, what: str, shadow: ShadowParams) -> str:
        return f"{what} of {shadow.name}" if self.labelled else what
