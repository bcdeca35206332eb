"""The retrieval room's door to the store: build the indexes of a snapshot, train their reranker, audit the
readout."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from store import Element, Ref, Row, Snapshot, Store
from tasks.codec import Codec, load_codec
from tasks.errors import BadCorpus
from tasks.memory import decode_cells
from tasks.progress import Progress, silent
from tasks.retrieval.charts import Charts
from tasks.retrieval.dense import CodecCueEncoder, DenseIndex
from tasks.retrieval.evidence import Sources, check_sources
from tasks.retrieval.index import Index
from tasks.retrieval.params import RetrievalParams
from tasks.retrieval.readout import (
    DecodedMemory,
    MemoryRecord,
    Readout,
    ReadoutAudit,
    audit,
    decode,
    decoded_before,
)
from tasks.retrieval.recipes import (
    IndexRefs,
    charts_recipe,
    dense_recipe,
    readout_recipe,
    reranker_recipe,
)
from tasks.retrieval.reranker import train
from tasks.retrieval.training import labelled_alignments


def build_indexes(
    store: Store,
    params: RetrievalParams,
    *,
    snapshot: Snapshot,
    name: str = "main",
    progress: Progress = silent,
) -> IndexRefs:
    """Publish readout, charts and dense keys of a snapshot's memories as `index/<name>/...`.

    Recognises an index that the store already holds for the same memories, codec and parameters, so a
    snapshot to which the index was added gives the same references. `progress` counts memories. Raises
    BadCorpus where the snapshot holds no memory, ElementNotFound where it does not hold exactly one codec.
    """
    return index_memories(
        store,
        params,
        memories=_memories(snapshot),
        codec=snapshot.one("codec"),
        name=name,
        run={"snapshot": snapshot.id},
        progress=progress,
    )


def index_memories(
    store: Store,
    params: RetrievalParams,
    *,
    memories: Sequence[Row],
    codec: Row,
    name: str = "main",
    earlier: Row | None = None,
    run: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> IndexRefs:
    """Publish the indexes of memories that need not be pinned yet, as `build_indexes` does.

    Memories that an `earlier` readout of the same codec and tile holds are not decoded again. The result is
    the same bytes, since what a memory decodes to does not depend on those beside it. `run` is recorded in
    the commit.
    """
    rows = sorted(memories, key=lambda row: row.name)
    inputs = [codec.version, *(row.version for row in rows)]
    decoding = readout_recipe(name, params.readout_tile, inputs)
    readout_made, dense_made = decoding.fingerprint, dense_recipe(name, inputs).fingerprint
    found = store.catalog().find_many([readout_made, dense_made])
    loaded = load_codec(store.read(codec))
    if len(found) == 2:
        readout_ref, dense_ref = found[readout_made].ref, found[dense_made].ref
    else:
        known = {} if earlier is None else _known(store, earlier, codec, name, params.readout_tile)
        decoded = list(_decoded(store.stream(rows), loaded, len(rows), params.readout_tile, progress, known))
        decoded.sort(key=lambda memory: memory.name)
        readout = Readout.of(decoded)
        dense = DenseIndex.of(np.stack([memory.key_C for memory in decoded]))
        facts = {"elements": len(readout), "tokens": len(readout.tokens_N)}
        requires = (codec.version,)
        readout_ref, dense_ref = store.publish(
            [
                _artifact("index", f"{name}/readout", readout.to_bytes(), readout_made, requires, facts),
                _artifact("index", f"{name}/dense", dense.to_bytes(), dense_made, requires, facts),
            ],
            message=f"Publish readout and dense keys of index {name}: {len(readout)} memories",
            run={"inputs": [str(codec.ref)], **(run or {}), "params": decoding.params},
        )
    charts_ref = _build_charts(store, params, readout_ref, loaded.vocab_size, name)
    return IndexRefs(readout_ref, charts_ref, dense_ref)


def _known(store: Store, earlier: Row, codec: Row, name: str, tile: int) -> dict[str, np.ndarray]:
    """What the memories of an earlier readout decoded to, by version; nothing of another codec or tile."""
    readout = Readout.from_bytes(store.read(earlier))
    if earlier.recipe != readout_recipe(name, tile, [codec.version, *readout.versions]).fingerprint:
        return {}
    return {version: readout.tokens(row) for row, version in enumerate(readout.versions)}


def train_reranker(
    store: Store,
    params: RetrievalParams,
    *,
    index: IndexRefs,
    codec: Ref,
    name: str = "main",
    progress: Progress = silent,
) -> Ref:
    """Publish `reranker/<name>`, fitted on cues from the train-split elements of an index.

    `codec` is the one that the index was built with. `progress` counts optimiser steps. Raises BadCorpus
    where no train-split element is long enough to draw a cue from.
    """
    planned = reranker_recipe(params, index, codec, name)
    recipe, settings = planned.fingerprint, planned.params
    if (found := store.catalog().find(recipe)) is not None:
        return found.ref
    untrained = Index(_sources(store, index, codec), None, params.search)
    examples = labelled_alignments(untrained, params.reranker)
    reranker = train(examples, params.reranker, params.search, progress)
    facts = {"cues": len(examples.right_QK), "answerable": float(examples.right_QK.any(1).mean())}
    element = _artifact("reranker", name, reranker.to_bytes(), recipe, (), facts)
    made_from = {"inputs": [str(codec), *map(str, index.all)], "params": settings}
    return store.publish([element], message=f"Publish reranker {name}", run=made_from)[0]


def audit_readout(
    store: Store,
    params: RetrievalParams,
    *,
    snapshot: Snapshot,
    readout: Ref,
    progress: Progress = silent,
) -> ReadoutAudit:
    """Decode a snapshot's memories once more and compare counts and checksums with a published readout."""
    codec = load_codec(snapshot.read(snapshot.one("codec")))
    memories = _memories(snapshot)
    again = _decoded(snapshot.stream(memories), codec, len(memories), params.readout_tile, progress)
    return audit(Readout.from_bytes(store.read(readout)), again)


