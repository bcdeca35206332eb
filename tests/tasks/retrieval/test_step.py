"""Indexes are built once for equal inputs, bit-identical in any store, and refused beside other memories."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from store import Element, Ref, Snapshot, Store
from store.errors import ElementNotFound
from tasks.codec import Codec
from tasks.corpus import Tokenizer
from tasks.errors import BadCorpus, StaleIndex
from tasks.memory import MemoryCells, encode_cells
from tasks.retrieval import (
    DecodedMemory,
    Index,
    IndexRefs,
    MemoryRecord,
    audit_readout,
    build_indexes,
    decode,
    train_reranker,
)
from tasks.retrieval.step import index_memories
from tests.tasks.retrieval.conftest import PARAMS as FULL

PARAMS = FULL.model_copy(update={"reranker": FULL.reranker.model_copy(update={"cues": 60, "steps": 10})})


def _publish(
    store: Store, records: list[MemoryRecord], codec: Codec, tokenizer: Tokenizer, source: str = "here"
) -> tuple[list[Ref], Ref]:
    """Memories with their codec and tokenizer; the memories' references and the codec's."""
    words, frozen = store.publish(
        [
            Element("tokenizer", "bpe", tokenizer.to_bytes(), media="application/json"),
            Element("codec", "copying", codec.to_bytes()),
        ],
        message="codec",
    )
    elements = [
        Element(
            "memory",
            record.name.removeprefix("memory/"),
            encode_cells(MemoryCells.from_float(record.cells_NC, record.length, "bfloat16")),
            requires=(frozen.version,),
            facts={"source": f"{source} {record.name}"},
        )
        for record in records
    ]
    memories = store.publish(elements, message="memories")
    return [words, frozen, *memories], frozen


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.create(f"file:{tmp_path}/store")


@pytest.fixture
def base(
    store: Store, records: list[MemoryRecord], codec: Codec, tokenizer: Tokenizer
) -> tuple[list[Ref], Ref]:
    return _publish(store, records[:20], codec, tokenizer)


def _full(store: Store, refs: list[Ref], frozen: Ref) -> tuple[IndexRefs, Ref, Snapshot]:
    index = build_indexes(store, PARAMS, snapshot=store.pin(refs, message="memories"))
    reranker = train_reranker(store, PARAMS, index=index, codec=frozen)
    return index, reranker, store.pin([*refs, *index.all, reranker], message="with index")


def test_a_snapshot_with_its_index_is_recognised_and_opens(store: Store, base: tuple[list[Ref], Ref]) -> None:
    refs, frozen = base
    index, reranker, full = _full(store, refs, frozen)
    commits = len(list(store.log()))
    assert build_indexes(store, PARAMS, snapshot=full) == index
    assert train_reranker(store, PARAMS, index=index, codec=frozen) == reranker
    assert len(list(store.log())) == commits
    opened = Index.open(store, full)
    cue = opened.readout.tokens(5)[40:72]
    best = Index.open(store, full.id, name="main").search(cue, 1)[0]
    assert best == replace(opened.search(cue, 1)[0], features=best.features)
    assert (best.name, best.offset) == (opened.readout.names[5], 72)
    assert full.get(best.name).version == best.version


def test_equal_memories_give_equal_versions_in_another_store_with_other_threads(
    store: Store,
    base: tuple[list[Ref], Ref],
    tmp_path: Path,
    records: list[MemoryRecord],
    codec: Codec,
    tokenizer: Tokenizer,
) -> None:
    _, _, full = _full(store, *base)
    before = torch.get_num_threads()
    torch.set_num_threads(1 if before > 1 else 2)
    try:
        other = Store.create(f"file:{tmp_path}/other")
        again = _full(other, *_publish(other, records[19::-1], codec, tokenizer, source="elsewhere"))[2]
    finally:
        torch.set_num_threads(before)
    assert again.id == full.id


@pytest.mark.parametrize(("tile", "decoded"), [(PARAMS.readout_tile, 3), (PARAMS.readout_tile + 1, 18)])
def test_an_index_takes_over_what_an_earlier_one_of_the_same_tile_decoded_and_is_the_same_bytes(
    store: Store,
    base: tuple[list[Ref], Ref],
    tmp_path: Path,
    records: list[MemoryRecord],
    codec: Codec,
    tokenizer: Tokenizer,
    monkeypatch: pytest.MonkeyPatch,
    tile: int,
    decoded: int,
) -> None:
    """Of the twenty memories five went and three came; the others are decoded with another tile only."""
    refs, frozen = base
    first = build_indexes(store, PARAMS, snapshot=store.pin(refs, message="memories"))
    changed, _ = _publish(store, records[5:23], codec, tokenizer)
    params = PARAMS.model_copy(update={"readout_tile": tile})
    counted: list[str] = []

    def counting(codec: Codec, some: Iterable[MemoryRecord], tile: int) -> Iterator[DecodedMemory]:
        for memory in decode(codec, some, tile):
            counted.append(memory.name)
            yield memory

    monkeypatch.setattr("tasks.retrieval.step.decode", counting)
    rows = store.catalog().get_all(ref.version for ref in [*changed, first.readout])
    updated = index_memories(
        store,
        params,
        memories=[row for row in rows.values() if row.kind == "memory"],
        codec=rows[frozen.version],
        earlier=rows[first.readout.version],
    )
    assert len(counted) == decoded

    other = Store.create(f"file:{tmp_path}/other")
    fresh, _ = _publish(other, records[5:23], codec, tokenizer)
    assert build_indexes(other, params, snapshot=other.pin(fresh, message="memories")) == updated


def test_an_index_beside_a_replaced_memory_is_stale(store: Store, base: tuple[list[Ref], Ref]) -> None:
    refs, frozen = base
    index, reranker, full = _full(store, refs, frozen)
    row = full.rows("memory")[0]
    newer = store.publish(
        [
            Element(
                "memory",
                row.name.removeprefix("memory/"),
                full.read(row),
                requires=(frozen.version,),
                provenance={"recipe": "ab" * 32},
            )
        ],
        message="a newer version",
    )
    kept = [ref for ref in refs if ref.name != row.name]
    replaced = store.pin([*kept, *newer, *index.all, reranker], message="replaced")
    with pytest.raises(StaleIndex, match="1 have another version, 0 are not in the snapshot, 0 of"):
        Index.open(store, replaced)
    removed = store.pin([*kept, *index.all, reranker], message="removed")
    with pytest.raises(StaleIndex, match="0 have another version, 1 are not in the snapshot"):
        Index.open(store, removed)
    fresh = build_indexes(store, PARAMS, snapshot=replaced)
    repaired = store.pin([*kept, *newer, *fresh.all, reranker], message="repaired")
    assert len(Index.open(store, repaired).readout) == len(full.rows("memory"))


def test_a_snapshot_without_memories_or_index_says_what_is_missing(
    store: Store, base: tuple[list[Ref], Ref]
) -> None:
    refs, _ = base
    with pytest.raises(BadCorpus, match="no memory"):
        build_indexes(store, PARAMS, snapshot=store.pin(refs[:2], message="codec alone"))
    with pytest.raises(ElementNotFound, match="index/main/readout"):
        Index.open(store, store.pin(refs, message="memories alone"))


def test_decoding_a_snapshot_again_passes_the_audit_of_its_readout(
    store: Store, base: tuple[list[Ref], Ref]
) -> None:
    refs, _ = base
    snapshot = store.pin(refs, message="memories")
    index = build_indexes(store, PARAMS, snapshot=snapshot)
    report = audit_readout(store, PARAMS, snapshot=snapshot, readout=index.readout)
    assert report.passed
    assert report.elements == len(snapshot.rows("memory"))
