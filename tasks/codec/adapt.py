"""Local adaptation: Adam on the cells alone, under a frozen decoder (FEM-ASM, codec, step (a)).

Codec training takes a few such steps before each shared update; workers take them until a block reads back.
"""

import torch
from torch import Tensor

from tasks.codec.candidates import Candidates, score_candidates
from tasks.codec.model import Codec
from tasks.codec.params import CellDtype
from tasks.codec.reading import Reading, score_slots
from tasks.codec.rounding import as_stored

_BETA1 = 0.9
_BETA2 = 0.99
_EPS = 1e-8


class CellAdam:
    """Adam with its own step count for every cell, so that cells may join and leave a batch at any time.

    What a cell becomes depends on its own gradients only.
    """

    def __init__(self, cells_NC: Tensor, rate: float) -> None:
        self.rate = rate
        self.mean_NC = torch.zeros_like(cells_NC)
        self.square_NC = torch.zeros_like(cells_NC)
        self.steps_N = torch.zeros(len(cells_NC), dtype=torch.int64, device=cells_NC.device)

    def reset(self, rows: Tensor) -> None:
        """Forget the past of some cells (index or mask over N) because others took their place."""
        self.mean_NC[rows] = 0
        self.square_NC[rows] = 0
        self.steps_N[rows] = 0

    @torch.no_grad()
    def step(self, cells_NC: Tensor, gradient_NC: Tensor) -> Tensor:
        """The cells after one more update against their gradient, float32 (N, C)."""
        self.steps_N += 1
        steps_N1 = self.steps_N.unsqueeze(1).to(torch.float32)
        self.mean_NC.lerp_(gradient_NC, 1 - _BETA1)
        self.square_NC.mul_(_BETA2).addcmul_(gradient_NC, gradient_NC, value=1 - _BETA2)
        mean_NC = self.mean_NC / (1 - _BETA1**steps_N1)
        scale_NC = (self.square_NC / (1 - _BETA2**steps_N1)).sqrt_().add_(_EPS)
        return cells_NC - self.rate * mean_NC / scale_NC


def read_with_gradient(
    codec: Codec, cells_NC: Tensor, tokens_NT: Tensor, mask_NT: Tensor, dtype: CellDtype
) -> tuple[Reading, Tensor]:
    """Read cells as they would be stored, and the gradient of their summed loss, (N, C).

    The full softmax is used, the codec gets no gradient, and rounding passes the gradient straight through.
    Rows are whole groups of the codec.
    """
    cells_NC = cells_NC.detach().requires_grad_()
    stored_NC = as_stored(cells_NC, dtype)
    slots_NTS = codec.slots(stored_NC, codec.parents(stored_NC, mask_NT.any(1)))
    reading, slope_NTS = score_slots(codec, slots_NTS.detach(), tokens_NT, mask_NT, gradient=True)
    assert slope_NTS is not None, "a gradient was asked for"
    return reading, _pulled_back(slots_NTS, slope_NTS, cells_NC)


def read_candidates_with_gradient(
    codec: Codec,
    cells_NC: Tensor,
    tokens_NT: Tensor,
    mask_NT: Tensor,
    dtype: CellDtype,
    candidates: Candidates,
) -> tuple[Reading, Tensor]:
    """As `read_with_gradient`, but each block is scored against its own candidates alone.

    The decoder and the head multiply in the candidates' dtype. A margin over candidates is no margin over the
    vocabulary: read the cells with the full softmax before believing it.
    """
    cells_NC = cells_NC.detach().requires_grad_()
    stored_NC = as_stored(cells_NC, dtype)
    products = candidates.head_NKS.dtype
    with torch.autocast(cells_NC.device.type, dtype=torch.bfloat16, enabled=products == torch.bfloat16):
        slots_NTS = codec.slots(stored_NC, codec.parents(stored_NC, mask_NT.any(1)))
    reading, slope_NTS = score_candidates(candidates, slots_NTS.detach(), mask_NT)
    return reading, _pulled_back(slots_NTS, slope_NTS.to(slots_NTS.dtype), cells_NC)


def _pulled_back(slots_NTS: Tensor, slope_NTS: Tensor, cells_NC: Tensor) -> Tensor:
    """The gradient at the cells, (N, C), of what has this slope at the slots.

    It is that of the sum of their products, bit for bit: a slope that `autograd.grad` is handed itself makes
    torch load its symbolic shapes, which takes a process most of a second.
    """
    (gradient_NC,) = torch.autograd.grad((slots_NTS * slope_NTS).sum(), cells_NC)
    return gradient_NC
