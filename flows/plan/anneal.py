"""Plans of the flows of ANNEAL: texts written into shadows, consolidated, evaluated, one after another."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from flows.formatting import section
from flows.params import Params
from flows.plan.hosted import Ground, evaluation_of, made, partly
from flows.plan.steps import Step, changed_inputs, changed_params, differences, waiting
from flows.settings import Settings
from store import Recipe, Ref, Row, Store
from tasks.shadows.params import ShadowParams, TextSource


def plan_shadow(store: Store, params: Params, settings: Settings, *, until: str = "eval") -> list[Step]:
    """Writing, consolidation and evaluation of the parameters' domain, as far as `until` says.

    Raises `UnknownHost`, `UnfitHost`, `BadStack`, `BadCorpus` and `ElementNotFound` where the flows would.
    """
    from tasks.anneal import evaluation_work, sealed_recipe
    from tasks.shadows import check_written_on, stack_refs

    domain = _Domain(Ground.of(store, params.host, settings), params)
    shadow, onto = params.shadow, stack_refs(store, params.shadow.onto)
    check_written_on(store, onto, domain.ground.host.ref)
    steps = [domain.write(shadow, onto)]
    if until == "write":
        return steps
    steps.append(domain.consolidate(shadow, onto, made(steps[0])))
    if until == "consolidate":
        return steps
    written, kept = map(made, steps)
    work: dict[str, Any] = {"units": evaluation_work(shadow, params.anneal), "unit": "alphas and chunks"}
    ground = domain.ground
    if written is None or kept is None:
        later = waiting("evaluation", ["consolidation"])
        return [*steps, partly(later, "evaluate-shadow", ground, **work)]
    recipe = sealed_recipe(kept, written, params.anneal, domain.digests(shadow), ground.host.ref)
    return [*steps, evaluation_of(ground, recipe, "evaluate-shadow", **work)]


def plan_cumulation(store: Store, params: Params, settings: Settings) -> list[Step]:
    """Every domain of the parameters written and consolidated on those before it, then their evaluation.

    Raises as `plan_shadow`, and `BadCorpus` where fewer than two domains are named.
    """
    from tasks.anneal import stages, stages_recipe, stages_work
    from tasks.shadows import check_written_on, stack_refs

    learned = stages(params.shadow, params.anneal)
    domain = _Domain(Ground.of(store, params.host, settings), params, labelled=True)
    below = stack_refs(store, params.shadow.onto)
    check_written_on(store, below, domain.ground.host.ref)
    onto: tuple[Ref, ...] | None = below
    steps: list[Step] = []
    for shadow in learned:
        written = domain.write(shadow, onto)
        kept = domain.consolidate(shadow, onto, made(written))
        steps += [written, kept]
        ref = made(kept)
        onto = None if onto is None or ref is None else (*onto, ref)
    work: dict[str, Any] = {"units": stages_work(params.shadow, params.anneal), "unit": "chunks"}
    if onto is None:
        later = waiting("evaluation", ["domains"])
        return [*steps, partly(later, "evaluate-domains", domain.ground, **work)]
    digests = [digest for shadow in learned for digest in domain.digests(shadow)]
    recipe = stages_recipe(onto, params.anneal, digests, domain.ground.host.ref)
    return [*steps, evaluation_of(domain.ground, recipe, "evaluate-domains", **work)]


@dataclass
class _Domain:
    """The steps of one domain after another; each text is read once."""

    ground: Ground
    params: Params
    labelled: bool = False
    """Whether steps name their shadow, since there are several."""
    _read: dict[TextSource, tuple[str, int]] = field(default_factory=dict)
    """Digest and bytes of the texts that were read."""

    def write(self, shadow: ShadowParams, onto: tuple[Ref, ...] | None) -> Step:
        """`shadow/<name>.written`; `onto` is None where what it stands on would be made anew."""
        from tasks.checkpoint import Checkpoints
        from tasks.shadows import WRITTEN, chunks_kept, writing_recipe

        name = self._label("writing", shadow)
        full_name = f"shadow/{shadow.name}{WRITTEN}"
        size = self.ground.estimates.bytes(full_name)
        digest, chunks = self._text(shadow.domain)[0], self._most_chunks(shadow)
        if onto is None:
            later = waiting(name, ["domains before it"], bytes=size)
            return partly(later, "write-shadow", self.ground, units=chunks, unit="chunks")
        recipe = writing_recipe(self.ground.host, shadow, digest, onto)
        if (row := self.ground.known.find(recipe, name=full_name)) is not None:
            return Step(name, "done", refs=(str(row.ref),))
        before = self.ground.known.latest(full_name)
        reasons = tuple(self._rewritten(before, recipe, digest, onto))
        kept = chunks_kept(Checkpoints(self.ground.work_dir, recipe.fingerprint))
        step = Step(name, "to run", reasons=reasons, bytes=size)
        return partly(step, "write-shadow", self.ground, kept=kept, units=chunks, unit="chunks")

    def consolidate(self, shadow: ShadowParams, onto: tuple[Ref, ...] | None, written: Ref | None) -> Step:
        """`shadow/<name>`, the written one with searched alphas."""
        from tasks.anneal import alphas_kept, consolidation_recipe
        from tasks.checkpoint import Checkpoints

        name, full_name = self._label("consolidation", shadow), f"shadow/{shadow.name}"
        size, units = self.ground.estimates.bytes(full_name), self.params.anneal.evaluations
        digests = self.digests(shadow)
        if written is None or onto is None:
            later = waiting(name, [self._label("writing", shadow)], bytes=size)
            return partly(later, "consolidate-shadow", self.ground, units=units, unit="alphas")
        recipe = consolidation_recipe(written, self.params.anneal, digests, self.ground.host)
        if (row := self.ground.known.find(recipe, name=full_name)) is not None:
            return Step(name, "done", refs=(str(row.ref),))
        before = self.ground.known.latest(full_name)
        inputs = [written, self.ground.host.ref, *onto]
        reasons = differences(self.ground.known, before, recipe, inputs)
        if before is not None and "recipe is" in reasons[0]:  # neither parameters nor elements: the texts
            reasons = ("other texts than before",)
        kept = alphas_kept(Checkpoints(self.ground.work_dir, recipe.fingerprint))
        step = Step(name, "to run", reasons=reasons, bytes=size)
        return partly(step, "consolidate-shadow", self.ground, kept=kept, units=units, unit="alphas")

    def digests(self, shadow: ShadowParams) -> tuple[str, ...]:
        """Of the domain and the texts on which the host must not get worse, as `text_digests` gives them."""
        from tasks.anneal import retention_sources

        sources = (shadow.domain, *retention_sources(self.params.anneal))
        return tuple(self._text(source)[0] for source in sources)

    def _text(self, source: TextSource) -> tuple[str, int]:
        """The digest of a text and how many bytes it has; it is read where it was not yet."""
        from tasks.shadows import digest_of, read_documents

        if source not in self._read:
            documents = read_documents(self.ground.store, source)
            size = sum(len(document.text.encode()) + 1 for document in documents)  # and its end
            self._read[source] = digest_of(documents), size
        return self._read[source]

    def _most_chunks(self, shadow: ShadowParams) -> int:
        """Chunks that are learned at most: no tokenizer is asked, and a token has a byte or more."""
        left = self._text(shadow.domain)[1] - shadow.held.total
        return max(1, min(shadow.chunks, left // shadow.chunk_tokens + 1))

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
