"""The whole room against a real store: published once, equal in another store, honest about what it lacks."""

from dataclasses import dataclass, replace
from pathlib import Path
from pydoc_data.topics import topics

import pytest

from store import Element, Ref, Snapshot, Store, canonical_json
from tasks.assembly import (
    AssemblyParams,
    CoreArchitecture,
    ReadingArchitecture,
    ReadingEvaluationParams,
    ReadingParams,
    open_core,
    train_core,
    train_reading,
    worker_documents,
)
from tasks.codec import Codec, blocks
from tasks.corpus import (
    Document,
    Tokenizer,
    element_split,
    encode_shard,
    is_worker_shard,
    load_shard,
    shard_of,
)
from tasks.errors import StaleInputs, TooLittleText
from tasks.evaluation import Category, Condition, evaluate_attachment, evaluate_reading, load_samples
from tasks.memory import MemoryCells, encode_cells
from tasks.retrieval import RerankerParams, RetrievalParams, build_indexes, train_reranker
from tests.tasks.evaluation.conftest import PARAMS

RETRIEVAL = RetrievalParams(reranker=RerankerParams(cues=200, steps=60))
ASSEMBLY = AssemblyParams(
    architecture=CoreArchitecture(width=96, iterations=2, hidden=32, correction_hidden=32),
    steps=8,
    warmup_steps=2,
    language_rows=4,
    language_tokens=32,
    attachment_rows=8,
    cue_tokens=16,
    target_tokens=4,
    validation_rows=8,
    curve_points=1,
)


@dataclass(frozen=True)
class Place:
    """A store with everything that an evaluation needs."""

    store: Store
    snapshot: Snapshot
    corpus: list[Ref]
    core: Ref


def furnish(url: str, tokenizer: Tokenizer, codec: Codec) -> Place:
    """Publish corpus, tokenizer, codec, memories and indexes of short topics, and train a core on them."""
    store = Store.create(url)
    chosen = [name for name in sorted(topics) if 800 <= len(topics[name]) <= 4000]
    shards = [[Document(n, topics[n], "topics") for n in chosen if shard_of(n, 2) == part] for part in (0, 1)]
    elements = [
        Element("corpus", f"topics/shard-{part:02d}", encode_shard(documents), media="application/parquet")
        for part, documents in enumerate(shards)
    ]
    words = Element("tokenizer", "bpe", tokenizer.to_bytes(), media="application/json")
    frozen = Element("codec", "copying", codec.to_bytes(), requires=(words.version,))
    support = store.publish([*elements, words, frozen], message="support")
    corpus = [ref for ref in support if ref.kind == "corpus"]
    memories = []
    for ref in corpus:
        for document in load_shard(store.read(ref)) if is_worker_shard(ref) else []:
            ids = tokenizer.encode(document.text)
            cells = MemoryCells.from_float(codec.encode(blocks(ids, 16)[0]), len(ids), "bfloat16")
            memories.append(Element("memory", document.name, encode_cells(cells), requires=(frozen.version,)))
    refs = [*store.publish(memories, message="memories"), words.ref, frozen.ref]
    index = build_indexes(store, RETRIEVAL, snapshot=store.pin(refs, message="memories"))
    reranker = train_reranker(store, RETRIEVAL, index=index, codec=frozen.ref)
    snapshot = store.pin([*refs, *index.all, reranker], message="all")
    return Place(store, snapshot, corpus, train_core(store, ASSEMBLY, snapshot=snapshot, corpus=corpus))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, tokenizer: Tokenizer, codec: Codec) -> Place:
    return furnish(f"file:{tmp_path_factory.mktemp('evaluation')}/store", tokenizer, codec)


