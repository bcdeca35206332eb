"""The anneal room's door to the store: a written shadow consolidated into `shadow/<name>`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from store import Recipe, Ref, Store
from tasks.anneal.consolidation import Found, run_search
from tasks.anneal.objective import Objective, Scored
from tasks.anneal.params import AnnealParams, SearchName
from tasks.anneal.population import Population, passages
from tasks.checkpoint import CHECKPOINT_S, Checkpoints, publish_trained
from tasks.errors import BadCorpus, StaleInputs
from tasks.progress import Progress, silent
from tasks.shadows import (
    WRITTEN,
    Domain,
    HeldParams,
    Shadow,
    ShadowParams,
    open_shadow,
    part,
    read_documents,
    read_domain,
    shadow_element,
)

if TYPE_CHECKING:
    from tasks.hosts import Host


@dataclass(frozen=True)
class Texts:
    """The domain and the retention texts of some parameters, each in its parts."""

    domain: Domain
    retention: tuple[Domain, ...]

    @property
    def digests(self) -> tuple[str, ...]:
        """What they are made of."""
        return (self.domain.digest, *(text.digest for text in self.retention))

    def probes(self, purpose: str, count: int, length: int) -> Tensor:
        """About `count` probes of a purpose, an equal share from each retention text: (M, T) token ids."""
        share = max(1, round(count / len(self.retention)))
        parts = [passages(getattr(text, f"{purpose}_T"), share, length) for text in self.retention]
        return torch.cat(parts)


def read_texts(store: Store, host: "Host", shadow: ShadowParams, anneal: AnnealParams) -> Texts:
    """Domain and retention texts, parted; raises `BadCorpus` where no retention text is named."""
    if not anneal.retention:
        raise BadCorpus(
            "no text is named on which the host must not get worse; set anneal.retention, e.g. "
            '\'anneal.retention=[{"corpus": "docs"}]\''
        )
    parted = [
        part(
            read_documents(store, source),
            host.encode,
            host.end,
            _share(anneal),
            train_tokens=0,
            seed=shadow.seed,
        )
        for source in anneal.retention
    ]
    return Texts(read_domain(store, host, shadow), tuple(parted))


def consolidation_recipe(written: Ref, anneal: AnnealParams, texts: Texts, host: "Host") -> Recipe:
    """How a written shadow is consolidated on these texts."""
    options = {**anneal.identity(), "dtype": str(host.dtype).removeprefix("torch.")}
    return Recipe("anneal.consolidate/1", options, (written.version, host.ref.version, *texts.digests))


def consolidate(
    store: Store,
    host: "Host",
    shadow: ShadowParams,
    anneal: AnnealParams,
    *,
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> Ref:
    """Publish `shadow/<name>`, the written shadow with searched alphas, or find it.

    Where guard text and guard probes, which the search never saw, show no gain that is worth its rise, all
    alphas are 0. With `work_dir` an interrupted search continues, bit for bit.

    Raises `StaleInputs` when the written shadow is not of this text, `ElementNotFound` when there is none.
    """
    written_ref, written = open_shadow(store, f"{shadow.name}{WRITTEN}", host)
    texts = read_texts(store, host, shadow, anneal)
    if written.document != texts.domain.digest:
        raise StaleInputs(f"{written_ref} was written from another text; run `cellar anneal write` again")
    recipe = consolidation_recipe(written_ref, anneal, texts, host)
    row = store.catalog().find(recipe.fingerprint)
    if row is not None and row.ref.name == f"shadow/{shadow.name}":
        return row.ref
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe.fingerprint, checkpoint_s)
    found = search_alphas("cma", host, written, texts, anneal, progress=progress, checkpoints=checkpoints)
    guard = objective_of("guard", host, written, texts, anneal)(
        np.stack([found.alphas_L, np.ones_like(found.alphas_L)])
    )
    kept = bool(guard.score_P[0] > 0)
    alphas = found.alphas_L if kept else np.zeros_like(found.alphas_L)
    kept_seeds = {**written.seeds, "search": anneal.seed}
    consolidated = replace(written, seeds=kept_seeds).scaled(alphas.tolist())
    element = shadow_element(
        shadow.name,
        consolidated,
        host=host.ref,
        requires=(written_ref.version,),
        provenance={"recipe": recipe.fingerprint, "params": recipe.params, "written": str(written_ref)},
        facts={
            "chunks": len(written.losses),
            "evaluations": len(found.tried.score_P),
            "selection": _figures(found.tried, found.place),
            "selection_naive": _figures(found.tried, 0),
            "guard": _figures(guard, 0),
            "guard_naive": _figures(guard, 1),
            "fell_back": not kept,
        },
    )
    message = f"Consolidate shadow {shadow.name} in {len(found.tried.score_P)} evaluations"
    return publish_trained(store, element, checkpoints, message=message)


def search_alphas(
    name: SearchName,
    host: "Host",
    written: Shadow,
    texts: Texts,
    anneal: AnnealParams,
    *,
    progress: Progress = silent,
    checkpoints: Checkpoints | None = None,
) -> Found:
    """Run one search on the selection text and probes."""
    objective = objective_of("selection", host, written, texts, anneal)
    return run_search(name, anneal, written.layers, objective, progress=progress, checkpoints=checkpoints)


def objective_of(
    purpose: str, host: "Host", written: Shadow, texts: Texts, anneal: AnnealParams
) -> Objective:
    """The score of alphas on the `selection` or the `guard` part of the texts.

    The guard takes twice as many passages, since it decides once and is not searched.
    """
    count = anneal.passages * (2 if purpose == "guard" else 1)
    domain_NT = passages(getattr(texts.domain, f"{purpose}_T"), count, anneal.passage_tokens)
    probes_MT = texts.probes(purpose, count, anneal.passage_tokens)
    population = Population(host, written, torch.cat([domain_NT, probes_MT]), scored=anneal.scored)
    return Objective(population, len(domain_NT), anneal.penalty, len(written.layers))


def _figures(scored: Scored, place: int) -> dict[str, float]:
    names = ("gain", "rise", "drift", "score")
    return {name: float(getattr(scored, f"{name}_P")[place]) for name in names}


def _share(anneal: AnnealParams) -> HeldParams:
    """What each of several retention texts holds out: its part of the whole, and a passage at least."""
    count = len(anneal.retention)
    sizes = {
        name: max(anneal.passage_tokens, getattr(anneal.held, name) // count)
        for name in ("selection_tokens", "guard_tokens", "sealed_tokens")
    }
    return anneal.held.model_copy(update=sizes)


def sealed_parts(texts: Texts, length: int) -> Sequence[Tensor]:
    """The sealed part of domain and retention texts in chunks of `length` tokens: (N, T) and (M, T)."""
    domain = torch.stack(
        [chunk for chunk in torch.split(texts.domain.sealed_T, length) if len(chunk) == length]
    )
    probes = torch.cat(
        [passages(text.sealed_T, len(text.sealed_T) // length, length) for text in texts.retention]
    )
    return domain, probes
