"""How stored cells read back is measured; `tasks.memory.figures`, which needs no torch, holds the figures."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from tasks.codec import Codec, Reading, group_documents
from tasks.memory.cells import MemoryCells
from tasks.memory.figures import SPAN, Figures
from tasks.memory.params import MemoryParams
from tasks.memory.tiles import Tiles


def measure(
    codec: Codec,
    documents: Sequence[np.ndarray],
    memories: Sequence[MemoryCells],
    steps: Sequence[int],
    params: MemoryParams,
) -> list[Figures]:
    """Figures of each document (L,) from its stored cells, read in the workers' own tiles."""
    tiles = Tiles(codec, params.tile_blocks)
    groups = group_documents(documents, codec.architecture)
    reading = tiles.read_all(groups, _grouped(memories, tiles))
    measured = []
    for number, (ids, memory, taken) in enumerate(zip(documents, memories, steps, strict=True)):
        rows_N = (groups.document_N == number).repeat_interleave(tiles.group)
        measured.append(_figures(reading, rows_N, len(ids), memory, taken))
    return measured


def _grouped(memories: Sequence[MemoryCells], tiles: Tiles) -> Tensor:
    """Stored cells of all documents as float32 (M, G, C), short groups filled with zeros."""
    padded = []
    for memory in memories:
        cells_NC = memory.dequantise()
        missing = -len(memory) % tiles.group
        padded.append(torch.nn.functional.pad(cells_NC, (0, 0, 0, missing)))
    return torch.cat(padded).view(-1, tiles.group, tiles.cell_width)


def _figures(reading: Reading, rows_N: Tensor, length: int, memory: MemoryCells, steps: int) -> Figures:
    right_L = reading.right_NT[rows_N].flatten()[:length]
    loss_L = reading.loss_NT[rows_N].flatten()[:length].double()
    span = min(SPAN, length)
    exact_W = right_L.unfold(0, span, 1).all(1)
    return Figures(
        documents=1,
        tokens=length,
        blocks=len(memory),
        spans=len(exact_W),
        token_recall=float(right_L.double().mean()),
        span8_exact=float(exact_W.double().mean()),
        loss=float(loss_L.mean()),
        steps=steps,
        cell_bytes=memory.nbytes,
    )