def test_an_evaluation_is_published_with_its_samples_and_found_again(place: Place) -> None:
    store = place.store
    result = evaluate_attachment(store, PARAMS, snapshot=place.snapshot, core=place.core, corpus=place.corpus)
    summary = result.summary
    assert store.read(result.summary_ref) == canonical_json(summary)
    samples = load_samples(store.read(result.samples_ref))
    assert len(samples) == summary["tasks"] * len(Condition)
    assert {element_split(s.element) for s in samples} == {"test"}
    assert summary["nll"]["right"] <= summary["nll"]["retrieved"] + 0.1 < summary["nll"]["wrong"]
    assert summary["nll"]["wrong_weighed"] == pytest.approx(summary["nll"]["none"], abs=0.05)
    assert summary["greedy_exact"]["retrieved"] >= 0.5
    assert summary["gain"]["document_specific_share"] >= 0.5
    assert summary["standalone"]["tokens"] > 0
    assert summary["retrieval"]["candidate_recall"] >= summary["retrieval"]["recall_at_1"] >= 0.95
    assert summary["retrieval"]["dense"]["recall_at_1"] < summary["retrieval"]["recall_at_1"]
    assert set(result.costs["addressing"]) == {"queries_per_second", "p50_ms", "p99_ms"}
    assert {row["category"] for row in summary["accounting"]} == {c.value for c in Category}
    assert set(result.costs["seconds"]) == {c.value for c in Condition}
    commits = len(list(store.log()))
    again = evaluate_attachment(
        store, PARAMS, snapshot=place.snapshot, core=place.core, corpus=place.corpus[::-1]
    )
    assert again.reused
    assert (again.summary, again.summary_ref, again.samples_ref) == (
        summary,
        result.summary_ref,
        result.samples_ref,
    )
    assert len(list(store.log())) == commits


def test_equal_inputs_give_equal_versions_in_another_store_and_after_an_interruption(
    place: Place, tmp_path: Path, tokenizer: Tokenizer, codec: Codec
) -> None:
    other = furnish(f"file:{tmp_path}/other", tokenizer, codec)
    assert (other.snapshot.id, other.core) == (place.snapshot.id, place.core)

    def interrupt(done: int, total: int, **_: float) -> None:
        if done > total // 2:
            raise KeyboardInterrupt

    work = tmp_path / "work"
    with pytest.raises(KeyboardInterrupt):
        evaluate_attachment(
            other.store,
            PARAMS,
            snapshot=other.snapshot,
            core=other.core,
            corpus=other.corpus,
            progress=interrupt,
            work_dir=work,
            checkpoint_s=0,
        )
    assert len(list(work.iterdir())) == 1
    assert not other.store.catalog().rows("evaluation")
    undisturbed = evaluate_attachment(
        place.store, PARAMS, snapshot=place.snapshot, core=place.core, corpus=place.corpus
    )
    counted: list[int] = []
    resumed = evaluate_attachment(
        other.store,
        PARAMS,
        snapshot=other.snapshot,
        core=other.core,
        corpus=other.corpus,
        progress=lambda done, total, **_: counted.append(done),
        work_dir=work,
    )
    assert counted[0] > counted[-1] // 2  # the samples before are not scored again
    assert resumed.summary_ref == undisturbed.summary_ref
    assert resumed.samples_ref == undisturbed.samples_ref
    assert list(work.iterdir()) == []


def test_the_accounts_agree_with_the_payloads(place: Place) -> None:
    result = evaluate_attachment(
        place.store, PARAMS, snapshot=place.snapshot, core=place.core, corpus=place.corpus
    )
    rows = {(row["category"], row["item"]): row for row in result.summary["accounting"]}
    memories = place.snapshot.rows("memory")
    cells = rows[Category.STORED_MEMORY, "cells"]
    assert cells["bytes"] == sum(row.length for row in memories)
    assert cells["values"] == sum(row.shape[0] * row.shape[1] for row in memories)
    core = open_core(place.store, place.core)
    trainable = [row["values"] for (category, _), row in rows.items() if category == Category.TRAINABLE]
    assert sum(trainable) == sum(p.numel() for p in core.parameters())
    assert rows[Category.PER_QUERY, "elements"]["values"] <= 1


