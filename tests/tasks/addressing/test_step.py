"""Addressing against a real store: every task of every searcher, published once, protocols named."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from pydoc_data.topics import topics

import pytest
import torch

from store import Element, Ref, Snapshot, Store, canonical_json
from tasks.addressing import AddressingParams, Kind, evaluate_addressing, load_addressing_samples
from tasks.codec import blocks
from tasks.corpus import Document, TokenizerParams, element_split, encode_shard, train_bpe
from tasks.errors import BadPayload, TooLittleText
from tasks.memory import MemoryCells, encode_cells
from tasks.retrieval import RerankerParams, RetrievalParams, build_indexes, train_reranker
from tests.copied_memories import VOCABULARY, copying_codec

PARAMS = AddressingParams(tasks=25, cue_tokens=16, answer_tokens=4, timed_queries=5, resamples=300)
RETRIEVAL = RetrievalParams(reranker=RerankerParams(cues=600, steps=100))
SEARCHERS = ["charts", "dense", "bm25"]


@dataclass(frozen=True)
class Place:
    """A store with everything that addressing is evaluated on."""

    store: Store
    snapshot: Snapshot
    corpus: list[Ref]


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def furnish(url: str) -> Place:
    """Publish an odd shard of short topics, their memories and their index."""
    store = Store.create(url)
    tokenizer = train_bpe(topics.values(), TokenizerParams(vocab_size=VOCABULARY))
    codec = copying_codec()
    chosen = sorted(name for name in topics if 800 <= len(topics[name]) <= 4000)[:40]
    documents = [Document(name, topics[name], "topics") for name in chosen]
    words = Element("tokenizer", "bpe", tokenizer.to_bytes(), media="application/json")
    frozen = Element("codec", "copying", codec.to_bytes(), requires=(words.version,))
    shard = Element("corpus", "topics/shard-01", encode_shard(documents), media="application/parquet")
    support = store.publish([shard, words, frozen], message="support")
    memories = []
    for document in documents:
        ids = tokenizer.encode(document.text)
        cells = MemoryCells.from_float(codec.encode(blocks(ids, 16)[0]), len(ids), "bfloat16")
        memories.append(Element("memory", document.name, encode_cells(cells), requires=(frozen.version,)))
    refs = [*store.publish(memories, message="memories"), words.ref, frozen.ref]
    index = build_indexes(store, RETRIEVAL, snapshot=store.pin(refs, message="memories"))
    reranker = train_reranker(store, RETRIEVAL, index=index, codec=frozen.ref)
    snapshot = store.pin([*refs, *index.all, reranker], message="all")
    return Place(store, snapshot, [ref for ref in support if ref.kind == "corpus"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return furnish(f"file:{tmp_path_factory.mktemp('addressing')}/store")


def test_an_evaluation_is_published_with_its_samples_and_found_again(place: Place) -> None:
    result = evaluate_addressing(place.store, PARAMS, snapshot=place.snapshot, corpus=place.corpus)
    summary = result.summary
    assert place.store.read(result.summary_ref) == canonical_json(summary)
    assert summary["protocol"] == "coordinate-assisted"
    assert summary["searchers"] == SEARCHERS
    assert set(summary["kinds"]) == {kind.value for kind in Kind}
    assert summary["kinds"]["quote_continuation"] >= 20
    rows = {(r["kind"], r["corruption"], r["searcher"]): r for r in summary["table"]}
    assert len(rows) == len(summary["table"]) == 6 * 4 * 3
    whole, changed = rows["all", 0.0, "charts"], rows["all", 0.3, "charts"]
    assert whole["candidate_recall"]["value"] >= whole["recall_at_1"]["value"] >= 0.95
    assert whole["recall_at_1"]["value"] >= rows["all", 0.0, "bm25"]["recall_at_1"]["value"]
    assert (
        rows["all", 0.0, "bm25"]["recall_at_1"]["value"] > rows["all", 0.0, "dense"]["recall_at_1"]["value"]
    )
    assert whole["recall_at_1"]["value"] >= changed["recall_at_1"]["value"] > 0.5
    assert set(result.costs["rates"]) == set(SEARCHERS)
    commits = len(list(place.store.log()))
    again = evaluate_addressing(place.store, PARAMS, snapshot=place.snapshot, corpus=place.corpus)
    assert again.reused
    assert (again.summary, again.samples_ref) == (summary, result.samples_ref)
    assert len(list(place.store.log())) == commits


def test_the_table_follows_from_the_samples(place: Place) -> None:
    result = evaluate_addressing(place.store, PARAMS, snapshot=place.snapshot, corpus=place.corpus)
    samples = load_addressing_samples(place.store.read(result.samples_ref))
    assert len(samples) == result.summary["tasks"] * 4 * 3
    assert {element_split(s.element) for s in samples} == {"test"}
    asked = {(s.task, s.corruption, s.cue) for s in samples}
    assert len(asked) == len(samples) / 3  # every searcher is asked the very same cues
    for row in result.summary["table"]:
        chosen = [
            s
            for s in samples
            if (row["kind"] in ("all", s.kind) or (row["kind"] == "determined" and not s.rivals))
            and (s.corruption, s.searcher) == (row["corruption"], row["searcher"])
        ]
        assert row["tasks"] == len(chosen)
        share = sum(s.rank == 1 for s in chosen) / len(chosen)
        assert row["recall_at_1"]["value"] == pytest.approx(share)
        assert row["recall_at_1"]["low"] <= share <= row["recall_at_1"]["high"]
    assert all(s.changed == round(s.corruption * 16) for s in samples)
    assert result.summary["ambiguous"] == len({s.task for s in samples if s.rivals})
    restored = [s for s in samples if s.kind.endswith("restoration")]
    assert restored
    assert all("[...]" in s.cue and s.answer for s in restored)


def test_margins_are_paired_differences(place: Place) -> None:
    summary = evaluate_addressing(place.store, PARAMS, snapshot=place.snapshot, corpus=place.corpus).summary
    rows = {(r["kind"], r["corruption"], r["searcher"]): r for r in summary["table"]}
    assert len(summary["margins"]) == 6 * 4 * 2
    for margin in summary["margins"]:
        ours = rows[margin["kind"], margin["corruption"], "charts"]["recall_at_1"]["value"]
        theirs = rows[margin["kind"], margin["corruption"], margin["over"]]["recall_at_1"]["value"]
        assert margin["recall_at_1"]["value"] == pytest.approx(ours - theirs)


def test_equal_inputs_give_equal_versions_in_another_store(place: Place, tmp_path: Path) -> None:
    other = furnish(f"file:{tmp_path}/other")
    assert other.snapshot.id == place.snapshot.id
    results = [
        evaluate_addressing(p.store, PARAMS, snapshot=p.snapshot, corpus=p.corpus) for p in (place, other)
    ]
    assert results[0].summary_ref == results[1].summary_ref
    assert results[0].samples_ref == results[1].samples_ref


def test_texts_too_short_for_a_kind_are_named(place: Place) -> None:
    long = PARAMS.model_copy(update={"cue_tokens": 64, "answer_tokens": 2_000})
    with pytest.raises(TooLittleText, match="have no place for a prefix completion"):
        evaluate_addressing(place.store, long, snapshot=place.snapshot, corpus=place.corpus)


@pytest.mark.parametrize("shares", [(), (0.1, 0.1), (0.2, 0.1), (-0.1,), (1.0,)])
def test_shares_of_changed_tokens_rise_below_one(shares: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="rising shares"):
        AddressingParams(corruption=shares)


def test_a_payload_that_is_no_table_of_samples_is_refused() -> None:
    with pytest.raises(BadPayload, match="a table of addressing samples"):
        load_addressing_samples(b"PAR1")
