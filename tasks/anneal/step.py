"""The anneal room's door to the store: a written shadow consolidated into `shadow/<name>`."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray

from store import Recipe, Ref, Store
from tasks.anneal.cards import continuation
from tasks.anneal.consolidation import Found, run_search
from tasks.anneal.objective import Objective, Scored
from tasks.anneal.params import AnnealParams, SearchName
from tasks.anneal.population import Population
from tasks.anneal.sources import text_digests
from tasks.anneal.texts import Purpose, Texts, check_lengths, read_texts
from tasks.checkpoint import CHECKPOINT_S, Checkpoints, find_trained, publish_trained
from tasks.errors import StaleInputs
from tasks.progress import Progress, silent
from tasks.shadows import (
    KIND,
    WRITTEN,
    Shadow,
    ShadowParams,
    check_length,
    find_shadow,
    foundation,
    open_shadow,
    shadow_element,
    standing_on,
)

if TYPE_CHECKING:
    from tasks.hosts import Host, HostIdentity

Floats = NDArray[np.float64]


def consolidation_recipe(
    written: Ref, anneal: AnnealParams, digests: Sequence[str], host: "HostIdentity"
) -> Recipe:
    """How a written shadow is consolidated on the texts of these digests."""
    options = {**anneal.identity(), "dtype": str(host.dtype).removeprefix("torch.")}
    return Recipe("anneal.consolidate/2", options, (written.version, host.ref.version, *digests))


def consolidate(
    store: Store,
    host: "Host",
    shadow: ShadowParams,
    anneal: AnnealParams,
    *,
    written: Ref | None = None,
    sealed: bool = False,
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> Ref:
    """Publish `shadow/<name>`, the written shadow with searched alphas, or find it.

    The written shadow is the newest of its name, or the version `written`: where a text was learned, then
    another one and the first again, the one that fits is older.

    Where guard text and guard probes, which the search never saw, show no gain that is worth its rise, all
    alphas are 0. With `work_dir` an interrupted search continues, bit for bit.

    Raises `StaleInputs` when the written shadow is not of this text, `ElementNotFound` when there is none,
    and for what the search, or with `sealed` a report that follows, would lack `TooLittleText` and
    `UnfitHost`.
    """
    written_ref = find_shadow(store, written or f"{shadow.name}{WRITTEN}")
    recipe = consolidation_recipe(written_ref, anneal, text_digests(store, shadow, anneal), host)
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe.fingerprint, checkpoint_s)
    there = find_trained(store, recipe.fingerprint, checkpoints, name=f"{KIND}{shadow.name}")
    if there is not None:
        return there
    check_lengths(host, anneal, sealed=sealed)
    _, full = open_shadow(store, written_ref, host)
    texts = read_texts(store, host, shadow, anneal)
    if full.document != texts.domain.digest:
        raise StaleInputs(f"{written_ref} was written from another text; run `cellar anneal write` again")
    texts.check(anneal, sealed=sealed)
    onto = foundation(store, written_ref)
    with standing_on(store, host, onto):
        found = search_alphas("cma", host, full, texts, anneal, progress=progress, checkpoints=checkpoints)
        guarded = np.stack([found.alphas_L, np.ones_like(found.alphas_L)])
        guard = objective_of("guard", host, full, texts, anneal)(guarded)
    kept = bool(guard.score_P[0] > 0)
    alphas = found.alphas_L if kept else np.zeros_like(found.alphas_L)
    kept_seeds = {**full.seeds, "search": anneal.seed}
    consolidated = replace(full, seeds=kept_seeds).scaled(alphas.tolist())
    element = shadow_element(
        shadow.name,
        consolidated,
        host=host.ref,
        requires=(written_ref.version, *(one.version for one in onto)),
        provenance={
            "recipe": recipe.fingerprint,
            "params": recipe.params,
            "written": str(written_ref),
            "onto": [str(one) for one in onto],
        },
        facts={
            "chunks": len(full.losses),
            "evaluations": len(found.tried.score_P),
            "course": found.course(),
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
    """Run one search on the selection text and probes, which are read where something is left to evaluate."""

    @cache
    def objective() -> Objective:
        return objective_of("selection", host, written, texts, anneal)

    return run_search(
        name,
        anneal,
        written.layers,
        lambda alphas_PL: objective()(alphas_PL),
        progress=progress,
        checkpoints=checkpoints,
    )


def objective_of(
    purpose: Purpose, host: "Host", written: Shadow, texts: Texts, anneal: AnnealParams
) -> Objective:
    """The score of alphas on the `selection` or the `guard` part of the texts."""
    domain_NT, probes_MT = texts.searched(purpose, anneal)
    population = Population(host, written, torch.cat([domain_NT, probes_MT]), scored=anneal.scored)
    return Objective(population, len(domain_NT), anneal.penalty, len(written.layers))


def before_and_after(
    store: Store, host: "Host", refs: Sequence[Ref], text: str, *, tokens: int
) -> tuple[str, str]:
    """The greedy continuations of a text by the host alone, and with these shadows attached in order.

    Raises `UnfitHost` for more than the host reads at once.
    """
    ids_T = torch.tensor(host.encode(text))
    check_length(
        host, "the text with what continues it", len(ids_T) + tokens, "shorten it, or lower --tokens"
    )
    with standing_on(store, host, refs):
        after = continuation(host, ids_T, tokens)
    return continuation(host, ids_T, tokens), after


def _figures(scored: Scored, place: int) -> dict[str, float]:
    names = ("gain", "rise", "drift", "score")
    return {name: float(getattr(scored, f"{name}_P")[place]) for name in names}
