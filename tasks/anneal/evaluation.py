"""A consolidated shadow on sealed text and sealed probes, beside full strength and other searches."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from store import Recipe, Ref, Store
from tasks.anneal.cards import cards
from tasks.anneal.consolidation import evaluations_of
from tasks.anneal.params import AnnealParams
from tasks.anneal.sealed import ChunkLoss, against, anatomy, chunk_losses, compared
from tasks.anneal.sources import text_digests
from tasks.anneal.step import search_alphas
from tasks.anneal.texts import check_lengths, read_texts, sealed_counts, sealed_parts
from tasks.checkpoint import CHECKPOINT_S
from tasks.errors import StaleInputs
from tasks.evaluation import PublishedEvaluation, SubjectName, Table, find_evaluation, publish_evaluation
from tasks.progress import Progress, part_of, silent
from tasks.shadows import (
    WRITTEN,
    Shadow,
    ShadowParams,
    attached,
    find_shadow,
    foundation,
    open_shadow,
    standing_on,
)
from tasks.tables import encode_records
from tasks.unfinished import Unfinished

if TYPE_CHECKING:
    from tasks.hosts import Host

Floats = NDArray[np.float64]
SUBJECT: SubjectName = "anneal"
SAMPLES_RECIPE = "evaluation.anneal.samples/1"


def sealed_recipe(kept: Ref, written: Ref, anneal: AnnealParams, digests: Sequence[str], host: Ref) -> Recipe:
    """How a consolidated shadow is evaluated on the texts of these digests."""
    options = {**anneal.identity(), "sealed": anneal.sealed.model_dump(mode="json")}
    inputs = (kept.version, written.version, host.version, *digests)
    return Recipe("anneal.evaluate/2", options, inputs)


def evaluation_work(shadow: ShadowParams, anneal: AnnealParams) -> int:
    """Alphas and sealed chunks of an evaluation, as its progress counts them."""
    conditions = {"host", "naive", "consolidated", *anneal.sealed.baselines}
    searches = sum(evaluations_of(name, anneal) for name in anneal.sealed.baselines)
    return searches + len(conditions) * sum(sealed_counts(shadow, anneal))


def evaluate_shadow(
    store: Store,
    host: "Host",
    shadow: ShadowParams,
    anneal: AnnealParams,
    *,
    kept: Ref | None = None,
    written: Ref | None = None,
    progress: Progress = silent,
    work_dir: Path | None = None,
    checkpoint_s: float = CHECKPOINT_S,
) -> PublishedEvaluation:
    """Evaluate `shadow/<name>` on sealed text and sealed probes, beside its full strength and other searches.

    Both are the newest of their names, or the versions `kept` and `written`.

    Publishes `evaluation/<name>.anneal` (the summary as JSON) and its `samples` (Parquet, the loss of every
    sealed chunk under every condition), or returns what is published for the same. `progress` counts alphas
    that searches evaluate, then sealed chunks. With `work_dir` an interrupted evaluation continues, bit for
    bit, from what its searches and conditions kept.

    Raises `ElementNotFound` when the shadow is not consolidated, `StaleInputs` when it is another text's, and
    `UnfitHost` for lengths that the host does not read.
    """
    ref = find_shadow(store, kept or shadow.name)
    written_ref = find_shadow(store, written or f"{shadow.name}{WRITTEN}")
    how = sealed_recipe(ref, written_ref, anneal, text_digests(store, shadow, anneal), host.ref)
    recipe = how.fingerprint
    unfinished = Unfinished(work_dir, f"{recipe} {host.dtype}", checkpoint_s)
    if (known := find_evaluation(store, recipe)) is not None:
        unfinished.remove()
        return known
    check_lengths(host, anneal, sealed=True)
    (_, scaled), (_, full) = open_shadow(store, ref, host), open_shadow(store, written_ref, host)
    texts = read_texts(store, host, shadow, anneal)
    if scaled.document != texts.domain.digest or full.document != texts.domain.digest:
        raise StaleInputs(f"{ref} was made of another text; run `cellar anneal consolidate` again")
    sealed = anneal.sealed
    began = time.monotonic()
    parts = dict(zip(("domain", "retention"), sealed_parts(texts, sealed.chunk_tokens), strict=True))
    alphas = {"naive": np.ones(len(full.layers)), "consolidated": np.array(scaled.alphas)}
    budgets = [evaluations_of(name, anneal) for name in sealed.baselines]
    total = evaluation_work(shadow, anneal)
    with standing_on(store, host, foundation(store, written_ref)):
        searched = {
            name: search_alphas(
                name,
                host,
                full,
                texts,
                anneal,
                progress=part_of(progress, sum(budgets[:place]), total),
                checkpoints=unfinished.part(f"search {name}"),
            )
            for place, name in enumerate(sealed.baselines)
        }
        alphas |= {name: found.alphas_L for name, found in searched.items()}
        losses = _losses(
            host,
            full,
            {"host": np.zeros(len(full.layers)), **alphas},
            parts,
            unfinished,
            part_of(progress, sum(budgets), total),
        )
        made = cards(
            host,
            scaled,
            parts["domain"],
            count=sealed.cards,
            tokens=sealed.card_tokens,
            unfinished=unfinished,
        )
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
        "cards": [asdict(card) for card in made],
        "settings": {"shadow": shadow.identity(), "anneal": dict(how.params)},
    }
    published = publish_evaluation(
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
    unfinished.remove()
    return published


def _losses(
    host: "Host",
    shadow: Shadow,
    conditions: Mapping[str, Floats],
    parts: Mapping[str, Tensor],
    unfinished: Unfinished,
    progress: Progress,
) -> dict[str, dict[str, Floats]]:
    """Losses by text and condition, each condition being the alphas that the shadow is attached with."""
    losses: dict[str, dict[str, Floats]] = {name: {} for name in parts}
    done, total = 0, len(conditions) * sum(map(len, parts.values()))
    for condition, chosen in conditions.items():
        with attached(host, shadow.scaled(chosen.tolist())):
            for name, chunks_NT in parts.items():
                losses[name][condition] = chunk_losses(
                    host,
                    chunks_NT,
                    unfinished=unfinished,
                    part=f"{condition} {name}",
                    progress=part_of(progress, done, total),
                )
                done += len(chunks_NT)
    return losses
