"""Real documentation, a codec that copies, and an index over what it decodes."""

import hashlib
from collections.abc import Mapping
from pydoc_data.topics import topics

import numpy as np
import pytest
import torch

from tasks.codec import Codec, CodecArchitecture, blocks, freeze
from tasks.corpus import Tokenizer, TokenizerParams, train_bpe
from tasks.retrieval import (
    Charts,
    CodecCueEncoder,
    DecodedMemory,
    DenseIndex,
    Index,
    MemoryRecord,
    Readout,
    RerankerParams,
    RetrievalParams,
    Sources,
    decode,
)
from tasks.retrieval.reranker import train
from tasks.retrieval.training import labelled_alignments

VOCABULARY = 600
PARAMS = RetrievalParams(reranker=RerankerParams(cues=1500, steps=200))


@pytest.fixture(scope="session")
def texts() -> dict[str, str]:
    """Sixty documents of Python's own documentation by element name."""
    chosen = sorted(name for name, text in topics.items() if 800 <= len(text) <= 4000)[:60]
    return {f"memory/{name}": topics[name] for name in chosen}


@pytest.fixture(scope="session")
def tokenizer(texts: Mapping[str, str]) -> Tokenizer:
    return train_bpe(texts.values(), TokenizerParams(vocab_size=VOCABULARY))


@pytest.fixture(scope="session")
def ids(texts: Mapping[str, str], tokenizer: Tokenizer) -> dict[str, np.ndarray]:
    return {name: tokenizer.encode(text) for name, text in texts.items()}


@pytest.fixture(scope="session")
def codec() -> Codec:
    """A codec whose cells are its tokens' own codes, so that it reads nearly every token back untrained."""
    architecture = CodecArchitecture(
        block_tokens=16, cell_width=16 * 64, slot_width=64, encoder_layers=0, decoder_layers=0
    )
    copying = Codec(architecture, VOCABULARY, torch.Generator().manual_seed(0))
    with torch.no_grad():
        for layer in (copying.to_cell, copying.from_cell):
            layer.weight.copy_(torch.eye(64))
            layer.bias.zero_()
    return freeze(copying)


@pytest.fixture(scope="session")
def records(ids: Mapping[str, np.ndarray], codec: Codec) -> list[MemoryRecord]:
    made = []
    for name, tokens_L in ids.items():
        tokens_NT, _ = blocks(tokens_L, codec.architecture.block_tokens)
        version = hashlib.sha256(name.encode()).hexdigest()
        made.append(MemoryRecord(name, version, codec.encode(tokens_NT), len(tokens_L)))
    return made


@pytest.fixture(scope="session")
def memories(records: list[MemoryRecord], codec: Codec) -> list[DecodedMemory]:
    return sorted(decode(codec, records, PARAMS.readout_tile), key=lambda memory: memory.name)


@pytest.fixture(scope="session")
def sources(memories: list[DecodedMemory], codec: Codec) -> Sources:
    readout = Readout.of(memories)
    return Sources(
        readout,
        Charts.of(readout.tokens_N, readout.start_E1, VOCABULARY, PARAMS.charts),
        DenseIndex.of(np.stack([memory.key_C for memory in memories])),
        CodecCueEncoder(codec),
    )


@pytest.fixture(scope="session")
def index(sources: Sources) -> Index:
    examples = labelled_alignments(Index(sources, None, PARAMS.search), PARAMS.reranker)
    return Index(sources, train(examples, PARAMS.reranker, PARAMS.search), PARAMS.search)
