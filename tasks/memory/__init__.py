"""Memories: documents as adapted cells under a frozen codec, checked as stored and published as elements."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.memory.cells import MemoryCells, decode_cells, encode_cells
    from tasks.memory.figures import SPAN, Figures, pool
    from tasks.memory.measuring import measure
    from tasks.memory.outcome import Outcome, ShardResult, summarise
    from tasks.memory.params import MemoryParams
    from tasks.memory.recipes import memory_recipe, rejection_recipe
    from tasks.memory.record import missing_records, recorded
    from tasks.memory.step import build_shard
    from tasks.memory.tiles import Tiles
    from tasks.memory.worker import WorkedDocument, work_documents

__all__ = [
    "SPAN",
    "Figures",
    "MemoryCells",
    "MemoryParams",
    "Outcome",
    "ShardResult",
    "Tiles",
    "WorkedDocument",
    "build_shard",
    "decode_cells",
    "encode_cells",
    "measure",
    "memory_recipe",
    "missing_records",
    "pool",
    "recorded",
    "rejection_recipe",
    "summarise",
    "work_documents",
]

export_lazily(__name__)
