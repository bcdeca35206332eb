"""An index with changes laid over it answers as one built of the same memories, and compacts to its bytes."""

from dataclasses import replace

import numpy as np
import pytest

from store.errors import ElementNotFound
from tasks.codec import Codec
from tasks.retrieval import (
    Charts,
    CodecCueEncoder,
    DecodedMemory,
    DenseIndex,
    Index,
    Overlay,
    Readout,
    Sources,
    changed_cues,
    quote_tasks,
)
from tests.tasks.retrieval.conftest import PARAMS, VOCABULARY


def _index(memories: list[DecodedMemory], codec: Codec, like: Index) -> Index:
    readout = Readout.of(memories)
    ordered = sorted(memories, key=lambda memory: memory.name)
    sources = Sources(
        readout,
        Charts.of(readout.tokens_N, readout.start_E1, VOCABULARY, PARAMS.charts),
        DenseIndex.of(np.stack([memory.key_C for memory in ordered])),
        CodecCueEncoder(codec),
    )
    return Index(sources, like.reranker, like.params)


@pytest.fixture
def changed(memories: list[DecodedMemory], codec: Codec, index: Index) -> tuple[Overlay, list[DecodedMemory]]:
    """An overlay after 8 memories came, one of them twice, 6 went and one was replaced."""
    overlay = Overlay(_index(memories[:20] + memories[28:], codec, index))
    for memory in (*memories[20:28], memories[24]):
        overlay.add(memory)
    for memory in (*memories[:4], memories[21], memories[-1]):
        overlay.remove(memory.name)
    other = replace(memories[10], tokens_L=memories[10].tokens_L[::-1], version="ab" * 32)
    overlay.add(other)
    gone = {0, 1, 2, 3, 10, 21, len(memories) - 1}
    now = [memory for row, memory in enumerate(memories) if row not in gone]
    return overlay, [*now, other]


def test_it_answers_as_an_index_of_the_same_memories(
    changed: tuple[Overlay, list[DecodedMemory]], codec: Codec, index: Index
) -> None:
    overlay, now = changed
    fresh = _index(now, codec, index)
    texts = {memory.name: memory.tokens_L for memory in now}
    draw = np.random.default_rng(5)
    tasks = quote_tasks(texts, count=200, cue_tokens=24, continuation_tokens=4, generator=draw)
    cues = [changed_cues(task.cue, (0.0, 0.35), VOCABULARY, draw) for task in tasks]
    for share in range(2):
        asked = [copies[share] for copies in cues]
        ours, theirs = (searcher.search_many(asked, 64) for searcher in (overlay.index, fresh))
        same = [
            (a[0].name, a[0].version, a[0].offset) == (b[0].name, b[0].version, b[0].offset)
            for a, b in zip(ours, theirs, strict=True)
        ]
        assert np.mean(same) >= 0.97
        assert {c.version for found in ours for c in found} <= {memory.version for memory in now}
    assert len(overlay) == 8 + 6  # one that had been added before it went left no trace


def test_what_was_removed_is_found_no_more_and_what_was_added_is(
    memories: list[DecodedMemory], codec: Codec, index: Index
) -> None:
    base = _index(memories[:20], codec, index)
    overlay = Overlay(base)
    cue = memories[7].tokens_L[20:52]
    assert overlay.index.search(cue, 3)[0].name == memories[7].name
    before = overlay.index
    overlay.remove(memories[7].name)
    assert all(found.name != memories[7].name for found in overlay.index.search(cue, 64))
    assert before.search(cue, 3)[0].name == memories[7].name  # who searches meanwhile is not disturbed
    added = memories[24]
    overlay.add(added)
    best = overlay.index.search(added.tokens_L[20:52], 3)[0]
    assert (best.name, best.offset, best.agreement) == (added.name, 52, 1.0)
    overlay.remove(added.name)
    overlay.add(memories[7])
    assert overlay.index.search(cue, 3)[0].name == memories[7].name
    with pytest.raises(ElementNotFound, match="holds no memory/nothing"):
        overlay.remove("memory/nothing")


def test_compaction_gives_the_bytes_of_a_build_from_nothing(
    changed: tuple[Overlay, list[DecodedMemory]], codec: Codec, index: Index
) -> None:
    overlay, now = changed
    fresh, compacted = _index(now, codec, index).sources, overlay.compacted().sources
    assert compacted.readout.to_bytes() == fresh.readout.to_bytes()
    assert compacted.charts.to_bytes() == fresh.charts.to_bytes()
    idf_V = overlay.index.sources.charts.bag.idf_V
    assert idf_V.tolist() == fresh.charts.bag.idf_V.tolist()
    assert compacted.dense is not None
    assert len(compacted.dense) == len(now)


def test_layers_have_no_payload(changed: tuple[Overlay, list[DecodedMemory]]) -> None:
    sources = changed[0].index.sources
    assert sources.dense is not None
    for part in (sources.readout, sources.charts, sources.dense):
        with pytest.raises(TypeError, match="compact it first"):
            part.to_bytes()


def test_an_empty_index_takes_no_changes(index: Index) -> None:
    empty = Readout.of([])
    charts = Charts.of(empty.tokens_N, empty.start_E1, VOCABULARY, PARAMS.charts)
    with pytest.raises(ValueError, match="empty index"):
        Overlay(Index(Sources(empty, charts, None, None), None, index.params))
