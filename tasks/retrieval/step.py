"""The retrieval room's door to the store: build the indexes of a snapshot, train their reranker, audit the
readout."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from store import Element, Ref, Row, Snapshot, Store, fingerprint
from tasks.codec import Codec, load_codec
from tasks.errors import BadCorpus
from tasks.memory import decode_cells
from tasks.progress import Progress, silent
from tasks.retrieval.charts import Charts
from tasks.retrieval.dense import CodecCueEncoder, DenseIndex
from tasks.retrieval.evidence import Sources, check_sources
from tasks.retrieval.index import Index
from tasks.retrieval.params import RetrievalParams
from tasks.retrieval.readout import DecodedMemory, MemoryRecord, Readout, ReadoutAudit, audit, decode
from tasks.retrieval.reranker import train
from tasks.retrieval.training import labelled_alignments


@dataclass(frozen=True)
class IndexRefs:
    """The three artifacts of one index, all built from the memories of one snapshot."""

    readout: Ref
    charts: Ref
    dense: Ref

    @property
    def all(self) -> tuple[Ref, Ref, Ref]:
        """What a snapshot has to hold for the index to open, besides memories, codec and reranker."""
        return self.readout, self.charts, self.dense


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
    codec_row = snapshot.one("codec")
    memories = _memories(snapshot)
    inputs = [codec_row.version, *(row.version for row in memories)]
    decoding = {"name": name, "tile": params.readout_tile}
    readout_recipe = fingerprint("retrieval.readout/2", params=decoding, inputs=inputs)
    dense_recipe = fingerprint("retrieval.dense/1", params={"name": name}, inputs=inputs)
    codec = load_codec(snapshot.read(codec_row))
    readout_row = store.catalog().find(readout_recipe)
    dense_row = store.catalog().find(dense_recipe)
    if readout_row is None or dense_row is None:
        decoded = list(_decoded(snapshot, codec, memories, params.readout_tile, progress))
        decoded.sort(key=lambda memory: memory.name)
        readout = Readout.of(decoded)
        dense = DenseIndex.of(np.stack([memory.key_C for memory in decoded]))
        facts = {"elements": len(readout), "tokens": len(readout.tokens_N)}
        requires = (codec_row.version,)
        readout_ref, dense_ref = store.publish(
            [
                _artifact("index", f"{name}/readout", readout.to_bytes(), readout_recipe, requires, facts),
                _artifact("index", f"{name}/dense", dense.to_bytes(), dense_recipe, requires, facts),
            ],
            message=f"Publish readout and dense keys of index {name}: {len(readout)} memories",
            run={"inputs": [str(codec_row.ref)], "snapshot": snapshot.id, "params": decoding},
        )
    else:
        readout_ref, dense_ref = readout_row.ref, dense_row.ref
    charts_ref = _build_charts(store, params, readout_ref, codec.vocab_size, name)
    return IndexRefs(readout_ref, charts_ref, dense_ref)


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
    settings = {
        "name": name,
        "reranker": params.reranker.model_dump(mode="json"),
        "search": params.search.model_dump(mode="json"),
    }
    recipe = fingerprint(
        "retrieval.train_reranker/1",
        params=settings,
        inputs=[codec.version, *(ref.version for ref in index.all)],
    )
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
    again = _decoded(snapshot, codec, _memories(snapshot), params.readout_tile, progress)
    return audit(Readout.from_bytes(store.read(readout)), again)


def _memories(snapshot: Snapshot) -> list[Row]:
    rows = snapshot.rows("memory")
    if not rows:
        raise BadCorpus(
            f"snapshot {snapshot.id[:12]} holds no memory to index; build memories and pin them first"
        )
    return sorted(rows, key=lambda row: row.name)


def _decoded(
    snapshot: Snapshot, codec: Codec, memories: list[Row], tile: int, progress: Progress
) -> Iterator[DecodedMemory]:
    def records() -> Iterator[MemoryRecord]:
        for row, payload in snapshot.stream(memories):
            stored = decode_cells(payload, codec.architecture)
            yield MemoryRecord(row.name, row.version, stored.dequantise(), stored.length)

    for done, memory in enumerate(decode(codec, records(), tile), start=1):
        progress(done, len(memories))
        yield memory


def _build_charts(store: Store, params: RetrievalParams, readout: Ref, vocab_size: int, name: str) -> Ref:
    settings = {"name": name, "vocab_size": vocab_size, "charts": params.charts.model_dump(mode="json")}
    recipe = fingerprint("retrieval.charts/1", params=settings, inputs=[readout.version])
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