def _memories(snapshot: Snapshot) -> list[Row]:
    rows = snapshot.rows("memory")
    if not rows:
        raise BadCorpus(
            f"snapshot {snapshot.id[:12]} holds no memory to index; build memories and pin them first"
        )
    return sorted(rows, key=lambda row: row.name)


def _decoded(
    payloads: Iterable[tuple[Row, bytes]],
    codec: Codec,
    count: int,
    tile: int,
    progress: Progress,
    known: Mapping[str, np.ndarray] | None = None,
) -> Iterator[DecodedMemory]:
    """Decode memories in any order; those whose tokens are `known` only give their key."""
    again = known or {}

    def records() -> Iterator[MemoryRecord]:
        for row, payload in payloads:
            stored = decode_cells(payload, codec.architecture)
            yield MemoryRecord(row.name, row.version, stored.dequantise(), stored.length)

    taken: list[DecodedMemory] = []

    def new() -> Iterator[MemoryRecord]:
        for record in records():
            if record.version in again:
                taken.append(decoded_before(record, again[record.version]))
            else:
                yield record

    for done, memory in enumerate(decode(codec, new(), tile), start=1):
        progress(done + len(taken), count)
        yield memory
    progress(count, count)
    yield from taken


def _build_charts(store: Store, params: RetrievalParams, readout: Ref, vocab_size: int, name: str) -> Ref:
    planned = charts_recipe(params, readout, vocab_size, name)
    recipe, settings = planned.fingerprint, planned.params
    if (found := store.catalog().find(recipe)) is not None:
        return found.ref
    decoded = Readout.from_bytes(store.read(readout))
    charts = Charts.of(decoded.tokens_N, decoded.start_E1, vocab_size, params.charts)
    facts = {
        "prefix": len(charts.prefix.position_P),
        "window": len(charts.window.position_P),
        "ngram": len(charts.ngram.position_P),
        "bag": len(charts.bag.element_P),
    }
    element = _artifact("index", f"{name}/charts", charts.to_bytes(), recipe, (readout.version,), facts)
    made_from = {"inputs": [str(readout)], "params": settings}
    return store.publish([element], message=f"Publish charts of index {name}", run=made_from)[0]


def _sources(store: Store, index: IndexRefs, codec: Ref) -> Sources:
    loaded = load_codec(store.read(codec))
    sources = Sources(
        Readout.from_bytes(store.read(index.readout)),
        Charts.from_bytes(store.read(index.charts)),
        DenseIndex.from_bytes(store.read(index.dense)),
        CodecCueEncoder(loaded),
    )
    check_sources(sources, loaded)
    return sources


def _artifact(
    kind: str, name: str, payload: bytes, recipe: str, requires: tuple[str, ...], facts: Mapping[str, Any]
) -> Element:
    return Element(kind, name, payload, requires=requires, provenance={"recipe": recipe}, facts=facts)
