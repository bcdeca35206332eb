"""Whatever a payload holds, its loader makes something of it or raises `BadPayload`, and nothing large."""

import resource
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.numpy import load, save

from store import Element, Ref
from tasks.assembly import (
    MEMORY,
    TEXT,
    CoreArchitecture,
    CrossReading,
    ReadingArchitecture,
    ResidualCore,
    load_core,
    load_reading,
)
from tasks.audit import (
    AuditedDocument,
    AuditedSample,
    NearDuplicate,
    load_audited,
    load_documents,
    load_pairs,
)
from tasks.codec import Codec, CodecArchitecture, load_codec
from tasks.corpus import Document, encode_shard, load_shard
from tasks.errors import BadPayload
from tasks.evaluation.samples import Sample, load_samples
from tasks.hosts import Host, HostManifest, load_host, read_manifest
from tasks.memory import MemoryCells, decode_cells, encode_cells
from tasks.package import load_posed
from tasks.payload import pack_tensors
from tasks.programs import Episode, ProgramsParams, Split, groups, support
from tasks.retrieval import (
    Charts,
    CodecCueEncoder,
    DenseIndex,
    Index,
    Readout,
    RetrievalParams,
    SearchParams,
    Sources,
)
from tasks.retrieval.evidence import check_sources
from tasks.retrieval.features import FEATURES
from tasks.retrieval.readout import DecodedMemory
from tasks.retrieval.reranker import Reranker
from tasks.shadows import Stack, load_shadow, load_stack, new_shadow
from tasks.skills import Controller, Operation, compile_operation, load_controller, load_program
from tasks.skills.program import Division
from tasks.study import Cell, Prediction, SelectionSample, load_selection_samples
from tasks.study.predictions import encode_predictions, load_predictions
from tasks.tables import encode_records
from tests.tasks.forging import changed_header, changed_json, forged
from tests.tasks.package.test_posed import posed
from tests.tiny_host import write_tiny_host

pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
VOCABULARY = 40
SHAPE = CodecArchitecture(block_tokens=4, cell_width=8, slot_width=16, mixing_width=3, channel_width=5)
CORE = CoreArchitecture(width=64, iterations=1, hidden=8, kernel=2, dilations=(1, 2), correction_hidden=8)
FORGERIES = settings(
    deadline=None, max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


EPISODE = Episode(groups(ProgramsParams(), Split.DEVELOPMENT)[0], 1)


def _prediction(cell: Cell) -> Prediction:
    return Prediction(
        EPISODE.name, cell, 0.1, 0.2, 0.3, 0.4, *support(EPISODE, ProgramsParams()).errors, 0.5, 0.4
    )


@cache
def codec() -> Codec:
    return Codec(SHAPE, VOCABULARY, torch.Generator().manual_seed(1))


def vocabulary_head() -> torch.Tensor:
    return codec().head.weight.detach()


@cache
def readout() -> Readout:
    rng = np.random.default_rng(5)
    tokens = [rng.integers(2, VOCABULARY, 30).astype(np.uint16) for _ in range(5)]
    return Readout.of(
        DecodedMemory(f"memory/{n}", f"{n:064x}", ids, np.zeros(8, np.float32))
        for n, ids in enumerate(tokens)
    )


@cache
def host() -> Host:
    with tempfile.TemporaryDirectory() as name:
        folder = write_tiny_host(Path(name))
        published = read_manifest(folder)
        ref = Element("host", "tiny", published.to_bytes(), media="application/json").ref
        return load_host(ref, published, folder, device=torch.device("cpu"), dtype="float32")


@cache
def manifest() -> HostManifest:
    with tempfile.TemporaryDirectory() as name:
        return read_manifest(write_tiny_host(Path(name)))


@cache
def payloads() -> dict[str, bytes]:
    generator = torch.Generator().manual_seed(2)
    read, params = readout(), RetrievalParams()
    core = ResidualCore(CORE, VOCABULARY, {MEMORY: 16, TEXT: 16}, generator)
    keys = np.random.default_rng(6).normal(size=(len(read), SHAPE.cell_width)).astype(np.float32)
    ones = {"mean_F": 0, "scale_F": 1, "hidden_FH": 0, "hidden_bias_H": 0, "out_H": 0, "out_bias": 0}
    shapes = {"hidden_FH": (len(FEATURES), 3), "hidden_bias_H": 3, "out_H": 3, "out_bias": 1}
    reranker = {n: np.full(shapes.get(n, len(FEATURES)), v, np.float32) for n, v in ones.items()}
    cells = torch.randn(3, SHAPE.cell_width, generator=generator)
    text = {str: "text", int: 3, float: 0.5, bool: True}

    def table(kind: type) -> bytes:
        record = kind(**{name: text[field] for name, field in get_type_hints(kind).items()})
        return encode_records(kind, [record, record])

    return {
        "codec": codec().to_bytes(),
        "core": core.to_bytes(),
        "cross-reading": CrossReading(ReadingArchitecture(context_tokens=3), vocabulary_head()).to_bytes(),
        "cells": encode_cells(MemoryCells.from_float(cells, 11, "int8")),
        "readout": read.to_bytes(),
        "charts": Charts.of(read.tokens_N, read.start_E1, VOCABULARY, params.charts).to_bytes(),
        "dense": DenseIndex.of(keys).to_bytes(),
        "reranker": Reranker(search=SearchParams(), **reranker).to_bytes(),
        "shard": encode_shard([Document(name, f"text of {name}") for name in "abc"]),
        "samples": table(Sample),
        "audited samples": table(AuditedSample),
        "audited documents": table(AuditedDocument),
        "near-duplicates": table(NearDuplicate),
        "posed tasks": posed().to_bytes(),
        "controller": Controller(16, 3, VOCABULARY, generator).to_bytes(),
        "skill": compile_operation(Operation.DIVIDE, Division.FLOOR).to_bytes(),
        "selections": table(SelectionSample),
        "predictions": encode_predictions([_prediction(cell) for cell in Cell]),
        "shadow": new_shadow(host(), (0, 1), document="ab" * 32, seeds={"documents": 3}).to_bytes(),
        "stack": Stack(host().ref, (Ref("shadow/casks", "cd" * 32),)).to_bytes(),
        "host": manifest().to_bytes(),
    }


LOADERS: dict[str, Callable[[bytes], object]] = {
    "codec": load_codec,
    "core": load_core,
    "cross-reading": lambda payload: load_reading(payload, vocabulary_head()),
    "cells": lambda payload: decode_cells(payload, SHAPE),
    "readout": Readout.from_bytes,
    "charts": Charts.from_bytes,
    "dense": DenseIndex.from_bytes,
    "reranker": Reranker.from_bytes,
    "shard": load_shard,
    "samples": load_samples,
    "audited samples": load_audited,
    "audited documents": load_documents,
    "near-duplicates": load_pairs,
    "posed tasks": load_posed,
    "controller": load_controller,
    "skill": load_program,
    "selections": load_selection_samples,
    "predictions": lambda payload: load_predictions(payload, [EPISODE], ProgramsParams()),
    "shadow": lambda payload: load_shadow(payload, host()),
    "stack": load_stack,
    "host": HostManifest.from_bytes,
}
RECORDS = ("skill", "stack", "host")

TABLES = (
    "shard",
    "samples",
    "audited samples",
    "audited documents",
    "near-duplicates",
    "selections",
    "predictions",
)


def load_or_refuse(name: str, payload: bytes) -> Any:
    """What a loader makes of a payload, None if it refuses it; any other error is a finding."""
    try:
        return LOADERS[name](payload)
    except BadPayload:
        return None


@pytest.mark.parametrize("name", LOADERS)
def test_the_payloads_that_are_changed_here_load(name: str) -> None:
    assert load_or_refuse(name, payloads()[name]) is not None


@pytest.mark.parametrize("name", [name for name in LOADERS if name not in (*TABLES, *RECORDS)])
@FORGERIES
@given(data=st.data())
def test_changed_tensors_are_refused_or_read(name: str, data: st.DataObject) -> None:
    load_or_refuse(name, data.draw(forged(payloads()[name], changed_header, changed_header)))


@pytest.mark.parametrize("name", ["stack", "host"])
@FORGERIES
@given(data=st.data())
def test_changed_records_are_refused_or_read(name: str, data: st.DataObject) -> None:
    load_or_refuse(name, data.draw(forged(payloads()[name], changed_json)))


@pytest.mark.parametrize("name", TABLES)
@FORGERIES
@given(data=st.data())
def test_changed_tables_are_refused_or_read(name: str, data: st.DataObject) -> None:
    load_or_refuse(name, data.draw(forged(payloads()[name], changed_table)))


@st.composite
def changed_table(draw: st.DrawFn, payload: bytes) -> bytes:
    """A Parquet file with a column of other values, of another type, gone, or in another order of rows."""
    table = pq.ParquetFile(pa.BufferReader(payload)).read(use_threads=False)
    place = draw(st.integers(0, table.num_columns - 1))
    name, count = table.column_names[place], table.num_rows
    values = draw(
        st.one_of(
            st.lists(st.text(max_size=4), min_size=count, max_size=count),
            st.lists(st.integers(-(2**62), 2**62), min_size=count, max_size=count),
            st.lists(st.none() | st.text(max_size=2), min_size=count, max_size=count),
            st.lists(st.lists(st.booleans(), max_size=2), min_size=count, max_size=count),
        )
    )
    match draw(st.sampled_from(["replace", "drop", "reverse", "twice"])):
        case "replace":
            table = table.set_column(place, name, pa.array(values))
        case "drop":
            table = table.drop_columns([name])
        case "reverse":
            table = table.take(list(range(count))[::-1])
        case "twice":
            table = table.append_column(name, table.column(place))
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue().to_pybytes())


