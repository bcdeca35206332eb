"""The codec's door to the store."""

from pathlib import Path
from pydoc_data.topics import topics

import pytest

from store import Ref, Store
from tasks.codec import CodecArchitecture, CodecParams, open_codec, train_codec
from tasks.corpus import CorpusParams, CorpusResult, TokenizerParams, ingest, train_tokenizer

PARAMS = CodecParams(
    architecture=CodecArchitecture(
        block_tokens=16, cell_width=192, slot_width=32, mixing_width=8, channel_width=64
    ),
    steps=8,
    batch_blocks=16,
    candidates=64,
    validation_share=0.3,
)


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    for name in sorted(topics)[:24]:
        (folder / f"{name}.txt").write_text(topics[name][:1500], encoding="utf-8")
    return folder


def prepare(url: Path, texts: Path) -> tuple[Store, CorpusResult, Ref]:
    store = Store.open_or_create(str(url))
    corpus = ingest(store, CorpusParams(name="texts", reader="folder", path=texts, shards=4))
    tokenizer = train_tokenizer(store, TokenizerParams(vocab_size=400), corpus=corpus.shards)
    return store, corpus, tokenizer


def test_a_codec_is_trained_once_and_found_afterwards(texts: Path, tmp_path: Path) -> None:
    store, corpus, tokenizer = prepare(tmp_path / "store", texts)
    steps: list[int] = []

    def count(done: int, total: int, **figures: float) -> None:
        steps.append(done)

    ref = train_codec(store, PARAMS, corpus=corpus.shards, tokenizer=tokenizer, progress=count)
    again = train_codec(store, PARAMS, corpus=corpus.shards, tokenizer=tokenizer, progress=count)

    assert again == ref
    assert steps == list(range(1, 9))
    row = store.catalog().get(ref.version)
    assert row is not None
    assert row.requires == (tokenizer.version,)
    held_out, training = row.facts["held_out_documents"], row.facts["training_documents"]
    assert held_out > 0
    assert held_out + training + corpus.report.worker_documents == 24
    assert 0 <= row.facts["encoded"]["token_recall"] <= row.facts["adapted"]["token_recall"] <= 1
    assert open_codec(store, ref).to_bytes() == store.read(ref)


def test_another_store_and_an_interruption_give_the_same_version(texts: Path, tmp_path: Path) -> None:
    first, corpus, tokenizer = prepare(tmp_path / "one", texts)
    ref = train_codec(first, PARAMS, corpus=corpus.shards, tokenizer=tokenizer)
    second, corpus, tokenizer = prepare(tmp_path / "two", texts)

    def interrupt(done: int, total: int, **figures: float) -> None:
        if done == 5:
            raise KeyboardInterrupt

    work = tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        train_codec(
            second, PARAMS, corpus=corpus.shards, tokenizer=tokenizer, progress=interrupt, work_dir=work
        )
    again = train_codec(second, PARAMS, corpus=corpus.shards, tokenizer=tokenizer, work_dir=work)

    assert again == ref


def test_worker_documents_are_not_part_of_a_codecs_identity(texts: Path, tmp_path: Path) -> None:
    store, corpus, tokenizer = prepare(tmp_path / "store", texts)

    ref = train_codec(store, PARAMS, corpus=corpus.language_shards, tokenizer=tokenizer)

    assert train_codec(store, PARAMS, corpus=corpus.shards[::-1], tokenizer=tokenizer) == ref
