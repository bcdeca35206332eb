"""Ingesting publishes shards once, recognises what it has, and keeps what a change does not touch."""

import json
import os
from pathlib import Path

import pytest

from store import Store
from tasks.corpus import (
    CorpusParams,
    TokenizerParams,
    ingest,
    is_worker_shard,
    load_shard,
    load_tokenizer,
    shard_of,
    train_tokenizer,
)
from tasks.errors import BadCorpus, BadTokenizer


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(f"file:{tmp_path / 'store'}")


def write_folder(folder: Path, count: int) -> CorpusParams:
    folder.mkdir(exist_ok=True)
    for i in range(count):
        (folder / f"{i}.txt").write_text(f"Document {i} speaks of {i * i} words and more. " * 5)
    return CorpusParams(name="t", reader="folder", path=folder, shards=4)


def test_ingest_publishes_every_document_in_the_shard_of_its_name(store: Store, tmp_path: Path) -> None:
    result = ingest(store, write_folder(tmp_path / "in", 20))

    assert [ref.name for ref in result.shards] == [f"corpus/t/shard-{i:02d}" for i in range(4)]
    found = {d.name: i for i, ref in enumerate(result.shards) for d in load_shard(store.read(ref))}
    assert found == {str(i): shard_of(str(i), 4) for i in range(20)}
    assert result.report.documents == 20
    assert result.report.worker_documents == sum(shard % 2 for shard in found.values())
    assert [is_worker_shard(ref) for ref in result.shards] == [False, True, False, True]
    assert result.worker_shards == result.shards[1::2]
    assert result.language_shards == result.shards[0::2]


def test_duplicates_are_counted_and_skipped_documents_are_listed(store: Store, tmp_path: Path) -> None:
    params = write_folder(tmp_path / "in", 3)
    (tmp_path / "in" / "copy.txt").write_bytes((tmp_path / "in" / "1.txt").read_bytes())
    (tmp_path / "in" / "latin.txt").write_bytes(b"caf\xe9")
    (tmp_path / "in" / "void.txt").write_text("")

    report = ingest(store, params).report

    assert (report.documents, report.duplicates, report.skipped) == (3, 1, 2)
    assert report.reasons == {"empty": 1, "not UTF-8": 1}
    assert report.listed == [
        {"name": "latin.txt", "reason": "not UTF-8"},
        {"name": "void", "reason": "empty"},
    ]


def test_an_unchanged_source_is_recognised_even_when_it_moved(store: Store, tmp_path: Path) -> None:
    first = ingest(store, write_folder(tmp_path / "in", 8))
    (tmp_path / "in").rename(tmp_path / "moved")

    again = ingest(store, CorpusParams(name="t", reader="folder", path=tmp_path / "moved", shards=4))

    assert again.reused
    assert not first.reused
    assert (again.shards, again.report) == (first.shards, first.report)
    assert len(list(store.log())) == len(list(Store.open(f"file:{tmp_path / 'store'}").log()))


def test_a_new_document_changes_only_its_own_shard(store: Store, tmp_path: Path) -> None:
    first = ingest(store, write_folder(tmp_path / "in", 8))

    second = ingest(store, write_folder(tmp_path / "in", 9))

    changed = [i for i in range(4) if first.shards[i] != second.shards[i]]
    assert changed == [shard_of("8", 4)]


