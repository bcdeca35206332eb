"""Shadows beside retrieval: exact strings continued by a host with shadows, decoded memories, or both."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.composition.params import CompositionParams
    from tasks.composition.passages import Passage, draw_passages
    from tasks.composition.reading import (
        CompositionSample,
        Retrieved,
        continue_passages,
        holds,
        others,
        retrieve,
    )
    from tasks.composition.recipes import composition_recipe, composition_work
    from tasks.composition.sources import check_sources
    from tasks.composition.step import evaluate_composition
    from tasks.composition.summary import summarise

__all__ = [
    "CompositionParams",
    "CompositionSample",
    "Passage",
    "Retrieved",
    "check_sources",
    "composition_recipe",
    "composition_work",
    "continue_passages",
    "draw_passages",
    "evaluate_composition",
    "holds",
    "others",
    "retrieve",
    "summarise",
]

export_lazily(__name__)
