"""Flow `ingest-corpus`: documents into shards, and the tokenizer learned on the even ones."""

from dataclasses import asdict
from typing import Any

from flows import watch
from flows.engine import bind, flow
from flows.params import Params
from flows.pins import Pin
from flows.place import open_store
from flows.settings import Settings
from store import Ref
from tasks.corpus import CorpusResult, load_tokenizer
from tasks.corpus.params import CorpusParams, TokenizerParams


def corpus_pin(result: CorpusResult) -> Pin:
    """The pin of an ingested corpus: its shards in order, and what became of the documents."""
    figures: dict[str, Any] = {key: value for key, value in asdict(result.report).items() if key != "listed"}
    return Pin(stage="corpus", refs=tuple(str(ref) for ref in result.shards), figures=figures)


def _ingest(settings: Settings, params: CorpusParams) -> dict[str, Any]:
    from tasks.corpus.step import ingest

    with watch.progress(f"read corpus {params.corpus}", "documents") as progress:
        result = ingest(open_store(settings), params, progress)
    return corpus_pin(result).model_dump(mode="json")


def _tokenize(settings: Settings, params: TokenizerParams, corpus: list[str]) -> dict[str, Any]:
    from tasks.corpus.step import train_tokenizer

    store = open_store(settings)
    ref = train_tokenizer(store, params, corpus=[Ref.parse(text) for text in corpus])
    return tokenizer_pin(ref, load_tokenizer(store, ref).vocab_size).model_dump(mode="json")


def tokenizer_pin(ref: Ref, vocab_size: int) -> Pin:
    """The pin of a tokenizer."""
    return Pin(stage="tokenizer", refs=(str(ref),), figures={"vocab_size": vocab_size})


_ingest_task = bind(_ingest, name="ingest corpus")
train_tokenizer_task = bind(_tokenize, name="train tokenizer")


def _flow(params: Params, settings: Settings) -> tuple[Pin, Pin]:
    """Ingest the corpus and learn its tokenizer; a source that did not change is recognised."""
    corpus = Pin.model_validate(_ingest_task(settings, params.corpus))
    tokenizer = Pin.model_validate(train_tokenizer_task(settings, params.tokenizer, list(corpus.refs)))
    return corpus, tokenizer


ingest_corpus = flow(_flow, name="ingest-corpus")
