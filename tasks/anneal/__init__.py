"""Consolidation of shadows (ANNEAL): how much of what was written is kept, by forward passes."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.anneal.accumulation import (
        StageLoss,
        evaluate_stages,
        forgetting,
        stages,
        stages_recipe,
        stages_work,
    )
    from tasks.anneal.cards import continuation
    from tasks.anneal.consolidation import Found, alphas_kept, evaluations_of, run_search
    from tasks.anneal.evaluation import evaluate_shadow, evaluation_work, sealed_recipe
    from tasks.anneal.objective import Objective, Scored
    from tasks.anneal.params import BASELINES, AnnealParams, SearchName
    from tasks.anneal.population import Population, passages, plain_losses
    from tasks.anneal.sealed import ChunkLoss, chunk_losses, compared
    from tasks.anneal.searches import search
    from tasks.anneal.sources import retention_digests, retention_sources, text_digests
    from tasks.anneal.step import (
        before_and_after,
        consolidate,
        consolidation_recipe,
        objective_of,
        search_alphas,
    )
    from tasks.anneal.texts import (
        Texts,
        check_texts,
        read_retention,
        read_texts,
        sealed_chunks,
        sealed_parts,
    )

__all__ = [
    "BASELINES",
    "AnnealParams",
    "ChunkLoss",
    "Found",
    "Objective",
    "Population",
    "Scored",
    "SearchName",
    "StageLoss",
    "Texts",
    "alphas_kept",
    "before_and_after",
    "check_texts",
    "chunk_losses",
    "compared",
    "consolidate",
    "consolidation_recipe",
    "continuation",
    "evaluate_shadow",
    "evaluate_stages",
    "evaluation_work",
    "evaluations_of",
    "forgetting",
    "objective_of",
    "passages",
    "plain_losses",
    "read_retention",
    "read_texts",
    "retention_digests",
    "retention_sources",
    "run_search",
    "sealed_chunks",
    "sealed_parts",
    "sealed_recipe",
    "search",
    "search_alphas",
    "stages",
    "stages_recipe",
    "stages_work",
    "text_digests",
]

export_lazily(__name__)
