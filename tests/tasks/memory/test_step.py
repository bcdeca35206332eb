"""The memory room's door to the store: units, thresholds, resume, reuse."""

import json
from collections.abc import Callable
from pathlib import Path
from pydoc_data.topics import topics
from typing import Literal

import pytest

from store import Build, Ref, Store
from tasks.codec import CodecArchitecture, CodecParams, open_codec, train_codec
from tasks.corpus import CorpusParams, TokenizerParams, ingest, load_shard, load_tokenizer, train_tokenizer
from tasks.errors import TaskError
from tasks.memory import (
    MemoryParams,
    ShardResult,
    build_shard,
    decode_cells,
    measure,
    summarise,
)

CODEC = CodecParams(
    architecture=CodecArchitecture(
        block_tokens=16, cell_width=192, slot_width=32, mixing_width=8, channel_width=64
    ),
    steps=40,
    warmup_steps=4,
    candidates=64,
)
PARAMS = MemoryParams(tile_blocks=8, max_steps=20, patience=5, unit_documents=2)

Silent = Callable[..., None]


class House:
    """A store with everything that workers need, from a folder of texts or from JSON lines."""

    def __init__(self, url: Path, texts: Path) -> None:
        self.store = Store.open_or_create(str(url))
        reader: Literal["folder", "jsonl"] = "folder" if texts.is_dir() else "jsonl"
        corpus = ingest(self.store, CorpusParams(name="texts", reader=reader, path=texts, shards=2))
        self.even, self.odd = corpus.shards
        self.tokenizer = train_tokenizer(self.store, TokenizerParams(vocab_size=400), corpus=corpus.shards)
        self.codec = train_codec(self.store, CODEC, corpus=corpus.shards, tokenizer=self.tokenizer)

    def build(self, name: str = "memories") -> Build:
        return self.store.build(name, owner="test")

    def work(
        self, build: Build, params: MemoryParams = PARAMS, progress: Silent = lambda *_, **__: None
    ) -> ShardResult:
        return build_shard(self.store, build, params, self.odd, self.tokenizer, self.codec, progress)

    def publish(self, params: MemoryParams = PARAMS, name: str = "memories") -> ShardResult:
        build = self.build(name)
        result = self.work(build, params)
        build.commit(result.receipts, message="memories")
        return result


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("texts")
    for name in sorted(topics)[:14]:
        (folder / f"{name}.txt").write_text(topics[name][:900], encoding="utf-8")
    return folder


@pytest.fixture
def house(tmp_path: Path, texts: Path) -> House:
    return House(tmp_path / "store", texts)


def test_every_worker_document_becomes_a_memory_with_its_figures(house: House) -> None:
    result = house.publish()

    documents = load_shard(house.store.read(house.odd))
    assert [outcome.name for outcome in result.outcomes] == [document.name for document in documents]
    assert result.worked == len(documents)
    assert not result.rejected
    catalog = house.store.catalog()
    for document, ref in zip(documents, result.published, strict=True):
        row = catalog.get(ref.version)
        assert row is not None
        assert row.name == f"memory/{document.name}"
        assert row.requires == (house.codec.version,)
        assert row.provenance["document"] == document.digest
        assert row.facts["token_recall"] >= PARAMS.token_recall
        assert row.facts["cell_bytes"] == row.facts["blocks"] * (192 + 4)


def test_figures_are_measured_on_the_published_bytes(house: House) -> None:
    result = house.publish()

    tokenizer, codec = load_tokenizer(house.store, house.tokenizer), open_codec(house.store, house.codec)
    for document, outcome in zip(load_shard(house.store.read(house.odd)), result.outcomes, strict=True):
        assert outcome.ref is not None
        memory = decode_cells(house.store.read(outcome.ref), codec.architecture)
        ids = tokenizer.encode(document.text)
        assert measure(codec, [ids], [memory], [outcome.figures.steps], PARAMS) == [outcome.figures]


