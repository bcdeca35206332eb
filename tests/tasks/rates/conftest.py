"""A store with a small corpus and its tokenizer."""

from pathlib import Path

import pytest

from store import Ref, Store
from tasks.corpus import CorpusParams, TokenizerParams, ingest, train_tokenizer

WORDS = (
    "codec",
    "cell",
    "memory",
    "store",
    "token",
    "block",
    "shard",
    "core",
    "task",
    "head",
    "margin",
    "loss",
)


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    for number in range(24):
        text = " ".join(
            WORDS[(number * 7 + i * i) % len(WORDS)] + ("." if i % 9 == 8 else "") for i in range(60)
        )
        (folder / f"{number:02}.txt").write_text(f"{text} {number}\n")
    return folder


@pytest.fixture
def place(tmp_path: Path, source: Path) -> tuple[Store, list[Ref], Ref]:
    """A store, the shards of its corpus and its tokenizer."""
    store = Store.create(f"file:{tmp_path / 'store'}")
    corpus = ingest(store, CorpusParams(reader="folder", path=source, shards=4))
    return store, corpus.shards, train_tokenizer(store, TokenizerParams(vocab_size=320), corpus=corpus.shards)
