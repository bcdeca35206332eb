"""The anneal room's door to the store: a written shadow consolidated into `shadow/<name>`."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from store import Recipe, Ref, Store
from tasks.anneal.cards import cards, continuation
from tasks.anneal.consolidation import Found, run_search
from tasks.anneal.objective import Objective, Scored
from tasks.anneal.params import AnnealParams, SearchName
from tasks.anneal.population import Population
from tasks.anneal.sealed import ChunkLoss, against, anatomy, chunk_losses, compared
from tasks.anneal.texts import Purpose, Texts, read_texts, sealed_parts
from tasks.checkpoint import CHECKPOINT_S, Checkpoints, publish_trained
from tasks.errors import StaleInputs
from tasks.evaluation import PublishedEvaluation, SubjectName, Table, find_evaluation, publish_evaluation
from tasks.progress import Progress, silent
from tasks.shadows import (
    KIND,
    WRITTEN,
    Shadow,
    ShadowParams,
    attached,
    foundation,
    open_shadow,
    shadow_element,
    stack_refs,
    standing_on,
)
from tasks.tables import encode_records

if TYPE_CHECKING:
    from tasks.hosts import Host, HostIdentity

Floats = NDArray[np.float64]
SUBJECT: SubjectName = "anneal"
SAMPLES_RECIPE = "evaluation.anneal.samples/1"


def consolidation_recipe(
    written: Ref, anneal: AnnealParams, digests: Sequence[str], host: "HostIdentity"
) -> Recipe:
    """How a written shadow is consolidated on the texts of these digests."""
    options = {**anneal.identity(), "dtype": str(host.dtype).removeprefix("torch.")}
    return Recipe("anneal.consolidate/2", options, (written.version, host.ref.version, *digests))


def sealed_recipe(kept: Ref, written: Ref, anneal: AnnealParams, digests: Sequence[str], host: Ref) -> Recipe:
    """How a consolidated shadow is evaluated on the texts of these digests."""
    options = {**anneal.identity(), "sealed": anneal.sealed.model_dump(mode="json")}
    inputs = (kept.version, written.version, host.version, *digests)
    return Recipe("anneal.evaluate/2", options, inputs)


def consolidate(
    store: Store,
    host: "Host",
    shadow: ShadowParams,
    anneal: AnnealParams,
    *,
    written: Ref | None = None,
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> Ref:
    """Publish `shadow/<name>`, the written shadow with searched alphas, or find it.

    The written shadow is the newest of its name, or the version `written`: where a text was learned, then
    another one and the first again, the one that fits is older.

    Where guard text and guard probes, which the search never saw, show no gain that is worth its rise, all
    alphas are 0. With `work_dir` an interrupted search continues, bit for bit.

    Raises `StaleInputs` when the written shadow is not of this text, `ElementNotFound` when there is none.
    """
    written_ref, full = open_shadow(store, written or f"{shadow.name}{WRITTEN}", host)
    texts = read_texts(store, host, shadow, anneal)
    if full.document != texts.domain.digest:
        raise StaleInputs(f"{written_ref} was written from another text; run `cellar anneal write` again")
    recipe = consolidation_recipe(written_ref, anneal, texts.digests, host)
    if (row := store.catalog().find(recipe.fingerprint, name=f"{KIND}{shadow.name}")) is not None:
        return row.ref
    checkpoints = None if work_dir is None else Checkpoints(work_dir, recipe.fingerprint, checkpoint_s)
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
    """Run one search on the selection text and probes."""
    objective = objective_of("selection", host, written, texts, anneal)
    return run_search(name, anneal, written.layers, objective, progress=progress, checkpoints=checkpoints)


def objective_of(
    purpose: Purpose, host: "Host", written: Shadow, texts: Texts, anneal: AnnealParams
) -> Objective:
    """The score of alphas on the `selection` or the `guard` part of the texts."""
    domain_NT, probes_MT = texts.searched(purpose, anneal)
    population = Population(host, written, torch.cat([domain_NT, probes_MT]), scored=anneal.scored)
    return Objective(population, len(domain_NT), anneal.penalty, len(written.layers))


def before_and_after(
    store: Store, host: "Host", names: Sequence[str], text: str, *, tokens: int
) -> tuple[list[Ref], str, str]:
    """The greedy continuations of a text by the host alone, and with these shadows attached in order."""
    refs = stack_refs(store, names)
    ids_T = torch.tensor(host.encode(text))
    with standing_on(store, host, refs):
        after = continuation(host, ids_T, tokens)
    return list(refs), continuation(host, ids_T, tokens), after


def _figures(scored: Scored, place: int) -> dict[str, float]:
    names = ("gain", "rise", "drift", "score")
    return {name: float(getattr(scored, f"{name}_P")[place]) for name in names}


def evaluate_shadow(
    store: Store,
    host: "Host",
    shadow: ShadowParams,
    anneal: AnnealParams,
    *,
    kept: Ref | None = None,
    written: Ref | None = None,
    progress: Progress = silent,
) -> PublishedEvaluation:
    """Evaluate `shadow/<name>` on sealed text and sealed probes, beside its full strength and other searches.

    Both are the newest of their names, or the versions `kept` and `written`.

    Publishes `evaluation/<name>.anneal` (the summary as JSON) and its `samples` (Parquet, the loss of every
    sealed chunk under every condition), or returns what is published for the same. `progress` counts
    conditions. Raises `ElementNotFound` when the shadow is not consolidated, `StaleInputs` when it is another
    text's.
    """
    ref, scaled = open_shadow(store, kept or shadow.name, host)
    written_ref, full = open_shadow(store, written or f"{shadow.name}{WRITTEN}", host)
    texts = read_texts(store, host, shadow, anneal)
    if scaled.document != texts.domain.digest or full.document != texts.domain.digest:
        raise StaleInputs(f"{ref} was made of another text; run `cellar anneal consolidate` again")
    sealed = anneal.sealed
    how = sealed_recipe(ref, written_ref, anneal, texts.digests, host.ref)
    recipe = how.fingerprint
    if (known := find_evaluation(store, recipe)) is not None:
        return known
    began = time.monotonic()
    parts = dict(zip(("domain", "retention"), sealed_parts(texts, sealed.chunk_tokens), strict=True))
    with standing_on(store, host, foundation(store, written_ref)):
        alphas = {"naive": np.ones(len(full.layers)), "consolidated": np.array(scaled.alphas)}
        searched = {name: search_alphas(name, host, full, texts, anneal) for name in sealed.baselines}
        alphas |= {name: found.alphas_L for name, found in searched.items()}
        losses = _losses(host, full, {"host": np.zeros(len(full.layers)), **alphas}, parts, progress)
        made = cards(host, scaled, parts["domain"], count=sealed.cards, tokens=sealed.card_tokens)
    samples = [
        ChunkLoss(name, condition, chunk, float(loss))
        for name, by_condition in losses.items()
        for condition, losses_N in by_condition.items()
        for chunk, loss in enumerate(losses_N)
    ]
    others = [name for name in alphas if name != "consolidated"]
    row = store.catalog().get(ref.version)
    courses = {"consolidated": row.facts.get("course", []) if row else []}
    courses |= {name: found.course() for name, found in searched.items()}
    summary = {
        "protocol": "sealed chunks of the domain and of retention text, none of which met a search",
        "shadow": str(ref),
        "written": str(written_ref),
        "host": str(host.ref),
        "chunks": {name: len(chunks_NT) for name, chunks_NT in parts.items()},
        "held_out_by": texts.domain.by,
        "host_loss": {name: float(by_condition["host"].mean()) for name, by_condition in losses.items()},
        "gain": compared(losses["domain"], sealed, sign=-1, seed=anneal.seed),
        "drift": compared(losses["retention"], sealed, sign=1, seed=anneal.seed),
        "consolidated_over": against(losses["domain"], sealed, "consolidated", others, seed=anneal.seed),
        "anatomy": anatomy(scaled.layers, scaled.alphas, scaled.norms()),
        "alphas": {name: chosen.tolist() for name, chosen in alphas.items()},
        "curve": list(full.losses),
        "courses": courses,
        "cards": made,
        "settings": {"shadow": shadow.identity(), "anneal": dict(how.params)},
    }
    return publish_evaluation(
        store,
        f"{shadow.name}.anneal",
        summary,
        {"samples": Table(encode_records(ChunkLoss, samples), len(samples), SAMPLES_RECIPE)},
        recipe=recipe,
        requires=[ref.version, written_ref.version, host.ref.version],
        provenance={"subject": SUBJECT, "host": str(host.ref), "shadow": str(ref)},
        costs={"seconds": time.monotonic() - began},
        message=f"Evaluate shadow {shadow.name} on {len(samples)} sealed losses",
    )


def _losses(
    host: "Host",
    shadow: Shadow,
    conditions: Mapping[str, Floats],
    parts: Mapping[str, Tensor],
    progress: Progress,
) -> dict[str, dict[str, Floats]]:
    """Losses by text and condition, each condition being the alphas that the shadow is attached with."""
    losses: dict[str, dict[str, Floats]] = {name: {} for name in parts}
    for done, (condition, chosen) in enumerate(conditions.items()):
        with attached(host, shadow.scaled(chosen.tolist())):
            for name, chunks_NT in parts.items():
                losses[name][condition] = chunk_losses(host, chunks_NT)
        progress(done + 1, len(conditions))
    return losses
