"""Dense keys come back bit for bit, and faiss and torch share one process in either order of import."""

import subprocess
import sys

import numpy as np
import pytest

from tasks.codec import Codec
from tasks.retrieval import CodecCueEncoder, DenseIndex, DenseSearch, Index, Sources

SHARED_PROCESS = """
import os, sys
{imports}
import numpy as np
from tasks.retrieval import DenseIndex
torch.set_num_threads(int(sys.argv[1])); faiss.omp_set_num_threads(int(sys.argv[1]))
draw = np.random.default_rng(0)
dense = DenseIndex.of(draw.standard_normal((2000, 64)).astype(np.float32))
total = 0.0
for _ in range(20):
    query = dense.queries(draw.standard_normal((32, 64)).astype(np.float32))
    cosine, element = dense.search(query, 5)
    product = torch.from_numpy(query) @ torch.from_numpy(dense.key_EC).T
    best, where = product.topk(5)
    assert (where.numpy() == element).all()
    assert np.allclose(best.numpy(), cosine, atol=1e-5)
    total += float(element.sum())
print(total)
"""


def _run_shared(imports: str, threads: int) -> str:
    script = SHARED_PROCESS.format(imports=imports)
    done = subprocess.run(
        [sys.executable, "-c", script, str(threads)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "OMP" not in done.stderr
    return done.stdout


def test_faiss_and_torch_agree_in_either_import_order_and_with_any_threads() -> None:
    assert _run_shared("import faiss, torch", 2) == _run_shared("import torch, faiss", 1)


def test_the_flat_index_is_made_again_from_the_stored_keys(sources: Sources, codec: Codec) -> None:
    assert sources.dense is not None
    payload = sources.dense.to_bytes()
    loaded = DenseIndex.from_bytes(payload)
    assert loaded.to_bytes() == payload
    assert b"IxFI" not in payload
    query = loaded.queries(CodecCueEncoder(codec)([np.arange(20, 50)]))
    for ours, theirs in zip(sources.dense.search(query, 7), loaded.search(query, 7), strict=True):
        assert ours.tolist() == theirs.tolist()


def test_keys_are_unit_vectors_and_a_key_is_nearest_to_itself(sources: Sources) -> None:
    dense = sources.dense
    assert dense is not None
    np.testing.assert_allclose(np.linalg.norm(dense.key_EC, axis=1), 1, atol=1e-5)
    _, element = dense.search(dense.key_EC, 1)
    assert element[:, 0].tolist() == list(range(len(sources.readout)))


def test_a_cue_of_any_length_gets_a_key_of_its_own(codec: Codec) -> None:
    encode = CodecCueEncoder(codec)
    cues = [np.arange(10, 10 + length) for length in (1, 15, 16, 17, 70)]
    keys = encode(cues)
    assert keys.shape == (5, codec.architecture.cell_width)
    for cue, key in zip(cues, keys, strict=True):
        np.testing.assert_allclose(encode([cue])[0], key, atol=1e-4)


def test_the_dense_baseline_finds_a_document_by_its_first_blocks(index: Index) -> None:
    baseline = DenseSearch(index)
    names = index.readout.names[:20]
    cues = [index.readout.tokens(row)[:64] for row in range(20)]
    first = [found[0].name for found in baseline.search_many(cues, 5)]
    assert np.mean([name == found for name, found in zip(names, first, strict=True)]) > 0.3
    assert [c.name for c in baseline.search(cues[3], 5)] == [c.name for c in baseline.search_many(cues, 5)[3]]


def test_the_dense_baseline_needs_dense_keys(index: Index, sources: Sources) -> None:
    charts_alone = Index(Sources(sources.readout, sources.charts, None, None), None, index.params)
    with pytest.raises(ValueError, match="no dense keys"):
        DenseSearch(charts_alone)