READING = ReadingParams(
    architecture=ReadingArchitecture(context_tokens=8, threshold=0.7),
    steps=2,
    rows=4,
    warmup_steps=0,
    cue_tokens=16,
    target_tokens=4,
    validation_rows=8,
    evaluation=ReadingEvaluationParams(elements=3),
)


def test_reading_is_trained_once_evaluated_once_and_belongs_to_its_core(place: Place) -> None:
    store = place.store
    made = {"core": place.core, "snapshot": place.snapshot, "corpus": place.corpus}
    reading = train_reading(store, READING, **made)
    otherwise = READING.model_copy(update={"evaluation": ReadingEvaluationParams(name="other")})
    assert train_reading(store, otherwise, **made) == reading
    assert reading.name == f"{place.core.name}/reading"
    row = store.catalog().get(reading.version)
    assert row is not None
    assert set(row.requires) == {place.core.version, place.snapshot.one("codec").version}
    result = evaluate_reading(store, PARAMS, READING.evaluation, reading=reading, **made)
    summary, samples = result.summary, load_samples(store.read(result.samples_ref))
    assert summary["protocol"] == "question-only"
    assert {s.family for s in samples} == {"standalone", "external-memory", "oracle-element"}
    assert {element_split(s.element) for s in samples} == {"test"}
    assert summary["nll"]["retrieved"] < summary["nll"]["none"] - 1
    assert summary["conditions"]["retrieved"]["own_document"] > 0.9
    items = {row["item"]: row for row in summary["accounting"]}
    assert items["cross-reading"]["values"] == row.facts["trainable_parameters"]
    again = evaluate_reading(store, PARAMS, READING.evaluation, reading=reading, **made)
    assert (again.reused, again.summary_ref) == (True, result.summary_ref)
    stranger = Element("core", "stranger/reading", store.read(reading), requires=())
    [other] = store.publish([stranger], message="a reading that requires no core")
    with pytest.raises(StaleInputs, match="was not trained for core/assembly"):
        evaluate_reading(store, PARAMS, READING.evaluation, reading=other, **made)


def test_a_core_of_another_codec_is_refused(place: Place) -> None:
    store = place.store
    stranger = Element("core", "stranger", store.read(place.core), requires=())
    [core] = store.publish([stranger], message="a core that requires no codec")
    with pytest.raises(StaleInputs, match="was not trained for codec/copying"):
        evaluate_attachment(store, PARAMS, snapshot=place.snapshot, core=core, corpus=place.corpus)


def test_a_document_that_changed_since_its_memory_was_made_counts_as_another(
    place: Place, tokenizer: Tokenizer
) -> None:
    rows = place.snapshot.rows("memory")
    kept, changed = rows[0], replace(rows[1], provenance={"document": "0" * 64})
    found = worker_documents(place.store, place.corpus, tokenizer, [kept, changed])
    assert list(found) == [kept.name]


def test_a_core_is_trained_once_and_requires_its_codec(place: Place) -> None:
    again = train_core(place.store, ASSEMBLY, snapshot=place.snapshot, corpus=place.corpus)
    assert again == place.core
    row = place.store.catalog().get(again.version)
    assert row is not None
    assert row.requires == (place.snapshot.one("codec").version,)
    train = [row.name for row in place.snapshot.rows("memory") if element_split(row.name) == "train"]
    assert row.facts["train_elements"] == len(train)


def test_a_corpus_without_the_memories_documents_is_named(place: Place) -> None:
    even = [ref for ref in place.corpus if not is_worker_shard(ref)]
    with pytest.raises(TooLittleText, match="lacks the documents"):
        train_core(place.store, ASSEMBLY, snapshot=place.snapshot, corpus=even)
    with pytest.raises(TooLittleText, match="test-split documents"):
        evaluate_attachment(place.store, PARAMS, snapshot=place.snapshot, core=place.core, corpus=even)
