"""Cutting a document's token ids into completed blocks of a fixed length."""

import numpy as np
import torch
from torch import Tensor

PAD = 0


def blocks(ids: np.ndarray, block_tokens: int) -> tuple[Tensor, Tensor]:
    """Cut `ids` (L,) into N = ceil(L / T) blocks.

    Returns tokens_NT int64, the last block padded with id 0, and mask_NT bool, true on real tokens. An empty
    document has no blocks.
    """
    length = len(ids)
    count = -(-length // block_tokens)
    flat = np.full(count * block_tokens, PAD, dtype=np.int64)
    flat[:length] = ids
    tokens_NT = torch.from_numpy(flat).view(count, block_tokens)
    mask_NT = (torch.arange(count * block_tokens) < length).view(count, block_tokens)
    return tokens_NT, mask_NT
