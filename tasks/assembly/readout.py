"""Reading documents at token positions: slot states from stored cells, token ids from text.

Both tables answer the same question, "what do you hold about positions start .. start + length of these
documents", with a value and a validity mask, so that one alignment rule serves cells and raw text.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tasks.codec import Codec


def span_positions(
    document_B: Tensor, start_B: Tensor, length: int, lengths_N: Tensor
) -> tuple[Tensor, Tensor]:
    """Positions (B, L) int64, clamped into their documents, and whether each was inside (B, L) bool."""
    position_BL = start_B[:, None] + torch.arange(length)
    last_B1 = lengths_N[document_B][:, None] - 1
    valid_BL = (position_BL >= 0) & (position_BL <= last_B1)
    return position_BL.clamp(min=0).minimum(last_B1), valid_BL


class CellTable:
    """The stored cells of some documents, read out as slot states on demand.

    Only the blocks that a request touches are decoded, in tiles of a fixed size, so that a block's states
    do not depend on its company.
    """

    def __init__(
        self, codec: Codec, cells: Sequence[Tensor], lengths: Sequence[int], *, tile: int = 64
    ) -> None:
        """`cells` holds one (N_i, C) float tensor per document, `lengths` its tokens."""
        self.codec = codec
        self.tile = tile
        self.lengths_N = torch.tensor(list(lengths), dtype=torch.int64)
        counts = torch.tensor([len(part) for part in cells], dtype=torch.int64)
        self.first_block_N = counts.cumsum(0) - counts
        self.cells_MC = torch.cat(list(cells))
        parents = [codec.parents(part.to(torch.float32)) for part in cells]
        self.parents_MPC = (
            torch.cat([part for part in parents if part is not None]) if parents[0] is not None else None
        )

    @torch.no_grad()
    def slots(self, document_B: Tensor, start_B: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Slot states (B, L, S) float32 at a span of each document, and validity (B, L)."""
        block = self.codec.architecture.block_tokens
        position_BL, valid_BL = span_positions(document_B, start_B, length, self.lengths_N)
        block_BL = self.first_block_N[document_B][:, None] + position_BL // block
        touched, index_BL = torch.unique(block_BL, return_inverse=True)
        slots_RTS = torch.cat([self._decode(part) for part in touched.split(self.tile)])
        return slots_RTS[index_BL, position_BL % block], valid_BL

    def _decode(self, block_R: Tensor) -> Tensor:
        padded = torch.nn.functional.pad(block_R, (0, self.tile - len(block_R)), value=int(block_R[0]))
        parents = None if self.parents_MPC is None else self.parents_MPC[padded]
        return self.codec.slots(self.cells_MC[padded].to(torch.float32), parents)[: len(block_R)]

    @torch.no_grad()
    def tokens(self, slots_BLS: Tensor) -> Tensor:
        """Decoded token ids (B, L) int64: the codec's most likely token at each slot state."""
        logits_BLV: Tensor = self.codec.head(slots_BLS)
        return logits_BLV.argmax(-1)


class TokenTable:
    """The token ids of some documents."""

    def __init__(self, documents: Sequence[NDArray[np.integer]]) -> None:
        """`documents` holds one array of ids per document."""
        self.lengths_N = torch.tensor([len(ids) for ids in documents], dtype=torch.int64)
        self.first_N = self.lengths_N.cumsum(0) - self.lengths_N
        self.ids_M = torch.from_numpy(np.concatenate([np.asarray(ids, np.int64) for ids in documents]))

    def tokens(self, document_B: Tensor, start_B: Tensor, length: int) -> tuple[Tensor, Tensor]:
        """Token ids (B, L) int64 at a span of each document, and validity (B, L)."""
        position_BL, valid_BL = span_positions(document_B, start_B, length, self.lengths_N)
        return self.ids_M[self.first_N[document_B][:, None] + position_BL], valid_BL
