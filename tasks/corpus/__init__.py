"""Corpora: documents read from where they lie, spread over shards, and the tokenizer learned on half."""

from typing import TYPE_CHECKING

from store.exports import export_lazily

if TYPE_CHECKING:
    from tasks.corpus.document import Document, Skipped, fault_of
    from tasks.corpus.params import CorpusParams, TokenizerParams, glob_below
    from tasks.corpus.preview import CorpusPreview, preview
    from tasks.corpus.shards import encode_shard, is_worker_shard, load_shard, shard_of
    from tasks.corpus.sources import open_source
    from tasks.corpus.splits import Split, element_split
    from tasks.corpus.step import (
        CorpusReport,
        CorpusResult,
        ingest,
        load_tokenizer,
        open_report,
        report_of,
        train_tokenizer,
    )
    from tasks.corpus.tokenizer import EOS, PAD, Tokenizer, train_bpe

__all__ = [
    "EOS",
    "PAD",
    "CorpusParams",
    "CorpusPreview",
    "CorpusReport",
    "CorpusResult",
    "Document",
    "Skipped",
    "Split",
    "Tokenizer",
    "TokenizerParams",
    "element_split",
    "encode_shard",
    "fault_of",
    "glob_below",
    "ingest",
    "is_worker_shard",
    "load_shard",
    "load_tokenizer",
    "open_report",
    "open_source",
    "preview",
    "report_of",
    "shard_of",
    "train_bpe",
    "train_tokenizer",
]

export_lazily(__name__)
