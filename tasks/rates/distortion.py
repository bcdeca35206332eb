"""What is lost at a point: token recall as stored, by how rare a token is and where in a block it is."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from tasks.codec import Codec, group_documents
from tasks.memory import MemoryCells, MemoryParams, Tiles

RARITY = (0, 1, 4, 16, 64, 256)
"""Where classes of tokens begin, by how often they occur in the text that the codec was trained on."""
POSITIONS = 8
"""Classes of places in a block, equally many places each."""


@dataclass(frozen=True)
class Tokens:
    """The real tokens of some documents, (M,): how often training saw each, and its place in its block."""

    seen_M: npt.NDArray[np.int64]
    place_M: npt.NDArray[np.int64]


def tokens_of(documents: Sequence[np.ndarray], counts_V: npt.NDArray[np.int64], block_tokens: int) -> Tokens:
    """All tokens of documents, each (L,), in order."""
    return Tokens(
        counts_V[np.concatenate(documents).astype(np.int64)],
        np.concatenate([np.arange(len(ids)) % block_tokens for ids in documents]),
    )


def read_right(
    codec: Codec, documents: Sequence[np.ndarray], memories: Sequence[MemoryCells], params: MemoryParams
) -> npt.NDArray[np.bool_]:
    """Which tokens of documents their stored cells read right with the full softmax, in order, (M,)."""
    tiles = Tiles(codec, params.tile_blocks)
    groups = group_documents(documents, codec.architecture)
    padded = []
    for memory in memories:
        missing = -len(memory) % tiles.group
        padded.append(torch.nn.functional.pad(memory.dequantise(), (0, 0, 0, missing)))
    cells_MGC = torch.cat(padded).view(-1, tiles.group, tiles.cell_width)
    reading = tiles.read_all(groups, cells_MGC)
    return reading.right_NT[groups.mask_NGT.flatten(0, 1)].numpy()


def by_rarity(right_M: npt.NDArray[np.bool_], tokens: Tokens) -> list[dict[str, Any]]:
    """Tokens and recall for every class of rarity; recall is None where there is no such token."""
    classes = np.searchsorted(RARITY, tokens.seen_M, side="right") - 1
    ends: list[int | None] = [*(start - 1 for start in RARITY[1:]), None]
    return [
        {"seen_from": start, "seen_to": end, **_share(right_M[classes == number])}
        for number, (start, end) in enumerate(zip(RARITY, ends, strict=True))
    ]


def by_position(right_M: npt.NDArray[np.bool_], tokens: Tokens, block_tokens: int) -> list[dict[str, Any]]:
    """Tokens and recall for every class of places in a block."""
    edges = [round(n * block_tokens / POSITIONS) for n in range(POSITIONS + 1)]
    return [
        {"from": start, "to": end - 1, **_share(right_M[(tokens.place_M >= start) & (tokens.place_M < end)])}
        for start, end in pairwise(edges)
        if end > start
    ]


def _share(right_K: npt.NDArray[np.bool_]) -> dict[str, Any]:
    return {"tokens": len(right_K), "token_recall": float(right_K.mean()) if len(right_K) else None}
