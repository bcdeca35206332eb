"""Candidate softmax: blocks scored against the tokens that matter to them, not a whole large vocabulary.

The candidates of a block (FEM-ASM, codec and cells) are its own tokens, hard negatives, which are the best
wrong tokens of its slots in a reading with the full softmax, and random tokens of one seeded order.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from tasks.codec.model import Codec
from tasks.codec.reading import Reading

_FILLER_SEED = 5


class Candidates:
    """K distinct tokens for each of N blocks, the block's own among them, with their rows of the head.

    Rows come and go: `put` makes those of one block, `add` puts further hard negatives in the place of random
    tokens and, when these are gone, of the oldest hard ones. `head_NKS` has the dtype in which products are
    to be made. What a row holds depends on its own block only.
    """

    def __init__(self, codec: Codec, blocks: int, size: int, products: torch.dtype) -> None:
        if not codec.architecture.block_tokens < size <= codec.vocab_size:
            raise ValueError(
                f"{size} candidates for blocks of {codec.architecture.block_tokens} tokens of a vocabulary "
                f"of {codec.vocab_size}; there must be more than a block has and no more than there are"
            )
        self._head_VS = codec.head.weight.detach()
        generator = torch.Generator().manual_seed(_FILLER_SEED)
        self._filler = torch.randperm(codec.vocab_size, generator=generator)[: 2 * size].tolist()
        device = self._head_VS.device
        self._ids = [list(range(size)) for _ in range(blocks)]
        self._own = [0] * blocks
        """Of a row's candidates, how many at its start are the block's own tokens and stay."""
        self._next = [0] * blocks
        """Where a row takes in the next hard negative."""
        shape = (blocks, codec.architecture.block_tokens)
        self.place_NT = torch.zeros(shape, dtype=torch.int64, device=device)
        """Where among a row's candidates the true token of each slot stands; 0 on padding."""
        self.head_NKS = torch.zeros(blocks, size, self._head_VS.shape[1], dtype=products, device=device)

    def put(self, row: int, tokens_T: Tensor, mask_T: Tensor, rivals_TR: Tensor) -> None:
        """Give a row to a block with these tokens, and hard negatives, the best of every slot first."""
        own = tokens_T[mask_T].tolist()
        hard = rivals_TR[mask_T].T.flatten().tolist()
        size = len(self._ids[row])
        chosen = list(dict.fromkeys([*own, *hard]))[:size]
        known = set(chosen)
        random = [token for token in self._filler if token not in known][: size - len(chosen)]
        self._ids[row], self._own[row], self._next[row] = chosen + random, len(set(own)), len(chosen)
        places = {token: place for place, token in enumerate(chosen)}
        found = [places.get(token, 0) for token in tokens_T.tolist()]
        self.place_NT[row] = torch.tensor(found, device=self.place_NT.device).where(mask_T, 0)
        self._gather(row, 0, size)

    def add(self, row: int, tokens: Sequence[int]) -> bool:
        """Take in tokens that are not there yet, the best first; whether there were any."""
        ids, own = self._ids[row], self._own[row]
        known = set(ids)
        new = [token for token in dict.fromkeys(tokens) if token not in known][: len(ids) - own]
        for token in new:
            place = self._next[row] if self._next[row] < len(ids) else own
            ids[place], self._next[row] = token, place + 1
        if new:
            self._gather(row, own, len(ids))
        return bool(new)

    def _gather(self, row: int, start: int, stop: int) -> None:
        ids = torch.tensor(self._ids[row][start:stop], dtype=torch.int64, device=self._head_VS.device)
        self.head_NKS[row, start:stop] = self._head_VS[ids].to(self.head_NKS.dtype)


@torch.no_grad()
def score_candidates(candidates: Candidates, slots_NTS: Tensor, mask_NT: Tensor) -> tuple[Reading, Tensor]:
    """Score slot states against the candidates of their rows; the gradient of the losses, float32 (N, T, S).

    Products are made in the candidates' dtype, the softmax in float32. Padding counts as right without loss.
    """
    head_NKS = candidates.head_NKS
    logits_NTK = torch.bmm(slots_NTS.to(head_NKS.dtype), head_NKS.transpose(1, 2)).float()
    place_NT1 = candidates.place_NT.unsqueeze(2)
    true_NT1 = logits_NTK.gather(2, place_NT1)
    log_total_NT1 = logits_NTK.logsumexp(2, keepdim=True)
    slope_NTK = (logits_NTK - log_total_NT1).exp_()
    slope_NTK.scatter_add_(2, place_NT1, torch.full_like(true_NT1, -1.0))
    slope_NTK.mul_(mask_NT.unsqueeze(2))
    slope_NTS = torch.bmm(slope_NTK.to(head_NKS.dtype), head_NKS).float()
    logits_NTK.scatter_(2, place_NT1, -torch.inf)
    margin_NT = (true_NT1.squeeze(2) - logits_NTK.amax(2)).masked_fill_(~mask_NT, torch.inf)
    loss_NT = (log_total_NT1 - true_NT1).squeeze(2).masked_fill_(~mask_NT, 0.0)
    return Reading(margin_NT > 0, margin_NT, loss_NT), slope_NTS
