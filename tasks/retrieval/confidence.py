"""How sure the decoder is of the tokens that it reads from a memory."""

import numpy as np
import torch

from tasks.codec import Codec
from tasks.memory import decode_cells

_BLOCKS_AT_ONCE = 64
"""A long memory's logits over the whole vocabulary would be far larger than the memory."""


@torch.no_grad()
def confidences(codec: Codec, payload: bytes, ids: np.ndarray, start: int, stop: int) -> list[float]:
    """Softmax probability of each stored token in [start, stop), decoding only the blocks they lie in.

    `payload` is that of the memory, `ids` are the tokens that it decodes to, from its beginning. Raises
    BadPayload where the payload holds no cells of this codec.
    """
    block = codec.architecture.block_tokens
    cells_NC = decode_cells(payload, codec.architecture).dequantise()
    parents_NPC = codec.parents(cells_NC)
    found: list[float] = []
    for first in range(start // block, -(-stop // block), _BLOCKS_AT_ONCE):
        blocks = slice(first, min(first + _BLOCKS_AT_ONCE, -(-stop // block)))
        logits_BTV = codec.logits(cells_NC[blocks], parents_NPC[blocks] if parents_NPC is not None else None)
        probability_LV = torch.softmax(logits_BTV.flatten(0, 1), -1)
        begin, end = max(start, blocks.start * block), min(stop, blocks.stop * block)
        rows = torch.arange(begin, end) - blocks.start * block
        tokens = torch.from_numpy(ids[begin:end].astype(np.int64))
        found += [float(value) for value in probability_LV[rows, tokens]]
    return found