@st.composite
def changed_array(draw: st.DrawFn, payload: bytes) -> bytes:
    """A safetensors payload with one array of other numbers, of another type or of another shape."""
    length = int.from_bytes(payload[:8], "little")
    import json

    metadata = json.loads(payload[8 : 8 + length])["__metadata__"]
    arrays = load(payload)
    name = draw(st.sampled_from(sorted(arrays)))
    array = arrays[name]
    match draw(st.sampled_from(["number", "type", "cut", "shape", "shuffle"])):
        case "number" if array.size:
            array = array.copy()
            place = draw(st.integers(0, array.size - 1))
            with np.errstate(all="ignore"):
                array.flat[place] = np.asarray(draw(st.sampled_from([0, 1, 2**15, 2**31, 2**62]))).astype(
                    array.dtype
                )
        case "type":
            array = array.astype(draw(st.sampled_from([np.int64, np.float32, np.uint8])))
        case "cut":
            array = array[: draw(st.integers(0, len(array)))] if array.ndim else array
        case "shape":
            array = array.reshape(-1)[:, None]
        case "shuffle":
            array = array[::-1]
    return save({**arrays, name: np.ascontiguousarray(array)}, metadata)


@FORGERIES
@given(data=st.data())
def test_an_index_of_changed_arrays_is_refused_or_answers(data: st.DataObject) -> None:
    parts = dict(payloads())
    name = data.draw(st.sampled_from(["readout", "charts", "dense", "reranker"]))
    parts[name] = data.draw(changed_array(parts[name]))
    loaded = {part: load_or_refuse(part, parts[part]) for part in ("readout", "charts", "dense", "reranker")}
    if any(part is None for part in loaded.values()):
        return
    sources = Sources(loaded["readout"], loaded["charts"], loaded["dense"], CodecCueEncoder(codec()))
    try:
        check_sources(sources, codec())
    except BadPayload:
        return

    index = Index(sources, loaded["reranker"], loaded["reranker"].search)
    for cue in (readout().tokens(1)[4:20], np.array([2, 3, 2, 3, 2], dtype=np.uint16)):
        index.search(cue, 3)


@pytest.mark.parametrize(
    ("load_it", "what", "record"),
    [
        (load_codec, "codec", {"architecture": {"mixing_width": 10_000_000}, "vocab_size": 300}),
        (load_codec, "codec", {"architecture": {"slot_width": 4_000_000}, "vocab_size": 300}),
        (load_codec, "codec", {"architecture": {"encoder_layers": 10**9}, "vocab_size": 300}),
        (load_codec, "codec", {"architecture": {"parent_spans": [10**12]}, "vocab_size": 300}),
        (
            load_core,
            "core",
            {
                "architecture": {"width": 20_000},
                "vocab_size": 65_536,
                "source_widths": {MEMORY: 16, TEXT: 16},
            },
        ),
        (
            load_core,
            "core",
            {
                "architecture": {"dilations": [1] * 10**6},
                "vocab_size": 300,
                "source_widths": {MEMORY: 9, TEXT: 16},
            },
        ),
        (
            load_core,
            "core",
            {"architecture": {}, "vocab_size": 300, "source_widths": {MEMORY: 10**7, TEXT: 16}},
        ),
        (load_controller, "controller", {"width": 20_000, "kernel": 3, "vocab_size": 60_000}),
        (load_controller, "controller", {"width": 64, "kernel": 10**7, "vocab_size": 300}),
    ],
)
def test_a_description_of_something_large_makes_nothing_large(
    load_it: Callable[[bytes], object], what: str, record: dict[str, Any]
) -> None:
    payload = pack_tensors({"x": torch.ones(1)}, what=what, record=record)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    with pytest.raises(BadPayload, match=f"the {what} does not fit its own description"):
        load_it(payload)

    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100 * 1024  # KiB
