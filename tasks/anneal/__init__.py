"""Consolidation of shadows (ANNEAL): how much of what was written is kept, by forward passes."""

from tasks.anneal.consolidation import Found, run_search
from tasks.anneal.objective import Objective, Scored
from tasks.anneal.params import BASELINES, AnnealParams, SearchName
from tasks.anneal.population import Population, passages, plain_losses
from tasks.anneal.searches import search
from tasks.anneal.step import (
    Texts,
    consolidate,
    consolidation_recipe,
    objective_of,
    read_texts,
    search_alphas,
)

__all__ = [
    "BASELINES",
    "AnnealParams",
    "Found",
    "Objective",
    "Population",
    "Scored",
    "SearchName",
    "Texts",
    "consolidate",
    "consolidation_recipe",
    "objective_of",
    "passages",
    "plain_losses",
    "read_texts",
    "run_search",
    "search",
    "search_alphas",
]
