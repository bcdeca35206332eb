"""Retrieval: charts, dense keys and a reranker over what the memories of a snapshot decode to."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.retrieval.ask import AskedToken, Asker, AskHit
    from tasks.retrieval.baseline import DenseSearch, ElementSearch
    from tasks.retrieval.bm25 import BM25Search
    from tasks.retrieval.charts import Charts
    from tasks.retrieval.confidence import confidences
    from tasks.retrieval.cues import NO_TOKEN, changed_cues, corrupted
    from tasks.retrieval.dense import CodecCueEncoder, DenseIndex
    from tasks.retrieval.evidence import Sources
    from tasks.retrieval.features import FEATURES
    from tasks.retrieval.hashing import inside, ngram_hashes
    from tasks.retrieval.hybrid import SIGNALS, Hybrid, Signals, decoded_texts, scrambled_sentences
    from tasks.retrieval.index import Candidate, Index
    from tasks.retrieval.lexicon import Lexicon, character_runs, words
    from tasks.retrieval.measure import RetrievalFigures, Searcher, evaluate, holds_cue, is_right
    from tasks.retrieval.overlay import Overlay
    from tasks.retrieval.params import ChartParams, RerankerParams, RetrievalParams, SearchParams
    from tasks.retrieval.readout import DecodedMemory, MemoryRecord, Readout, ReadoutAudit, audit, decode
    from tasks.retrieval.recipes import (
        IndexRefs,
        charts_recipe,
        dense_recipe,
        readout_recipe,
        reranker_recipe,
    )
    from tasks.retrieval.reranker import Reranker
    from tasks.retrieval.step import audit_readout, build_indexes, index_memories, train_reranker
    from tasks.retrieval.tasks import CueTask, prefix_tasks, quote_tasks, rare_tokens, span_tasks, value_tasks
    from tasks.retrieval.text_search import TextSearch

__all__ = [
    "FEATURES",
    "NO_TOKEN",
    "SIGNALS",
    "AskHit",
    "AskedToken",
    "Asker",
    "BM25Search",
    "Candidate",
    "ChartParams",
    "Charts",
    "CodecCueEncoder",
    "CueTask",
    "DecodedMemory",
    "DenseIndex",
    "DenseSearch",
    "ElementSearch",
    "Hybrid",
    "Index",
    "IndexRefs",
    "Lexicon",
    "MemoryRecord",
    "Overlay",
    "Readout",
    "ReadoutAudit",
    "Reranker",
    "RerankerParams",
    "RetrievalFigures",
    "RetrievalParams",
    "SearchParams",
    "Searcher",
    "Signals",
    "Sources",
    "TextSearch",
    "audit",
    "audit_readout",
    "build_indexes",
    "changed_cues",
    "character_runs",
    "charts_recipe",
    "confidences",
    "corrupted",
    "decode",
    "decoded_texts",
    "dense_recipe",
    "evaluate",
    "holds_cue",
    "index_memories",
    "inside",
    "is_right",
    "ngram_hashes",
    "prefix_tasks",
    "quote_tasks",
    "rare_tokens",
    "readout_recipe",
    "reranker_recipe",
    "scrambled_sentences",
    "span_tasks",
    "train_reranker",
    "value_tasks",
    "words",
]

export_lazily(__name__)