def test_documents_below_the_thresholds_are_listed_and_not_published(house: House) -> None:
    strict = PARAMS.model_copy(update={"loss": 1e-9})

    result = house.publish(strict)

    assert not result.published
    assert len(result.rejected) == len(result.outcomes)
    assert all(outcome.figures.loss > 1e-9 for outcome in result.rejected)
    assert not house.store.catalog().rows("memory")
    again = house.work(house.build(), strict)
    assert again.worked == 0, "a rejected document is remembered by its unit"
    assert again.rejected == result.rejected
    assert summarise([again])["rejected"] == len(result.outcomes)
    assert 0 < summarise([again])["token_recall"] <= 1


def test_published_documents_cost_nothing_in_a_later_build(house: House) -> None:
    first = house.publish()

    second = house.work(house.build("another"))

    assert second.worked == 0
    assert second.receipts == ()
    assert second.outcomes == first.outcomes


def test_an_interrupted_build_loses_one_unit_and_ends_with_the_same_versions(
    house: House, texts: Path, tmp_path: Path
) -> None:
    undisturbed = house.publish()
    other = House(tmp_path / "other", texts)

    def interrupt(done: int, total: int, **figures: float) -> None:
        if done >= 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        other.work(other.build(), progress=interrupt)
    assert not other.store.catalog().rows("memory")
    kept = len(other.build().receipts())
    result = other.publish()

    assert kept == 2
    assert result.worked == len(result.outcomes) - 4
    assert result.published == undisturbed.published


def test_what_is_published_already_does_not_change_the_others(
    house: House, texts: Path, tmp_path: Path
) -> None:
    undisturbed = house.publish()
    other = House(tmp_path / "other", texts)
    partial = other.build("partial")
    receipts = other.work(partial).receipts
    partial.commit(receipts[1:2], message="one unit of two documents")

    wide = PARAMS.model_copy(update={"unit_documents": 5})
    result = other.publish(wide, "wide")

    assert result.worked == len(result.outcomes) - 2
    assert result.published == undisturbed.published


def test_a_text_that_moved_to_another_line_keeps_its_memory(texts: Path, tmp_path: Path) -> None:
    file = tmp_path / "texts.jsonl"
    records = [{"id": path.stem, "text": path.read_text()} for path in sorted(texts.iterdir())]
    lines = "".join(json.dumps(record) + "\n" for record in records)
    file.write_text(lines)
    before = House(tmp_path / "history", file).publish()
    file.write_text("\n" + lines)

    after = House(tmp_path / "history", file)
    fresh = House(tmp_path / "fresh", file)

    assert (after.tokenizer, after.codec) == (fresh.tokenizer, fresh.codec)
    moved, made = after.work(after.build("again")), fresh.publish()
    assert moved.worked == 0
    assert moved.published == made.published == before.published
    numbers = {record["id"]: number for number, record in enumerate(records, start=2)}
    for ref in made.published:
        row = fresh.store.catalog().get(ref.version)
        assert row is not None
        name = row.name.removeprefix("memory/")
        assert row.facts["source"] == f"texts.jsonl:{numbers[name]}"
        assert "source" not in row.provenance


def test_a_unit_of_other_settings_is_not_taken_for_this_one(house: House) -> None:
    build = house.build()
    house.work(build)

    result = house.work(house.build(), PARAMS.model_copy(update={"dtype": "bfloat16"}))

    assert result.worked == len(result.outcomes)
    assert summarise([result])["cell_bytes_per_block"] == 192 * 2


def test_results_travel_as_json(house: House) -> None:
    result = house.work(house.build())

    assert ShardResult.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_a_training_shard_is_refused(house: House) -> None:
    with pytest.raises(TaskError, match="odd shards"):
        build_shard(house.store, house.build(), PARAMS, house.even, house.tokenizer, house.codec)


def test_progress_counts_documents_to_the_end(house: House) -> None:
    seen: list[tuple[int, int]] = []

    def note(done: int, total: int, **figures: float) -> None:
        seen.append((done, total))

    house.work(house.build(), progress=note)

    total = len(load_shard(house.store.read(house.odd)))
    assert seen == sorted(seen)
    assert seen[-1] == (total, total)
    assert Ref.parse(str(house.odd)) == house.odd
