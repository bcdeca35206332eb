"""A snapshot of memories that an untrained codec reads back, with their index, made in seconds."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from store import Element, Snapshot, Store
from tasks.codec import Codec, CodecArchitecture, blocks, freeze
from tasks.corpus import Document, TokenizerParams, train_bpe
from tasks.memory import MemoryCells, encode_cells
from tasks.retrieval import RerankerParams, RetrievalParams, build_indexes, train_reranker

VOCABULARY = 600
RETRIEVAL = RetrievalParams(reranker=RerankerParams(cues=200, steps=20))


def remember(store: Store, documents: Sequence[Document]) -> Snapshot:
    """Publish a memory of every document, tokenizer, codec, index and reranker, and pin all of them."""
    tokenizer = train_bpe([one.text for one in documents], TokenizerParams(vocab_size=VOCABULARY))
    codec = copying_codec()
    words = Element("tokenizer", "bpe", tokenizer.to_bytes(), media="application/json")
    frozen = Element("codec", "copying", codec.to_bytes(), requires=(words.version,))
    store.publish([words, frozen], message="support")
    memories = []
    for document in documents:
        ids = tokenizer.encode(document.text)
        cells = MemoryCells.from_float(codec.encode(blocks(ids, 16)[0]), len(ids), "bfloat16")
        memories.append(Element("memory", document.name, encode_cells(cells), requires=(frozen.version,)))
    refs = [*store.publish(memories, message="memories"), words.ref, frozen.ref]
    index = build_indexes(store, RETRIEVAL, snapshot=store.pin(refs, message="memories"))
    reranker = train_reranker(store, RETRIEVAL, index=index, codec=frozen.ref)
    return store.pin([*refs, *index.all, reranker], message="all")


def copying_codec() -> Codec:
    """A codec whose cells are its tokens' own codes, so that it reads nearly every token back untrained."""
    architecture = CodecArchitecture(
        block_tokens=16, cell_width=16 * 64, slot_width=64, encoder_layers=0, decoder_layers=0
    )
    codec = Codec(architecture, VOCABULARY, torch.Generator().manual_seed(0))
    with torch.no_grad():
        for layer in (codec.to_cell, codec.from_cell):
            layer.weight.copy_(torch.eye(64))
            layer.bias.zero_()
        codec.head.weight.mul_(3)
    return freeze(codec)