def test_texts_that_moved_to_other_lines_keep_their_versions(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "d.jsonl"
    params = CorpusParams(name="t", reader="jsonl", path=file, shards=2)
    lines = "".join(json.dumps({"id": str(i), "text": f"text number {i}"}) + "\n" for i in range(6))
    file.write_text(lines)
    first = ingest(store, params)
    file.write_text("\n\n" + lines)

    moved = ingest(store, params)

    assert not moved.reused
    assert moved.shards == first.shards
    fresh = Store.create(f"file:{tmp_path / 'fresh'}")
    again = ingest(fresh, params)
    assert (again.shards, again.report_ref) == (moved.shards, moved.report_ref)
    row = fresh.catalog().get(again.shards[0].version)
    assert row is not None
    found = load_shard(fresh.read(row), row.facts["sources"])
    assert [document.source for document in found] == [f"d.jsonl:{int(d.name) + 3}" for d in found]


def test_two_stores_get_the_same_versions(tmp_path: Path) -> None:
    params = write_folder(tmp_path / "in", 8)

    results = [ingest(Store.create(f"file:{tmp_path / name}"), params) for name in ("one", "two")]

    assert results[0].shards == results[1].shards
    assert results[0].report_ref == results[1].report_ref


def test_a_limit_stops_after_that_many_documents(store: Store, tmp_path: Path) -> None:
    params = write_folder(tmp_path / "in", 8).model_copy(update={"limit": 3})

    assert ingest(store, params).report.documents == 3


def test_progress_counts_documents(store: Store, tmp_path: Path) -> None:
    seen: list[int] = []

    ingest(store, write_folder(tmp_path / "in", 5), lambda done, total, **figures: seen.append(done))

    assert seen == [1, 2, 3, 4, 5]


def test_a_corpus_without_a_usable_document_is_an_error_and_publishes_nothing(
    store: Store, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("")

    with pytest.raises(BadCorpus, match=r"no document is left to publish \(1 empty\)"):
        ingest(store, CorpusParams(reader="folder", path=tmp_path / "in"))

    assert store.catalog().rows() == []


def test_a_file_that_changes_while_it_is_read_is_noticed(store: Store, tmp_path: Path) -> None:
    params = write_folder(tmp_path / "in", 5)

    def meddle(done: int, total: int, **figures: float) -> None:
        (tmp_path / "in" / "4.txt").write_text("changed meanwhile")

    with pytest.raises(BadCorpus, match="changed while it was being read"):
        ingest(store, params, meddle)


def test_the_tokenizer_learns_from_even_shards_only_and_is_trained_once(store: Store, tmp_path: Path) -> None:
    params = write_folder(tmp_path / "in", 30)
    odd = next(str(i) for i in range(1000, 2000) if shard_of(str(i), 4) % 2)
    (tmp_path / "in" / f"{odd}.txt").write_text("zyzzyva " * 50)
    corpus = ingest(store, params).shards

    ref = train_tokenizer(store, TokenizerParams(vocab_size=300), corpus=corpus)
    again = train_tokenizer(store, TokenizerParams(vocab_size=300), corpus=corpus[::-1])

    tokenizer = load_tokenizer(store, ref)
    assert ref == again
    assert len(tokenizer.encode("zyzzyva")) == len("zyzzyva")
    assert len(tokenizer.encode("speaks of")) < len("speaks of")


def test_a_given_tokenizer_file_is_published_as_it_is(store: Store, tmp_path: Path) -> None:
    corpus = ingest(store, write_folder(tmp_path / "in", 30)).shards
    trained = train_tokenizer(store, TokenizerParams(vocab_size=300), corpus=corpus)
    (tmp_path / "tokenizer.json").write_bytes(store.read(trained))

    ref = train_tokenizer(store, TokenizerParams(name="own", file=tmp_path / "tokenizer.json"), corpus=[])

    assert ref.name == "tokenizer/own"
    text = "Document 3 speaks"
    assert (
        load_tokenizer(store, ref).encode(text).tolist()
        == load_tokenizer(store, trained).encode(text).tolist()
    )


def test_a_tokenizer_file_that_does_not_fit_is_an_error(store: Store, tmp_path: Path) -> None:
    (tmp_path / "bad.json").write_text(json.dumps({"model": {"type": "Unigram", "vocab": {}}}))

    with pytest.raises(BadTokenizer, match="not byte-level BPE"):
        train_tokenizer(store, TokenizerParams(file=tmp_path / "bad.json"), corpus=[])
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BadCorpus, match=r"pipe is a pipe; set tokenizer\.file"):
        train_tokenizer(store, TokenizerParams(file=tmp_path / "pipe"), corpus=[])
    with pytest.raises(BadCorpus, match=r"absent\.json does not exist; set tokenizer\.file"):
        train_tokenizer(store, TokenizerParams(file=tmp_path / "absent.json"), corpus=[])


def test_empty_even_shards_are_an_error(store: Store, tmp_path: Path) -> None:
    odd = next(str(i) for i in range(1000) if shard_of(str(i), 2) % 2)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"{odd}.txt").write_text("only a worker document")
    params = CorpusParams(reader="folder", path=tmp_path / "in", shards=2)

    with pytest.raises(BadCorpus, match="even shards hold no document"):
        train_tokenizer(store, TokenizerParams(), corpus=ingest(store, params).shards)
