"""The number formats of stored cells: bfloat16, or int8 or int4 with one float32 scale per cell."""

import torch
from torch import Tensor

from tasks.codec.params import CellDtype

_INT8_MAX = 127
_INT4_MAX = 7
_INT4_ZERO = 8
"""What stands for 0 in a half byte, so that -7 to 7 are 1 to 15."""


def quantise(cells_NC: Tensor, dtype: CellDtype) -> tuple[Tensor, Tensor | None]:
    """Cells as stored: bfloat16 (N, C) and None, or whole numbers and their scales, float32 (N,).

    These are int8 (N, C), or for int4 two numbers in a byte, the first in its lower half: uint8 (N, C / 2).
    Raises `ValueError` for int4 cells of an odd width.
    """
    if dtype == "bfloat16":
        return cells_NC.to(torch.bfloat16), None
    most = _INT8_MAX if dtype == "int8" else _INT4_MAX
    peak_N = cells_NC.abs().amax(1)
    scale_N = torch.where(peak_N > 0, peak_N / most, 1.0).to(torch.float32)
    whole_NC = (cells_NC / scale_N.unsqueeze(1)).round().clamp(-most, most).to(torch.int8)
    if dtype == "int8":
        return whole_NC, scale_N
    if cells_NC.shape[1] % 2:
        raise ValueError(f"int4 cells need an even width, got {cells_NC.shape[1]}")
    halves_NC = (whole_NC + _INT4_ZERO).to(torch.uint8)
    return halves_NC[:, ::2] | (halves_NC[:, 1::2] << 4), scale_N


def dequantise(stored_NC: Tensor, scale_N: Tensor | None) -> Tensor:
    """Stored cells as float32 (N, C)."""
    if stored_NC.dtype == torch.uint8:
        halves_NC2 = torch.stack([stored_NC & 15, stored_NC >> 4], dim=2)
        stored_NC = halves_NC2.flatten(1).to(torch.int8) - _INT4_ZERO
    cells_NC = stored_NC.to(torch.float32)
    return cells_NC if scale_N is None else cells_NC * scale_N.unsqueeze(1)


def as_stored(cells_NC: Tensor, dtype: CellDtype) -> Tensor:
    """Cells after a round trip through their stored form; the gradient passes straight through."""
    rounded_NC = dequantise(*quantise(cells_NC.detach(), dtype))
    return cells_NC + (rounded_NC - cells_NC.detach())


def stored_bytes(cell_width: int, dtype: CellDtype) -> int:
    """Bytes of one stored cell."""
    return {"bfloat16": 2 * cell_width, "int8": cell_width + 4, "int4": cell_width // 2 + 4}[dtype]
