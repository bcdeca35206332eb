"""Reading cells back with the full softmax: which tokens are right, by what margin, at what loss."""

from dataclasses import dataclass

import torch
from torch import Tensor

from tasks.codec.model import Codec

_LOGITS_PER_CHUNK = 1 << 23
_ROW_MULTIPLE = 64


@dataclass(frozen=True)
class Reading:
    """What the decoder makes of cells, per token, (N, T); padding counts as right with loss 0.

    `margin_NT` is the right token's logit minus the best other one, in nats; above 0 exactly where
    `right_NT`. `loss_NT` is the cross-entropy over the whole vocabulary in nats.
    """

    right_NT: Tensor
    margin_NT: Tensor
    loss_NT: Tensor

    def rows(self, chosen: slice) -> "Reading":
        """The reading of some of the rows."""
        return Reading(self.right_NT[chosen], self.margin_NT[chosen], self.loss_NT[chosen])


def read_cells(
    codec: Codec, cells_NC: Tensor, parents_NPC: Tensor | None, tokens_NT: Tensor, mask_NT: Tensor
) -> Reading:
    """Read a batch of cells without gradients. A row's figures do not depend on the other rows."""
    with torch.no_grad():
        slots_NTS = codec.slots(cells_NC, parents_NPC)
        reading, _ = score_slots(codec, slots_NTS, tokens_NT, mask_NT, gradient=False)
    return reading


def score_slots(
    codec: Codec, slots_NTS: Tensor, tokens_NT: Tensor, mask_NT: Tensor, *, gradient: bool
) -> tuple[Reading, Tensor | None]:
    """Score slot states against the true tokens, in chunks of bounded memory.

    With `gradient`, also returns the gradient of each token's loss with respect to its slot state, (N, T, S),
    zero on padding: softmax minus the true token, through the head. No graph is built, so the logits of one
    chunk are gone when the next one is made.
    """
    reading, slope_NTS, _ = _score(codec, slots_NTS, tokens_NT, mask_NT, gradient=gradient, rivals=0)
    return reading, slope_NTS


def read_with_rivals(
    codec: Codec, slots_NTS: Tensor, tokens_NT: Tensor, mask_NT: Tensor, rivals: int
) -> tuple[Reading, Tensor]:
    """Score slot states over the whole vocabulary; also the `rivals` best wrong tokens of each slot.

    These are int64 (N, T, rivals), best first; on padding they mean nothing.
    """
    reading, _, rivals_NTR = _score(codec, slots_NTS, tokens_NT, mask_NT, gradient=False, rivals=rivals)
    assert rivals_NTR is not None, "they were asked for"
    return reading, rivals_NTR


@torch.no_grad()
def _score(
    codec: Codec, slots_NTS: Tensor, tokens_NT: Tensor, mask_NT: Tensor, *, gradient: bool, rivals: int
) -> tuple[Reading, Tensor | None, Tensor | None]:
    head_VS = codec.head.weight
    slots_MS, tokens_M, mask_M = slots_NTS.flatten(0, 1), tokens_NT.flatten(), mask_NT.flatten()
    chunk = max(_ROW_MULTIPLE, _LOGITS_PER_CHUNK // head_VS.shape[0] // _ROW_MULTIPLE * _ROW_MULTIPLE)
    margins, losses, gradients, ranks = [], [], [], []
    for start in range(0, len(tokens_M), chunk):
        rows = slice(start, start + chunk)
        if not mask_M[rows].any():  # empty places of a tile
            margins.append(torch.zeros_like(slots_MS[rows, 0]))
            losses.append(margins[-1])
            gradients.append(torch.zeros_like(slots_MS[rows]))
            ranks.append(tokens_M[rows].unsqueeze(1).expand(-1, rivals))
            continue
        target_M1 = tokens_M[rows].unsqueeze(1)
        logits_MV = slots_MS[rows] @ head_VS.T
        true_M1 = logits_MV.gather(1, target_M1)
        log_total_M = logits_MV.logsumexp(1)
        losses.append(log_total_M - true_M1.squeeze(1))
        if gradient:
            slope_MV = (logits_MV - log_total_M.unsqueeze(1)).exp_()
            slope_MV.scatter_add_(1, target_M1, torch.full_like(true_M1, -1.0))
            gradients.append(slope_MV @ head_VS)
        logits_MV.scatter_(1, target_M1, -torch.inf)
        if rivals:
            best_MR, rivals_MR = logits_MV.topk(rivals, dim=1)
            margins.append(true_M1.squeeze(1) - best_MR[:, 0])
            ranks.append(rivals_MR)
        else:
            margins.append(true_M1.squeeze(1) - logits_MV.amax(1))
    margin_M = torch.cat(margins).masked_fill_(~mask_M, torch.inf)
    loss_M = torch.cat(losses).masked_fill_(~mask_M, 0.0)
    shape = mask_NT.shape
    reading = Reading((margin_M > 0).view(shape), margin_M.view(shape), loss_M.view(shape))
    rivals_NTR = torch.cat(ranks).view(*shape, rivals) if rivals else None
    if not gradient:
        return reading, None, rivals_NTR
    slope_MS = torch.cat(gradients).mul_(mask_M.unsqueeze(1))
    return reading, slope_MS.view(slots_NTS.shape), rivals_NTR


@dataclass(frozen=True)
class Recall:
    """Figures over many tokens: share read right, mean loss in nats, share of whole blocks right."""

    tokens: int
    token_recall: float
    loss: float
    block_exact: float


def summarise(readings: list[Reading], masks: list[Tensor]) -> Recall:
    """Pool readings over all their real tokens and all blocks that hold any."""
    tokens = sum(int(mask.sum()) for mask in masks)
    wrong = sum(int((~reading.right_NT).sum()) for reading in readings)
    loss = sum(float(reading.loss_NT.double().sum()) for reading in readings)
    filled = sum(int(mask.any(1).sum()) for mask in masks)
    broken = sum(int((~reading.right_NT).any(1).sum()) for reading in readings)
    return Recall(
        tokens=tokens,
        token_recall=1 - wrong / max(tokens, 1),
        loss=loss / max(tokens, 1),
        block_exact=1 - broken / max(filled, 1),
    )
