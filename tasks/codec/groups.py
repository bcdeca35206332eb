"""Documents as groups of blocks: the unit that a codec can be trained on and cells can be adapted in."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from tasks.codec.blocks import blocks
from tasks.codec.params import CodecArchitecture


@dataclass(frozen=True)
class BlockGroups:
    """Groups of G consecutive blocks of one document; G is 1 for a codec without parents.

    The readout of a block depends on no cell outside its group. `tokens_NGT` int32 is padded with id 0,
    `mask_NGT` bool is true on real tokens, and a short last group is filled with empty blocks. `document_N`
    int64 is the number of the document in the order given.
    """

    tokens_NGT: Tensor
    mask_NGT: Tensor
    document_N: Tensor

    def __len__(self) -> int:
        return self.tokens_NGT.shape[0]

    def select(self, index_B: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens int64 and mask bool of some groups as consecutive blocks, (B * G, T) each."""
        return self.tokens_NGT[index_B].flatten(0, 1).long(), self.mask_NGT[index_B].flatten(0, 1)


def group_documents(documents: Iterable[np.ndarray], architecture: CodecArchitecture) -> BlockGroups:
    """Cut the token ids of documents, each (L,), into groups of blocks, in order."""
    size, width = architecture.group_blocks, architecture.block_tokens
    tokens, masks, owners = [], [], []
    for number, ids in enumerate(documents):
        tokens_NT, mask_NT = blocks(ids, width)
        missing = -len(tokens_NT) % size
        tokens.append(F.pad(tokens_NT, (0, 0, 0, missing)).to(torch.int32).view(-1, size, width))
        masks.append(F.pad(mask_NT, (0, 0, 0, missing)).view(-1, size, width))
        owners.append(torch.full((len(tokens[-1]),), number, dtype=torch.int64))
    if not tokens:
        empty = torch.zeros(0, size, width)
        return BlockGroups(empty.int(), empty.bool(), torch.zeros(0, dtype=torch.int64))
    return BlockGroups(torch.cat(tokens), torch.cat(masks), torch.cat(owners))
