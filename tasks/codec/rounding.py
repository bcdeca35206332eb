"""The number formats of stored cells: bfloat16, or int8 with one float32 scale per cell."""

from typing import Literal

import torch
from torch import Tensor

CellDtype = Literal["bfloat16", "int8"]
_INT8_MAX = 127


def quantise(cells_NC: Tensor, dtype: CellDtype) -> tuple[Tensor, Tensor | None]:
    """Cells as stored: bfloat16 (N, C) and None, or int8 (N, C) and its scales, float32 (N,)."""
    if dtype == "bfloat16":
        return cells_NC.to(torch.bfloat16), None
    peak_N = cells_NC.abs().amax(1)
    scale_N = torch.where(peak_N > 0, peak_N / _INT8_MAX, 1.0).to(torch.float32)
    stored_NC = (cells_NC / scale_N.unsqueeze(1)).round().clamp(-_INT8_MAX, _INT8_MAX).to(torch.int8)
    return stored_NC, scale_N


def dequantise(stored_NC: Tensor, scale_N: Tensor | None) -> Tensor:
    """Stored cells as float32 (N, C)."""
    cells_NC = stored_NC.to(torch.float32)
    return cells_NC if scale_N is None else cells_NC * scale_N.unsqueeze(1)


def as_stored(cells_NC: Tensor, dtype: CellDtype) -> Tensor:
    """Cells after a round trip through their stored form; the gradient passes straight through."""
    rounded_NC = dequantise(*quantise(cells_NC.detach(), dtype))
    return cells_NC + (rounded_NC - cells_NC.detach())


def stored_bytes(cell_width: int, dtype: CellDtype) -> int:
    """Bytes of one stored cell."""
    return 2 * cell_width if dtype == "bfloat16" else cell_width + 4
