"""Retrieval: charts, dense keys and a reranker over what the memories of a snapshot decode to."""

from tasks.retrieval.ask import AskedToken, Asker, AskHit
from tasks.retrieval.baseline import DenseSearch
from tasks.retrieval.charts import Charts
from tasks.retrieval.confidence import confidences
from tasks.retrieval.cues import CueTask, corrupted, prefix_tasks, quote_tasks
from tasks.retrieval.dense import CodecCueEncoder, DenseIndex
from tasks.retrieval.evidence import Sources
from tasks.retrieval.features import FEATURES
from tasks.retrieval.hashing import inside, ngram_hashes
from tasks.retrieval.index import Candidate, Index
from tasks.retrieval.measure import RetrievalFigures, Searcher, evaluate, is_right
from tasks.retrieval.params import ChartParams, RerankerParams, RetrievalParams, SearchParams
from tasks.retrieval.readout import DecodedMemory, MemoryRecord, Readout, ReadoutAudit, audit, decode
from tasks.retrieval.reranker import Reranker
from tasks.retrieval.step import IndexRefs, audit_readout, build_indexes, train_reranker

__all__ = [
    "FEATURES",
    "AskHit",
    "AskedToken",
    "Asker",
    "Candidate",
    "ChartParams",
    "Charts",
    "CodecCueEncoder",
    "CueTask",
    "DecodedMemory",
    "DenseIndex",
    "DenseSearch",
    "Index",
    "IndexRefs",
    "MemoryRecord",
    "Readout",
    "ReadoutAudit",
    "Reranker",
    "RerankerParams",
    "RetrievalFigures",
    "RetrievalParams",
    "SearchParams",
    "Searcher",
    "Sources",
    "audit",
    "audit_readout",
    "build_indexes",
    "confidences",
    "corrupted",
    "decode",
    "evaluate",
    "inside",
    "is_right",
    "ngram_hashes",
    "prefix_tasks",
    "quote_tasks",
    "train_reranker",
]
