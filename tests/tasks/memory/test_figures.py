"""Figures of stored cells."""

import numpy as np
import pytest
import torch

from tasks.codec import Codec, blocks
from tasks.memory import MemoryCells, MemoryParams, measure, pool

PARAMS = MemoryParams(tile_blocks=8)


def by_hand(codec: Codec, ids: np.ndarray, memory: MemoryCells) -> tuple[list[bool], float]:
    tokens_NT, mask_NT = blocks(ids, 8)
    logits_NTV = codec.logits(memory.dequantise())
    right = (logits_NTV.argmax(-1) == tokens_NT)[mask_NT].tolist()
    loss = torch.nn.functional.cross_entropy(logits_NTV[mask_NT], tokens_NT[mask_NT])
    return right, float(loss)


def test_figures_are_those_of_the_stored_cells(codec: Codec, documents: list[np.ndarray]) -> None:
    memories = []
    for ids in documents:
        tokens_NT, _ = blocks(ids, 8)
        noise = torch.randn(len(tokens_NT), 96, generator=torch.Generator().manual_seed(len(ids)))
        memories.append(MemoryCells.from_float(codec.encode(tokens_NT) + 0.2 * noise, len(ids), "int8"))

    measured = measure(codec, documents, memories, [0] * len(documents), PARAMS)

    rights = 0
    for ids, memory, figures in zip(documents, memories, measured, strict=True):
        right, loss = by_hand(codec, ids, memory)
        span = min(8, len(right))
        windows = [all(right[i : i + span]) for i in range(len(right) - span + 1)]
        assert figures.token_recall == pytest.approx(np.mean(right))
        assert figures.span8_exact == pytest.approx(np.mean(windows))
        assert figures.spans == len(windows)
        assert figures.loss == pytest.approx(loss, rel=1e-4)
        assert figures.cell_bytes == len(memory) * 100
        rights += sum(right)
    together = pool(measured)
    assert together.documents == len(documents)
    assert together.token_recall == pytest.approx(rights / sum(len(ids) for ids in documents))
    assert together.cell_bytes_per_block == 100
    assert 0 < together.span8_exact < together.token_recall < 1


def test_no_document_pools_to_zeros() -> None:
    assert pool([]).token_recall == 0
